"""jit: traces a function once per kind of arguments into a Program, and runs the optimised Program."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import importlib.util
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, Protocol, overload

import numpy as np

from func import tree
from func.backends import HOST_TYPES, is_known_array, namespace_of
from func.backends.array_memory import MEMORY
from func.backends.defensive_copies import forget_copies
from func.compilation.cached_call import Asked, CachedCall
from func.compilation.donation import DONATED, check_not_donated, donated_leaves, note_donated
from func.compilation.static_arguments import StaticArguments, places_of
from func.configuration import COMPILERS, config
from func.interpreters.calls.compiled_call import BEST, trace_call
from func.interpreters.core import PYTHON_SCALARS, Tracer, aval_of, example_of, innermost
from func.interpreters.core.errors import ArgumentError, StagingError, UnsupportedArrayError
from func.interpreters.core.modes import Setting, enter, leave, value_in_force
from func.interpreters.core.scopes import TransformScope
from func.interpreters.core.wiring import WIRING
from func.interpreters.drivers import running
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import hide_engine_frames
from func.interpreters.nan_safe import form_for
from func.interpreters.program.content_keys import content_key
from func.interpreters.program.program import Program
from func.interpreters.rank_axis import is_rank_number
from func.interpreters.stage import Stage
from func.numpy.memory import laid_out, layout_key, layouts_of
from func.numpy.sharing import SeparateMemory, check_overlap, note_traced_arguments, separate_arguments
from func.transforms.boundary import (
    INTEGERS,
    Intercepts,
    argument_paths,
    check_callable,
    name_of,
    output_leaves,
    takes_function_alone,
    traced_leaf,
    with_interception,
)
from func.transforms.signatures import FunctionOf, Options, P, R, TransformedFunction
from func.transforms.transformed import as_written, global_name, name_for_pickle, token_of

if TYPE_CHECKING:
    from func.compilation.frozen import FrozenValues
    from func.compilation.inspection import Lowered
    from func.compilation.paths import Paths
    from func.compilation.profile import Profile
    from func.interpreters.program.liveness import Liveness


CACHE_SIZE = 256
FAST, TF32 = "+fast", "+tf32"
"""Variants of a compiler: fast-math, and float32 products of ten binary digits on devices."""
_ENABLED: ContextVar[Setting | None] = ContextVar("func_jit_enabled", default=None)


_JITTED: weakref.WeakValueDictionary[int, Jitted[..., Any]] = weakref.WeakValueDictionary()
"""All jitted functions, by their ids: equal ones have separate caches."""


class CacheInfo(NamedTuple):
    """The result of `jitted.cache_info()`, with the fields of functools.lru_cache."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Inside, jitted functions run as the plain Python functions that they wrap: for debugging.

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
    setting = Setting(not disable, _ENABLED.get())
    token = enter(_ENABLED, setting)
    try:
        yield
    finally:
        leave(_ENABLED, setting, token)


class JitTransform(Protocol[Options]):
    """f(...) becomes a compiled function of the same parameters with the same result."""

    # fmt: off
    @overload
    def __call__(self, f: np.ufunc, *args: Options.args, **kwargs: Options.kwargs) -> Jitted[..., Any]: ...
    @overload
    def __call__(self, f: Callable[P, R], *args: Options.args, **kwargs: Options.kwargs) -> Jitted[P, R]: ...
    @overload
    def __call__(self, f: None = None, *args: Options.args, **kwargs: Options.kwargs) -> JitTransform[...]: ...
    # fmt: on


def _returns_jitted(transform: FunctionOf[Options, Any]) -> JitTransform[Options]:
    return transform  # type: ignore[return-value]


