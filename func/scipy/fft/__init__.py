"""scipy.fft: its transforms on traced and plain arrays; their derivatives are transforms too.

While traced values exist, SciPy's functions reach these as a backend; `overwrite_x` and `workers` have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.fft as _scipy

from func import numpy as fnp
from func.host.interception import without_intercepted
from func.interpreters.core import TRACED, Array
from func.numpy import fft as _numpy
from func.host import scipy_hooks as _scipy_hooks
from func.host.scipy_hooks import holds_traced
from func.scipy.fft.cosine_sine import array_of, dct, dctn, dst, dstn, idct, idctn, idst, idstn
from func.scipy.fft.cosine_sine import helper as _helper
from func.scipy.fft.hankel import fht, ifht
from func.scipy.kinds.public_modules import public_module as _public_module

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftn", "fftshift", "fht", "hfft", "hfft2", "hfftn",
    "idct", "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ifht", "ihfft", "ihfft2", "ihfftn",
    "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip


def _one_axis(name: str) -> Callable[..., Any]:
    own, original = getattr(_numpy, name), getattr(_scipy, name)

    def transform(
        x: Array,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Array:
        if not holds_traced(x):
            return original(x, n, axis, norm, overwrite_x, workers, plan=plan)
        _refuse_plan(plan)
        return own(x, n, axis, norm)

    return _named(transform, name)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _hermitian(name: str) -> Callable[..., Any]:
    """The function of several axes for the axis whose spectrum (for inverses, array) is real."""

    def transform(x: Array, s: Any, axes: Any, norm: str | None) -> Array:
        if norm not in _SWAPPED:
            raise ValueError(f"Invalid norm value {norm!r}, should be 'backward', 'ortho' or 'forward'")
        norm = _SWAPPED[norm]
        if name.startswith("i"):
            return fnp.conj(_numpy.rfftn(x, s, axes, norm))
        return _numpy.irfftn(fnp.conj(x), s, axes, norm)

    return transform


def _axes(name: str) -> Callable[..., Any]:
    own = _hermitian(name) if "h" in name else getattr(_numpy, name)
    original = getattr(_scipy, name)
    real = name.startswith(("r", "ir", "h", "ih"))
    default = (-2, -1) if name.endswith("2") else None

    def transform(
        x: Array,
        s: Any = None,
        axes: Any = default,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Array:
        if not holds_traced(x):
            return original(x, s, axes, norm, overwrite_x, workers, plan=plan)
        _refuse_plan(plan)
        x = array_of(x)
        last = real and s is None
        lengths, places = _helper._init_nd_shape_and_axes(x, s, axes)
        if not places and real:
            raise ValueError("at least 1 axis must be transformed")
        if not places:
            return x
        return own(x, None if last else lengths, places, norm)

    return _named(transform, name)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.fft.{name} on traced and plain arrays, in its arguments and conventions."
    return function


def _refuse_plan(plan: Any) -> None:
    if plan is not None:
        raise NotImplementedError("Passing a precomputed plan is not yet supported by scipy.fft functions")


fft, ifft, rfft, irfft, hfft, ihfft = [_one_axis(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")]
fft2, ifft2, rfft2, irfft2 = [_axes(name) for name in ("fft2", "ifft2", "rfft2", "irfft2")]
fftn, ifftn, rfftn, irfftn = [_axes(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")]
hfft2, ihfft2, hfftn, ihfftn = [_axes(name) for name in ("hfft2", "ihfft2", "hfftn", "ihfftn")]
fftshift, ifftshift = _numpy.fftshift, _numpy.ifftshift


class Backend:
    """A backend of scipy.fft for calls with traced values; it leaves all others to SciPy, on plain memory."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Any, args: Any, kwargs: Any) -> Any:
        if not (TRACED.run or TRACED.stay):
            return NotImplemented
        if holds_traced(args) or holds_traced(kwargs):
            name = method.__name__
            return globals()[name](*args, **kwargs) if name in __all__ else NotImplemented
        was_intercepting, out = without_intercepted(method, args, kwargs)
        return out if was_intercepting else NotImplemented


def register() -> None:
    """Tell SciPy's dispatch of this backend."""
    _scipy.register_backend(Backend)


__getattr__, __dir__ = _public_module(globals(), _scipy)
_scipy_hooks.register_late(globals())
