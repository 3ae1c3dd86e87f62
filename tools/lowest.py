"""The lowest versions that pyproject.toml declares, as constraints for pip: `python tools/lowest.py > constraints.txt`.

A bound of two numbers, `numpy>=2.0`, stands for its last patch release, one of three for that release alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

EXTRAS = ("bfloat16",)
"""Extras whose packages func computes with."""


def constraints(requirements: Iterable[str]) -> Iterator[str]:
    """The lowest version of each requirement with a lower bound."""
    for requirement in requirements:
        bound = re.fullmatch(r"([\w.-]+)>=([\d.]+)(?:,<[\d.]+)?", requirement)
        if bound is not None:
            name, version = bound.groups()
            yield f"{name}=={version}{'.*' if version.count('.') < 2 else ''}"


def main() -> None:
    """Print the constraints."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    print("\n".join(constraints([*project["dependencies"], *[entry for extra in EXTRAS for entry in optional[extra]]])))


if __name__ == "__main__":
    main()
