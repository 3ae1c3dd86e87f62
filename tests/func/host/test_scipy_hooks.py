"""SciPy's own functions on traced values: calls that reach func, and effects on programs without traced values."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
import threading
import traceback
import warnings

import numpy as np
import pytest
import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.sparse.linalg
import scipy.stats
from scipy.linalg import expm as bound_expm
from scipy.linalg import solve as bound_solve

import func
from func.host import scipy_hooks, scipy_table

A = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
B = np.ones(3)
RIGHT = np.linalg.inv(A).sum(axis=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: scipy.linalg.solve(A, x),
        lambda x: bound_solve(A, x),
        lambda x: bound_solve(A, b=x),
        lambda x: bound_solve(A, x, False, False, False, True),
        lambda x: bound_solve(A, [x[0], x[1], x[2]]),
        lambda x: func.scipy.linalg.solve(A, x, assume_a="pos"),
    ],
)
def test_every_name_of_a_function_reaches_func(call):
    def loss(x):
        return np.sum(call(x))

    np.testing.assert_allclose(func.grad(loss)(B), RIGHT)
    np.testing.assert_allclose(func.jit(func.grad(loss))(B), RIGHT)
    np.testing.assert_allclose(func.vmap(func.grad(loss))(np.stack([B, B]))[1], RIGHT)
    t = func.tensor(B, requires_grad=True)
    loss(t).backward()
    np.testing.assert_allclose(t.grad, RIGHT)


def test_scipys_own_code_runs_on_traced_values():
    x = np.array([1.0, 2.0, 4.0])
    gradient = func.grad(lambda x: scipy.stats.zscore(x)[0])(x)
    differences = [
        (scipy.stats.zscore(x + 1e-6 * e)[0] - scipy.stats.zscore(x - 1e-6 * e)[0]) / 2e-6 for e in np.eye(3)
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


def test_functions_stay_what_they_are():
    func.grad(lambda x: np.sum(bound_solve(A, x)))(B)
    assert scipy.linalg.solve is bound_solve
    assert bound_solve in scipy_hooks.HOOKS
    first = next(iter(inspect.signature(bound_solve).parameters))
    assert first == "a"
    assert "overwrite_a" in inspect.signature(bound_solve).parameters
    assert pickle.loads(pickle.dumps(bound_expm)) is bound_expm
    assert inspect.getsource(bound_expm).lstrip().startswith(("def expm", "@"))
    assert (bound_expm.__name__, bound_expm.__module__.split(".")[0]) == ("expm", "scipy")


def test_errors_and_warnings_of_plain_calls_are_scipys():
    func.grad(lambda x: np.sum(bound_solve(A, x)))(B)
    bound_solve(A, B)
    with pytest.raises(np.linalg.LinAlgError) as caught:
        bound_solve(np.zeros((3, 3)), B)
    frames = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)[1:]]
    assert all("scipy" in name for name in frames)
    assert sum(frame.name == "solve" for frame in traceback.extract_tb(caught.value.__traceback__)) <= 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        bound_solve(np.diag([1.0, 1.0, 1e-20]), B)
    assert [w.category for w in seen] == [scipy.linalg.LinAlgWarning]


def test_other_threads_keep_scipys_functions():
    results, go, end = [], threading.Event(), threading.Event()

    def other():
        go.wait()
        results.append(type(bound_solve(A, B)))
        end.set()

    thread = threading.Thread(target=other)
    thread.start()

    def loss(x):
        go.set()
        end.wait()
        return np.sum(bound_solve(A, x))

    func.grad(loss)(B)
    thread.join()
    assert results == [np.ndarray]


SCRIPT_LATE = """
import numpy as np, func
def loss(x):
    from scipy.linalg import solve
    return np.sum(solve(np.diag([1.0, 2.0]), x))
