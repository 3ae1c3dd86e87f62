"""Checkpoints of tensors: of a function's intermediate values none is kept, and backward computes them again."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func import tree
from func.autograd.modes import is_grad_enabled
from func.interpreters.core import EVALUATE, Tracer, dtype_of, shape_of, unboxed
from func.interpreters.core.errors import ArgumentError, CheckpointError
from func.interpreters.imperative.interpreter import boxed
from func.transforms import checkpointing
from func.transforms.boundary import check_callable, name_of

Maker: TypeAlias = Callable[[Sequence[Any]], Any]
"""From values for the traced parts of an object to the object with these in their place."""


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    determinism_check: str = "default",
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), trading time for memory: backward computes the intermediate values again.

    Gradients flow to the arguments and to the tensors that the function finds elsewhere: in its closure, in the globals
    of its module, and in the attributes of the object that it is (a method of). It must not depend on anything that
    changes before backward. Where gradients are off the function is just called. Attributes that it sets on an object
    with tensors are set by the first run alone. Inside, tensors do not require gradients: what is recorded is the call.

    Args:
        function: The function, or an object that can be called.
        *args: Its arguments; tensors and arrays in trees, and anything else.
        use_reentrant: Accepted for torch's sake: there is one implementation, without its restrictions.
        determinism_check: "default" compares the shapes and dtypes of the outputs when they are computed again with
            those of the first time; "none" does not.
        preserve_rng_state: Compute again with the state that NumPy's global generator had the first time.
        **kwargs: Keyword arguments of the function.

    Raises:
        ArgumentError: Another determinism_check (a ValueError).
        CheckpointError: Raised by backward if the function did not repeat what it did (a RuntimeError).

    Example:
        >>> import numpy as np, func
        >>> from func.autograd.checkpointing import checkpoint
        >>> w = func.tensor([1.0, 2.0], requires_grad=True)
        >>> checkpoint(lambda x: np.sin(np.exp(w * x)), np.zeros(2)).sum().backward()
        >>> w.grad
        tensor([0., 0.])
    """
    check_callable(function, "autograd.checkpoint")
    if determinism_check not in ("default", "none"):
        raise ArgumentError(
            f'checkpoint: determinism_check must be "default" (compare shapes and dtypes) or "none", not '
            f"{determinism_check!r}"
        )
    if not is_grad_enabled():
        return function(*args, **kwargs)
    search = Search()
    make = _maker(function, search)
    leaves, spec = tree.flatten((search.found, args, kwargs))
    if not any([_is_traced(leaf) for leaf in leaves]):
        return function(*args, **kwargs)
    tensors = [type(leaf) is Tracer for leaf in leaves]
    rerun = Rerun(function, make, spec, tensors, determinism_check == "default", preserve_rng_state)
    arrays = checkpointing.checkpoint(rerun)(*leaves)
    search.write_back()
    return rerun.assembled(arrays)


