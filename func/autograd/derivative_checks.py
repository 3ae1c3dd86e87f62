"""`gradcheck` and `gradgradcheck`, which compare derivatives of functions of tensors with finite differences.

They compare Jacobians by central differences, reverse mode and forward mode, as whole matrices or along random
directions. They also check repeated and batched pullbacks and batched tangents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.modes import enable_grad
from func.autograd.tensors import requires_grad, tensor, to_numpy
from func.interpreters.core import Tracer, dtype_of
from func.interpreters.core.errors import ArgumentError, GradcheckError
from func.interpreters.host.public_functions import without_engine_frames
from func.transforms.forward import jvp
from func.transforms.vmapping import vmap


def plain(value: Any) -> Any:
    """The array behind a tensor or result."""
    return np.array(to_numpy(value, force=True) if type(value) is Tracer else value)


def flat(value: Any) -> Any:
    """An array as a real vector: the real parts, then the imaginary parts of a complex one."""
    array: Any = np.asarray(value)
    return np.concatenate([array.real.ravel(), array.imag.ravel()]) if array.dtype.kind == "c" else array.ravel()


def unflat(vector: Any, like: Any) -> Any:
    """The array whose `flat` is a real vector, with the shape and dtype of `like`."""
    if like.dtype.kind == "c":
        half = len(vector) // 2
        return (vector[:half] + 1j * vector[half:]).reshape(like.shape).astype(like.dtype)
    return vector.reshape(like.shape).astype(like.dtype)


def floating(outs: Sequence[Any]) -> list[Any]:
    """The outputs that can have a derivative."""
    for i, out in enumerate(outs):
        if not hasattr(out, "dtype") and not isinstance(out, (int, float, complex)):
            raise TypeError(f"gradcheck: the function must return tensors, but output {i} is {type(out).__name__}")
    return [o for o in outs if hasattr(o, "dtype") and dtype_of(o).kind in "fc"]


class CheckedFunction:
    """The floating point outputs of a function, as a function of the inputs that require a gradient."""

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
        """New leaves with these values."""
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
        """The tangents of the outputs for tangents of the inputs that require a gradient."""

        def function(*points: Any) -> list[Any]:
            args = list(self.inputs)
            for place, point in zip(self.places, points, strict=True):
                args[place] = point
            out = self.func(*args)
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            return [o for o in outs if hasattr(o, "dtype") and dtype_of(o).kind in "fc"]

        out_tangents: list[Any] = jvp(function, tuple(self.points), tuple(tangents))[1]
        return out_tangents

    def tangents_of_input(self, i: int, tangent: Any) -> list[Any]:
        """The tangents of the outputs for a tangent of input i."""
        tangents: list[Any] = [np.zeros_like(point) for point in self.points]
        tangents[i] = tangent
        return self.push(tangents)

    def differentiable(self) -> list[int]:
        """The indices of the outputs that require a gradient; if none does, of all, as their derivatives are zero."""
        outs = self.outputs(self.leaves(self.points))
        recorded = [o for o, out in enumerate(outs) if type(out) is Tracer and requires_grad(out)]
        return recorded or [*range(len(outs))]

    def values(self, points: Sequence[Any]) -> list[Any]:
        """The outputs as plain arrays."""
        return [plain(o) for o in self.outputs(self.leaves(points))]


def by_differences(values: Callable[[Sequence[Any]], list[Any]], points: list[Any], eps: float) -> list[list[Any]]:
    """Jacobians by central differences: for each input and output a real matrix (inputs, outputs)."""
    jacobians = []
    for i, point in enumerate(points):
        base = flat(point)
        rows: list[list[Any]] = []
        for k in range(len(base)):
            sides = []
            for sign in (1, -1):
                shifted = base.copy()
                shifted[k] += sign * eps
                sides.append(values([*points[:i], unflat(shifted, point), *points[i + 1 :]]))
            rows.append([(flat(a) - flat(b)) / (2 * eps) for a, b in zip(*sides, strict=True)])
        jacobians.append(_by_output(rows))
    return jacobians


def _by_output(rows: list[list[Any]]) -> list[Any]:
    """A matrix for each output, from rows with a vector for each output."""
    return [np.array(vectors) for vectors in zip(*rows, strict=True)]


def _units(like: Any) -> list[Any]:
    """The unit vectors of the real vector space of an array."""
    size = len(flat(like))
    return [unflat(np.eye(size)[k], like) for k in range(size)]


def by_backward(checked: CheckedFunction) -> list[list[Any]]:
    """Jacobians by reverse mode, with one backward pass for each element of the outputs."""
    leaves = checked.leaves(checked.points)
    jacobians: list[list[Any]] = [[] for _ in leaves]
    for out in checked.outputs(leaves):
        rows: list[list[Any]] = [[] for _ in leaves]
        for unit in _units(plain(out)):
            if type(out) is Tracer and requires_grad(out):
                grads = grad(out, leaves, unit, retain_graph=True, materialize_grads=True)
            else:
                grads = [np.zeros_like(point) for point in checked.points]
            for input_rows, gradient in zip(rows, grads, strict=True):
                input_rows.append(flat(plain(gradient)))
        for jacobian, input_rows, point in zip(jacobians, rows, checked.points, strict=True):
            jacobian.append(np.array(input_rows).reshape(-1, len(flat(point))).T)
    return jacobians


def by_forward(checked: CheckedFunction) -> list[list[Any]]:
    """Jacobians by forward mode."""
    return [
        _by_output([[flat(plain(tangent)) for tangent in checked.tangents_of_input(i, unit)] for unit in _units(point)])
        for i, point in enumerate(checked.points)
    ]


def compare(numerical: Any, analytical: Any, mode: str, i: int, o: int, atol: float, rtol: float) -> None:
    """Raise if two Jacobians differ, with both of them and the first index in the message."""
    close = np.isclose(analytical, numerical, rtol=rtol, atol=atol)
    if close.all():
        return
    index = tuple(np.argwhere(~close)[0].tolist())
    raise GradcheckError(
        f"Jacobian mismatch for output {o} with respect to input {i} ({mode} mode), first at index {index}: "
        f"numerical {numerical[index]:.10g}, analytical {analytical[index]:.10g}\n{_both(numerical, analytical)}"
    )


def _both(numerical: Any, analytical: Any) -> str:
    """Two Jacobians side by side."""
    left, right = [np.array2string(m, precision=5, threshold=400).split("\n") for m in (numerical, analytical)]
    width = max([len("numerical:"), *[len(line) for line in left]])
    pairs = [("numerical:", "analytical:"), *zip(left, right, strict=True)]
    return "\n".join([f"{first:<{width}}   {second}" for first, second in pairs])


def precision(checked: CheckedFunction, eps: float, atol: float, rtol: float) -> tuple[Any, float, float, float]:
    """The function and tolerances of the differences: wider, and on float64 copies, for single precision."""
    low_precision = [p for p in checked.points if np.finfo(p.dtype).eps > 1e-10]
    if not low_precision:
        return checked.values, eps, atol, rtol
    warnings.warn(
        "gradcheck: an input is not in double precision; gradcheck takes differences on float64 copies and compares "
        "with tolerances of the input's precision",
        UserWarning,
        stacklevel=4,
    )
    epsilon = float(max([np.finfo(p.dtype).eps for p in low_precision]))

    def widened(points: Sequence[Any]) -> list[Any]:
        doubles = [p.astype(np.complex128 if p.dtype.kind == "c" else np.float64) for p in points]
        return checked.values(doubles)

    return widened, eps, max(atol, 50 * epsilon), max(rtol, 500 * epsilon)


def check_jacobians(
    checked: CheckedFunction, options: dict[str, Any], values: Any, eps: float, atol: float, rtol: float
) -> None:
    """Compare whole Jacobians by differences with those by both modes."""
    wide = [p.astype(np.result_type(p, np.float64)) for p in checked.points]
    numerical = by_differences(values, wide, eps)
    modes = [("backward", by_backward)] if options["backward"] else []
    modes += [("forward", by_forward)] if options["forward"] else []
    differentiable = checked.differentiable()
    for mode, jacobians in modes:
        for i, blocks in enumerate(zip(numerical, jacobians(checked), strict=True)):
            for o, (by_difference, by_mode) in enumerate(zip(*blocks, strict=True)):
                if o in differentiable:
                    compare(by_difference, by_mode, mode, checked.places[i], o, atol, rtol)


def check_directions(
    checked: CheckedFunction, options: dict[str, Any], values: Any, eps: float, atol: float, rtol: float
) -> None:
    """Compare u·J v by differences with both modes, for random unit vectors u and v."""
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
            if options["backward"]:
                ct = point * 0
                if type(out) is Tracer and requires_grad(out):
                    (ct,) = grad(out, leaves[i], u, retain_graph=True, materialize_grads=True)
                compare(
                    numerical,
                    np.array([flat(plain(ct)) @ flat(v)]),
                    "backward",
                    checked.places[i],
                    o,
                    atol,
                    rtol,
                )
            if options["forward"]:
                pushed = flat(plain(checked.tangents_of_input(i, v.astype(point.dtype))[o]))
                compare(numerical, np.array([flat(u) @ pushed]), "forward", checked.places[i], o, atol, rtol)


def check_backward(checked: CheckedFunction, options: dict[str, Any]) -> None:
    """Check determinism, undefined gradients, dtypes and batches of backward passes."""
    leaves = checked.leaves(checked.points)
    outs = [o for o in checked.outputs(leaves) if type(o) is Tracer and requires_grad(o)]
    if not outs:
        return
    rng = np.random.default_rng(1)
    seeds = [unflat(rng.normal(size=len(flat(plain(o)))), plain(o)) for o in outs]

    def pulled(outputs: Sequence[Any], cts: Sequence[Any], **options: Any) -> list[Any]:
        gradients = grad(list(outputs), leaves, list(cts), retain_graph=True, materialize_grads=True, **options)
        return [plain(gradient) for gradient in gradients]

    first, second = pulled(outs, seeds), pulled(outs, seeds)
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        if np.max(np.abs(a - b), initial=0.0) > options["nondet_tol"]:
            raise GradcheckError(
                f"Backward is not reentrant: running it twice gave gradients of input {checked.places[i]} that differ "
                f"by {np.max(np.abs(a - b)):.3g} (nondet_tol={options['nondet_tol']})"
            )
    if options["dtypes"]:
        for i, (gradient, point) in enumerate(zip(first, checked.points, strict=True)):
            if gradient.dtype != point.dtype:
                raise GradcheckError(
                    f"the gradient of input {checked.places[i]} is {gradient.dtype}, the input {point.dtype}"
                )
    if options["undefined"] and len(outs) > 1:
        for o, (out, seed) in enumerate(zip(outs, seeds, strict=True)):
            zeros = [seed if k == o else np.zeros_like(s) for k, s in enumerate(seeds)]
            for a, b in zip(pulled([out], [seed]), pulled(outs, zeros), strict=True):
                if not np.allclose(a, b):
                    raise GradcheckError(f"undefined gradients of the outputs other than {o} are not treated as zero")
    if options["batched"]:
        second_seeds = [unflat(rng.normal(size=len(flat(s))), s) for s in seeds]
        batch = [np.stack(pair) for pair in zip(seeds, second_seeds, strict=True)]
        singles = zip(first, pulled(outs, second_seeds), strict=True)
        for i, (whole, pair) in enumerate(zip(pulled(outs, batch, is_grads_batched=True), singles, strict=True)):
            if not np.allclose(whole, np.stack(pair)):
                raise GradcheckError(f"the batched gradient of input {checked.places[i]} differs from the single ones")


def check_batched_forward(checked: CheckedFunction) -> None:
    """Check that forward mode of a batch of tangents is the stack of single ones."""
    rng = np.random.default_rng(2)
    for i, point in enumerate(checked.points):
        tangents = [unflat(rng.normal(size=len(flat(point))), point) for _ in range(3)]
        whole = vmap(lambda t, i=i: checked.tangents_of_input(i, t))(np.stack(tangents))
        for k, tangent in enumerate(tangents):
            for mapped, single in zip(whole, checked.tangents_of_input(i, tangent), strict=True):
                if not np.allclose(plain(mapped)[k], plain(single)):
                    raise GradcheckError(
                        f"the batched tangents of input {checked.places[i]} differ from the single ones"
                    )


@without_engine_frames
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

    Complex inputs and outputs count as their real and imaginary parts. For inputs in single precision it warns, and
    takes differences on copies in double precision.

    Args:
        func: A function of tensors that returns a tensor or a tuple of tensors.
        inputs: A tensor or a tuple of tensors; the check covers those that require a gradient.
        eps, atol, rtol: The step of the differences, and the absolute and relative tolerances.
        raise_exception: Raise if a check fails; otherwise return False.
        nondet_tol: The absolute tolerance between two runs of backward.
        check_undefined_grad: Check that missing gradients of outputs count as zero.
        check_grad_dtypes: Check that gradients have the dtypes of the inputs.
        check_batched_grad, check_batched_forward_grad: Check that batches of cotangents (tangents) give the stack of
            single ones.
        check_forward_ad, check_backward_ad: The modes to check.
        fast_mode: Check one random direction for each input and output instead of whole Jacobians.

    Raises:
        GradcheckError: The derivatives differ. The message shows both Jacobians and the first index.
        ValueError: No input requires a gradient.

    Example:
        >>> import numpy as np, func
        >>> x = func.tensor(np.array([0.5, 1.5]), requires_grad=True)
        >>> func.autograd.gradcheck(lambda x: np.sin(x) * x, (x,), check_forward_ad=True)
        True
    """
    checked = CheckedFunction(func, inputs)
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


