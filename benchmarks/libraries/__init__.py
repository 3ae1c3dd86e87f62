"""One class per contestant: each runs the same job on its library.

A job is `make_job(library) -> function of the data`. It finds the array namespace in `library.np`, and the transforms
as methods. Functions that NumPy lacks and a library has in a tuned form (layer norm, convolution) are methods, too.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.contestants import (
    FUNC,
    FUNC_JIT,
    HIPS,
    JAX,
    JAX_JET,
    JAX_JIT,
    JAX_UNROLLED,
    TORCH,
    TORCH_COMPILE,
    TORCH_FUNC,
)
from benchmarks.libraries.base import Library as Library
from benchmarks.libraries.compiling import Func, FuncJit, Jax, JaxJit
from benchmarks.libraries.hips import Hips
from benchmarks.libraries.pytorch import Torch, TorchCompile, TorchFunc
from benchmarks.trees import convert

LIBRARIES: dict[str, Callable[[Any], Library]] = {
    FUNC: Func,
    FUNC_JIT: FuncJit,
    HIPS: Hips,
    TORCH_FUNC: TorchFunc,
    TORCH: Torch,
    TORCH_COMPILE: TorchCompile,
    JAX: Jax,
    JAX_JIT: JaxJit,
    JAX_UNROLLED: JaxJit,
    JAX_JET: JaxJit,
}


def to_library(library: Library, data: Any) -> Any:
    """The data with every array as the library's own."""
    return convert(library.array, data)
