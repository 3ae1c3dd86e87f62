"""jit: a function traced once per kind of arguments into a Program, which is optimised and executed from then on."""

from __future__ import annotations

import functools
import importlib
import inspect
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from func import tree
from func.backends import HOST_TYPES, namespace_of
from func.door import array_leaf, check_callable, name_of, output_leaf, traced, unbox
from func.interpreters.core import PYTHON_SCALARS, Tracer, aval_of, example_of, innermost
from func.interpreters.errors import ArgumentError, DonatedBufferError, StaticArgumentError
from func.interpreters.grad import has_nan
from func.interpreters.modes import GUARDED
from func.interpreters.program import Program
from func.interpreters.source import at_line
from func.interpreters.stage import Stage
from func.interpreters.staged import Staged, closed, executor

__all__ = ["CacheInfo", "Jitted", "disable_jit", "jit"]

CACHE_SIZE = 256
COMPILERS = (None, "numpy")
_ENABLED: ContextVar[bool] = ContextVar("func_jit_enabled", default=True)


class CacheInfo(NamedTuple):
    """What `jitted.cache_info()` returns; the same fields as those of functools.lru_cache."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Inside, jitted functions run as the plain Python functions that they were made of: for debugging.

    Example:
        >>> import func
        >>> @func.jit
        ... def shown(x):
        ...     print(type(x).__name__)
        ...     return x + 1
        >>> with func.disable_jit():
        ...     shown(1.0)
        float
        2.0
    """
    token = _ENABLED.set(not disable)
    try:
        yield
    finally:
        _ENABLED.reset(token)


def jit(
    func: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    compiler: str | None = None,
) -> Any:
    """A function that is traced once for every kind of arguments, optimised, and from then on runs as straight code.

    Arguments and results are trees of arrays and numbers, as for the other transforms. A new tree, shape, dtype,
    backend or value of a static argument is traced anew; other values of arrays and numbers are not. Python that
    depends on the values of traced arrays raises StagingError; prints and other side effects happen while tracing only.
    Arrays of the enclosing scope become constants of the program.

    Transforms of jitted functions and jitted transforms are both compiled: `grad(jit(f))` runs one forward and one
    backward program.

    Args:
        func: The function. Without it, jit is a decorator with options.
        static_argnums: Positions of arguments that are passed on as they are; they must be hashable.
        static_argnames: Names of such arguments. Each of the two implies the other, by the signature.
        donate_argnums: Positions of arguments whose arrays may be overwritten; giving one again raises
            DonatedBufferError.
        compiler: None (the best that is available) or "numpy".

    Raises:
        StagingError: Python asked for the value of a traced array (a TypeError).
        StaticArgumentError: A static argument is not hashable (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> @func.jit
        ... def norm(x):
        ...     return np.sqrt(np.sum(x * x))
        >>> norm(np.array([3.0, 4.0]))
        np.float64(5.0)
        >>> func.grad(norm)(np.array([3.0, 4.0]))
        array([0.6, 0.8])
        >>> norm.cache_info()
        CacheInfo(hits=1, misses=1, maxsize=256, currsize=1)
    """
    if func is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            compiler=compiler,
        )
    check_callable(func, "jit")
    importlib.import_module("func.interpreters.execution")  # here, so that `import func` and first calls need not wait
    return Jitted(func, static_argnums, static_argnames, donate_argnums, compiler)


