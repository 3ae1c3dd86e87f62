"""The CUDA backend: native programs as kernels in CUDA C, and their runs on a device.

The kernel description (`backends/loops/`) defines the computation. `plan.py` turns it into launches, and the C
backend's expressions are the bodies of the kernels. A `DeviceExecutable` runs a plan on a `Device`: CuPy's, or one of
the tests.
"""
