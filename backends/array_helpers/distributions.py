"""Methods of SciPy's distributions that generated source calls by name."""

from __future__ import annotations

from typing import Any

import numpy

CUSTOM: dict[str, Any] = {}
"""Distributions that are no attributes of scipy.stats, by their names in programs."""


def distribution_of(name: str) -> Any:
    """The distribution of a name: SciPy's, or one that this process knows."""
    import scipy.stats

    return CUSTOM[name] if " at " in name else getattr(scipy.stats, name)


def distribution_value(xp: Any, *args: Any, distribution: str, method: str) -> Any:
    """SciPy's value of a method at arrays that broadcast, computed on the host; private methods take one axis."""
    if xp is not numpy:
        raise TypeError(f"scipy.stats.{distribution} computes on the host; bring the arrays there with .get()")
    dist = distribution_of(distribution)
    shape = numpy.broadcast_shapes(*[numpy.shape(x) for x in args])
    flat = [numpy.broadcast_to(x, shape).ravel().astype(float) for x in args]
    if not flat or not flat[0].size:
        return numpy.zeros(shape)
    with numpy.errstate(all="ignore"):
        if type(dist).__name__ == "poisson_binom_gen":  # one parameter, with a separate axis
            flat = [*flat[:1], numpy.stack(flat[1:], axis=-1)]
        if method in ("pdf", "pmf", "cdf", "sf", "ppf", "isf"):
            out = getattr(dist, method)(*flat)
        elif method == "entropy":
            out = dist.vecentropy(*flat)
        elif method.startswith("munp"):
            out = dist._munp(int(method[4:]), *flat)
        else:
            wanted = {"moments": "mvsk"} if dist._stats_has_moments else {}
            out = dist._stats(*flat, **wanted)[int(method[5:])]
    return numpy.array(numpy.broadcast_to(numpy.asarray(out, float), flat[0].shape)).reshape(shape)[()]
