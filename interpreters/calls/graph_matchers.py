"""Matchers: each recognises the graphs of one structure and passes their arrays to compiled code.

`Structure` describes any graph, node by node, which takes longer than the pullbacks of small arrays. A matcher
belongs to one structure. It is Python source without loops: it takes the nodes apart in a known order, compares rules,
parameters and avals, and calls the code. Arrays must occur in the same places; the code's call stub compares their
shapes and dtypes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import PYTHON_SCALARS, ZERO, Aval
from func.interpreters.grad import LEAF, NEEDS_COTANGENT, OUTPUT, PARAMS, PARENTS, RULE, SAVED, SERIAL
from func.interpreters.imperative.node_state import HOOKS, STATE
from func.interpreters.nan_safe import FreshCotangents
from func.interpreters.program.content_keys import typed_key

Matcher = Callable[..., Any]
"""matcher(seeds, leaves): the cotangents, or None if the graph has another structure, or the code finds a NaN."""


class GraphMismatch(Exception):
    """The arrays of a graph do not fit its code."""


def matcher_of(
    seeds: Sequence[tuple[int, int]],
    leaves: Sequence[int | None],
    nodes: Sequence[Any],
    slots: dict[int, int],
    call: Callable[..., Any],
    has_cotangent: Sequence[bool],
    of_tensors: bool = False,
) -> Matcher | None:
    """The matcher of a structure; None if it cannot tell graphs apart.

    The nodes of a graph `of_tensors` have a NodeState each, and its leaves are unknown. So its matcher takes the seeds
    alone, and returns the cotangents, their leaves, and the nodes that it pulled back.

    `seeds` are the place of a node and the slot of its cotangent, `leaves` places of nodes, `slots` the numbers of
    arrays by their ids. `call` computes from the arrays the cotangents of the leaves that have one; it raises
    `GraphMismatch` for others.
    """
    asked = [place for place in leaves if place is not None]
    are_leaves = all([nodes[place][RULE] is LEAF for place in asked])
    has_others = len(asked) < len([node for node in nodes if node[RULE] is LEAF])
    if not are_leaves or len(set(asked)) < len(asked) or (has_others and len(asked) < len(leaves)):
        return None
    return _MatcherSource(nodes, slots, of_tensors).matcher(seeds, leaves, call, has_cotangent)


class _MatcherSource:
    """Writes the source of one matcher."""

    def __init__(self, nodes: Sequence[Any], slots: dict[int, int], of_tensors: bool) -> None:
        self.nodes = nodes
        self.of_tensors = of_tensors
        self.places = {node[SERIAL]: place for place, node in enumerate(nodes)}
        self.slots = slots
        self.bound: set[str] = set()
        """The variables with a value so far: n3 is a node, a3 an array."""
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.constants: dict[str, Any] = {"typed_key": typed_key, "GraphMismatch": GraphMismatch}
        self.temporaries = 0

    def matcher(
        self,
        seeds: Sequence[Any],
        leaves: Sequence[int | None],
        call: Callable[..., Any],
        has_cotangent: Sequence[bool],
    ) -> Matcher:
        """The function."""
        tests: list[str] = []
        targets = [
            f"({self.variable(f'n{place}', tests)}, {self.variable(f'a{slot}', tests)})" for place, slot in seeds
        ]
        self.unpack(targets, "seeds")
        self.leave_if(tests)
        stack = [place for place, _ in reversed(seeds)]
        visited: set[int] = set()
        while stack:
            place = stack.pop()
            if place not in visited:
                visited.add(place)
                parents = [self.places[parent[SERIAL]] for parent in self.nodes[place][PARENTS] if parent is not None]
                self.node(place)
                stack += reversed(parents)
        found = [f"l{number}" for number in range(len(leaves))]
        if self.of_tensors:
            found = [f"n{place}" for place in leaves]
        else:
            self.unpack(found, "leaves")
            places = zip(found, leaves, strict=True)
            self.leave_if([f"{name} is not n{place}" for name, place in places if place is not None])
        if len(leaves) > 1:
            self.leave_if([f"len({{{', '.join([f'id({name})' for name in found])}}}) != {len(found)}"])
        body = "\n".join([f"        {line}" for line in self.lines])
        arrays = ", ".join([f"a{slot}" for slot in range(len(self.slots))])
        numbers = itertools.count()
        outputs = ", ".join([f"outputs[{next(numbers)}]" if has_one else "ZERO" for has_one in has_cotangent])
        arranged = "outputs" if all(has_cotangent) else f"({outputs},)"
        result = f"FreshCotangents({arranged})"
        if self.of_tensors:
            reached = [name for name, has_one in zip(found, has_cotangent, strict=True) if has_one]
            pulled = [f"n{place}" for place, node in enumerate(self.nodes) if node[RULE] is not LEAF]
            result = f"outputs, [{', '.join(reached)}], [{', '.join(pulled)}]"
        source = (
            f"def read(seeds{'' if self.of_tensors else ', leaves'}):\n"
            f"    try:\n{body}\n    except (TypeError, ValueError):\n        return None\n"
            f"    try:\n        outputs = call({arrays})\n    except GraphMismatch:\n        return None\n"
            f"    return {result}\n"
        )
        namespace = {**self.constants, "call": call, "ZERO": ZERO, "FreshCotangents": FreshCotangents}
        exec(compile(source, __file__, "exec"), namespace)  # a frame of the engine
        read: Matcher = namespace["read"]
        return read

    def node(self, place: int) -> None:
        """Take a node apart."""
        node = self.nodes[place]
        rule = node[RULE]
        if rule is LEAF:
            has_hooks = f"n{place}[{STATE}][{HOOKS}] is not None"
            self.leave_if([f"n{place}[{RULE}] is not {self.constant(LEAF)}", *([has_hooks] if self.of_tensors else [])])
            return
        tests: list[str] = []
        above = [
            self.temporary("is not None", tests)
            if parent is None
            else self.variable(f"n{self.places[parent[SERIAL]]}", tests)
            for parent in node[PARENTS]
        ]
        parents = f"({', '.join(above)},)"
        if rule is OUTPUT:
            self.lines.append(f"_, r, {parents}, _, s, o, _ = n{place}")
            self.open_state(tests)
            self.leave_if([f"r is not {self.constant(OUTPUT)}", f"s != {node[SAVED]}", *tests, "o"])
            return
        needs = [self.temporary_of(aval, tests) for aval in node[NEEDS_COTANGENT]]
        self.lines.append(f"_, r, {parents}, ({', '.join(needs)},), s, o, _ = n{place}")
        self.open_state(tests)
        self.leave_if([f"r is not {self.constant(rule)}", *self.tests_of_params(node[PARAMS]), *tests])
        self.saved("s", node[SAVED])

    def open_state(self, tests: list[str]) -> None:
        """Take the saved values out of the state of a tensor's node without hooks."""
        if self.of_tensors:
            self.lines.append("s, h, _, _ = s")
            tests.append("h is not None")

    def tests_of_params(self, params: Any) -> list[str]:
        """Conditions that are true if the parameters differ."""
        if not params:
            return ["o"]
        tests = [f"o != {self.constant(params)}"]
        for name, value in params.items():
            if type(value) in (bool, int):
                tests.append(f"type(o[{name!r}]) is not {self.constant(type(value))}")
            elif not _is_plain(value):
                tests.append(f"typed_key(o[{name!r}]) != {self.constant(typed_key(value))}")
        return tests

    def saved(self, word: str, value: Any) -> None:
        """Take the saved values of a node apart."""
        kind = type(value)
        if kind is tuple or kind is list:
            self.leave_if([f"type({word}) is not {kind.__name__}"])
            tests: list[str] = []
            later: list[tuple[str, Any]] = []
            targets = []
            for member in value:
                if type(member) is tuple or type(member) is list:
                    targets.append(self.temporary(None, tests))
                    later.append((targets[-1], member))
                else:
                    targets.append(self.temporary_of(member, tests))
            self.unpack(targets, word)
            self.leave_if(tests)
            for name, member in later:
                self.saved(name, member)
            return
        tests = []
        self.lines.append(f"{self.temporary_of(value, tests)} = {word}")
        self.leave_if(tests)

    def temporary_of(self, value: Any, tests: list[str]) -> str:
        """A target for a member of the saved values, with the tests that it has to pass."""
        kind = type(value)
        if value is None:
            return self.temporary("is not None", tests)
        if kind is Aval:
            name = self.temporary(None, tests)
            constant = self.constant(value)
            tests.append(f"({name} is not {constant} and {name} != {constant})")
            return name
        if kind in PYTHON_SCALARS:
            name = self.temporary(None, tests)
            if kind in (bool, int) or (kind is float and value != 0):  # zeros have a sign; NaN is not equal to itself
                tests.append(f"(type({name}) is not {self.constant(kind)} or {name} != {self.constant(value)})")
            else:
                tests.append(f"typed_key({name}) != {self.constant(typed_key(value))}")
            return name
        return self.variable(f"a{self.slots[id(value)]}", tests)

    def variable(self, name: str, tests: list[str]) -> str:
        """A target for a node or an array: the variable itself, or a new one that must be the same object."""
        if name not in self.bound:
            self.bound.add(name)
            return name
        return self.temporary(f"is not {name}", tests)

    def temporary(self, test: str | None, tests: list[str]) -> str:
        """A new variable, and the test that it must not pass."""
        self.temporaries += 1
        name = f"t{self.temporaries}"
        if test is not None:
            tests.append(f"{name} {test}")
        return name

    def constant(self, value: Any) -> str:
        """The name of an object."""
        name = self.names.get(id(value))
        if name is None:
            name = self.names[id(value)] = f"c{len(self.names)}"
            self.constants[name] = value
        return name

    def unpack(self, targets: Sequence[str], word: str) -> None:
        self.lines.append(f"({', '.join(targets)},) = {word}" if targets else f"() = {word}")

    def leave_if(self, tests: Sequence[str]) -> None:
        if tests:
            self.lines += [f"if {' or '.join(tests)}:", "    return None"]


def _is_plain(value: Any) -> bool:
    """Whether values that equal this one are the same to every rule."""
    if type(value) is tuple:
        return all([_is_plain(member) for member in value])
    return value is None or type(value) in (str, int) or isinstance(value, np.dtype)