@_returns_jitted
@without_engine_frames
@takes_function_alone
def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    compiler: str | None = None,
    fast_math: bool = False,
    memory_limit: int | str | None = None,
    guards: bool = True,
    max_paths: int = 16,
    intercept: Intercepts = False,
) -> Any:
    """Compile a function: jit traces it once for every kind of arguments, and runs the optimised code afterwards.

    Arguments and results are trees of arrays and numbers, as for the other transforms. A new tree, shape, dtype,
    backend or value of a static argument causes a new trace. Other values cause one only where Python asks for them
    (`if np.any(x < 0)`, `while error > tol`, `range(n)`). Then jit traces once for each path of answers, and calls
    compute the answers to choose their path. Prints and other side effects happen while tracing only. Arrays of the
    enclosing scope become constants of the program.

    jit compiles transforms of jitted functions as well as jitted transforms: `grad(jit(f))` runs one forward and one
    backward program.

    Args:
        f: The function. Without it, jit is a decorator with options.
        static_argnums: Positions of arguments to pass on unchanged; they must be hashable.
        static_argnames: Names of such arguments. Each of the two implies the other, by the signature.
        donate_argnums: Positions of arguments whose arrays the caller gives up: results may take their memory. Using
            such an array again raises DonatedBufferError.
        donate_argnames: Names of such arguments. Each of the two implies the other, by the signature.
        compiler: "llvm" makes native code, "numpy" NumPy source, and "cuda" kernels for arguments that are CuPy's
            arrays. None means `func.config.compiler`, or else the best that is available. In all cases NumPy runs
            operations without a native form.
        fast_math: Let native code fuse products with sums, reorder sums, multiply by reciprocals and ignore the sign of
            zero. Calls are a little faster, and results differ from NumPy's by rounding. NaN and infinities stay.
        memory_limit: The most memory that a call may need, arguments and results included: bytes, or a text as
            "2 GiB". Above it the program recomputes values instead of saving them, and scans run in blocks that the
            backward pass runs again. The outputs are the same but for rounding. `func.memory` shows the plan.
        guards: Whether truth values and integers that Python asks for choose among paths. False: they raise.
        max_paths: The most paths for arguments of one kind.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        MemoryLimitError: No plan stays below memory_limit (a MemoryError).
        StagingError: Python asked for a floating-point number, for a value in a loop or branch, or for values of too
            many paths (a TypeError).
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
    if f is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            compiler=compiler,
            fast_math=fast_math,
            memory_limit=memory_limit,
            guards=guards,
            max_paths=max_paths,
            intercept=intercept,
        )
    check_callable(f, "jit")
    importlib.import_module("optree")  # every first call uses it
    importlib.import_module("func.interpreters.compile.execution")  # neither `import func` nor first calls wait for it
    return Jitted(
        f,
        static_argnums,
        static_argnames,
        donate_argnums,
        compiler,
        fast_math,
        memory_limit,
        donate_argnames,
        guards,
        max_paths,
        intercept,
    )


def jitted_for(transform: str, f: Callable[..., Any], static_argnums: Any, static_argnames: Any) -> Jitted[..., Any]:
    """`jit(f)` as a part of another function of func, which its errors name; a jitted function stays unchanged."""
    if isinstance(f, Jitted):
        return f
    jitted: Jitted[..., Any] = jit(f, static_argnums=static_argnums, static_argnames=static_argnames)
    jitted._transform = transform
    return jitted


class Jitted(Generic[P, R]):
    """The result of `func.jit`: a function, compiled for every kind of arguments of its calls."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        compiler: str | None,
        fast_math: bool = False,
        memory_limit: int | str | None = None,
        donate_argnames: Any = None,
        guards: bool = True,
        max_paths: int = 16,
        intercept: Intercepts = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._transform = "jit"
        self._memory_limit = None if memory_limit is None else _memory_limits().parse_bytes(memory_limit, "jit")
        if compiler not in COMPILERS:
            raise ArgumentError(f"func.jit: compiler={compiler!r} is not one of {', '.join(map(repr, COMPILERS))}")
        if compiler == "llvm" and importlib.util.find_spec("llvmlite") is None:
            raise ArgumentError("func.jit: compiler='llvm' needs llvmlite; install it, or leave compiler out")
        if fast_math and compiler == "numpy":
            raise ArgumentError("func.jit: fast_math is for native code, which compiler='numpy' does not make")
        if type(max_paths) is not int or max_paths < 1:
            raise ArgumentError(f"func.jit: max_paths={max_paths!r} is not a positive integer")
        self._compiler = compiler
        self._fast_math = fast_math
        self._guards = guards
        self._max_paths = max_paths
        self._intercept = intercept
        self._static = StaticArguments(with_interception(function, intercept), static_argnums, static_argnames)
        donated, donated_names = places_of(function, donate_argnums, donate_argnames, "donate")
        self._donated: frozenset[int | str] = donated | donated_names
        if both := self._donated & (self._static.numbers | self._static.names):
            named = min(both, key=str)
            raise ArgumentError(f"func.jit: argument {named} cannot be both static and donated")
        self._is_plain = not self._static
        self._frozen = _frozen_values(function) if config.check_frozen else None
        self._cache: OrderedDict[Any, CachedCall | Paths] = OrderedDict()
        _JITTED[id(self)] = self
        self._calls = self._misses = 0
        self._fast_call = _weakly(self, "_call_again")
        """Takes positional arguments: native code for the latest kind of arguments, which passes on other kinds."""

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Jitted[P, R]: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[Any, Options], R], instance: object, owner: type | None = None
    ) -> TransformedFunction[Options, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        options = {name: value for name, value in self._options().items() if value or name == "guards"}
        for kind in ("static", "donate"):
            if f"{kind}_argnames" in options:
                options.pop(f"{kind}_argnums", None)  # each implies the other
        return as_written(jit, self._function, options)

    def _options(self) -> dict[str, Any]:
        return {
            "static_argnums": tuple(sorted(self._static.numbers)),
            "static_argnames": tuple(sorted(self._static.names)),
            "donate_argnums": tuple(sorted([place for place in self._donated if isinstance(place, int)])),
            "donate_argnames": tuple(sorted([place for place in self._donated if isinstance(place, str)])),
            "compiler": self._compiler,
            "fast_math": self._fast_math,
            "memory_limit": self._memory_limit,
            "guards": self._guards,
            "max_paths": self._max_paths,
            "intercept": self._intercept,
        }

    def _content_key(self) -> Any:
        return content_key(self._function), content_key(self._options())

    def __eq__(self, other: object) -> bool:
        """Whether it has the same options and an equal function, regardless of its compiled programs."""
        return self is other or (type(other) is Jitted and self._content_key() == other._content_key())

    def __hash__(self) -> int:
        return hash(self._content_key())

    def __dask_tokenize__(self) -> Any:
        return token_of(jit, self._function, self._options())

    def __reduce__(self) -> Any:
        from func.compilation.carried_programs import carried_programs  # start-up time

        programs = carried_programs(self._function, self._cache)
        name = name_for_pickle(self)
        if name is None:
            return _rebuild, (self._function, *self._options().values(), programs)
        return name if programs is None else (_named, (self.__module__, name, programs))

    def __copy__(self) -> Jitted[P, R]:
        return self.__deepcopy__(None)

    def __deepcopy__(self, memo: Any) -> Jitted[P, R]:
        """Itself if it is a module global; else a function without programs: a copy may read copies of values."""
        if global_name(self) is not None:
            return self
        function = self._function if memo is None else copy.deepcopy(self._function, memo)
        return _rebuild(function, **self._options())  # type: ignore[return-value]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if kwargs or _ENABLED.get() is not None:
                return self._call(args, kwargs)  # type: ignore[no-any-return]
            self._calls += 1
            return self._fast_call(*args)  # type: ignore[no-any-return]
        except Exception as error:
            hide_engine_frames(error)
            raise

    def _call_again(self, *args: Any) -> Any:
        """A call that the fast call does not take; the fast call has counted it."""
        self._calls -= 1
        return self._call(args, {})

    def _call_after_failure(self, status: int, *args: Any) -> Any:
        """A call during which native code has failed with a status."""
        return self._call_again(*args)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with any arguments."""
        if _ENABLED.get() is not None and not value_in_force(_ENABLED, True):
            return self._static.function(*args, **kwargs)
        if self._frozen is not None and self._misses:
            self._frozen.warn_of_changes()
        traced_args, traced_kwargs, statics = (args, kwargs, ()) if self._is_plain else self._static.split(args, kwargs)
        cached, leaves, known = self._cached_call(traced_args, traced_kwargs, statics)
        compiled = cached.compiled
        if any(cached.separate):
            check_overlap(cached.separate, leaves, self._function, "jit")
        if cached.captured or cached.axes:
            leaves = [*cached.leading(), *leaves]
        outs: Sequence[Any]
        if any([type(leaf) not in HOST_TYPES for leaf in leaves]):
            if cached.donated and all([is_known_array(leaf) for leaf in leaves]):
                outs = compiled.executable(namespace_of(tuple(leaves)), cached.donated).call(*leaves)
            else:
                outs = form_for(compiled, leaves)(*leaves)
        elif cached.donated:
            outs = cached.run_donating(leaves)
        else:
            outs = cached.execute(leaves) if known is None else known
            is_in_order = cached.layouts is None or not any(cached.layouts)
            is_alone = not cached.captured and not cached.axes
            if self._is_plain and not kwargs and is_alone and not self._donated and is_in_order:
                again, after_failure = _weakly(self, "_call_again"), _weakly(self, "_call_after_failure")
                stub = cached.call_stub(args, again, after_failure) if self._frozen is None else None
                self._fast_call = stub or self._fast_call
        if self._donated:
            note_donated(args, kwargs, self._donated)
        if cached.may_return_argument:
            argument_ids = set(map(id, leaves))
            outs = [_copy(out) if id(out) in argument_ids else out for out in outs]
        return outs[0] if cached.is_single else tree.unflatten(cached.out_spec, outs)

    def _cached_call(
        self, args: Sequence[Any], kwargs: dict[str, Any], statics: tuple[Any, ...]
    ) -> tuple[CachedCall, list[Any], Sequence[Any] | None]:
        """(cached call, leaves, outputs) for these arguments; it traces if no call fits.

        The outputs are those that the choice among paths has computed, if any.
        """
        if not kwargs and all([type(arg) in _LEAVES for arg in args]):
            leaves: list[Any] = list(args)
            spec: Any = len(leaves)
        else:
            leaves, spec = tree.flatten((tuple(args), kwargs))
            if any([type(leaf) not in HOST_TYPES and type(leaf) is not Tracer for leaf in leaves]):
                leaves = self._checked(leaves, args, kwargs)
        if DONATED:
            check_not_donated(leaves)
        key = (spec, statics, *[_key_of(leaf) for leaf in leaves])
        entry = self._cache.get(key)
        self._calls += 1
        if entry is not None and entry.layouts is not None:
            key, entry = self._among_layouts(key, entry, leaves)
        if entry is not None and entry.axes:
            key, entry = self._among_axes(key, entry)
        answers: Sequence[Any] = ()
        if entry is not None:
            if len(self._cache) > 1:
                try:  # noqa: SIM105 (suppress takes longer)
                    self._cache.move_to_end(key)
                except KeyError:  # another thread has dropped it meanwhile
                    pass
            if type(entry) is CachedCall:
                return entry, leaves, None
            cached, answers, outs = entry.choose(leaves)  # type: ignore[union-attr]
            if cached is not None:
                return cached, leaves, outs
        self._misses += 1
        leaves, spec = tree.flatten((tuple(args), kwargs))
        leaves = self._checked(leaves, args, kwargs)
        cached = self._trace(leaves, spec, statics, answers)
        if self._memory_limit is not None:
            cached = self._within_limit(cached, self._memory_limit, leaves, spec, statics)
        if cached.is_cached:
            self._keep(key, entry, cached)
        return cached, leaves, None

    def _keep(self, key: Any, entry: CachedCall | Paths | None, cached: CachedCall) -> None:
        """Store a trace for later calls: as the only program for such arguments, or as one more path."""
        if cached.answered:
            from func.compilation.paths import Paths  # start-up time

            if type(entry) is not Paths:
                entry = Paths(self._max_paths)
        if entry is not None:
            entry.add(cached.answered, cached)  # type: ignore[union-attr]
        self._cache[key] = cached if entry is None else entry
        if len(self._cache) > CACHE_SIZE:
            with contextlib.suppress(KeyError):
                self._cache.popitem(last=False)

    def _among_layouts(
        self, key: Any, cached: CachedCall | Paths, leaves: list[Any]
    ) -> tuple[Any, CachedCall | Paths | None]:
        """The key and the cached call for arguments with this memory layout, where the function depends on it."""
        layouts = tuple(map(layout_key, leaves))
        if cached.layouts == layouts:
            return key, cached
        key = (key, layouts)
        return key, self._cache.get(key)

    def _among_axes(self, key: Any, cached: CachedCall | Paths) -> tuple[Any, CachedCall | Paths | None]:
        """The key and the cached call for the axes that are in scope."""
        from func.collectives import axis_key  # start-up time

        present = tuple([(name, axis_key(name)) for name, _ in cached.axes])
        if cached.axes == present:
            return key, cached
        key = (key, present)
        other = self._cache.get(key)
        return key, other if other is not None and other.axes == present else None

    def _checked(self, leaves: list[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        try:
            return [traced_leaf(leaf, "", self._transform) for leaf in leaves]
        except (UnsupportedArrayError, ArgumentError):  # errors alone need names
            paths = argument_paths(self._function, args, kwargs, self._static.numbers)
            return [traced_leaf(leaf, path, self._transform) for leaf, path in zip(leaves, paths, strict=True)]

    def _trace(
        self, leaves: Sequence[Any], spec: Any, statics: tuple[Any, ...], answers: Sequence[Any] = ()
    ) -> CachedCall:
        """Trace the function on abstract arrays like these, along a path that begins with these answers."""
        WIRING.expect_programs(self._compiler_name())
        avals = [aval_of(leaf) for leaf in leaves]
        example = next((example for example in map(example_of, leaves) if example is not None), None)
        out_spec: Any = None
        depends_on_layouts = False
        separate = SeparateMemory()
        axes: dict[str, Any] = {}
        input_layouts = layouts_of(leaves)
        example_leaves = list(leaves)
        asked = Asked(self._guards, leaves, answers)
        # The program may keep `trace` for its NaN-safe variant; `self` keeps the program.
        function, static, transform = self._function, self._static, self._transform

        def names_of_arguments() -> Sequence[str]:
            args, kwargs = tree.unflatten(spec, range(len(avals)))
            return argument_paths(function, args, kwargs, static.numbers)

        def trace(stage: Stage) -> Program:
            nonlocal out_spec, depends_on_layouts, separate
            with TransformScope(stage, staging=True), running(stage):
                inputs = [stage.variable(aval) for aval in avals]
                variables = [tracer._attached for tracer in inputs]
                stage.arguments, stage.names_of_arguments = variables, names_of_arguments
                stage.ask = asked.begin()
                laid_out(inputs, input_layouts)
                note_traced_arguments(stage, function, inputs, example_leaves)
                args, kwargs = tree.unflatten(spec, inputs)
                outs, out_spec = output_leaves(static.call(args, kwargs, statics), transform)
                program = stage.program(variables, [*outs, *asked.guards()])
                depends_on_layouts = stage.layouts.depend_on_inputs
                separate = separate_arguments(stage, program)
                axes.update(stage.axes)
                return program

        traced, captured = trace_call(trace, self._transform, example, self._compiler_name())
        answered = asked.end()
        example_leaves[:] = [np.empty(0, aval.dtype) for aval in avals]  # later traces share no memory
        is_cached = all([is_rank_number(value) for value in captured])
        is_cached = is_cached and not (answered and captured)  # guards would keep the number of this process
        numbers: tuple[str, ...] = ()
        if is_cached:  # later calls have the same processes, but may be traced
            numbers, captured = tuple([value._interpreter.name for value in captured]), []
        if self._frozen is not None:
            self._frozen = _frozen_values(self._function)
        donated = (
            frozenset()
            if captured or numbers
            else donated_leaves(spec, self._donated, {static.name for static in statics})
        )
        layouts = tuple(map(layout_key, leaves)) if depends_on_layouts else None
        return CachedCall(
            traced, out_spec, captured, donated, layouts, separate, is_cached, tuple(axes.items()), numbers, answered
        )

    def _within_limit(
        self, cached: CachedCall, limit: int, leaves: Sequence[Any], spec: Any, statics: tuple[Any, ...]
    ) -> CachedCall:
        """The first call whose planned memory is within the limit, of calls that recompute more and more."""
        planned_memory = importlib.import_module("func.compilation.planned_memory")
        xp = namespace_of(tuple(leaves))
        lowest = None
        length = planned_memory.longest_scan(cached.compiled.program)
        for most in (None, *[max(limit // share, 1) for share in planned_memory.SHARES_OF_SCANS]):
            if most is not None:
                if not length:
                    break
                with planned_memory.scans_keeping(most):
                    cached = self._trace(leaves, spec, statics)
            liveness, cached.compiled, cached.memory_plan = planned_memory.recomputing(
                cached.compiled, limit, xp, cached.donated, most
            )
            if liveness.peak <= limit:
                return cached
            lowest = liveness if lowest is None or liveness.peak < lowest.peak else lowest
        assert lowest is not None

        def in_intervals(interval: int) -> tuple[CachedCall, Liveness]:
            with planned_memory.scans_keeping(interval=interval):
                traced = self._trace(leaves, spec, statics)
            return traced, planned_memory.planned_liveness(traced.compiled, xp, traced.donated)[0]

        interval = planned_memory.interval_within(limit, length, lambda interval: in_intervals(interval)[1].peak)
        if interval is not None:
            cached = in_intervals(interval)[0]
            cached.memory_plan = (f"scans keep their carry once in {interval} steps",)
            return cached
        raise _memory_limits().limit_error("jit", self._function, limit, lowest, "a call")

    def _compiler_name(self) -> str:
        compiler = self._compiler or config.compiler or BEST
        if self._fast_math and compiler != "numpy":
            compiler = f"{compiler}{FAST}"
        return compiler if config.matmul_precision == "highest" else f"{compiler}{TF32}"

    def trace(self, *args: Any, **kwargs: Any) -> Program:
        """The Program for arguments like these, as executed: calls inlined, optimised.

        Raises: StagingError where Python asks for values: a Program, which `func.save` stores, has no guards.
        """
        from func.interpreters.compile.inlining import prepare_call  # here, for the start-up time

        return prepare_call(self.cached_call(args, kwargs)[3].compiled)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The compiled forms for arguments like these: Program, kernels, LLVM IR, assembly, generated source."""
        from func.compilation.inspection import Lowered, executable_of  # start-up time

        cached, leaves = self._lookup(args, kwargs)
        executable = executable_of(cached.compiled, leaves, cached.donated)
        return Lowered(cached.compiled, executable, [asked.text() for asked in cached.answered])

    def profile(self, *args: Any, repeat: int = 20, **kwargs: Any) -> Profile:
        """The time of every kernel for these arguments, its memory traffic, and its speed.

        Times are the least of `repeat` runs. The result prints as a table and has its numbers as attributes.

        Raises:
            ProfileError: Nothing of it is native code, or two runs return different results.

        Example:
            >>> import numpy as np, func
            >>> profile = func.jit(lambda x: np.sum(np.sin(x))).profile(np.ones(1000), repeat=3)
            >>> [(row.title, row.runs, row.bytes_read) for row in profile.rows]
            [('sin, sum over 1000 → out0', 1, 8000)]
        """
        from func.compilation.inspection import executable_of  # start-up time
        from func.compilation.profile import profile_of

        cached, leaves = self._lookup(args, kwargs)
        executable = executable_of(cached.compiled, leaves)
        profile = profile_of(executable, [*cached.leading(), *leaves], repeat, name_of(self._function))
        profile.note = "\n".join([*[asked.text() for asked in cached.answered], profile.note]).rstrip()
        return profile

    def _lookup(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CachedCall, list[Any]]:
        return self._cached_call(*self._static.split(args, kwargs))[:2]

    def cached_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], takes_path: bool = False
    ) -> tuple[list[Any], dict[str, Any], tuple[Any, ...], CachedCall]:
        """(traced positional, traced keyword, static) arguments and the cached call for them.

        Raises: StagingError where it is one path of several, and so no program of the function, unless the caller
            checks its guards.
        """
        split = self._static.split(args, kwargs)
        cached = self._cached_call(*split)[0]
        if cached.answered and not takes_path:
            raise StagingError(
                f"func.{self._transform}: {name_of(self._function)} asks for values{cached.answered[0].question.line}\n"
                "so that its program depends on them. Write np.where or func.cond for the branch, func.while_loop for "
                "the loop, or pass the number as a static argument."
            )
        return *split, cached

    def cache_info(self) -> CacheInfo:
        """The number of calls that found their program, of traces, and of programs in the cache."""
        programs = sum([entry.count for entry in list(self._cache.values())])
        return CacheInfo(self._calls - self._misses, self._misses, CACHE_SIZE, programs)

    def clear_cache(self) -> None:
        """Drop all programs."""
        self._cache.clear()
        self._calls = self._misses = 0
        self._fast_call = _weakly(self, "_call_again")