class Rerun:
    """The arrays among the outputs, as a function of the flat leaves of (what is captured, args, kwargs).

    The first call notes what later ones must repeat, and the outputs that are not arrays.
    """

    __slots__ = (
        "_check",
        "_first",
        "_function",
        "_make",
        "_out_spec",
        "_preserve",
        "_rest",
        "_spec",
        "_state",
        "_tensors",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        make: Maker | None,
        spec: Any,
        tensors: list[bool],
        check: bool,
        preserve: bool,
    ) -> None:
        self._function = function
        self._make = make
        self._spec = spec
        self._tensors = tensors
        self._check = check
        self._preserve = preserve
        self._state: Any = None
        self._first: Any = None
        self._rest: Any = None
        self._out_spec: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        if self._first is None:
            self._state = np.random.get_state() if self._preserve else None
            outs, self._out_spec = tree.flatten(self._run(leaves))
            self._rest = [None if _is_array(out) else (out,) for out in outs]
            arrays = [unboxed(out) for out in outs if _is_array(out)]
            self._first = _signature(arrays)
            return arrays
        before = np.random.get_state() if self._preserve else None
        try:
            if self._preserve:
                np.random.set_state(self._state)
            outs = tree.leaves(self._run(leaves))
        finally:
            if before is not None:
                np.random.set_state(before)
        arrays = [unboxed(out) for out in outs if _is_array(out)]
        if self._check:
            self._compare(_signature(arrays))
        return arrays

    def _run(self, leaves: Sequence[Any]) -> Any:
        boxes = [boxed(leaf) if yes else leaf for leaf, yes in zip(leaves, self._tensors, strict=True)]
        found, args, kwargs = tree.unflatten(self._spec, boxes)
        function = self._function if self._make is None else self._make(found)
        return function(*args, **kwargs)

    def assembled(self, arrays: Sequence[Any]) -> Any:
        """The output of the function, given the arrays in it."""
        rest = iter(arrays)
        return tree.unflatten(self._out_spec, [next(rest) if other is None else other[0] for other in self._rest])

    def _compare(self, again: Sequence[Any]) -> None:
        """Outputs that differ from the first ones in number, shape or dtype are refused."""
        name = name_of(self._function)
        if len(again) != len(self._first):
            raise CheckpointError(
                f"checkpoint: {name} returned {len(self._first)} arrays the first time, but {len(again)} when "
                "backward computed it again; it must not depend on anything that changes meanwhile"
            )
        for i, (first, second) in enumerate(zip(self._first, again, strict=True)):
            if first != second:
                raise CheckpointError(
                    f"checkpoint: output {i} of {name} had shape {first[0]} and dtype {first[1]} the first time, but "
                    f"shape {second[0]} and dtype {second[1]} when backward computed it again; the function must not "
                    'depend on anything that changes meanwhile (determinism_check="none" switches this check off)'
                )


def _is_array(leaf: Any) -> bool:
    return type(leaf) is Tracer or (hasattr(leaf, "dtype") and hasattr(leaf, "shape"))


def _signature(arrays: Sequence[Any]) -> list[Any]:
    """Shape and dtype of every array."""
    return [(shape_of(array), dtype_of(array)) for array in arrays]


def _is_traced(value: Any) -> bool:
    return type(value) is Tracer and value.interpreter is not EVALUATE


class Search:
    """What a walk over a function has found: traced values, makers by the id of what they make, copies of objects."""

    def __init__(self) -> None:
        self.found: list[Tracer] = []
        self.known: dict[int, tuple[Any, Maker | None]] = {}
        self.copies: list[tuple[Any, Any, dict[str, Any]]] | None = []

    def write_back(self) -> None:
        """Attributes that the first run has set on copies of objects, but for traced values, are the objects' own."""
        for original, again, before in self.copies or ():
            for name, value in vars(again).items():
                if type(value) is not Tracer and (name not in before or before[name] is not value):
                    setattr(original, name, value)
        self.copies = None


def _maker(value: Any, search: Search) -> Maker | None:
    """How to rebuild a value with others in the place of its traced parts, which are listed; None if it has none."""
    if _is_traced(value):
        place = len(search.found)
        search.found.append(value)
        return lambda values: values[place]
    if id(value) in search.known:
        return search.known[id(value)][1]
    search.known[id(value)] = (value, None)  # a value that contains itself stays what it is there
    made: Maker | None = None
    if isinstance(value, functools.partial):
        made = _maker_of_parts(
            [value.func, value.args, value.keywords],
            lambda parts: functools.partial(parts[0], *parts[1], **parts[2]),
            search,
        )
    elif isinstance(value, types.MethodType):
        function = value.__func__
        made = _maker_of_parts([value.__self__, function], lambda parts: types.MethodType(parts[1], parts[0]), search)
    elif isinstance(value, types.FunctionType):
        made = _maker_of_function(value, search)
    elif isinstance(value, (list, tuple, dict)):
        leaves, spec = tree.flatten(value)
        if not (len(leaves) == 1 and leaves[0] is value):
            made = _maker_of_parts(leaves, lambda parts: tree.unflatten(spec, parts), search)
    elif _is_object(value):
        made = _maker_of_object(value, search)
    search.known[id(value)] = (value, made)
    return made


def _maker_of_parts(
    parts: Sequence[Any],
    build: Callable[[list[Any]], Any],
    search: Search,
) -> Maker | None:
    makers = [_maker(part, search) for part in parts]
    if all([make is None for make in makers]):
        return None
    return lambda values: build(
        [part if make is None else make(values) for part, make in zip(parts, makers, strict=True)]
    )


