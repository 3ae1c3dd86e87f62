"""The comparison of results, before any time counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants import CONTESTANTS

_TOLERANCE = {"float32": 2e-4, "float64": 1e-8}


def disagreements(outputs: Mapping[str, Any]) -> dict[str, str]:
    """The contestants whose result differs from the one that at least half of them share, and how.

    Where two results have equal support, the hand-written one counts, then the peers'; ours comes last.
    """
    leaves = {name: flatten(output) for name, output in outputs.items()}
    for reference in _by_trust(leaves):
        found = {name: difference(leaves[name], leaves[reference]) for name in leaves}
        wrong = {name: f"differs from {reference}: {words}" for name, words in found.items() if words}
        if 2 * len(wrong) <= len(leaves):
            return wrong
    return {name: "no result is shared by half of the contestants" for name in leaves}


def flatten(output: Any) -> list[NDArray[Any]]:
    """The arrays of a result in a fixed order: dicts by key, sequences in order."""
    if isinstance(output, Mapping):
        return [leaf for key in sorted(output) for leaf in flatten(output[key])]
    if isinstance(output, list | tuple):
        return [leaf for item in output for leaf in flatten(item)]
    return [np.asarray(output)]


def difference(leaves: list[NDArray[Any]], reference: list[NDArray[Any]]) -> str:
    """Describe the first difference in count, shape, dtype or value; empty if there is none."""
    if len(leaves) != len(reference):
        return f"{len(leaves)} arrays, wanted {len(reference)}"
    for number, (leaf, wanted) in enumerate(zip(leaves, reference, strict=True)):
        if (leaf.shape, leaf.dtype) != (wanted.shape, wanted.dtype):
            return f"array {number} is {leaf.dtype}{leaf.shape}, wanted {wanted.dtype}{wanted.shape}"
        error = float(np.max(np.abs(leaf - wanted), initial=0.0))
        scale = float(np.max(np.abs(wanted), initial=0.0))
        if not error <= _TOLERANCE[wanted.dtype.name] * scale:
            return f"array {number} is off by {error:.1e} where the largest entry is {scale:.1e}"
    return ""


def _by_trust(leaves: Mapping[str, Any]) -> list[str]:
    """Hand-written derivatives first, then the peers, then ours."""
    modes = {contestant.name: (contestant.ours, contestant.mode != "reference") for contestant in CONTESTANTS}
    return sorted(leaves, key=lambda name: modes[name])
