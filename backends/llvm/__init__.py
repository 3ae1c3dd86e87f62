"""Native code: kernels and whole programs compiled by LLVM."""
