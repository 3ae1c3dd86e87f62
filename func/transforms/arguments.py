"""The arguments of a transformed call: the selected ones, their active leaves, and the way back to their trees."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from func import tree
from func.interpreters.core import Array, Interpreter, Tracer, dtype_of, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError, DifferentiatedInputError, TangentError, UnsupportedArrayError
from func.interpreters.host.source import innermost_frame
from func.interpreters.primitives.structural.shapes import convert
from func.numpy.memory import set_argument_layouts
from func.numpy.sharing import are_in_order, are_separate, note_arguments, owner_of, read_only
from func.transforms.boundary import (
    array_leaf,
    name_of,
    output_leaves,
    own_tree,
    parameter_names,
    split_aux,
)


class Arguments:
    """Trees as one list of leaves, with the positions of the active (differentiated or mapped) ones."""

    __slots__ = ("active", "leaves", "specs")

    def __init__(self, specs: list[Any] | None, leaves: list[Any], active: list[int]) -> None:
        self.specs = specs
        """The structure of each tree, None for one that is an array or number; just None if all of them are."""
        self.leaves = leaves
        self.active = active

    def values(self) -> list[Array]:
        """The active leaves."""
        leaves = self.leaves
        return list(leaves) if len(leaves) == len(self.active) else [leaves[i] for i in self.active]

    def replaced(self, values: Iterable[Any]) -> list[Any]:
        """The trees with other values for the active leaves."""
        return self._trees(self.leaves, values)

    def arranged(self, results: Iterable[Any], inactive: Callable[[Any], Any] | None = None) -> list[Any]:
        """The trees with a result for each active leaf, and None (or `inactive(leaf)`) for the others."""
        rest = [None] * len(self.leaves) if inactive is None else [inactive(leaf) for leaf in self.leaves]
        return self._trees(rest, results)

    def _trees(self, others: list[Any], values: Iterable[Any]) -> list[Any]:
        leaves = list(values)
        if len(leaves) < len(others):
            leaves = others.copy()
            for i, value in zip(self.active, values, strict=True):
                leaves[i] = value
        if self.specs is None:
            return leaves
        trees = []
        start = 0
        for spec in self.specs:
            if spec is None:
                trees.append(leaves[start])
                start += 1
            else:
                stop = start + spec.num_leaves
                trees.append(tree.unflatten(spec, leaves[start:stop]))
                start = stop
        return trees


class CallArguments(Arguments):
    """The arguments of one call, with the trees at the selected positions and keywords."""

    __slots__ = ("args", "kwargs", "places")

    def __init__(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        places: Sequence[int | str],
        specs: list[Any] | None,
        leaves: list[Any],
        active: list[int],
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.places = places
        self.specs = specs
        self.leaves = leaves
        self.active = active

    def inactive(self) -> list[int]:
        """The positions of the inactive leaves."""
        return sorted({*range(len(self.leaves))}.difference(self.active))

    def replace(self, place: int | str, value: Any) -> None:
        """Pass another value at a place that is not selected."""
        if isinstance(place, int):
            args = list(self.args)
            args[place] = value
            self.args = args
        else:
            self.kwargs = {**self.kwargs, place: value}

    def with_copies(self) -> CallArguments:
        """The same call with copies of the unselected arrays: the function runs repeatedly and may write to them."""
        args = [arg if i in self.places else tree.map(_copied, arg) for i, arg in enumerate(self.args)]
        kwargs = {name: arg if name in self.places else tree.map(_copied, arg) for name, arg in self.kwargs.items()}
        leaves = [leaf if i in self.active else _copied(leaf) for i, leaf in enumerate(self.leaves)]
        return CallArguments(args, kwargs, self.places, self.specs, leaves, self.active)

    def bound(self, values: Iterable[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments with other values for the active leaves."""
        args, kwargs = list(self.args), self.kwargs
        for place, value in zip(self.places, self.replaced(values), strict=True):
            if isinstance(place, int):
                args[place] = value
            else:
                kwargs = {**kwargs, place: value}
        return args, kwargs


def _copied(leaf: Any) -> Any:
    return leaf.copy("K") if type(leaf) is ndarray and leaf.flags.writeable else leaf