@without_engine_frames
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
    """Compare second derivatives with differences of gradients.

    It runs `gradcheck` on the gradient as a function of the inputs and of the cotangents of the outputs. The
    cotangents are random if `grad_outputs` is None.

    Raises:
        GradcheckError, ValueError: As `gradcheck`.

    Example:
        >>> import numpy as np, func
        >>> x = func.tensor(np.array([0.5, 1.5]), requires_grad=True)
        >>> func.autograd.gradgradcheck(lambda x: np.sin(x) * x, (x,))
        True
    """
    checked = CheckedFunction(func, inputs)
    outs = [plain(o) for o in checked.outputs(checked.leaves(checked.points))]
    if grad_outputs is None:
        rng = np.random.default_rng(3)
        cotangents = [unflat(rng.normal(size=len(flat(o))), o) for o in outs]
        if gen_non_contig_grad_outputs:
            cotangents = [np.repeat(ct, 2, axis=-1)[..., ::2] if ct.ndim else ct for ct in cotangents]
    else:
        cotangents = [plain(ct) for ct in (grad_outputs if isinstance(grad_outputs, (tuple, list)) else [grad_outputs])]
    count = len(checked.inputs)

    def gradient(*args: Any) -> tuple[Any, ...]:
        values, cts = list(args[:count]), list(args[count:])
        for place in checked.places:
            if type(values[place]) is not Tracer or not requires_grad(values[place]):
                values[place] = tensor(values[place], requires_grad=True)
        leaves = [values[place] for place in checked.places]
        out = func(*values)
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        pairs = [
            (o, ct) for o, ct in zip(floating(results), cts, strict=True) if type(o) is Tracer and requires_grad(o)
        ]
        recorded, seeds = [o for o, _ in pairs], [ct for _, ct in pairs]
        return grad(recorded, leaves, seeds, create_graph=True, materialize_grads=True)  # type: ignore[no-any-return]

    seeds = [tensor(ct, requires_grad=True) for ct in cotangents]
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
