"""Object code on disk: found again by what it was made from."""

import hashlib
from dataclasses import dataclass

__all__ = ["ObjectCode", "digest", "load", "store"]


@dataclass(frozen=True)
class ObjectCode:
    """An object file's bytes, and the names which it expects the process to define."""

    image: bytes
    needed: tuple[str, ...]


def digest(*parts: str | None) -> str:
    """The key of an entry: a hash of everything that the code depends on."""
    return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()


def load(key: str) -> ObjectCode | None:
    """The entry of the key, or None."""
    return None


def store(key: str, code: ObjectCode) -> None:
    """Keep an entry."""