def place_arguments(
    interpreter: Interpreter,
    function: Callable[..., Any],
    arguments: CallArguments,
    tracers: Sequence[Array],
    arrays: Sequence[Array],
) -> None:
    """Give the tracers of the active leaves the layouts of the caller's arrays; note which arguments share memory."""
    if len(arrays) == 1 and type(leaf := arrays[0]) is ndarray and leaf.flags.c_contiguous and leaf.shape:
        args = arguments.args
        place = arguments.places[0]
        is_first = type(place) is int and args[place] is leaf
        if not arguments.kwargs and (len(args) == 1 or (is_first and are_separate(args))):
            interpreter.called = function, [id(tracers[0])], arrays
            return  # nothing to note: its tracer is such an array by itself
    everything = arrays
    if len(arrays) < len(arguments.leaves):
        everything = [*arrays, *[arguments.leaves[i] for i in arguments.inactive()]]
    if len(arguments.places) < len(arguments.args) + len(arguments.kwargs):
        inactive = [arg for place, arg in enumerate(arguments.args) if place not in arguments.places]
        inactive += [arg for name, arg in arguments.kwargs.items() if name not in arguments.places]
        everything = [*everything, *inactive]
    if are_separate(everything) and are_in_order(arrays):  # nothing to note either
        interpreter.called = function, [*map(id, tracers)], arrays
        return
    set_argument_layouts(tracers, arrays)
    if len(arguments.args) + len(arguments.kwargs) > len(arguments.places) or len(tracers) < len(arguments.leaves):
        tracers, arrays = _with_inactive(arguments, tracers, arrays)
    note_arguments(interpreter, function, tracers, arrays)


def _with_inactive(
    arguments: CallArguments, tracers: Sequence[Array], arrays: Sequence[Array]
) -> tuple[Sequence[Array], Sequence[Array]]:
    """The tracers and arrays of the active leaves, followed by inactive arrays in the same memory.

    The latter become read-only views, since no trace would see a write to them. The backward pass saves traced values
    of their memory without a copy.
    """
    owners = {owner_of(leaf) for leaf in arrays}

    def is_shared(leaf: Any) -> bool:
        return (type(leaf) is ndarray or type(leaf) is Tracer) and owner_of(leaf) in owners

    shared: list[Array] = []

    def protected(leaf: Any) -> Any:
        if is_shared(leaf):
            shared.append(leaf)
            leaf = read_only(leaf)
        return leaf

    if any([is_shared(arguments.leaves[i]) for i in arguments.inactive()]):
        arguments.leaves = list(arguments.leaves)
        for i in arguments.inactive():
            arguments.leaves[i] = protected(arguments.leaves[i])
    args, kwargs = arguments.args, arguments.kwargs
    for place in [*range(len(args)), *kwargs]:
        arg = args[place] if isinstance(place, int) else kwargs[place]
        kind = type(arg)
        is_tree = kind is tuple or kind is list or kind is dict
        if (kind is ndarray or kind is Tracer or is_tree) and place not in arguments.places:
            leaves = tree.leaves(arg) if is_tree else (arg,)
            if any([is_shared(leaf) for leaf in leaves]):
                arguments.replace(place, tree.map(protected, arg))
    return ([*tracers, *[None] * len(shared)], [*arrays, *shared]) if shared else (tracers, arrays)


def differentiable(
    args: Sequence[Any],
    kwargs: dict[str, Any],
    places: Sequence[int | str],
    transform: str,
    kinds: str = "fc",
    allow_int: bool = False,
    *,
    needs_every: bool = True,
    root: str = "argument {}",
    function: Callable[..., Any] | None = None,
) -> CallArguments:
    """The arguments of a call, with the floating point leaves at some places active.

    Integer leaves inside a tree are inactive. Integers raise if no leaf is active. With `needs_every`, an integer
    argument raises too, or becomes a float under `config.promote_integers`. `kinds` are the dtype kinds allowed for
    active leaves: "f", "c" or both. Messages name positional arguments by the parameters of `function`, or by `root`.

    Raises:
        DifferentiatedInputError: There is nothing to differentiate (a TypeError).
        ArgumentError: A leaf is real where complex ones are needed, or the reverse (a ValueError).
        UnsupportedArrayError: A leaf cannot be traced (a TypeError).
    """
    specs: list[Any] = []
    leaves: list[Any] = []
    active: list[int] = []
    is_flat = True
    first_path = ""
    for place in places:
        value = args[place] if type(place) is int else kwargs[place]  # type: ignore[index]
        kind = type(value)
        if (value.dtype.kind if kind is ndarray else "f" if kind is float else " ") in kinds:
            specs.append(None)
            active.append(len(leaves))
            leaves.append(value)
            continue
        name = place if isinstance(place, str) else root.format(place)
        if kind is ndarray or kind is Tracer:
            spec, values = None, [value]
        else:
            values, spec = tree.flatten(value)
            is_flat = False
        specs.append(spec)
        is_whole = spec is None or spec.num_nodes == 1
        paths: list[str] = []
        for number, leaf in enumerate(values):
            kind = type(leaf)
            if (leaf.dtype.kind if kind is ndarray else "f" if kind is float else " ") in kinds:
                active.append(len(leaves))
                leaves.append(leaf)
                continue
            paths = paths or ([name] if is_whole else tree.path_names(value, name))
            path = paths[number]
            try:
                leaf = array_leaf(leaf, path, transform)
            except UnsupportedArrayError:
                array_leaf(leaf, _with_name(path, root, function), transform)
                raise
            dtype = dtype_of(leaf)
            if dtype.kind in "iu" and is_whole and needs_every and not allow_int and _promotes_integers():
                dtype = np.dtype(np.float64)
                leaf = convert(leaf, dtype=dtype)
            if is_inexact(dtype):
                if dtype.kind in "fc" and dtype.kind not in kinds:
                    _check_kind(kinds, _with_name(path, root, function), transform)
                active.append(len(leaves))
            elif is_whole and needs_every and not allow_int:
                _check_integer(leaf, _with_name(path, root, function), transform, True)
            first_path = first_path or path
            leaves.append(leaf)
    if leaves and not active and not allow_int:
        _check_integer(leaves[0], _with_name(first_path, root, function), transform, False)
    return CallArguments(args, kwargs, places, None if is_flat else specs, leaves, active)