def _maker_of_function(function: Any, search: Search) -> Maker | None:
    """A function with other cells, defaults and globals."""
    cells = [_contents(cell) for cell in function.__closure__ or ()]
    names = [
        name
        for name in sorted(_global_names(function.__code__))
        if name in function.__globals__ and _is_own(function.__globals__[name], function.__globals__)
    ]

    def build(parts: list[Any]) -> Any:
        inside, (defaults, keywords), outside = parts[: len(cells)], parts[len(cells) : len(cells) + 2], parts[-1]
        closure = tuple(
            [
                cell if new is old else types.CellType(new)
                for cell, new, old in zip(function.__closure__ or (), inside, cells, strict=True)
            ]
        )
        around = function.__globals__ if outside is changed else {**function.__globals__, **outside}
        again = types.FunctionType(function.__code__, around, function.__name__, defaults, closure or None)
        again.__kwdefaults__ = keywords
        return again

    changed = {name: function.__globals__[name] for name in names}
    return _maker_of_parts([*cells, function.__defaults__, function.__kwdefaults__, changed], build, search)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not yet bound
        return None


def _global_names(code: types.CodeType) -> set[str]:
    """The names that a function's code, and that of functions inside it, may look up among the globals."""
    inner = [_global_names(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    return set(code.co_names).union(*inner)


def _is_own(value: Any, namespace: dict[str, Any]) -> bool:
    """Whether a global may hold tensors: anything but modules, classes and the functions of other modules."""
    if isinstance(value, types.FunctionType):
        return value.__globals__ is namespace
    return _is_traced(value) or isinstance(value, (list, tuple, dict, functools.partial)) or _is_object(value)


def _is_object(value: Any) -> bool:
    """Whether a value is an object of a class of the user's that may have tensors for attributes."""
    kind = type(value)
    return (
        hasattr(value, "__dict__")
        and not isinstance(value, (type, types.ModuleType, types.FunctionType, np.ndarray))
        and kind.__module__.partition(".")[0] not in ("builtins", "numpy", "scipy", "cupy", "func")
    )


def _maker_of_object(value: Any, search: Search) -> Maker | None:
    """A copy of an object with other attributes."""
    attributes = dict(vars(value))

    def build(parts: list[Any]) -> Any:
        again = copy.copy(value)
        vars(again).update(zip(attributes, parts, strict=True))
        if search.copies is not None:
            search.copies.append((value, again, dict(vars(again))))
        return again

    return _maker_of_parts(list(attributes.values()), build, search)


def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    *,
    determinism_check: str = "default",
    preserve_rng_state: bool = True,
) -> Any:
    """A chain of functions of one value in segments, each of which but the last is checkpointed.

    Args:
        functions: The functions, the first of which takes the input and each other the result of the one before.
        segments: Into how many parts of about equal length to divide the chain; about the square root of its length
            keeps the fewest values.
        input: The input of the first function.
        use_reentrant: As `checkpoint`.
        determinism_check: As `checkpoint`.
        preserve_rng_state: As `checkpoint`.

    Raises:
        ArgumentError: More segments than functions, or fewer than one (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> from func.autograd.checkpointing import checkpoint_sequential
        >>> x = func.tensor([0.0], requires_grad=True)
        >>> checkpoint_sequential([np.sin, np.exp, np.tanh, np.sin], 2, x).sum().backward()
        >>> x.grad
        tensor([0.3039509])
    """
    chain = list(functions)
    if not 1 <= segments <= len(chain):
        raise ArgumentError(f"checkpoint_sequential: segments must be from 1 to {len(chain)}, not {segments}")
    length = len(chain) // segments
    start = 0
    value = input
    for _ in range(segments - 1):
        value = checkpoint(
            functools.partial(_run_chain, chain[start : start + length]),
            value,
            use_reentrant=use_reentrant,
            determinism_check=determinism_check,
            preserve_rng_state=preserve_rng_state,
        )
        start += length
    return _run_chain(chain[start:], value)


def _run_chain(functions: Sequence[Callable[[Any], Any]], value: Any) -> Any:
    """The functions one after the other."""
    for function in functions:
        value = function(value)
    return value