def _memory_limits() -> Any:
    return importlib.import_module("func.transforms.memory_limits")  # start-up time


@without_engine_frames
def clear_caches() -> None:
    """Drop the programs of every jitted function, so that each traces again, and free cached memory.

    Call it after a change of a global or an attribute that a function has read during its trace. `jitted.clear_cache()`
    does the same for one function. It returns the memory that transforms keep for reuse (`func.config.array_cache`) to
    the system, and drops the compiled backward passes of eager code.

    Example:
        >>> import func
        >>> square = func.jit(lambda x: x * x)
        >>> float(square(3.0))
        9.0
        >>> func.clear_caches()
        >>> square.cache_info().currsize
        0
    """
    from func.interpreters.calls.backward_plans import PLANS  # start-up time
    from func.interpreters.staged_rules import RULES

    for jitted in list(_JITTED.values()):
        jitted.clear_cache()
    PLANS.clear()
    RULES.clear()
    forget_copies()
    MEMORY.release()


def _weakly(jitted: Jitted[..., Any], name: str) -> Callable[..., Any]:
    """A method that the jitted function's own native code calls; a bound method would keep both alive."""
    reference = weakref.ref(jitted)
    return lambda *args: getattr(reference(), name)(*args)


_LEAVES = HOST_TYPES | {Tracer}