def _promotes_integers() -> bool:
    """Whether integers become floats: by the setting, and for a solver of SciPy, which passes the user's start on."""
    from func.configuration import config  # start-up time

    caller = innermost_frame()
    by_scipy = caller is not None and str(caller.f_globals.get("__name__", "")).startswith("scipy.")
    return by_scipy or config.promote_integers


def _with_name(path: str, root: str, function: Callable[..., Any] | None) -> str:
    """The path to a leaf of a positional argument, by the name of its parameter if it has one."""
    numbers = re.match(re.escape(root).replace(r"\{\}", r"(\d+)"), path)
    if function is None or numbers is None or not numbers.groups():
        return path
    number = int(numbers[1])
    return parameter_names(function, number + 1)[number] + path[numbers.end() :]


def _check_kind(kinds: str, path: str, transform: str) -> None:
    if kinds == "c":
        raise ArgumentError(f"func.{transform}(holomorphic=True) needs complex input, but {path} is not")
    raise ArgumentError(
        f"func.{transform}: {path} is complex; pass holomorphic=True for the derivative of a holomorphic function, or "
        "differentiate with respect to its real and imaginary parts"
    )


def _check_integer(leaf: Array, path: str, transform: str, can_promote: bool) -> None:
    dtype = dtype_of(leaf)
    word = (
        "a Python int"
        if type(leaf) is int
        else f"an array of dtype {dtype}"
        if shape_of(leaf)
        else f"a number of dtype {dtype}"
    )
    is_promotable = can_promote and dtype.kind in "iu"
    promotion = "; func.config.promote_integers = True takes integers as floats everywhere" if is_promotable else ""
    raise DifferentiatedInputError(
        f"func.{transform} differentiates with respect to {path}, which is {word}; derivatives need floating "
        "point input: pass a float, convert the array with .astype(float), or choose other argnums"
        f"{promotion}"
    )


def check_argnums(argnums: Any, function: Callable[..., Any], transform: str) -> None:
    """Raise TypeError for argnums that are not ints, with a suggestion if they look like arguments."""
    for number in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        if number is not None and (not isinstance(number, (int, np.integer)) or isinstance(number, bool)):
            advice = f"did you mean func.{transform}({name_of(function)})(...)?"
            if isinstance(number, str):
                advice = f"select arguments by name with argnames={argnums!r}"
            raise TypeError(f"func.{transform}: argnums must be an int or a tuple of ints, got {argnums!r}; {advice}")


