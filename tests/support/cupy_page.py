"""The tables of docs/cupy.md: functions that run on the host for arrays of CuPy.

`python -m tests.support.cupy_page` writes them into the page; a test makes them again and compares.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import func
from func.backends.devices import LACKING, CompletedUfunc
from tests.interpreters.primitives.test_samples import of_active, outputs
from tests.support.cupy_surface import stored
from tests.support.device_double import namespace, to_device
from tests.support.samples import SAMPLES

PAGE = Path(__file__).parent.parent.parent / "docs" / "cupy.md"
BEGIN, END = "<!-- made by tests/support/cupy_page.py -->", "<!-- end of what is made -->"
REFUSED = ("scipy_distribution",)
"""Primitives that refuse arrays of a device."""


def on_the_host() -> dict[str, str]:
    """The functions that values, tangents and pullbacks of the sample table compute on the host, and why."""
    namespace.told.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", func.errors.HostComputationWarning)
        for name, samples in SAMPLES.items():
            for sample in samples if name not in REFUSED else ():
                there = replace(
                    sample, args=tuple([to_device(np.asarray(x)) if _is_array(x) else x for x in sample.args])
                )
                outputs(name, there.args, there.params)
                if sample.differentiable:
                    points = [there.args[place] for place in sample.differentiable]
                    outs, pullback = func.vjp(of_active(name, there), *points)
                    pullback([to_device(np.ones(out.shape, out.dtype)) for out in outs])
                    tangents = [to_device(np.ones(np.shape(point), point.dtype)) for point in points]
                    func.jvp(of_active(name, there), tuple(points), tuple(tangents))
    return dict(namespace.told)


def _is_array(value: object) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


DTYPES = [np.dtype(letter) for letter in "?bBhHiIlLefdFD"]


def completed() -> Iterator[tuple[str, CompletedUfunc]]:
    """The ufuncs that CuPy has for fewer dtypes than NumPy or SciPy, or in other precisions, by their names."""
    for module, own in (("numpy", namespace), ("scipy.special", namespace.scipy_special)):
        for name, kind in stored()[module].items():
            if kind.startswith("ufunc") and isinstance(ufunc := getattr(own, name), CompletedUfunc):
                yield f"{module}.{name}", ufunc


def dtypes_of_the_host() -> dict[str, list[str]]:
    """For each ufunc of CuPy the dtypes for which NumPy or SciPy has it and CuPy has not."""
    lacking = {
        path: [dtype.name for dtype in DTYPES if ufunc.loop_for((dtype,) * ufunc.nin) is None]
        for path, ufunc in completed()
    }
    return {path: dtypes for path, dtypes in lacking.items() if dtypes}


def tables() -> str:
    """The part of the page that is made."""
    by_module: dict[str, list[str]] = {}
    for path in sorted(path for path, why in on_the_host().items() if why == LACKING):
        module, _, name = path.rpartition(".")
        by_module.setdefault(module, []).append(f"`{name}`")
    paragraphs = ["These functions are in no module of CuPy:"]
    rows = [f"| {f'`{module}`' if module else 'func'} | {', '.join(names)} |" for module, names in by_module.items()]
    paragraphs.append("\n".join(["| module | computed on the host |", "|---|---|", *rows]))
    paragraphs.append("These it has, but not for these dtypes:")
    rows = [f"| `{path}` | {', '.join(dtypes)} |" for path, dtypes in dtypes_of_the_host().items()]
    paragraphs.append("\n".join(["| function | dtypes computed on the host |", "|---|---|", *rows]))
    return "\n\n".join(paragraphs)


def page_with(made: str) -> str:
    """The page with its made part replaced."""
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{head}{BEGIN}\n\n{made}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(tables()), encoding="utf-8")
    print(f"wrote {PAGE}")