class Entry:
    """One traced call: the Staged, the traced values that it closes over, and the tree of the output."""

    __slots__ = ("_donating", "captured", "donated", "out_spec", "single", "staged")

    def __init__(self, staged: Staged, out_spec: Any, captured: list[Any], donated: frozenset[int]) -> None:
        self.donated = donated
        self._donating: Any = None
        self.staged = staged
        self.out_spec = out_spec
        self.captured = captured
        self.single = len(staged.program.outputs) == 1 and out_spec.num_nodes == 1

    def run_donating(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Run on concrete arrays, those in `donated` being overwritten where that is safe."""
        staged = self.staged
        if any([type(leaf) not in HOST_TYPES for leaf in leaves]):
            return staged(*leaves)
        if self._donating is None:
            self._donating = executor(staged.program, np, staged.compiler, self.donated)
        given = [
            leaf.copy() if place in self.donated and not _is_exclusive(leaf, leaves) else leaf
            for place, leaf in enumerate(leaves)
        ]
        outs: Sequence[Any] = self._donating(*given)
        return outs


def _is_exclusive(leaf: Any, leaves: Sequence[Any]) -> bool:
    """Whether a donated array can be written to without anything else being changed by that."""
    if type(leaf) is not np.ndarray or not leaf.flags.carray:
        return False
    base = leaf.base
    if base is not None and (id(base) not in _DONATED or base.size != leaf.size):
        return False
    return not any([other is not leaf and np.may_share_memory(leaf, other) for other in leaves]) and (
        sum([other is leaf for other in leaves]) == 1
    )


class Jitted:
    """What `func.jit` returns: the function, compiled for every kind of arguments that it is called with."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        compiler: str | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        if compiler not in COMPILERS:
            raise ArgumentError(f"func.jit: compiler={compiler!r} is not one of {', '.join(map(repr, COMPILERS))}")
        self._compiler = compiler
        self._static_nums, self._static_names = _static(function, static_argnums, static_argnames)
        self._donated = _numbers(donate_argnums, "donate_argnums")
        both = self._donated & self._static_nums
        if both:
            raise ArgumentError(f"func.jit: argument {min(both)} cannot be both static and donated")
        self._plain = not (self._static_nums or self._static_names or self._donated)
        self._cache: OrderedDict[Any, Entry] = OrderedDict()
        self._hits = self._misses = 0

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<func.jit of {name_of(self._function)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (
            self._function,
            tuple(self._static_nums),
            tuple(self._static_names),
            tuple(self._donated),
            self._compiler,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _ENABLED.get():
            return self._function(*args, **kwargs)
        moving, kept, statics = self._parted(args, kwargs) if not self._plain else (args, kwargs, ())
        entry, leaves = self._entry(moving, kept, statics)
        staged = entry.staged
        if entry.captured:
            leaves = [*entry.captured, *leaves]
        outs: Sequence[Any]
        if entry.donated and not staged.pulls:
            outs = entry.run_donating(leaves)
        elif not any([type(leaf) not in HOST_TYPES for leaf in leaves]):
            outs = staged.execute(np, leaves)
        else:
            outs = self._bound(staged, leaves)
        if self._donated:
            self._forget(args)
        outs = [_copy(out) if _is_one_of(out, leaves) else out for out in outs]
        return outs[0] if entry.single else tree.unflatten(entry.out_spec, outs)

    def _bound(self, staged: Staged, leaves: Sequence[Any]) -> Sequence[Any]:
        """The call as a row, which traced arguments give their meaning."""
        if staged.pulls:
            for leaf in leaves:
                if type(leaf) is Tracer:
                    has_nan(leaf)  # tells a stage below that a pullback is inside
            if GUARDED.get():
                staged = staged.alternative() or staged
        outs: Sequence[Any] = staged(*leaves)
        return outs

    # --- the entries --------------------------------------------------------------------------------------------

    def _entry(self, args: Sequence[Any], kwargs: dict[str, Any], statics: tuple[Any, ...]) -> tuple[Entry, list[Any]]:
        if not kwargs and all([type(arg) in _LEAVES for arg in args]):
            leaves: list[Any] = list(args)
            spec: Any = len(leaves)
        else:
            leaves, spec = tree.flatten((tuple(args), kwargs))
            if any([type(leaf) not in HOST_TYPES and type(leaf) is not Tracer for leaf in leaves]):
                leaves = self._checked(leaves, args, kwargs)
        if _DONATED:
            self._refuse_donated(leaves)
        key = (spec, statics, *[_kind(leaf) for leaf in leaves])
        try:
            entry = self._cache.get(key)
        except TypeError:
            entry = None
        if entry is not None:
            self._hits += 1
            if len(self._cache) > 1:
                self._cache.move_to_end(key)
            return entry, leaves
        self._misses += 1
        leaves, spec = tree.flatten((tuple(args), kwargs))
        leaves = self._checked(leaves, args, kwargs)
        entry = self._traced(leaves, spec, statics)
        if not entry.captured:
            self._cache[key] = entry
            if len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        return entry, leaves

    def _checked(self, leaves: list[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        names = [name[1:] for name in tree.path_names((tuple(args), kwargs), "_")]
        return [array_leaf(leaf, f"arguments{path}", "jit") for leaf, path in zip(leaves, names, strict=True)]

    def _traced(self, leaves: Sequence[Any], spec: Any, statics: tuple[Any, ...]) -> Entry:
        """Trace the function on abstract arrays like these."""
        avals = [aval_of(leaf) for leaf in leaves]
        example = next((one for one in map(example_of, leaves) if one is not None), None)
        found: list[Any] = []

        def trace() -> tuple[Program, bool]:
            stage = Stage("jit")
            stage.example = example
            with traced(stage, staging=True):
                inputs = [stage.variable(aval) for aval in avals]
                variables = [tracer.attached for tracer in inputs]
                args, kwargs = tree.unflatten(spec, inputs)
                outs, out_spec = tree.flatten(self._called(args, kwargs, statics))
                found[:] = [out_spec]
                program = stage.program(variables, [unbox(output_leaf(o, "output", "jit")) for o in outs])
                return program, stage.pulled

        staged, captured = closed(trace, self._compiler)
        return Entry(staged, found[0], captured, self._donated_leaves(spec, statics) if not captured else frozenset())

    def _donated_leaves(self, spec: Any, statics: tuple[Any, ...]) -> frozenset[int]:
        """The places of the leaves of donated arguments."""
        if not self._donated:
            return frozenset()
        args, _ = tree.unflatten(spec, list(range(spec.num_leaves)))
        fixed = {name for name, _, _ in statics}
        numbers = [i for i in range(len(args) + len(fixed)) if i not in fixed][: len(args)]
        return frozenset(
            [leaf for i, arg in zip(numbers, args, strict=True) if i in self._donated for leaf in tree.leaves(arg)]
        )

    # --- static arguments ---------------------------------------------------------------------------------------

    def _parted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any], Any]:
        """(traced positional, traced keyword, static) arguments."""
        out_of_range = [number for number in self._static_nums if number >= len(args) and not self._static_names]
        if out_of_range:
            raise ArgumentError(
                f"func.jit: static_argnums={tuple(sorted(self._static_nums))} is out of range, "
                f"{name_of(self._function)} was called with {len(args)} positional arguments"
            )
        fixed = [(i, args[i]) for i in sorted(self._static_nums) if i < len(args)]
        named = [(name, kwargs[name]) for name in sorted(self._static_names) if name in kwargs]
        for name, value in (*fixed, *named):
            try:
                hash(value)
            except TypeError:
                what = f"argument {name}" if isinstance(name, int) else f"argument {name!r}"
                raise StaticArgumentError(
                    f"func.jit: static {what} of {name_of(self._function)} is a {type(value).__name__}, which is not "
                    f"hashable{at_line()}\nPass a tuple instead of a list, a frozen dataclass instead of a dict, or "
                    "let the argument be traced."
                ) from None
        moving = [arg for i, arg in enumerate(args) if i not in self._static_nums]
        kept = {name: value for name, value in kwargs.items() if name not in self._static_names}
        statics = tuple([(name, type(value), value) for name, value in (*fixed, *named)])
        return moving, kept, statics

    def _called(self, args: Sequence[Any], kwargs: dict[str, Any], statics: tuple[Any, ...]) -> Any:
        fixed = {name: value for name, _, value in statics}
        named = {name: value for name, value in fixed.items() if isinstance(name, str)}
        count = len(args) + len(fixed) - len(named)
        rest = iter(args)
        full = [fixed[i] if i in fixed else next(rest) for i in range(count)]
        return self._function(*full, **kwargs, **named)

    # --- donation -----------------------------------------------------------------------------------------------

    def _refuse_donated(self, leaves: Sequence[Any]) -> None:
        for leaf in leaves:
            reference = _DONATED.get(id(leaf))
            if reference is not None and reference() is leaf:
                raise DonatedBufferError(
                    f"func.jit: an array of shape {leaf.shape} was donated to an earlier call and may have been "
                    f"overwritten; it is given again{at_line()}\nPass what that call returned, or leave "
                    "donate_argnums out."
                )

    def _forget(self, args: Sequence[Any]) -> None:
        """Note that the arrays of donated arguments are not to be used again."""
        for number in self._donated:
            if number < len(args):
                for leaf in tree.leaves(args[number]):
                    if type(leaf) is np.ndarray:
                        key = id(leaf)
                        _DONATED[key] = weakref.ref(leaf, functools.partial(_collected, key))

    # --- for those who look inside ------------------------------------------------------------------------------

    def trace(self, *args: Any, **kwargs: Any) -> Program:
        """The Program for arguments like these, as it is executed: calls inlined, optimised."""
        from func.interpreters.planning import prepared

        return prepared(self._found(args, kwargs).program)

    def lower(self, *args: Any, **kwargs: Any) -> str:
        """The text of the code that runs for arguments like these."""
        leaves = tree.leaves((args, kwargs))
        run = self._found(args, kwargs).runner(namespace_of(tuple(leaves)))
        return str(getattr(run, "text", run))

    def found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], Any, Entry]:
        """(traced positional, traced keyword, static) arguments and the entry for them."""
        moving, kept, statics = self._parted(args, kwargs)
        return moving, kept, statics, self._entry(moving, kept, statics)[0]

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Staged:
        return self.found(args, kwargs)[3].staged

    def cache_info(self) -> CacheInfo:
        """How often a call found its program, how often it was traced, and how many programs are kept."""
        return CacheInfo(self._hits, self._misses, CACHE_SIZE, len(self._cache))

    def clear_cache(self) -> None:
        """Forget all programs."""
        self._cache.clear()
        self._hits = self._misses = 0


_DONATED: dict[int, Any] = {}
_LEAVES = HOST_TYPES | {Tracer}


def _collected(key: int, reference: Any) -> None:
    _DONATED.pop(key, None)


def _kind(leaf: Any) -> Any:
    """What a leaf contributes to the key: everything about it but its numbers."""
    kind = type(leaf)
    if kind is np.ndarray:
        return leaf.shape, leaf.dtype
    if kind in PYTHON_SCALARS:
        return kind
    if kind is Tracer:
        aval = aval_of(leaf)
        if aval.weak:
            return _WEAK[aval.dtype.kind]
        kind = type(innermost(leaf))
        leaf = aval
    return (leaf.shape, leaf.dtype) if kind in _ON_HOST else (kind, leaf.shape, leaf.dtype)


_WEAK = {"b": bool, "i": int, "f": float, "c": complex}
_ON_HOST = HOST_TYPES | {type(None)}


def _is_one_of(out: Any, leaves: Sequence[Any]) -> bool:
    return type(out) not in PYTHON_SCALARS and any([out is leaf for leaf in leaves])


def _copy(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") and type(value) is not Tracer else value


def _numbers(given: Any, name: str) -> frozenset[int]:
    if given is None:
        return frozenset()
    numbers = (given,) if isinstance(given, (int, np.integer)) else tuple(given)
    for number in numbers:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise TypeError(f"func.jit: {name} must be an int or a sequence of ints, got {given!r}")
        if number < 0:
            raise ArgumentError(f"func.jit: {name}={given!r}: count positions from 0, negative ones are ambiguous")
    return frozenset([int(number) for number in numbers])


def _static(function: Callable[..., Any], argnums: Any, argnames: Any) -> tuple[frozenset[int], frozenset[str]]:
    """Static positions and names, each completed from the other by the signature."""
    numbers = set(_numbers(argnums, "static_argnums"))
    names = {argnames} if isinstance(argnames, str) else set(argnames or ())
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"func.jit: static_argnames must be a string or strings, got {argnames!r}")
    if not numbers and not names:
        return frozenset(), frozenset()
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return frozenset(numbers), frozenset(names)
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = any([p.kind == p.VAR_KEYWORD for p in parameters])
    known = {p.name for p in parameters}
    unknown = names - known
    if unknown and not takes_any:
        raise ArgumentError(
            f"func.jit: static_argnames names {sorted(unknown)}, but {name_of(function)} takes {sorted(known)}"
        )
    names |= {positional[number] for number in numbers if number < len(positional)}
    numbers |= {positional.index(name) for name in names if name in positional}
    return frozenset(numbers), frozenset(names)


def _rebuilt(function: Any, numbers: Any, names: Any, donated: Any, compiler: Any) -> Jitted:
    return Jitted(function, numbers, names, donated, compiler)