def _key_of(leaf: Any) -> Any:
    """The part of a leaf in the key of the cache: everything about it but its numbers."""
    kind = type(leaf)
    if kind is np.ndarray:
        return leaf.shape, leaf.dtype
    if kind in PYTHON_SCALARS:
        return kind if kind is not int or leaf in INTEGERS else leaf  # no program takes this one: the trace reports why
    if kind is Tracer:
        aval = aval_of(leaf)
        if aval.weak:
            return _WEAK[aval.dtype.kind]
        kind = type(innermost(leaf))
        leaf = aval
    return (leaf.shape, leaf.dtype) if kind in _ON_HOST else (kind, leaf.shape, leaf.dtype)


_WEAK = {"b": bool, "i": int, "f": float, "c": complex}
_ON_HOST = HOST_TYPES | {type(None)}


def _copy(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") and type(value) is not Tracer else value


def _rebuild(
    function: Any,
    static_argnums: Any,
    static_argnames: Any,
    donate_argnums: Any,
    donate_argnames: Any,
    compiler: Any,
    fast_math: bool,
    memory_limit: Any = None,
    guards: bool = True,
    max_paths: int = 16,
    intercept: Intercepts = False,
    programs: bytes | None = None,
) -> Jitted[..., Any]:
    jitted: Jitted[..., Any] = Jitted(
        function,
        static_argnums,
        static_argnames,
        donate_argnums,
        compiler,
        fast_math,
        memory_limit,
        donate_argnames,
        guards,
        max_paths,
        intercept,
    )
    if programs is not None:
        _add_programs(jitted, programs)
    return jitted


def _add_programs(jitted: Jitted[..., Any], programs: bytes) -> None:
    """Add the programs of a pickle to a function."""
    from func.compilation.carried_programs import take_over  # start-up time

    take_over(jitted._function, jitted._cache, programs)


def _frozen_values(function: Callable[..., Any]) -> FrozenValues:
    from func.compilation.frozen import FrozenValues  # start-up time: for a setting alone

    return FrozenValues(function)


def _named(module: str, name: str, programs: bytes) -> Any:
    """The object with this name in a module, with the programs of a pickle."""
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    if type(target) is Jitted:
        _add_programs(target, programs)
    return target
