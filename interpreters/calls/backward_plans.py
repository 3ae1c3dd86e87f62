"""Frequent backward passes as compiled programs.

NumPy computes eager code one operation after another. Cotangents computed in this way need several pullbacks for each
operation, each of which reads and writes all of a large array. But the whole backward pass is known before it begins.
A trace of its graph is a Program, whose inputs are the seeds and the saved values. Native code computes it in few
passes over memory. On a device a few kernels replace one for each step of a pullback.

Two graphs have one structure if they differ in the numbers of their arrays alone; the key of a `Structure` tells.
Passes of a structure run node by node until they have taken, by an estimate, the time of compilation. From then on a
matcher recognises the structure (`graph_matchers`) and runs its code. The estimate depends on the structure alone, so a
script that runs twice computes the same bits.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from func.backends import messages, namespace_of, namespace_of_type
from func.backends.array_memory import MEMORY
from func.backends.cuda.device import DeviceMemoryError
from func.backends.number_types import is_number
from func.interpreters import drivers
from func.interpreters.calls.derivative_levels import DerivativeLevels, Form, Opener, Unknown, levels_of
from func.interpreters.calls.graph_matchers import GraphMismatch, Matcher, matcher_of
from func.interpreters.compiled_backward import BACKWARD, PassHistory
from func.interpreters.core import PYTHON_SCALARS, ZERO, Array, Aval, Bilinear, Tracer, innermost, shape_of
from func.interpreters.core.errors import ValidationError
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import (
    AVAL,
    LEAF,
    NEEDS_COTANGENT,
    OUTPUT,
    PARAMS,
    PARENTS,
    RULE,
    SAVED,
    SERIAL,
    walk,
)
from func.interpreters.host.garbage import rare_collections
from func.interpreters.imperative.node_state import Freed, PackedValues
from func.interpreters.nan_safe import FreshCotangents
from func.interpreters.primitives.elementwise.pointwise import HOST_ARRAYS
from func.interpreters.program.content_keys import typed_key
from func.interpreters.program.plain_runs import Run, Undefined, plain_run
from func.interpreters.program.program import Program
from func.interpreters.program.translations import TRANSLATIONS
from func.interpreters.stage import DerivedStage

BACKWARD.has_begun = True

LONGEST = 2048
"""Nodes of the longest compiled graph: compilation takes time in proportion, and so does the key."""
START, BASE_COST, COST_OF_NODE = 0.08, 0.02, 0.001
"""Approximate seconds of compilation: extra for the first one of the process, for each, and for each node."""
LEAST = 8e-6
"""Estimated seconds of the shortest compiled pass: a call of code takes a microsecond or two."""


class Costs(NamedTuple):
    """Approximate seconds of a pullback: for itself, for each element of its node's value, for each multiplication.

    A pullback of a product has twice the product's multiplications; operations of other matrix routines have another
    cost. A rule may state the elements that one counts as (`pull_cost`), and the operations of its pullback
    (`pull_operations`). `compilation` is the cost of a compilation in those of a processor."""

    node: float
    element: float
    multiplication: float
    operation: float
    compilation: float


HOST = Costs(5e-6, 1e-9, 2e-11, 1e-10, 1)
DEVICE = Costs(2e-5, 2e-11, 1e-13, 1e-12, 10)
"""Two or three calls of CuPy, whose kernels read and write 4 TB a second; NVRTC takes 0.06 s for a kernel."""
READING = 0.5
"""The cost of an element of a product's larger operand, in elements of a pullback. A product with a vector takes the
time of reading the matrix."""
KEY_OF_NODE, SPARE = 2e-5, 7
"""The interval of passes to examine if a node takes fewer than these seconds, ten times the cost of the key. Longer
passes are all examined. An odd number meets both of two structures that alternate."""
MOST_MISSES = 64
"""The most graphs of one signature with a new structure, beyond those with a known one, before func stops examining
them."""
LEVEL = 4
"""The additional cost of a pullback below a vmap or a jvp, in costs of the pullback: each primitive has a rule for
it."""
LARGEST_SHARE = 10
"""The largest share of products in a pass, in times of all else: code makes no product faster."""
MOST_PLANS = 256
"""The most structures in the cache."""

_COMPILED_DTYPES = frozenset(
    map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"))
)


class _NotCompiled(Exception):
    """No program of arrays can represent the graph."""


class _Traced(Exception):
    """Some of a graph's values are traced, or rules not traced yet; the next graph may differ."""


