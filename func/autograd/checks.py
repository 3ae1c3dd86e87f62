"""gradcheck and gradgradcheck: derivatives of functions of tensors against differences.

Jacobians of the function by differences, by backward and by forward mode are compared, as whole matrices or along
random directions; then repeated and batched pullbacks, batched tangents and second derivatives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.modes import enable_grad
from func.autograd.tensor import requires_grad, tensor, to_numpy
from func.interpreters.core import Tracer, dtype_of
from func.interpreters.core.errors import ArgumentError, GradcheckError
from func.transforms.forward import jvp
from func.transforms.vmapping import vmap


def plain(value: Any) -> Any:
    """The array behind a tensor or result."""
    return np.array(to_numpy(value, force=True) if type(value) is Tracer else value)


def flat(value: Any) -> Any:
    """An array as a real vector: real parts, then imaginary parts."""
    array: Any = np.asarray(value)
    return np.concatenate([array.real.ravel(), array.imag.ravel()]) if array.dtype.kind == "c" else array.ravel()


def unflat(vector: Any, like: Any) -> Any:
    """The array of a real vector."""
    if like.dtype.kind == "c":
        half = len(vector) // 2
        return (vector[:half] + 1j * vector[half:]).reshape(like.shape).astype(like.dtype)
    return vector.reshape(like.shape).astype(like.dtype)


def floating(outs: Sequence[Any]) -> list[Any]:
    """The outputs that can carry a derivative."""
    for i, out in enumerate(outs):
        if not hasattr(out, "dtype") and not isinstance(out, (int, float, complex)):
            raise TypeError(f"gradcheck: the function must return tensors, but output {i} is {type(out).__name__}")
    return [o for o in outs if hasattr(o, "dtype") and dtype_of(o).kind in "fc"]


class Checked:
    """A function at some inputs: its floating point outputs as a function of the inputs that require a gradient."""

    def __init__(self, func: Callable[..., Any], inputs: Any) -> None:
        self.func = func
        self.inputs = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        self.places = [i for i, x in enumerate(self.inputs) if type(x) is Tracer and requires_grad(x)]
        if not self.places:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them have "
                "requires_grad=True."
            )
        self.points = [plain(self.inputs[i]) for i in self.places]

    def leaves(self, points: Sequence[Any]) -> list[Any]:
        """Fresh leaves at some points."""
        return [tensor(point, requires_grad=True) for point in points]

    def outputs(self, leaves: Sequence[Any]) -> list[Any]:
        """The floating point outputs."""
        args = [tensor(plain(x)) if type(x) is Tracer else x for x in self.inputs]
        for place, leaf in zip(self.places, leaves, strict=True):
            args[place] = leaf
        with enable_grad():
            out = self.func(*args)
        return floating(list(out) if isinstance(out, (tuple, list)) else [out])

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs, for tangents of the inputs that require a gradient."""

        def function(*points: Any) -> list[Any]:
            args = list(self.inputs)
            for place, point in zip(self.places, points, strict=True):
                args[place] = point
            out = self.func(*args)
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            return [o for o in outs if hasattr(o, "dtype") and dtype_of(o).kind in "fc"]

        dots: list[Any] = jvp(function, tuple(self.points), tuple(tangents))[1]
        return dots

    def push_one(self, i: int, tangent: Any) -> list[Any]:
        """The tangents of the outputs where one input moves."""
        tangents: list[Any] = [np.zeros_like(point) for point in self.points]
        tangents[i] = tangent
        return self.push(tangents)

    def differentiable(self) -> list[int]:
        """Which outputs require a gradient."""
        outs = self.outputs(self.leaves(self.points))
        return [o for o, out in enumerate(outs) if type(out) is Tracer and requires_grad(out)]

    def values(self, points: Sequence[Any]) -> list[Any]:
        """The outputs as plain arrays."""
        return [plain(o) for o in self.outputs(self.leaves(points))]


def by_differences(values: Callable[[Sequence[Any]], list[Any]], points: list[Any], eps: float) -> list[list[Any]]:
    """Jacobians by central differences: for each input and output a matrix (inputs, outputs) of real numbers."""
    jacobians = []
    for i, point in enumerate(points):
        base = flat(point)
        rows: list[list[Any]] = []
        for k in range(len(base)):
            sides = []
            for sign in (1, -1):
                moved = base.copy()
                moved[k] += sign * eps
                sides.append(values([*points[:i], unflat(moved, point), *points[i + 1 :]]))
            width = 2 * eps
            rows.append([(flat(a) - flat(b)) / width for a, b in zip(*sides, strict=True)])
        count = len(rows[0]) if rows else 0
        jacobians.append([np.array([row[o] for row in rows]) for o in range(count)])
    return jacobians


def _units(like: Any) -> list[Any]:
    """The real unit directions of an array."""
    size = len(flat(like))
    return [unflat(np.eye(size)[k], like) for k in range(size)]


def by_backward(checked: Checked) -> list[list[Any]]:
    """Jacobians by backward, one row of cotangents after the other."""
    leaves = checked.leaves(checked.points)
    outs = checked.outputs(leaves)
    found: list[list[Any]] = [[] for _ in leaves]
    for out in outs:
        columns: list[list[Any]] = [[] for _ in leaves]
        for unit in _units(plain(out)):
            if type(out) is Tracer and requires_grad(out):
                grads = grad(out, leaves, unit, retain_graph=True, materialize_grads=True)
            else:
                grads = [np.zeros_like(point) for point in checked.points]
            for column, one in zip(columns, grads, strict=True):
                column.append(flat(plain(one)))
        for place, column in enumerate(columns):
            size = len(flat(checked.points[place]))
            found[place].append(np.array(column).reshape(-1, size).T)
    return found


