"""The hash of the cache's keys and checksums: BLAKE2b, 32 bytes.

`hashlib` loads OpenSSL, which takes longer than a first call has time for; CPython's own BLAKE2 is a module apart.
"""

from __future__ import annotations

import importlib
from typing import Any

try:
    _new: Any = importlib.import_module("_blake2").blake2b
except ImportError:  # another Python than CPython
    _new = importlib.import_module("hashlib").blake2b

SIZE = 32
"""Bytes of a hash."""


def new_hash(content: Any = b"") -> Any:
    """A hash with the methods of hashlib's: `update`, `digest`, `hexdigest`.

    >>> import hashlib
    >>> new_hash(b"abc").digest() == hashlib.blake2b(b"abc", digest_size=32).digest()
    True
    """
    return _new(content, digest_size=SIZE)
