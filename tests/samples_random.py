"""Samples of the rows behind func.random."""

from __future__ import annotations

from tests.sampling import Sample

SAMPLES: dict[str, list[Sample]] = {}
