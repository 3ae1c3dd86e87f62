"""Run the test suites of NumPy and SciPy, and each call that they make in every transform.

    python -m tools.suites scipy.signal scipy.ndimage
    python -m tools.suites numpy.linalg --only lstsq --calls 50

The suites come with the packages. Their arguments are those that maintainers found worth a test: special shapes, modes,
ends and options. Each call of a public function with floating-point arguments runs in every transform of func, and its
derivatives are compared with differences. Calls of equal form count once. A result that is not the truth is an error.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import signal
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from func.interpreters.core import Tracer
from tools.corpus import checks, classes
from tools.corpus.sampling import Case, copied, leaves

MODULES = [
    *[f"numpy{name}" for name in ("", ".linalg", ".fft", ".lib")],
    *[f"scipy.{name}" for name in ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal")],
    *[f"scipy.{name}" for name in ("signal.windows", "sparse", "sparse.linalg", "spatial", "spatial.distance")],
    *[f"scipy.{name}" for name in ("special", "stats")],
]
MOST_ELEMENTS = 40
"""Of the arguments of a call whose derivatives are compared."""
LARGEST = 2000
"""Of the arguments of a call that runs compiled and in batches."""
DERIVATIVES = ("grad", "jacobian", "hessian", "jit(grad)")


class Observed:
    """A public function of a library that reports its calls."""

    def __init__(self, name: str, function: Callable[..., Any], observer: Observer) -> None:
        self.__dict__.update(vars(function) if hasattr(function, "__dict__") else {})
        self.__wrapped__ = function
        self.__name__, self.__doc__ = name, function.__doc__
        self._observer = observer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, then report the call."""
        given = _copied(args), _copied(kwargs)
        out = self.__wrapped__(*args, **kwargs)
        self._observer.observe(self.__name__, self.__wrapped__, *given)
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)


class ObservedModule(types.ModuleType):
    """A module whose public functions report their calls."""

    def __init__(self, module: types.ModuleType, observer: Observer) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module, self._observer = module, observer

    def __getattr__(self, name: str) -> Any:
        return self._observer.replaced(getattr(self._module, name))


