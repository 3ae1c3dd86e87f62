"""The CUDA backend: native programs as kernels in CUDA C, and what runs them on a device.

The kernel description (`backends/loops/`) says what to compute; `plan.py` turns it into launches, and the C backend's
expressions are the bodies of the kernels. A `DeviceExecutable` runs a plan on a `Device`: CuPy's, or one of the tests.
"""
