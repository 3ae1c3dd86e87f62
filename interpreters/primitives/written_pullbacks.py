"""Primitives whose pullbacks are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped, aval_of, bind, defensive_copy
from func.interpreters.primitives.structural.shapes import fit_cotangent


class Direct(Primitive):
    """A general primitive whose pullback is written out, which costs less than transposing the traced tangent.

    `adjoint(ct, parents, saved, **params)` gives one cotangent per argument, from the arguments and the output, by
    primitives.
    """

    pulls_by_primitives = True
    __slots__ = ("adjoint", "pull_factor")
    adjoint: Callable[..., tuple[Any, ...]]
    pull_factor: float

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        out = bind(self, values, params)
        saved = [defensive_copy(v) if parent is None else v for v, parent in zip(values, parents, strict=True)]
        return out, self, (*saved, out)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        cotangents = self.adjoint(ct, parents, saved, **params)
        return [
            ZERO if parent is None else fit_cotangent(cotangent, parent)
            for cotangent, parent in zip(cotangents, parents, strict=True)
        ]

    def pull_operations(self, saved: Sequence[Array], aval: Aval, params: Params) -> float:
        """The approximate number of arithmetic operations of a pullback."""
        if self.cost is None or isinstance(self.cost, (int, float)):
            return self.pull_factor * (self.cost or 0) * aval.size
        return self.pull_factor * self.cost([aval_of(x) for x in saved[:-1]], [aval], params)

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        return Primitive.pull(self, ct, parents, known, params)


def direct(
    name: str,
    impl: Callable[..., Any],
    adjoint: Callable[..., tuple[Any, ...]],
    *,
    pull_factor: float = 2,
    **rules: Any,
) -> Direct:
    """A general primitive with its pullback written out, which takes `pull_factor` times its operations."""
    primitive = Direct(name, impl, **rules)
    primitive.adjoint = adjoint
    primitive.pull_factor = pull_factor
    return primitive