print(func.grad(loss)(np.ones(2)))
"""
SCRIPT_EARLY = """
import sys, func
assert "scipy.linalg" not in sys.modules
import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.sparse.linalg
code = scipy.linalg.solve.__code__
assert code.co_filename.endswith("_basic.py") or "scipy" in code.co_filename
import func.host.start
assert "func.host.scipy_hooks" not in sys.modules
assert type(scipy.linalg.__spec__.loader).__name__ == "SourceFileLoader"
assert "exec_module" not in vars(scipy.linalg.__loader__)
print("ok")
"""


@pytest.mark.parametrize(("script", "expected"), [(SCRIPT_LATE, "[1.  0.5]"), (SCRIPT_EARLY, "ok")])
def test_imports(script, expected):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert run.stdout.strip() == expected, run.stderr


def test_every_entry_of_the_table_exists():
    for module, text in scipy_table.TABLE.items():
        scipy_module = __import__(module, fromlist=["x"])
        for entry in scipy_hooks.entries(scipy_module, text):
            value = scipy_module
            for part in entry.lstrip("~=").removesuffix("()").split("."):
                value = getattr(value, part, None)
            assert value is None or callable(value) or isinstance(value, property), entry


def test_flags_and_device():
    def f(x):
        assert x.flags.c_contiguous
        assert x.flags["F_CONTIGUOUS"] is False
        assert x.T.flags["F_CONTIGUOUS"]
        assert not x[:, ::2].flags.contiguous
        assert x.device == "cpu"
        assert x.to_device("cpu") is x
        with pytest.raises(func.errors.UnsupportedFunctionError, match="cannot be set"):
            x.flags.writeable = False
        return np.sum(x)

    x = np.ones((3, 4))
    func.grad(f)(x)
    func.jit(f)(x)
    func.vmap(f)(np.ones((2, 3, 4)))


@pytest.mark.parametrize(
    "module", sorted([module for module in scipy_table.TABLE if module.startswith("scipy.") and "._" not in module])
)
def test_funcs_modules_have_what_scipys_have(module):
    own, scipy_module = [__import__(name, fromlist=["x"]) for name in (f"func.{module}", module)]
    assert all(hasattr(own, name) for name in scipy_module.__all__)
    for entry in scipy_hooks.entries(scipy_module, scipy_table.TABLE[module]):
        name = entry.removesuffix("()").removesuffix("!").replace(".", "_")
        assert name.startswith(("~", "=", "-")) or name in vars(own) or hasattr(own, name), name


PLAIN_CALLS = {
    "fft": lambda x: scipy.fft.fft(x + 1j, 8),
    "dctn in place": lambda x: scipy.fft.dctn(x.copy(), overwrite_x=True),
    "interpolate class": lambda x: scipy.interpolate.interp1d(np.arange(4.0), x)(1.5),
    "interpolate compiled": lambda x: scipy.interpolate.make_interp_spline(np.arange(4.0), x)(1.5),
    "sparse solve": lambda x: scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(np.diag(x)), np.ones(4)),
    "signal": lambda x: scipy.signal.hilbert(x),
    "stats": lambda x: scipy.stats.chisquare(x).pvalue,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", PLAIN_CALLS)
def test_plain_calls_inside_intercept_are_scipys(name):
    x = np.array([0.7, 1.2, 0.4, 1.9])
    expected, seen = PLAIN_CALLS[name](x), []

    def f(t):
        with func.intercept():
            memory = np.array(x)  # may hold traced values later
            seen.append(np.array(PLAIN_CALLS[name](memory)))
            memory[0] = t
        return np.sum(memory) * t

    assert func.grad(f)(1.0) == 2 + np.sum(x[1:])
    func.jit(f)(1.0)
    for got in seen:
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == np.asarray(expected).dtype


def test_the_first_plain_call_finishes_a_hook():
    """Functions whose source does not compile to their own code, too: trying again would cost milliseconds a call."""
    logpdf = scipy.stats.rv_continuous.logpdf
    expected = scipy.stats.norm.logpdf(0.3)
    assert scipy_hooks.HOOKS[logpdf].first(scipy.stats.norm, 0.3) == expected  # as a call without traced values does
    assert "first" not in logpdf.__code__.co_names
    assert scipy.stats.norm.logpdf(0.3) == expected