class _OtherCompiler(Exception):
    """The settings have no compiler for arrays of this kind at present."""


class _FoundNaN(GraphMismatch):
    """The code finds a NaN among the cotangents."""


class TracedPass(NamedTuple):
    """A backward pass as a Program of the arrays of a structure, whose outputs are those in the cotangents.

    `out_forms` are the forms of the cotangents. Then: flags of leaves with a cotangent, whether all nodes are pulled
    back.
    """

    program: Program
    out_forms: Sequence[Form | None]
    has_cotangent: tuple[bool, ...]
    pulls_all: bool


class Structure:
    """The graph below some seeds: `key` has all of it but the numbers in `arrays`.

    Raises:
        _NotCompiled: The pass is short or has too many nodes, products of matrices dominate it, or a rule does not
            consist of primitives. Also if code cannot read a value.
        _Traced: A value is traced, and not by vmap and jvp alone, or a rule is the first of its kind.
        _OtherCompiler: There is code for arrays of this kind, and the settings are against it.
    """

    __slots__ = (
        *("_leaves", "_nodes", "_places", "_seeds", "_slots", "arrays", "costs", "forms", "key", "levels", "seconds"),
        *("values", "xp"),
    )

    def __init__(self, seeds: Sequence[tuple[Any, Array]], leaves: Sequence[Any]) -> None:
        self.values: list[Array] = []
        """The seeds and the values that nodes saved, each value once."""
        self._slots: dict[int, int] = {}
        self._nodes = _newest_first([node for node, _ in seeds])
        self.xp = namespace_of(tuple([innermost(ct) for _, ct in seeds]))
        """The namespace of the arrays."""
        self.costs = HOST if self.xp is np else DEVICE
        self._places = places = {node[SERIAL]: place for place, node in enumerate(self._nodes)}
        self._seeds = [(places[node[SERIAL]], self._slot(ct)) for node, ct in seeds]
        self._leaves = [places.get(leaf[SERIAL]) for leaf in leaves]
        nodes = [self._described_node(node) for node in self._nodes]
        try:
            self.levels = levels_of(self.values)
        except Unknown:
            raise _Traced from None
        self.arrays: list[Array] = []
        """The values, or the arrays inside traced ones."""
        self.forms = [self.levels.form(value, self.arrays) for value in self.values]
        kinds = self.levels.kinds
        if kinds and not all([self._is_compiled(x) for x in self.arrays]):
            raise _NotCompiled
        self.seconds = _estimate(self._nodes, self.costs, 1 + LEVEL * len(kinds), self.levels.copies)
        """The estimated seconds of the pass node by node."""
        arrays = tuple([(type(x) in HOST_ARRAYS, x.shape, x.dtype) for x in self.arrays])
        self.key = self.xp, tuple(self._seeds), tuple(self._leaves), tuple(nodes), arrays, tuple(self.forms), kinds
        if not (BACKWARD.on_host if self.xp is np else BACKWARD.on_device):
            raise _OtherCompiler

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def weight(self) -> int:
        """The number of passes that this one represents: if keys take long, few passes are examined."""
        return 1 if self.seconds >= KEY_OF_NODE * len(self) else SPARE

    def matcher(self, call: Callable[..., Any], has_cotangent: Sequence[bool], of_tensors: bool = False) -> Any:
        """The function that recognises such graphs and calls code with their arrays; None if impossible."""
        return matcher_of(self._seeds, self._leaves, self._nodes, self._slots, call, has_cotangent, of_tensors)

    def _described_node(self, node: Any) -> Any:
        _, rule, parents, needs_cotangent, saved, params, _ = node
        if not getattr(rule, "pulls_by_primitives", False) or getattr(rule, "calls_python", False):
            raise _Traced if getattr(rule, "may_be_staged", False) else _NotCompiled
        places = self._places
        above = tuple([None if parent is None else places[parent[SERIAL]] for parent in parents])
        if rule is OUTPUT:
            return rule, above, saved
        described = None if saved is None else self._described(saved)
        if not params:
            return rule, above, tuple(needs_cotangent), described
        options = tuple([(name, typed_key(value)) for name, value in params.items()])
        return rule, above, tuple(needs_cotangent), described, options

    def _described(self, value: Any) -> Any:
        """The part of the key for a saved value."""
        kind = type(value)
        if kind is tuple or kind is list:
            return kind, *[self._described(member) for member in value]
        if value is None or kind is Aval:
            return value
        if kind in PYTHON_SCALARS:
            return typed_key(value)
        return self._slot(value)

    def _slot(self, value: Any) -> int:
        """The place of a value among the inputs."""
        slot = self._slots.get(id(value))
        if slot is None:
            if type(value) is not Tracer and not self._is_compiled(value):
                raise _NotCompiled
            slot = self._slots[id(value)] = len(self.values)
            self.values.append(value)
        return slot

    def _is_compiled(self, value: Any) -> bool:
        """Whether code can read an array."""
        return _is_compiled_on_host(value) if self.xp is np else self._is_compiled_on_device(value)

    def _is_compiled_on_device(self, value: Any) -> bool:
        """Whether kernels can read an array. Each pass sends arrays of the host, such as indices, to the device."""
        is_known = type(value) in HOST_ARRAYS or namespace_of_type(type(value)) is self.xp
        return is_known and getattr(self.xp, "device_of", None) is not None and is_number(value.dtype)

    def trace(self) -> TracedPass:
        """Trace the nodes' rules on variables."""
        has_cotangent: list[bool] = []
        pulled_back: list[int] = []

        def opened(node: Any, ct: Any) -> Any:
            pulled_back.append(node[SERIAL])
            return node[SAVED]

        def pulled(*inputs: Tracer) -> list[Array]:
            def traced(value: Any) -> Any:
                kind = type(value)
                if kind is tuple or kind is list:
                    return kind([traced(member) for member in value])
                if id(value) in known:
                    return known[id(value)]
                return inputs[self._slots[id(value)]] if id(value) in self._slots else value

            known: dict[int, Any] = {}
            claims: list[tuple[Any, Any]] = []
            if any([getattr(node[RULE], "name", "") == "cholesky" for node in self._nodes]):
                from func.interpreters.calls.factor_reuse import stand_ins  # start-up time

                known = stand_ins(self._nodes, traced, claims)
            nodes: dict[int, Any] = {}
            for node in reversed(self._nodes):
                serial, rule, parents, needs_cotangent, saved, params, aval = node
                above = tuple([None if parent is None else nodes[parent[SERIAL]] for parent in parents])
                if rule is OUTPUT:
                    nodes[serial] = serial, rule, above, above, saved, params, aval
                else:
                    nodes[serial] = serial, rule, above, needs_cotangent, traced(saved), params, aval
            places = [node[SERIAL] for node in self._nodes]
            seeds = [(nodes[places[place]], inputs[slot]) for place, slot in self._seeds]
            leaves = [nodes[places[place]] for place in self._leaves if place is not None]
            reached = iter(walk(seeds, leaves, None, opened))
            cotangents = [ZERO if place is None else next(reached) for place in self._leaves]
            has_cotangent[:] = [ct is not ZERO for ct in cotangents]
            found = [ct for ct in cotangents if ct is not ZERO]
            if claims and found:
                from func.interpreters.calls.factor_reuse import nan_unless_equal  # start-up time

                found[0] = nan_unless_equal(claims, found[0])
            return found

        avals = [Aval(x.shape, x.dtype) for x in self.arrays]
        flat, out_forms = self.levels.traced(pulled, self.forms)
        program = drivers.stage_flat(flat, avals, BackwardStage("grad"))
        traced_pass = TracedPass(program, out_forms, tuple(has_cotangent), len(pulled_back) == len(self._nodes))
        if TRANSLATIONS.are_validated and self.xp is np and not self.levels.kinds:
            run = _run_without_nan(program)
            WIRING.check_translation(
                "the trace of a backward pass", program, lambda _: run, reference=lambda _: flat, is_fixed=True
            )
        return traced_pass


