"""The traffic of a program: messages and bytes by collective."""

from __future__ import annotations

from func.backends.records import Record


class MessageCount(Record):
    """The cost of one kind of collective for this process."""

    messages: int = 0
    """Calls of MPI that moved data."""
    sent: int = 0
    """Bytes of this process that others needed."""
    received: int = 0
    """Bytes of others that this process needed."""


class MessageCounts:
    """The traffic of this process: `messages`, `sent` and `received` bytes, in all and by collective.

    Bytes are those of the values: each value for others counts once as sent, each value from others once as received.
    The actual transfers depend on MPI's algorithm. `checks` counts the small messages in which ranks compare their next
    actions.
    """

    def __init__(self) -> None:
        self.by_collective: dict[str, MessageCount] = {}
        self.checks = 0

    def reset(self) -> None:
        """Count from zero again."""
        self.by_collective.clear()
        self.checks = 0

    def note(self, collective: str, sent: int, received: int) -> None:
        """Note one message."""
        row = self.by_collective.setdefault(collective, MessageCount())
        row.messages += 1
        row.sent += sent
        row.received += received

    @property
    def messages(self) -> int:
        """Calls of MPI that moved data."""
        return sum([row.messages for row in self.by_collective.values()])

    @property
    def sent(self) -> int:
        """Bytes of this process that others needed."""
        return sum([row.sent for row in self.by_collective.values()])

    @property
    def received(self) -> int:
        """Bytes of others that this process needed."""
        return sum([row.received for row in self.by_collective.values()])

    def __repr__(self) -> str:
        lines = [f"{'collective':<14}{'messages':>10}{'bytes sent':>14}{'bytes received':>16}"]
        rows = [*sorted(self.by_collective.items()), ("all", MessageCount(self.messages, self.sent, self.received))]
        lines += [f"{name:<14}{row.messages:>10}{row.sent:>14}{row.received:>16}" for name, row in rows]
        return "\n".join([*lines, f"{self.checks} checks"])