class Selection:
    """The arguments that argnums and argnames select from each call of a function, and the structure of the results.

    argnums=None without argnames selects all positional arguments.
    """

    __slots__ = ("_parameters", "argnames", "argnums", "function", "names", "position", "transform")

    def __init__(self, function: Callable[..., Any], transform: str, argnums: Any, argnames: Any = None) -> None:
        self.function = function
        self.transform = transform
        self.argnums = argnums
        self.argnames = argnames
        self.position = argnums if type(argnums) is int and argnums >= 0 and argnames is None else None
        """The one position of the most common form of call; None in other forms."""
        if self.position is None:
            check_argnums(argnums, function, transform)
        if argnames is not None and isinstance(argnums, (int, np.integer)) and argnums != 0:
            self._check_single_number()
        for name in argnames if isinstance(argnames, (tuple, list)) else (argnames,):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"func.{transform}: argnames must be a string or a tuple of strings, got {argnames!r}")
        self.names = () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
        self._parameters = _parameters_of(function) if self.names else {}

    def _check_single_number(self) -> None:
        raise ArgumentError(
            f"func.{self.transform}: argnames={self.argnames!r} takes the place of argnums; for both write "
            f"argnums=({self.argnums},)"
        )

    @classmethod
    def at_call(cls, function: Callable[..., Any], transform: str, argnums: Any, argnames: Any) -> Selection | None:
        """The selection of a transform that takes the arguments too; None for all positional ones."""
        if argnums is None and argnames is None:
            return None
        selection = cls(function, transform, argnums, argnames)
        if argnames is not None and isinstance(argnums, (int, np.integer)):
            selection._check_single_number()
        return selection

    def places(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int | str]:
        """The places of the selected arguments: positions or keywords.

        Adds a named argument that the call leaves to its default to `kwargs`.
        """
        if self.position is not None and self.position < len(args):
            return [self.position]
        places: list[int | str] = []
        if self.argnums is None and self.argnames is None:
            return [*range(len(args))]
        if not self._only_names():
            if not args:
                raise ArgumentError(
                    f"func.{self.transform}: {name_of(self.function)} was called without positional arguments, so "
                    f"argnums={self.argnums!r} names none; differentiate keyword arguments with argnames"
                )
            places.extend(self._positions(len(args)))
        if self.argnames is not None:
            places.extend(self._named_places(args, kwargs))
        return places

    def arranged(self, results: Sequence[Any]) -> Any:
        """One result for each place, in the structure chosen by argnums and argnames."""
        if self.position is not None:
            return results[0]
        by_name: Any = None
        if self.argnames is not None:
            by_name = dict(zip(self.names, results[len(results) - len(self.names) :], strict=True))
            if self._only_names():
                return results[0] if isinstance(self.argnames, str) else by_name
            results = results[: len(results) - len(self.names)]
        by_position = results[0] if isinstance(self.argnums, (int, np.integer)) else tuple(results)
        return by_position if by_name is None else (by_position, by_name)

    def parts(self, value: Any, count: int, word: str) -> list[Any]:
        """The value for each of `count` places, from a structure as of `arranged`.

        Raises:
            TangentError: It has another structure (a TypeError).
        """
        if self._is_single():
            return [value]
        positions: Any = value
        named: Any = {}
        if self._only_names():
            positions, named = (), value
        elif self.argnames is not None:
            if not isinstance(value, (tuple, list)) or len(value) != 2:
                raise self._misfit(word, value, count)
            positions, named = value
        is_fitting = isinstance(positions, (tuple, list)) and len(positions) == count - len(self.names)
        if not is_fitting or not isinstance(named, Mapping) or {*named} != {*self.names}:
            raise self._misfit(word, value, count)
        return [*positions, *[named[name] for name in self.names]]

    def _is_single(self) -> bool:
        """Whether the result is a bare value, outside of any tuple or dict."""
        if self.argnames is None:
            return isinstance(self.argnums, (int, np.integer))
        return isinstance(self.argnames, str) and self._only_names()

    def _misfit(self, word: str, value: Any, count: int) -> TangentError:
        """The error for a value without the structure of the selected arguments."""
        number = count - len(self.names)
        by_position = f"a tuple with one entry for each of argnums={self.argnums!r}"
        if self.argnums is None:
            by_position = f"a tuple with one entry per argument, {number} of them"
        by_name = f"a dict with the keys {', '.join(map(repr, self.names))}"
        pair = f"a pair of {by_position} and {by_name}"
        expected = by_position if self.argnames is None else by_name if self._only_names() else pair
        if isinstance(value, Mapping):
            got = f"a dict with the keys {', '.join(map(repr, value))}"
        else:
            got = f"{len(value)} entries" if isinstance(value, (tuple, list)) else type(value).__name__
        return TangentError(f"func.{self.transform}: {word} must be {expected}, not {got}")

    def form(self) -> Selection:
        """The structure of the results alone, without the function: it pickles."""
        import copy

        other = copy.copy(self)
        other.function, other._parameters = name_of, {}
        return other

    def _only_names(self) -> bool:
        return self.argnames is not None and not isinstance(self.argnums, (tuple, list))

    def _positions(self, count: int) -> list[int]:
        """argnums as non-negative positions, checked for range and repetition."""
        argnums = self.argnums
        positions: list[int] = []
        for number in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
            if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
                raise TypeError(f"func.{self.transform}: argnums must be an int or a tuple of ints, got {argnums!r}")
            position = int(number) + count if number < 0 else int(number)
            if not 0 <= position < count:
                raise ArgumentError(
                    f"func.{self.transform}: argnums={argnums!r} is out of range, {name_of(self.function)} was called "
                    f"with {count} positional argument{'s' if count != 1 else ''}"
                )
            if position in positions:
                raise ArgumentError(f"func.{self.transform}: argnums={argnums!r} names argument {position} twice")
            positions.append(position)
        if not positions:
            raise ArgumentError(f"func.{self.transform}: argnums={argnums!r} names no argument")
        return positions

    def _named_places(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int | str]:
        """The keyword of each named argument, or its position by the signature."""
        places: list[int | str] = []
        for name in self.names:
            if not isinstance(name, str):
                raise TypeError(f"func.{self.transform}: argnames must be a string or strings, got {name!r}")
            place = self._place_of(name, args, kwargs)
            places.append(place)
        if len(set(places)) != len(places):
            raise ArgumentError(f"func.{self.transform}: argnames={self.names!r} names an argument twice")
        return places

    def _place_of(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> int | str:
        """The place of one named argument of a call."""
        if name in kwargs:
            return name
        positional = [
            p.name for p in self._parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if name in positional[: len(args)]:
            return positional.index(name)
        parameter = self._parameters.get(name)
        takes_keyword = parameter is not None and parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        )
        if parameter is None or not takes_keyword or parameter.default is parameter.empty:
            raise ArgumentError(
                f"func.{self.transform}: argnames names {name!r}, but {name_of(self.function)} was not called with "
                f"it{self._hint_for(name)}"
            )
        kwargs[name] = parameter.default
        return name

    def _hint_for(self, name: str) -> str:
        """The call to suggest for a missing argument."""
        parameter = self._parameters.get(name)
        if parameter is None:
            return f"; its parameters are {', '.join(self._parameters)}" if self._parameters else ""
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return "; it collects several arguments: choose one of them by argnums or by its own keyword"
        value = "..." if parameter.default is parameter.empty else repr(parameter.default)
        return f"; pass it, {name}={value}"


def _parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # as of some built-in functions
        return {}


class Derivative:
    """A function with the options common to all transforms.

    The fields have the public option names, so that a transform passes its options on by `locals()`.
    """

    argnums: Any = 0
    argnames: Any = None
    has_aux: bool = False
    holomorphic: bool = False
    allow_int: bool = False
    chunk_size: int | None = None
    progress: bool = False
    memory_limit: int | str | None = None
    executor: Any = None

    def __init__(self, transform: str, f: Callable[..., Any], **options: Any) -> None:
        self.__dict__.update(options)
        self.transform = transform
        self.function = f
        self.kinds = "c" if self.holomorphic else "fc"
        """The kinds of dtypes that can be differentiated."""
        self.selection = Selection(f, transform, self.argnums, self.argnames)


class FlatCall:
    """One call, as a function from the active leaves of its arguments to the leaves of its output."""

    __slots__ = ("arguments", "aux", "function", "has_aux", "out_spec", "transform")

    def __init__(
        self, function: Callable[..., Any], transform: str, arguments: CallArguments, has_aux: bool = False
    ) -> None:
        self.function = function
        self.transform = transform
        self.arguments = arguments
        self.has_aux = has_aux
        self.aux: Any = None
        self.out_spec: Any = None

    def outputs(self, interpreter: Interpreter, values: Iterable[Any], is_repeated: bool = False) -> list[Array]:
        """The leaves of the output for these active leaves; the function gets copies if the call `is_repeated`.

        Notes the structure of the output, and its aux as plain values.
        """
        arguments = self.arguments.with_copies() if is_repeated else self.arguments
        args, kwargs = arguments.bound(values)
        out = self.function(*args, **kwargs)
        if self.has_aux:
            out, self.aux = split_aux(out, interpreter, self.transform, self.function)
        leaves, self.out_spec = output_leaves(out, self.transform)
        return leaves

    def result(self, first: Any, *others: Any) -> Any:
        """The result of a transform: its parts, and aux if the function has it."""
        if self.has_aux:
            others = (*others, own_tree(self.aux))
        return (first, *others) if others else first
