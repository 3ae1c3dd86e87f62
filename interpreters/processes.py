"""Ranks: the processes that run one program together, as primitives see them, and a ledger of their messages.

The engine knows nothing of MPI. A collective over processes is a primitive with an object of this class as its
parameter; a class of the public package communicates.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from func.interpreters.core.parameters import Kind

_SERIALS = itertools.count()


class Ranks:
    """`size` processes; this one has the number `index`. Compared by identity.

    The methods take and return plain NumPy arrays. All ranks call the same methods in the same order. `label` says for
    which value, so that errors can name it.
    """

    size: int
    index: int

    def __init__(self, size: int, index: int) -> None:
        self.size = size
        self.index = index
        self.serial = next(_SERIALS)

    def psum(self, x: Any, label: str) -> Any:
        """The sum over all ranks, on every rank."""
        raise NotImplementedError

    def pmax(self, x: Any, label: str) -> Any:
        """The largest value on any rank, on every rank; NaN where a rank has NaN."""
        raise NotImplementedError

    def pmin(self, x: Any, label: str) -> Any:
        """The smallest value on any rank, on every rank; NaN where a rank has NaN."""
        raise NotImplementedError

    def all_gather(self, x: Any, label: str) -> Any:
        """The values of all ranks, stacked along a new leading axis."""
        raise NotImplementedError

    def psum_scatter(self, x: Any, label: str) -> Any:
        """On rank i the sum over all ranks of their x[i]."""
        raise NotImplementedError

    def all_to_all(self, x: Any, label: str) -> Any:
        """On rank i, as element j, the x[i] of rank j."""
        raise NotImplementedError

    def ppermute(self, x: Any, pairs: tuple[tuple[int, int], ...], label: str) -> Any:
        """For each pair (source, destination) the value of the one on the other; zeros elsewhere."""
        raise NotImplementedError

    def broadcast(self, x: Any, root: int, label: str) -> Any:
        """The value of one rank, on every rank."""
        raise NotImplementedError

    def reduce(self, x: Any, root: int, label: str) -> Any:
        """The sum over all ranks on one rank; zeros elsewhere."""
        raise NotImplementedError

    def agree(self, flag: bool) -> bool:
        """Whether some rank has set the flag."""
        raise NotImplementedError

    def note(self) -> None:
        """Note that this thread has communicated with these ranks."""
        if self.size > 1:
            _Company.exists = True
        LEDGER.moment += 1
        LEDGER.latest[self] = LEDGER.moment

    def __repr__(self) -> str:
        return f"ranks({self.size})"


class _Company:
    """Whether this process ever communicated with another one."""

    exists = False


def has_company() -> bool:
    """Whether this process is one of several that run one program."""
    return _Company.exists


class OneRank(Ranks):
    """A world of one process, which needs no messages."""

    def __init__(self) -> None:
        super().__init__(1, 0)

    def psum(self, x: Any, label: str = "") -> Any:
        return x.copy()

    pmax = pmin = psum

    def all_gather(self, x: Any, label: str = "") -> Any:
        return x[None].copy()

    def psum_scatter(self, x: Any, label: str = "") -> Any:
        return x[0].copy()

    all_to_all = psum

    def ppermute(self, x: Any, pairs: tuple[tuple[int, int], ...], label: str = "") -> Any:
        return x.copy() if pairs else x * x.dtype.type(0)

    def broadcast(self, x: Any, root: int, label: str = "") -> Any:
        return x.copy()

    reduce = broadcast

    def agree(self, flag: bool) -> bool:
        return flag

    def __reduce__(self) -> str:
        return "ONE_RANK"


ONE_RANK = OneRank()


class _Ledger(threading.local):
    """The moment at which this thread last communicated, by ranks; `moment` counts the collectives of all."""

    def __init__(self) -> None:
        self.moment = 0
        self.latest: weakref.WeakKeyDictionary[Ranks, int] = weakref.WeakKeyDictionary()


LEDGER = _Ledger()


def agreed(flag: bool, moment: int) -> bool:
    """Decide whether to repeat what ran since a moment of the ledger: alike on all ranks that took part.

    If one rank found a NaN and repeated a pass with collectives alone, the others would not answer it.
    """
    if LEDGER.moment == moment:
        return flag
    involved = [ranks for ranks, latest in LEDGER.latest.items() if latest > moment]
    for ranks in sorted(involved, key=lambda ranks: ranks.serial):
        flag = ranks.agree(flag)
    return flag


RANKS = Kind("the ranks of a communicator", lambda value, avals, params: isinstance(value, Ranks))
