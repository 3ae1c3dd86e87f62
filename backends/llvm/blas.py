"""BLAS and LAPACK as native functions."""


def provide(name: str) -> bool:
    """Whether `name` is a routine of SciPy's; then its address is registered."""
    return False