def by_forward(checked: Checked) -> list[list[Any]]:
    """Jacobians by forward mode."""
    found = []
    for i, point in enumerate(checked.points):
        rows = [[flat(plain(dot)) for dot in checked.push_one(i, unit)] for unit in _units(point)]
        count = len(rows[0]) if rows else 0
        found.append([np.array([row[o] for row in rows]) for o in range(count)])
    return found


def compare(numerical: Any, analytical: Any, mode: str, i: int, o: int, atol: float, rtol: float) -> None:
    """Raise where two Jacobians differ, showing both and the first place."""
    close = np.isclose(analytical, numerical, rtol=rtol, atol=atol)
    if close.all():
        return
    index = tuple(np.argwhere(~close)[0].tolist())
    raise GradcheckError(
        f"Jacobian mismatch for output {o} with respect to input {i} ({mode} mode), first at index {index}: "
        f"numerical {numerical[index]:.10g}, analytical {analytical[index]:.10g}\n{_beside(numerical, analytical)}"
    )


def _beside(numerical: Any, analytical: Any) -> str:
    """Two Jacobians side by side."""
    left, right = [np.array2string(m, precision=5, threshold=400).split("\n") for m in (numerical, analytical)]
    width = max([len("numerical:"), *[len(line) for line in left]])
    pairs = [("numerical:", "analytical:"), *zip(left, right, strict=True)]
    return "\n".join([f"{one:<{width}}   {other}" for one, other in pairs])


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


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compare the derivatives of a function of tensors with central differences.

    Complex inputs and outputs count as their real and imaginary parts. Inputs in single precision give a warning, and
    differences are taken on copies in double precision.

    Args:
        func: Takes tensors, returns a tensor or a tuple of tensors.
        inputs: A tensor or a tuple; those that require a gradient are checked.
        eps, atol, rtol: The step of the differences, and how far derivatives may differ from them.
        raise_exception: Raise where something is wrong; else return False.
        nondet_tol: How far two runs of backward may differ.
        check_undefined_grad: Gradients of outputs that are not given count as zero.
        check_grad_dtypes: Gradients have the dtypes of the inputs.
        check_batched_grad, check_batched_forward_grad: Batches of cotangents (tangents) give the stack of single ones.
        check_forward_ad, check_backward_ad: Which modes to check.
        fast_mode: One random direction for each input and output instead of whole Jacobians.

    Raises:
        GradcheckError: They differ: the message shows both Jacobians and the first offending index.
        ValueError: No input requires a gradient.

    Example:
        >>> import numpy as np, func
        >>> x = func.tensor(np.array([0.5, 1.5]), requires_grad=True)
        >>> func.autograd.gradcheck(lambda x: np.sin(x) * x, (x,), check_forward_ad=True)
        True
    """
    checked = Checked(func, inputs)
    if not eps > 0:
        raise ArgumentError(f"gradcheck: eps must be positive, not {eps!r}")
    if not (check_backward_ad or check_forward_ad):
        raise ArgumentError(
            "gradcheck: check_backward_ad and check_forward_ad are both off, so nothing would be checked"
        )
    if check_batched_grad and not check_backward_ad:
        raise ArgumentError("gradcheck: check_batched_grad needs check_backward_ad=True")
    if check_batched_forward_grad and not check_forward_ad:
        raise ArgumentError("gradcheck: check_batched_forward_grad needs check_forward_ad=True")
    options = {
        "backward": check_backward_ad,
        "forward": check_forward_ad,
        "nondet_tol": nondet_tol,
        "undefined": check_undefined_grad,
        "dtypes": check_grad_dtypes,
        "batched": check_batched_grad,
    }
    values, eps, atol, rtol = precision(checked, eps, atol, rtol)
    try:
        (check_directions if fast_mode else check_jacobians)(checked, options, values, eps, atol, rtol)
        if check_backward_ad:
            check_backward(checked, options)
        if check_batched_forward_grad:
            check_batched_forward(checked)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compare second derivatives with differences of gradients: `gradcheck` of the gradient, by the inputs and by the
    cotangents of the outputs (random ones where `grad_outputs` is not given).

    Raises:
        GradcheckError, ValueError: As `gradcheck`.

    Example:
        >>> import numpy as np, func
        >>> x = func.tensor(np.array([0.5, 1.5]), requires_grad=True)
        >>> func.autograd.gradgradcheck(lambda x: np.sin(x) * x, (x,))
        True
    """
    checked = Checked(func, inputs)
    outs = [plain(o) for o in checked.outputs(checked.leaves(checked.points))]
    if grad_outputs is None:
        rng = np.random.default_rng(3)
        given = [unflat(rng.normal(size=len(flat(o))), o) for o in outs]
        given = [np.repeat(g, 2, axis=-1)[..., ::2] if gen_non_contig_grad_outputs and g.ndim else g for g in given]
    else:
        listed = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
        given = [plain(g) for g in listed]
    count = len(checked.inputs)

    def gradient(*args: Any) -> tuple[Any, ...]:
        values, cts = list(args[:count]), list(args[count:])
        leaves = []
        for place in checked.places:
            values[place] = (
                values[place]
                if type(values[place]) is Tracer and requires_grad(values[place])
                else tensor(values[place], requires_grad=True)
            )
            leaves.append(values[place])
        out = func(*values)
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        kept = [(o, ct) for o, ct in zip(floating(results), cts, strict=True) if type(o) is Tracer and requires_grad(o)]
        return grad([o for o, _ in kept], leaves, [ct for _, ct in kept], create_graph=True, materialize_grads=True)  # type: ignore[no-any-return]

    seeds = [tensor(g, requires_grad=True) for g in given]
    return gradcheck(
        gradient,
        (*checked.inputs, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )
