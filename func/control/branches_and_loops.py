"""Branches and loops of functions: plain Python with known values, otherwise primitives of a Program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.control import loop_carry
from func.control.loop_carry import Carry, Widened
from func.control.scanning import Rows, check_count, scan, scanned
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.branches import INDEX, cond_call
from func.interpreters.control.compiled_bodies import is_abstract
from func.interpreters.control.while_loops import WhileLoop, while_call
from func.interpreters.core import PYTHON_SCALARS, Array, Tracer, concrete, dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError, BranchError, PredicateError
from func.interpreters.core.scopes import present_stage
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.imperative.interpreter import copy_of
from func.interpreters.primitives.elementwise.table import not_equal
from func.interpreters.primitives.structural.shapes import convert
from func.numpy.sharing import link_arguments
from func.transforms.boundary import array_leaf, check_callable, describe, name_of, unbox


@without_engine_frames
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands).

    With a known predicate it calls one of the two; vmap splits the batch by the predicate. In traced code (func.jit,
    func.make_program) it traces both, which must return the same tree, shapes and dtypes. One of them runs, or under
    vmap each for its batch elements.

    Args:
        pred: One bool, or one number to compare with zero.
        true_fun: The function for a true predicate.
        false_fun: The function for a false one.
        operands: Arguments of both; trees.

    Raises:
        PredicateError: The predicate is not one number (a TypeError).
        BranchError: In traced code: the branches return different trees, shapes or dtypes (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> f = lambda x: func.cond(x > 0, np.sqrt, lambda x: x * 0.0, x)
        >>> f(4.0), func.grad(f)(4.0), func.jit(f)(-1.0)
        (np.float64(2.0), np.float64(0.25), np.float64(-0.0))
    """
    check_callable(true_fun, "cond")
    check_callable(false_fun, "cond")
    pred = _scalar(pred, "cond", "the predicate", "biufc")
    if not is_abstract(pred):
        return _owned(true_fun(*operands) if bool(concrete(pred)) else false_fun(*operands))
    if dtype_of(pred) != np.bool_:
        pred = not_equal(pred, 0)
    return _traced_branches("cond", convert(pred, dtype=INDEX), (false_fun, true_fun), operands)


@without_engine_frames
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands); an index out of range becomes the nearest valid one.

    With a known index it calls one branch; in traced code see `cond`.

    Args:
        index: One integer.
        branches: Functions of the operands.
        operands: Arguments of all branches; trees.

    Raises:
        PredicateError: The index is not one integer (a TypeError).
        BranchError: In traced code: the branches return different trees, shapes or dtypes (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> [func.switch(i, [np.sin, np.cos, np.tan], 0.0) for i in (-3, 1, 7)]
        [np.float64(0.0), np.float64(1.0), np.float64(0.0)]
    """
    if not isinstance(branches, (list, tuple)):
        raise TypeError(f"func.switch takes a list of functions as its branches, not {type(branches).__name__}")
    branches = tuple(branches)
    if not branches:
        raise ArgumentError("func.switch needs at least one branch")
    for branch in branches:
        check_callable(branch, "switch")
    index = _scalar(index, "switch", "the index", "iu")
    if not is_abstract(index):
        return _owned(branches[min(max(int(concrete(index)), 0), len(branches) - 1)](*operands))
    return _traced_branches("switch", convert(index, dtype=INDEX), branches, operands)


def _owned(result: Any) -> Any:
    """The result of a branch, as arrays that the caller owns."""
    leaves, spec = tree.flatten(result)
    del result
    return tree.unflatten(spec, loop_carry.owned(leaves))


def _scalar(value: Any, transform: str, what: str, kinds: str) -> Array:
    """One number with a dtype of these kinds."""
    expected = {"biufc": "one bool or number", "iu": "one integer", "b": "one bool"}[kinds]
    if type(value) not in PYTHON_SCALARS and type(value) is not Tracer and not hasattr(value, "dtype"):
        raise PredicateError(f"func.{transform}: {what} must be {expected}, got a {type(value).__name__}{at_line()}")
    value = unbox(array_leaf(value, what, transform))
    if shape_of(value) != () or dtype_of(value).kind not in kinds:
        hint = "; reduce it with np.any or np.all" if shape_of(value) != () and kinds != "iu" else ""
        raise PredicateError(f"func.{transform}: {what} must be {expected}, got {describe(value)}{hint}{at_line()}")
    return value


def _traced_branches(
    transform: str, index: Array, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]
) -> Any:
    """The primitive of branches, traced on abstract operands."""
    leaves, spec = tree.flatten(operands)
    array_places = [i for i, leaf in enumerate(leaves) if type(leaf) is Tracer or isinstance(leaf, np.ndarray)]
    arrays = [loop_carry.strong(array_leaf(leaves[i], f"operand {i}", transform)) for i in array_places]
    avals = loop_carry.avals_of(arrays)
    compiled_branches: list[CompiledCall] = []
    specs: dict[int, Any] = {}
    captured: list[list[Any]] = []
    written: set[int] = set()
    returned: list[int] = []

    def flat(place: int, *values: Array) -> list[Array]:
        full = list(leaves)
        if values:
            link_arguments(values[0]._interpreter, branches[place], values, [leaves[i] for i in array_places])
        for i, value in zip(array_places, values, strict=True):
            full[i] = value
        variables = [value._attached for value in values]
        outs, specs[place] = tree.flatten(branches[place](*tree.unflatten(spec, full)))
        results = [unbox(array_leaf(out, f"the output of branch {place}", transform)) for out in outs]
        written.update([k for k, value in enumerate(values) if value._attached is not variables[k]])
        return [*results, *[copy_of(values[k]) for k in returned]]

    def trace() -> None:
        for place in range(len(branches)):
            compiled, own = loop_carry.compiled(functools.partial(flat, place), avals, transform, index)
            compiled_branches.append(compiled)
            captured.append(own)

    trace()
    _check_branches(transform, branches, compiled_branches, [specs[place] for place in range(len(branches))])
    stage = present_stage()
    if stage is not None and stage.plans_eager_code:  # runs one branch in Python: at most that of most traffic
        traffic = [compiled.program.cost().bytes_moved for compiled in compiled_branches]
        return _owned(branches[traffic.index(max(traffic))](*operands))
    if written:  # also the caller's arrays: every branch returns them
        returned += sorted(written)
        compiled_branches.clear()
        captured.clear()
        trace()
    shared, widened = loop_carry.with_shared_captures(compiled_branches, captured)
    outs = list(cond_call(index, *shared, *arrays, branches=tuple(loop_carry.with_common_dtypes(widened))))
    for k in reversed(returned):
        leaves[array_places[k]][...] = outs.pop()
    return tree.unflatten(specs[0], outs)


def _check_branches(
    transform: str, branches: Sequence[Callable[..., Any]], compiled: Sequence[CompiledCall], specs: Sequence[Any]
) -> None:
    """Raise unless branches agree in tree, shapes and dtypes; numbers take the dtype of the others."""
    for place in range(1, len(branches)):
        names = f"{_branch_name(transform, branches, 0)} and {_branch_name(transform, branches, place)}"
        if specs[place] != specs[0]:
            raise BranchError(
                f"func.{transform}: the branches {names} return different trees{at_line()}\n"
                f"  {tree.shown(specs[0])}\n  {tree.shown(specs[place])}"
            )
        outs = zip(specs[0].accessors(), compiled[0].out_avals, compiled[place].out_avals, strict=True)
        for name, aval, other in outs:
            if aval.shape != other.shape or loop_carry.common_dtype([aval, other]) is None:
                raise BranchError(
                    f"func.{transform}: the branches {names} return {aval} and {other} for {name.codify('output')}"
                    f"{at_line()}\nIn traced code all branches must return the same shapes and dtypes."
                )


def _branch_name(transform: str, branches: Sequence[Callable[..., Any]], place: int) -> str:
    word = ("false_fun", "true_fun")[place] if transform == "cond" else str(place)
    name = name_of(branches[place])
    return word if name == "<lambda>" else f"{word} ({name})"


@without_engine_frames
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any, *, max_steps: int | None = None
) -> Any:
    """carry = init; while cond_fun(carry): carry = body_fun(carry); then the carry.

    The carry is a tree of arrays that keeps its tree, shapes and dtypes; numbers in it become arrays. With known
    numbers it runs as a plain Python loop. In traced code it traces the condition and the body once, and reverse mode
    needs `max_steps`, as it saves values for each step. Under vmap finished batch elements keep their values until all
    have finished.

    Args:
        cond_fun: The condition, a function of the carry that returns one bool.
        body_fun: One step, a function of the carry that returns the next one.
        init: The first carry.
        max_steps: Stop after this number of steps, even if the condition still holds.

    Raises:
        PredicateError: cond_fun does not return one bool (a TypeError).
        CarryError: body_fun changes the tree, a shape or a dtype of the carry (a TypeError).
        NotDifferentiableError: Reverse mode of a traced loop without max_steps (a TypeError).

    Example:
        >>> import func
        >>> halvings = lambda x: func.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))
        >>> halvings(10.0)
        (np.float64(0.625), np.int64(4))
        >>> func.grad(func.jit(lambda x: func.while_loop(lambda c: c < 100, lambda c: c * c, x, max_steps=9)))(2.0)
        np.float64(1024.0)
    """
    check_callable(cond_fun, "while_loop")
    check_callable(body_fun, "while_loop")
    if max_steps is not None:
        check_count("while_loop", "max_steps", max_steps, "None or an int of at least 0", 0)
    return _while("while_loop", cond_fun, body_fun, init, max_steps)


def _while(
    transform: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any, max_steps: int | None
) -> Any:
    carry = Carry(init, transform, "state" if transform == "fori_loop" else "init")
    while True:
        try:
            return carry.tree(loop_carry.owned(list(_run_while(carry, cond_fun, body_fun, max_steps))))
        except Widened as widened:
            if widened.args[0] is not carry:
                raise


def _run_while(
    carry: Carry, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], max_steps: int | None
) -> Sequence[Array]:
    def test(values: Sequence[Array]) -> Array:
        return _scalar(cond_fun(carry.tree(values)), carry.transform, f"the condition {name_of(cond_fun)}", "b")

    def step(values: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        return carry.fit(carry.step(body_fun, name_of(body_fun), values), name_of(body_fun))

    def noting(tracers: Sequence[Array]) -> Callable[[], None]:
        return carry.noting_writes(body_fun, name_of(body_fun), tracers, initial)

    values, initial = carry.values(), carry.initial
    count = 0
    while max_steps is None or count < max_steps:
        if any([is_abstract(value) for value in values]):
            return _traced_while(carry, values, test, step, noting, None if max_steps is None else max_steps - count)
        going = test(values)
        if is_abstract(going):
            return _traced_while(carry, values, test, step, noting, None if max_steps is None else max_steps - count)
        if not concrete(going):
            break
        values, initial = step(values)
        count += 1
    return values


def _traced_while(
    carry: Carry,
    values: Sequence[Array],
    test: Any,
    step: Any,
    noting: Callable[[Sequence[Array]], Callable[[], None]],
    max_steps: int | None,
) -> Sequence[Array]:
    """The primitive of a loop, traced on an abstract carry; with a bound, a scan of branches."""
    if max_steps is not None:

        def bounded(now: list[Array], _: Any) -> tuple[list[Array], None]:
            return cond(test(now), lambda c: step(c)[0], lambda c: c, now), None

        return scan(bounded, list(values), None, length=max_steps)[0]  # type: ignore[no-any-return]
    avals, example = loop_carry.avals_of(values), next(iter(values), None)

    def flat(*now: Array) -> list[Array]:
        check = noting(now)
        result: list[Array] = step(now)[0]
        check()
        return result

    body, body_consts = loop_carry.compiled(flat, avals, carry.transform, example)
    condition, consts = loop_carry.compiled(lambda *now: [test(now)], avals, carry.transform, example)
    condition = loop_carry.with_strong_outputs(condition)
    loop = WhileLoop(len(consts), len(body_consts))
    outs: Sequence[Array] = while_call(*consts, *body_consts, *values, cond=condition, body=body, loop=loop)
    return outs


@without_engine_frames
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init: Any, *, unroll: int | bool = 1) -> Any:
    """carry = init; for i in range(lower, upper): carry = body_fun(i, carry); then the carry.

    The carry is a tree of arrays that keeps its tree, shapes and dtypes; i is an int64. With known bounds it is a scan,
    in both derivative modes; with traced bounds a while_loop.

    Args:
        lower: The first i, one integer.
        upper: The end of the range, exclusive, one integer.
        body_fun: One step, body_fun(i, carry) -> carry.
        init: The first carry.
        unroll: As in `scan`.

    Raises:
        PredicateError: A bound is not one integer (a TypeError).
        CarryError: body_fun changes the tree, a shape or a dtype of the carry (a TypeError).

    Example:
        >>> import func
        >>> func.fori_loop(1, 6, lambda i, product: product * i, 1)
        np.int64(120)
        >>> func.grad(lambda x: func.fori_loop(0, 3, lambda i, c: c * x, 1.0))(2.0)
        np.float64(12.0)
    """
    check_callable(body_fun, "fori_loop")
    check_count("fori_loop", "unroll", unroll, "True or an int of at least 1", 1)
    lower = _scalar(lower, "fori_loop", "lower", "iu")
    upper = _scalar(upper, "fori_loop", "upper", "iu")
    if is_abstract(lower) or is_abstract(upper):
        bounds = [convert(bound, dtype=INDEX) for bound in (lower, upper)]

        def step(state: Any) -> Any:
            i, last, carry = state
            return i + 1, last, body_fun(i, carry)

        functools.update_wrapper(step, body_fun)
        return _while("fori_loop", lambda state: state[0] < state[1], step, (*bounds, init), None)[2]
    numbers = np.arange(int(concrete(lower)), int(concrete(upper)), dtype=INDEX)

    def counted(carry: Any, i: Any) -> tuple[Any, None]:
        return body_fun(i, carry), None

    rows = Rows(numbers, None, "fori_loop")
    return scanned("fori_loop", counted, name_of(body_fun), init, rows, False, unroll)[0]