def _run_without_nan(program: Program) -> Run:
    """A trace as a function of arrays for validation: after a NaN the general pass runs, so NaN shows nothing."""
    run = plain_run(program)

    def run_without_nan(*args: Array) -> Any:
        outs = run(*args)
        if any([np.any(np.isnan(out)) for out in outs]):
            raise Undefined
        return outs

    return run_without_nan


class BackwardStage(DerivedStage):
    """Stages a backward pass that checks its cotangents for NaN: rules run as they do on arrays."""

    checks_nan = True


def _newest_first(roots: Sequence[Any]) -> list[Any]:
    """The nodes of a graph in the order in which a backward pass takes them."""
    nodes: dict[int, Any] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node[SERIAL] not in nodes:
            nodes[node[SERIAL]] = node
            stack += [parent for parent in node[PARENTS] if parent is not None]
            if len(nodes) > LONGEST:
                raise _NotCompiled
    return [nodes[serial] for serial in sorted(nodes)]


def _is_compiled_on_host(value: Any) -> bool:
    return type(value) in HOST_ARRAYS and value.dtype in _COMPILED_DTYPES


def _estimate(nodes: Sequence[Any], costs: Costs, depth: int = 1, copies: int = 1) -> float:
    """Seconds of a pass node by node, about.

    Each node's rule takes `depth` times as long, for the interpreters around it, on `copies` times as many elements.

    Raises:
        _NotCompiled: Code would gain little.
    """
    others, products, reading = costs.node * len(nodes) * depth, 0.0, 0.0
    for node in nodes:
        aval, rule = node[AVAL], node[RULE]
        if (operations := getattr(rule, "pull_operations", None)) is not None:
            others += costs.operation * copies * operations(node[SAVED], aval, node[PARAMS])
        if aval is None:
            continue
        size = prod(aval.shape)
        others += costs.element * copies * size * getattr(rule, "pull_cost", 1)
        if isinstance(rule, Bilinear):
            x, y = [
                prod(aval.shape) if value is None else prod(shape_of(value))
                for aval, value in zip(node[NEEDS_COTANGENT], node[SAVED], strict=True)
            ]
            multiplications = sqrt(float(size) * x * y)  # (m k) (k n) (m n) is the square of m k n
            products += costs.multiplication * copies * multiplications
            reading += READING * costs.element * copies * max(x, y)
    if others + products < LEAST or products > LARGEST_SHARE * others:
        raise _NotCompiled
    return others + products + reading


