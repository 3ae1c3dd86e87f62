"""The arguments of a transformed call: which are chosen, their active leaves, and the way back into their trees."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters.core import Array, Interpreter, Tracer, dtype_of, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError, DifferentiatedInputError
from func.transforms.boundary import array_leaf, name_of, output_leaves, own_tree, split_aux


class Arguments:
    """Trees as one list of leaves, and the positions in it of the active ones: those differentiated or mapped."""

    __slots__ = ("active", "leaves", "specs")

    def __init__(self, specs: list[Any], leaves: list[Any], active: list[int]) -> None:
        self.specs = specs
        """The structure of each tree; None for a tree that is one array or number."""
        self.leaves = leaves
        self.active = active

    def values(self) -> list[Array]:
        """The active leaves."""
        leaves = self.leaves
        return [leaves[i] for i in self.active]

    def replaced(self, values: Iterable[Any]) -> list[Any]:
        """The trees with other values in the place of the active leaves."""
        return self._trees(list(self.leaves), values)

    def arranged(self, results: Iterable[Any], inactive: Callable[[Any], Any] | None = None) -> list[Any]:
        """The trees with a result for each active leaf, and None (or `inactive(leaf)`) for each other one."""
        rest = [None] * len(self.leaves) if inactive is None else [inactive(leaf) for leaf in self.leaves]
        return self._trees(rest, results)

    def _trees(self, leaves: list[Any], values: Iterable[Any]) -> list[Any]:
        for i, value in zip(self.active, values, strict=True):
            leaves[i] = value
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


def differentiable(
    trees: Sequence[Any],
    names: Iterable[int | str],
    transform: str,
    *,
    kinds: str = "fc",
    allow_int: bool = False,
    needs_every: bool = True,
) -> Arguments:
    """The trees as arguments to differentiate: their floating point leaves are active.

    The name of a tree is its position among the arguments, or words for messages. An integer leaf inside a tree is
    inactive; an integer that is a whole tree is refused if `needs_every` tree is to be differentiated, or if no leaf
    is active. `kinds` are the kinds of dtypes that active leaves may have: "f", "c" or both.

    Raises:
        DifferentiatedInputError: There is nothing to differentiate (a TypeError).
        ArgumentError: A leaf is real where complex ones are needed, or the reverse (a ValueError).
        UnsupportedArrayError: A leaf cannot be traced (a TypeError).
    """
    specs: list[Any] = []
    leaves: list[Any] = []
    active: list[int] = []
    first_path = ""
    for value, name in zip(trees, names, strict=True):
        kind = type(value)
        if kind is np.ndarray and value.dtype.kind in kinds:
            specs.append(None)
            active.append(len(leaves))
            leaves.append(value)
            continue
        root = name if isinstance(name, str) else f"argument {name}"
        if kind is np.ndarray or kind is Tracer or kind is float:
            spec, values = None, [value]
        else:
            values, spec = tree.flatten(value)
        specs.append(spec)
        is_whole = spec is None or spec.num_nodes == 1
        paths = [root] if is_whole and values else tree.path_names(value, root)
        for leaf, path in zip(values, paths, strict=True):
            leaf = array_leaf(leaf, path, transform)
            dtype = dtype_of(leaf)
            if is_inexact(dtype):
                if dtype.kind in "fc" and dtype.kind not in kinds:
                    _refuse_kind(kinds, path, transform)
                active.append(len(leaves))
            elif is_whole and needs_every and not allow_int:
                _refuse_integers(leaf, path, transform)
            first_path = first_path or path
            leaves.append(leaf)
    if leaves and not active and not needs_every:
        _refuse_integers(leaves[0], first_path, transform)
    return Arguments(specs, leaves, active)


def _refuse_kind(kinds: str, path: str, transform: str) -> None:
    if kinds == "c":
        raise ArgumentError(f"func.{transform}(holomorphic=True) needs complex input, but {path} is not")
    raise ArgumentError(
        f"func.{transform}: {path} is complex; pass holomorphic=True for the derivative of a holomorphic function, or "
        "differentiate with respect to its real and imaginary parts"
    )


def _refuse_integers(leaf: Array, path: str, transform: str) -> None:
    dtype = dtype_of(leaf)
    word = (
        "a Python int"
        if type(leaf) is int
        else f"an array of dtype {dtype}"
        if shape_of(leaf)
        else f"a number of dtype {dtype}"
    )
    raise DifferentiatedInputError(
        f"func.{transform} differentiates with respect to {path}, which is {word}; derivatives need floating "
        "point input: pass a float, convert the array with .astype(float), or choose other argnums"
    )


class Selection:
    """The arguments that argnums and argnames select from each call of a function, and the form of their results."""

    __slots__ = ("argnames", "argnums", "function", "names", "takes_names", "transform")

    def __init__(
        self, function: Callable[..., Any], transform: str, argnums: Any, argnames: Any = None, takes_names: bool = True
    ) -> None:
        self.function = function
        self.transform = transform
        self.argnums = argnums
        self.argnames = argnames
        self.takes_names = takes_names
        self.names = () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)

    def places(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int | str]:
        """Where the selected arguments of a call stand: at positions, or under keywords."""
        places: list[int | str] = []
        if not self._only_names():
            if not args:
                hint = (
                    f", so argnums={self.argnums!r} names none; differentiate keyword arguments with argnames"
                    if self.takes_names
                    else ""
                )
                raise ArgumentError(
                    f"func.{self.transform}: {name_of(self.function)} was called without positional arguments{hint}"
                )
            places.extend(self._positions(len(args)))
        if self.argnames is not None:
            places.extend(self._named_places(args, kwargs))
        return places

    def arranged(self, results: Sequence[Any]) -> Any:
        """One result for each place, in the form that the user chose by argnums and argnames."""
        by_name: Any = None
        if self.argnames is not None:
            by_name = dict(zip(self.names, results[len(results) - len(self.names) :], strict=True))
            if self._only_names():
                return results[0] if isinstance(self.argnames, str) else by_name
            results = results[: len(results) - len(self.names)]
        by_position = tuple(results) if isinstance(self.argnums, (tuple, list)) else results[0]
        return by_position if by_name is None else (by_position, by_name)

    def _only_names(self) -> bool:
        return self.argnames is not None and not isinstance(self.argnums, (tuple, list))

    def _positions(self, count: int) -> list[int]:
        """argnums as non-negative positions, checked for range and repetition."""
        argnums = self.argnums
        if type(argnums) is int and 0 <= argnums < count:
            return [argnums]
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
            place = name if name in kwargs else self._position_of(name)
            if isinstance(place, int) and place >= len(args):
                raise ArgumentError(
                    f"func.{self.transform}: argnames names {name!r}, but {name_of(self.function)} was not called with "
                    "it"
                )
            places.append(place)
        if len(set(places)) != len(places):
            raise ArgumentError(f"func.{self.transform}: argnames={self.names!r} names an argument twice")
        return places

    def _position_of(self, name: str) -> int:
        try:
            return list(inspect.signature(self.function).parameters).index(name)
        except (TypeError, ValueError):  # no signature, or no such parameter
            return sys.maxsize


class FlatCall:
    """One call of a function, as a function from the active leaves of its arguments to the leaves of its output."""

    __slots__ = ("args", "arguments", "aux", "function", "has_aux", "kwargs", "out_spec", "places", "transform")

    def __init__(
        self,
        function: Callable[..., Any],
        transform: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        places: Sequence[int | str],
        arguments: Arguments,
        has_aux: bool = False,
    ) -> None:
        self.function = function
        self.transform = transform
        self.args = args
        self.kwargs = kwargs
        self.places = places
        self.arguments = arguments
        self.has_aux = has_aux
        self.aux: Any = None
        self.out_spec: Any = None

    def output(self, interpreter: Interpreter, values: Iterable[Any]) -> Any:
        """The output of the function with these active leaves; its aux is noted, as plain values."""
        args, kwargs = list(self.args), self.kwargs
        for place, value in zip(self.places, self.arguments.replaced(values), strict=True):
            if isinstance(place, int):
                args[place] = value
            else:
                kwargs = {**kwargs, place: value}
        out = self.function(*args, **kwargs)
        if self.has_aux:
            out, self.aux = split_aux(out, interpreter, self.transform, self.function)
        return out

    def outputs(self, interpreter: Interpreter, values: Iterable[Any]) -> list[Array]:
        """The leaves of the output; its structure is noted."""
        leaves, self.out_spec = output_leaves(self.output(interpreter, values), self.transform)
        return leaves

    def result(self, *parts: Any) -> Any:
        """What a transform returns: its parts, and aux if the function has it."""
        if self.has_aux:
            parts = (*parts, own_tree(self.aux))
        return parts if len(parts) > 1 else parts[0]
