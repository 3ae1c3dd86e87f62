"""The workloads that a pattern names."""

from collections.abc import Sequence


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern is part of the name, or there is none; a blank and a hyphen are the same.

    >>> matches("black-scholes 10M", ["scholes-10"]), matches("chain 10", ["gelu"])
    (True, False)
    """
    plain = name.replace(" ", "-")
    return not patterns or any(pattern.replace(" ", "-") in plain for pattern in patterns)