class PassPlan:
    """The passes of one structure: node by node at first, later by code."""

    __slots__ = ("_has_cotangent", "_is_hopeless", "_matchers", "_pulls_all", "_run", "_spent")

    def __init__(self) -> None:
        self._spent = 0.0
        """Estimated seconds of the passes so far."""
        self._run: Any = None
        """The code as a function of arrays of these shapes and dtypes."""
        self._has_cotangent: tuple[bool, ...] = ()
        self._pulls_all = False
        self._is_hopeless = False
        """Whether there is no code for the structure."""
        self._matchers: dict[bool, Matcher | None] = {}
        """The functions that recognise the structure and run the code; under True for graphs of tensors."""

    @property
    def is_new(self) -> bool:
        """Whether no pass has run."""
        return self._spent == 0.0

    def note(self, structure: Structure, history: PassHistory, of_tensors: bool = False) -> None:
        """Note that a pass comes: compile if it is time, and add a matcher to the history if there is code."""
        if self._run is None and not self._is_hopeless:
            self._spent += structure.seconds * structure.weight
            cost = (0.0 if PLANS.has_compiled else START) + BASE_COST + COST_OF_NODE * len(structure)
            if self._spent > cost * structure.costs.compilation:
                self._compile(structure)  # threads may both compile: a lock that a fork leaves locked is worse
        if self._is_hopeless or (of_tensors and self._run is not None and not self._pulls_all):
            history.give_up()
        elif self._run is not None:
            if of_tensors not in self._matchers:
                self._matchers[of_tensors] = structure.matcher(self._run, self._has_cotangent, of_tensors)
            matcher = self._matchers[of_tensors]
            if matcher is not None:
                history.add(matcher)

    def walk(
        self, structure: Structure, seeds: Sequence[Any], leaves: Sequence[Any], history: PassHistory
    ) -> list[Any]:
        """The cotangents of the leaves."""
        self.note(structure, history)
        if self._run is None:
            return walk(seeds, leaves)
        try:
            return self._arranged(self._run(*structure.values))
        except GraphMismatch:
            return walk(seeds, leaves)

    def _arranged(self, outputs: Sequence[Array]) -> FreshCotangents:
        """The outputs of code, with ZERO for leaves without a part in it."""
        if len(outputs) == len(self._has_cotangent):
            return FreshCotangents(outputs)
        remaining = iter(outputs)
        return FreshCotangents([next(remaining) if has_one else ZERO for has_one in self._has_cotangent])

    def _compile(self, structure: Structure) -> None:
        PLANS.has_compiled = True
        try:
            with rare_collections():
                traced = structure.trace()
                self._has_cotangent, self._pulls_all = traced.has_cotangent, traced.pulls_all
                compiler = "llvm+eager" if structure.xp is np else "cuda+eager"
                executable = WIRING.compile_program(traced.program, structure.xp, compiler, frozenset(), _raise_for_nan)
                call = self._call_of(structure, executable)
                if call is not None and structure.levels.kinds:
                    call = _on_levels(call, structure.levels, structure.forms, traced.out_forms)
        except ValidationError:
            raise
        except Exception as error:
            messages.debug("a backward pass is not compiled: %s", error)
            self._is_hopeless = True
            return
        self._run = call
        self._is_hopeless = call is None

    def _call_of(self, structure: Structure, executable: Any) -> Callable[..., Any] | None:
        """The code as a function of arrays like those of a structure, which raises `GraphMismatch` for others; or None
        without code."""
        expected = [(namespace_of_type(type(x)), x.shape, x.dtype) for x in structure.arrays]
        run = executable.call

        def checked(*arrays: Any) -> Any:
            for x, (namespace, shape, dtype) in zip(arrays, expected, strict=True):
                if namespace_of_type(type(x)) is not namespace or type(x) in PYTHON_SCALARS:
                    raise GraphMismatch
                if x.shape != shape or x.dtype != dtype:
                    raise GraphMismatch
            return run(*arrays)

        def with_less_memory(*arrays: Any) -> Any:
            try:
                return checked(*arrays)
            except DeviceMemoryError:
                raise GraphMismatch from None  # node by node, a pass frees memory on the way

        if structure.xp is not np:
            return with_less_memory
        if executable.native is None:
            return None if executable.parts is None else checked
        # If NumPy's memory comes from a cache, memory that the stub keeps for itself would be in use twice.
        has_cache = MEMORY.allocator is not None and MEMORY.limit > 0
        stub: Callable[..., Any] = executable.native.strict_stub(checked, keeps_outputs=not has_cache)
        return stub


