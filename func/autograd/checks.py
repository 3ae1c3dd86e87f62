"""gradcheck and gradgradcheck: derivatives of functions of tensors against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.check_parts import (
    check_backward,
    check_batched_forward,
    check_directions,
    check_jacobians,
    precision,
)
from func.autograd.checked_jacobians import Checked, flat, floating, plain, unflat
from func.autograd.tensor import requires_grad, tensor
from func.interpreters.core import Tracer
from func.interpreters.core.errors import ArgumentError, GradcheckError


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