class Observer:
    """The plugin of pytest: it replaces functions in the modules of tests, and runs their calls in all transforms."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rows: list[classes.Row] = []
        self.forms: Counter[str] = Counter()
        self.seen: set[Any] = set()
        self.is_checking = False
        self.functions: dict[int, Observed] = {}
        self.modules: dict[str, ObservedModule] = {}
        for name in MODULES:
            module = importlib.import_module(name)
            self.modules[name] = ObservedModule(module, self)
            for public in getattr(module, "__all__", ()):
                function = getattr(module, public, None)
                if callable(function) and not isinstance(function, type):
                    self.functions.setdefault(id(function), Observed(f"{name}.{public}", function, self))

    def replaced(self, value: Any) -> Any:
        """The observed form of a module or function; other values as they are."""
        if type(value) is types.ModuleType:
            return self.modules.get(value.__name__, value)
        return self.functions.get(id(value), value)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Replace the names of the modules of tests."""
        for module in {item.module for item in items if hasattr(item, "module")}:
            for name, value in list(vars(module).items()):
                if not name.startswith("__"):
                    vars(module)[name] = self.replaced(value)

    def observe(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run a call in every transform, unless one of its form has run."""
        if self.is_checking or not name.endswith(tuple(self.options.only.split(","))):
            return
        active = [x for x in _parts((args, kwargs)) if _is_active(x)]
        key = name, _form(args), _form(kwargs)
        if not active or key in self.seen or self.forms[name] >= self.options.calls:
            return
        self.seen.add(key)
        self.is_checking = True
        try:
            self._check(name, function, args, kwargs, active)
        except (TimeoutError, RecursionError):
            pass
        finally:
            self.is_checking = False

    def _check(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any, active: list[Any]) -> None:
        def call(**values: Any) -> Any:
            new = {id(x): values[f"x{place}"] for place, x in enumerate(active)}
            return function(*_with(args, new), **_with(kwargs, new))

        arguments = {f"x{place}": x for place, x in enumerate(active)}
        case = Case(name, call, arguments, list(arguments), str(_form((args, kwargs))))
        size = sum(x.size for x in active)
        with _quiet(self.options.seconds):
            if size > LARGEST or not _is_repeatable(case):
                return
        self.forms[name] += 1
        row: classes.Row = {"name": name, "form": case.form[:300], "smooth": case.smooth, "outcomes": {}}
        for transform, check in checks.CHECKS.items():
            if transform in DERIVATIVES and (size > MOST_ELEMENTS or any(x.dtype.kind == "c" for x in active)):
                continue
            try:
                with _quiet(self.options.seconds):
                    found = checks.outcome(check, case, None)
            except TimeoutError:
                found = checks.Outcome(checks.REFUSED, "Timeout")
            row["outcomes"][transform] = {"plain": vars(found)}
            if found.status == checks.WRONG:
                shown = f"{name}(*{args!r}, **{kwargs!r})"[:1500]
                print(f"\nWRONG {transform} of {shown}\n  {found.text[:600]}", file=sys.__stdout__, flush=True)
        self.rows.append(row)


@contextlib.contextmanager
def _quiet(seconds: float) -> Iterator[None]:
    def stop(*args: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _copied(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_copied(item) for item in value)
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return copied(value)


def _parts(value: Any) -> Iterator[Any]:
    if type(value) in (list, tuple):
        for item in value:
            yield from _parts(item)
    elif type(value) is dict:
        yield from _parts(list(value.values()))
    else:
        yield value


def _with(value: Any, new: dict[int, Any]) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_with(item, new) for item in value)
    if type(value) is dict:
        return {key: _with(item, new) for key, item in value.items()}
    return new[id(value)] if id(value) in new else copied(value)


def _is_active(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype in (np.float64, np.complex128) and value.size > 0


def _form(value: Any) -> Any:
    """The shapes and dtypes of arrays, and all other values: equal for calls that are alike."""
    if type(value) in (list, tuple) and len(value) < 20:
        return (type(value).__name__, *[_form(item) for item in value])
    if type(value) is dict:
        return tuple((key, _form(item)) for key, item in value.items())
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.str, value.shape
    if isinstance(value, (float, complex)):
        return type(value).__name__
    return repr(value)[:60] if isinstance(value, (str, int, bool, type(None))) else type(value).__name__


def _is_repeatable(case: Case) -> bool:
    """Whether a function returns numbers, the same ones twice, and leaves its arguments as they are."""
    values = case.values
    try:
        first, second = leaves(case.call(*values)), leaves(case.call(*case.values))
    except TimeoutError:
        raise
    except Exception:
        return False
    arrays = [x for x in first if isinstance(x, (np.ndarray, np.generic, float, complex)) and not isinstance(x, Tracer)]
    if len(arrays) != len(first) or not any(np.asarray(x).dtype.kind in "fc" for x in first):
        return False
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))
    finite = all(np.all(np.isfinite(x)) for x in first if np.asarray(x).dtype.kind in "fc")
    return same and finite and all(np.array_equal(a, b) for a, b in zip(values, case.values, strict=True))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.suites", description=sys.modules[__name__].__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("modules", nargs="+", help="modules with a folder of tests, or its files")
    parser.add_argument("--only", default="", help="only functions whose full names end so, with commas between")
    parser.add_argument("--calls", type=int, default=20, help="the most forms of calls of a function (default: 20)")
    parser.add_argument("--seconds", type=float, default=20.0, help="for one transform of a call (default: 20)")
    parser.add_argument("--json", type=Path, help="write all rows into this file")
    options, rest = parser.parse_known_args()
    observer = Observer(options)
    targets = []
    for name in options.modules:
        if name.endswith(".py"):
            targets.append(name)
        else:
            targets.append(str(Path(str(importlib.import_module(name).__file__)).parent / "tests"))
    flags = [
        "-q",
        "--capture=sys",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--tb=no",
        "-W",
        "ignore",
        "--no-header",
        "-r",
        "N",
    ]
    with contextlib.redirect_stderr(sys.stdout):
        pytest.main([*flags, *rest, *targets], plugins=[observer])
    print(classes.table(" ".join(options.modules), observer.rows))
    if options.json:
        options.json.write_text(json.dumps(observer.rows, indent=1))
    return 1 if classes.summary(observer.rows)["silently wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