def _on_levels(
    call: Callable[..., Any], levels: DerivativeLevels, forms: Sequence[Form | None], out_forms: Sequence[Form | None]
) -> Callable[..., Any]:
    """Code for arrays as a function of values, some of which levels like these trace."""
    opener = Opener(levels, forms)

    def run(*values: Any) -> list[Any]:
        try:
            around, arrays = opener.open(values)
        except Unknown:
            raise GraphMismatch from None
        outputs = iter(call(*arrays))
        return [around.value(form, outputs) for form in out_forms]

    return run


def _raise_for_nan(*arrays: Array) -> Any:
    """Called by code that finds a NaN among the cotangents."""
    raise _FoundNaN


class Plans:
    """The plans of the most recent structures. There is no lock, which a fork could leave locked."""

    __slots__ = ("_plans", "has_compiled")

    def __init__(self) -> None:
        self._plans: OrderedDict[Any, PassPlan] = OrderedDict()
        self.has_compiled = False
        """Whether the compiler has started."""

    def of(self, key: Any) -> PassPlan:
        """The plan of a structure; a new one if there is none."""
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = PassPlan()
        with contextlib.suppress(KeyError):  # another thread has removed it in between
            self._plans.move_to_end(key)
            if len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        return plan

    def clear(self) -> None:
        """Forget all plans."""
        self._plans.clear()
        self.has_compiled = False
        BACKWARD.histories.clear()


