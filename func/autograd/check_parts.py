"""What gradcheck looks at: Jacobians, directions, repeated and batched pullbacks, batched tangents."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.checked_jacobians import (
    Checked,
    by_backward,
    by_differences,
    by_forward,
    compare,
    flat,
    plain,
    unflat,
)
from func.autograd.tensor import requires_grad
from func.interpreters.core import Tracer
from func.interpreters.core.errors import GradcheckError
from func.transforms.vmapping import vmap


def precision(checked: Checked, eps: float, atol: float, rtol: float) -> tuple[Any, float, float, float]:
    """Where differences are taken: for single precision at copies in double, with wider tolerances."""
    coarse = [p for p in checked.points if np.finfo(p.dtype).eps > 1e-10]
    if not coarse:
        return checked.values, eps, atol, rtol
    warnings.warn(
        "gradcheck: an input is not in double precision; differences are taken on float64 copies and compared with "
        "tolerances of the input's precision",
        UserWarning,
        stacklevel=4,
    )
    width = float(max([np.finfo(p.dtype).eps for p in coarse]))

    def wide(points: Sequence[Any]) -> list[Any]:
        raised = [p.astype(np.complex128 if p.dtype.kind == "c" else np.float64) for p in points]
        return checked.values(raised)

    return wide, eps, max(atol, 50 * width), max(rtol, 500 * width)


def check_jacobians(
    checked: Checked, options: dict[str, Any], values: Any, eps: float, atol: float, rtol: float
) -> None:
    """Whole Jacobians by differences and by both modes."""
    wide = [p.astype(np.result_type(p, np.float64)) for p in checked.points]
    numerical = by_differences(values, wide, eps)
    modes = [("backward", by_backward)] if options["backward"] else []
    modes += [("forward", by_forward)] if options["forward"] else []
    differentiable = checked.differentiable()
    for mode, jacobians in modes:
        for i, (mine, theirs) in enumerate(zip(numerical, jacobians(checked), strict=True)):
            for o, (one, other) in enumerate(zip(mine, theirs, strict=True)):
                if o not in differentiable:
                    continue
                compare(one, other, mode, checked.places[i], o, atol, rtol)


def check_directions(
    checked: Checked, options: dict[str, Any], values: Any, eps: float, atol: float, rtol: float
) -> None:
    """u·J v by differences and by both modes, for random directions of unit length."""
    rng = np.random.default_rng(0)

    def direction(like: Any) -> Any:
        vector = rng.normal(size=len(flat(like)))
        return unflat(vector / (float(np.linalg.norm(vector)) or 1.0), like)

    leaves = checked.leaves(checked.points)
    outs = checked.outputs(leaves)
    wide = [p.astype(np.result_type(p, np.float64)) for p in checked.points]
    differentiable = checked.differentiable()
    for o, out in enumerate(outs):
        if o not in differentiable:
            continue
        u = direction(plain(out))
        for i, point in enumerate(checked.points):
            v = direction(wide[i])
            ends = [values([*wide[:i], wide[i] + s * eps * v, *wide[i + 1 :]])[o] for s in (1, -1)]
            numerical = np.array([flat(u) @ (flat(ends[0]) - flat(ends[1])) / (2 * eps)])
            if options["backward"] and type(out) is Tracer and requires_grad(out):
                (one,) = grad(out, leaves[i], u, retain_graph=True, materialize_grads=True)
                compare(numerical, np.array([flat(plain(one)) @ flat(v)]), "backward", checked.places[i], o, atol, rtol)
            if options["forward"]:
                pushed = flat(plain(checked.push_one(i, v.astype(point.dtype))[o]))
                compare(numerical, np.array([flat(u) @ pushed]), "forward", checked.places[i], o, atol, rtol)


def check_backward(checked: Checked, options: dict[str, Any]) -> None:
    """Determinism, undefined gradients, dtypes and batches."""
    leaves = checked.leaves(checked.points)
    outs = [o for o in checked.outputs(leaves) if type(o) is Tracer and requires_grad(o)]
    if not outs:
        return
    rng = np.random.default_rng(1)
    seeds = [unflat(rng.normal(size=len(flat(plain(o)))), plain(o)) for o in outs]

    def pulled(chosen: Sequence[Any], cts: Sequence[Any], **more: Any) -> list[Any]:
        found = grad(list(chosen), leaves, list(cts), retain_graph=True, materialize_grads=True, **more)
        return [plain(one) for one in found]

    first, second = pulled(outs, seeds), pulled(outs, seeds)
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        if np.max(np.abs(a - b), initial=0.0) > options["nondet_tol"]:
            raise GradcheckError(
                f"Backward is not reentrant: running it twice gave gradients of input {checked.places[i]} that differ "
                f"by {np.max(np.abs(a - b)):.3g} (nondet_tol={options['nondet_tol']})"
            )
    if options["dtypes"]:
        for i, (one, point) in enumerate(zip(first, checked.points, strict=True)):
            if one.dtype != point.dtype:
                raise GradcheckError(
                    f"the gradient of input {checked.places[i]} is {one.dtype}, the input {point.dtype}"
                )
    if options["undefined"] and len(outs) > 1:
        for o, (out, seed) in enumerate(zip(outs, seeds, strict=True)):
            zeros = [seed if k == o else np.zeros_like(s) for k, s in enumerate(seeds)]
            for a, b in zip(pulled([out], [seed]), pulled(outs, zeros), strict=True):
                if not np.allclose(a, b):
                    raise GradcheckError(f"undefined gradients of the outputs other than {o} are not taken for zero")
    if options["batched"]:
        others = [unflat(rng.normal(size=len(flat(s))), s) for s in seeds]
        batch = [np.stack([s, other]) for s, other in zip(seeds, others, strict=True)]
        singles = zip(first, pulled(outs, others), strict=True)
        for i, (whole, pair) in enumerate(zip(pulled(outs, batch, is_grads_batched=True), singles, strict=True)):
            if not np.allclose(whole, np.stack(pair)):
                raise GradcheckError(f"the batched gradient of input {checked.places[i]} differs from the single ones")


def check_batched_forward(checked: Checked) -> None:
    """Forward mode of several tangents at once is the stack of single ones."""
    rng = np.random.default_rng(2)
    for i, point in enumerate(checked.points):
        tangents = [unflat(rng.normal(size=len(flat(point))), point) for _ in range(3)]
        whole = vmap(lambda t, i=i: checked.push_one(i, t))(np.stack(tangents))
        for k, one in enumerate(tangents):
            for mapped, single in zip(whole, checked.push_one(i, one), strict=True):
                if not np.allclose(plain(mapped)[k], plain(single)):
                    raise GradcheckError(
                        f"the batched tangents of input {checked.places[i]} differ from the single ones"
                    )