PLANS = Plans()


def compiled_walk(seeds: Sequence[tuple[Any, Array]], leaves: Sequence[Any], history: PassHistory) -> list[Any]:
    """The cotangents of the leaves, by code if there is some for the graph."""
    found = _looked_up(seeds, leaves, history)
    if found is None:
        return walk(seeds, leaves)
    structure, plan = found
    return plan.walk(structure, seeds, leaves, history)


def note_backward(seeds: Sequence[tuple[Any, Array]], history: PassHistory) -> None:
    """Note that a backward pass of tensors comes: its history gets a matcher if there is code."""
    try:
        plain_seeds, leaves = _without_states(seeds)
    except _Traced:
        return
    except _NotCompiled:
        history.give_up()
        return
    found = _looked_up(plain_seeds, leaves, history)
    if found is not None and not found[0].levels.kinds:
        structure, plan = found
        plan.note(structure, history, of_tensors=True)


def _looked_up(
    seeds: Sequence[tuple[Any, Array]], leaves: Sequence[Any], history: PassHistory
) -> tuple[Structure, PassPlan] | None:
    """The structure of a graph, and its plan; None if there can be none, which the history records."""
    try:
        structure = Structure(seeds, leaves)
        history.waits = structure.weight - 1
        plan = PLANS.of(structure.key)
    except (_NotCompiled, TypeError):  # TypeError: a parameter is not hashable
        history.give_up()
        return None
    except (_Traced, _OtherCompiler):
        return None
    if plan.is_new:
        history.misses += 1
        if history.misses > MOST_MISSES + history.hits:
            history.give_up()
    else:
        history.hits += 1
    return structure, plan


def _without_states(seeds: Sequence[tuple[Any, Array]]) -> tuple[list[tuple[Any, Array]], list[Any]]:
    """(the seeds, the leaves) of a graph of tensors as nodes of the functional transforms.

    Raises:
        _NotCompiled: It is too long.
        _Traced: It has hooks, or values that are packed or freed, which tells nothing about the next one.
    """
    nodes: dict[int, Any] = {}
    leaves = []
    for node in reversed(_newest_first([node for node, _ in seeds])):
        serial, rule, parents, needs_cotangent, (saved, hooks, _, _), params, aval = node
        if hooks is not None or type(saved) in (Freed, PackedValues):
            raise _Traced
        above = tuple([None if parent is None else nodes[parent[SERIAL]] for parent in parents])
        if rule is LEAF:
            nodes[serial] = serial, rule, above, needs_cotangent, None, params, aval
            leaves.append(nodes[serial])
        else:
            nodes[serial] = serial, rule, above, above if rule is OUTPUT else needs_cotangent, saved, params, aval
    return [(nodes[node[SERIAL]], ct) for node, ct in seeds], leaves[::-1]
