"""The user's process is left as it was, whatever ends a transform; no traced value reaches compiled code."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import gc
import importlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg
import scipy.optimize

import func
from func.autograd import forward_ad
from func.host import patching
from func.interpreters.imperative.interpreter import ambient

NAMES = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "r_", "c_")
CREATORS = ("zeros", "ones", "empty", "full", "eye", "arange", "copy", "zeros_like")
OWN = {name: vars(np)[name] for name in (*NAMES, *CREATORS)}
X = np.array([1.0, 2.0])


def square(x: Any) -> Any:
    return np.sum(np.array([x, x]) * np.asarray(x))


def assert_untouched() -> None:
    """NumPy is as it was, and no transform is running."""
    assert type(np) is types.ModuleType
    assert all([getattr(np, name) is function for name, function in OWN.items()])
    assert not patching.is_tracing()
    assert ambient().level == 0.5
    assert np.allclose(func.grad(square)(X), 4 * X)


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    yield
    assert_untouched()


# What sees which function


def test_only_code_that_a_transform_runs_sees_substitutes() -> None:
    def f(x: Any) -> Any:
        assert np.array is not OWN["array"]
        assert vars(np)["array"] is OWN["array"]
        with ThreadPoolExecutor(1) as pool:  # a thread that starts inside works for the transform
            assert pool.submit(lambda: np.array([x, x])).result().shape == (2, 2)
        assert pool_outside.submit(lambda: np.array).result() is OWN["array"]
        return np.sum(x)

    with ThreadPoolExecutor(1) as pool_outside:
        pool_outside.submit(int).result()
        func.grad(f)(X)


ASKING: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda x: np.array([x, 2 * x]),
    "getattr": lambda x: getattr(np, "array")([x, 2 * x]),  # noqa: B009
    "getattr with default": lambda x: getattr(np, "arr" + "ay", None)([x, 2 * x]),  # type: ignore[misc]
    "map": lambda x: np.stack(list(map(np.asarray, [x, 2 * x]))),
    "keyword": lambda x: np.asarray(a=[x, 2 * x]),
    "by another name": lambda x: sys.modules["numpy"].array((x, 2 * x)),
    "import in a function": lambda x: _imported()([x, 2 * x]),
    "nested": lambda x: np.array([[x, 2 * x]])[0],
    "eval": lambda x: eval("np.array([x, 2 * x])", {"np": np, "x": x}),
}


def _imported() -> Any:
    from numpy import array

    return array


@pytest.mark.parametrize("f", ASKING.values(), ids=ASKING)
def test_ways_to_ask_for_a_converter(f: Callable[[Any], Any]) -> None:
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(func.grad(lambda x: np.sum(f(x) * weights))(X), [7.0, 10.0])


def test_untraced_arguments_get_what_numpy_gives() -> None:
    deep: Any = 1.0
    for _ in range(40):
        deep = [deep]
    deeper: list[Any] = []
    for _ in range(100_000):
        deeper = [deeper]

    def f(x: Any) -> Any:
        data = np.ones(3)
        assert np.asarray(data) is data
        assert np.array(range(3)).tolist() == [0, 1, 2]
        assert type(np.asanyarray(np.ma.array([1.0]))) is np.ma.MaskedArray
        assert np.array([1, 2], dtype=np.int8, ndmin=2).shape == (1, 2)
        assert np.array(deep).ndim == 40
        for wrong in (deeper, [[1], [1, 2]]):
            with pytest.raises(ValueError, match=r"inhomogeneous|maximum"):
                np.array(wrong)
        with pytest.raises(TypeError, match="missing"):
            np.asarray()  # type: ignore[call-overload]
        return x

    func.grad(f)(1.0)


def test_numpys_functions_can_be_replaced_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(np, "array", len)
            assert np.array([x, x]) == 2
        return np.sum(np.array([x, x]))

    assert func.grad(f)(1.0) == 2.0


# Pickling


def test_converters_pickle_by_name_at_any_time() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        for name in NAMES[:5]:
            kept.append(getattr(np, name))
            assert pickle.loads(pickle.dumps(kept[-1]))([1.0]).tolist() == [1.0]
        return x

    func.grad(f)(1.0)
    for name, function in zip(NAMES, kept, strict=False):
        assert function is not OWN[name]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(function, protocol)) is OWN[name]
        assert copy.deepcopy(function)([1.0]).tolist() == [1.0]
        assert function.__module__ == "numpy" and function.__name__ == name
        assert b"func" not in pickle.dumps(function)


def test_converters_pickle_in_other_threads() -> None:
    failures: list[BaseException] = []
    stop = threading.Event()

    def pickling() -> None:
        while not stop.is_set():
            try:
                assert pickle.loads(pickle.dumps(np.array)) is OWN["array"]
            except BaseException as error:
                failures.append(error)

    thread = threading.Thread(target=pickling)
    thread.start()
    for _ in range(200):
        func.grad(square)(X)
    stop.set()
    thread.join()
    assert not failures


# Imports


MODULE = """
import functools
import numpy as np
from numpy import array, asarray as convert
narray = np.array
table = {"asarray": np.asarray}
class Kind:
    make = np.asfortranarray
def made():
    return np.ascontiguousarray
later = made()
partial = functools.partial(np.asanyarray, dtype=float)
by_getattr = getattr(np, "array")
zeros = np.zeros
"""


def test_modules_imported_inside_keep_numpys_functions(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_inside.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def f(x: Any) -> Any:
        importlib.import_module("imported_inside")
        return np.sum(np.array([x, x]))

    with func.intercept():
        assert func.grad(f)(1.0) == 2.0
    module = sys.modules.pop("imported_inside")
    own = [module.array, module.narray, module.by_getattr]
    assert all([function is OWN["array"] for function in own])
    assert module.convert is module.table["asarray"] is OWN["asarray"]
    assert module.Kind.make is OWN["asfortranarray"]
    assert module.later is OWN["ascontiguousarray"]
    assert module.partial.func is OWN["asanyarray"]
    assert module.zeros is OWN["zeros"]


def test_large_libraries_imported_inside_keep_numpys_functions() -> None:
    program = f"""
import gc, sys, types
import numpy as np, func
own = {{name: vars(np)[name] for name in {tuple(OWN)!r}}}
def f(x):
    import scipy.stats, scipy.signal, scipy.spatial, scipy.interpolate
    return np.sum(np.array([x, x]))
with func.intercept():
    assert func.grad(f)(1.0) == 2.0
for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {{}}).items()):
        is_substitute = isinstance(value, types.MethodType) and value.__module__ == "numpy"
        assert not is_substitute or module.__name__ == "func.numpy.casts", (module, name)  # which makes them
assert all(getattr(np, name) is function for name, function in own.items())
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# Ends of all kinds


def test_errors_and_signals_of_all_kinds() -> None:
    class Odd(BaseException):
        pass

    for kind in (ValueError, KeyboardInterrupt, GeneratorExit, SystemExit, Odd, MemoryError):
        for transform in (func.grad, func.vmap, func.jacfwd, func.jit, func.hessian, func.make_program):

            def f(x: Any, kind: type[BaseException] = kind) -> Any:
                np.array([x, x])
                raise kind

            with pytest.raises(kind), func.intercept():
                transform(f)(X)
            assert_untouched()


def _opcodes(run: Callable[[], Any], stop_at: int) -> int:
    """Run under a trace that raises KeyboardInterrupt before one bytecode, and return their number."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        if event in ("opcode", "call", "return"):
            count += 1
            if count == stop_at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return count


INTERRUPTED: dict[str, Callable[[], Any]] = {
    "grad": lambda: func.grad(square)(X),
    "vmap": lambda: func.vmap(np.sin)(X),
    "jvp of intercepted": lambda: _intercepted(),
}


def _intercepted() -> Any:
    with func.intercept():
        return func.jvp(_filled, (2.0,), (1.0,))


def _filled(x: Any) -> Any:
    a = np.zeros(2)
    a[0] = x
    return np.sum(a)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # by generators that are dropped
@pytest.mark.parametrize("run", INTERRUPTED.values(), ids=INTERRUPTED)
def test_interrupt_before_any_bytecode(run: Callable[[], Any]) -> None:
    for _ in range(3):  # the first ones fill caches
        total = _opcodes(run, -1)
    step = max(1, total // 400)
    for place in range(1, total + 1, step):
        _opcodes(run, place)
        assert type(np) is types.ModuleType and not patching.is_tracing(), place
    assert_untouched()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_transforms_in_signal_handlers() -> None:
    ran = 0

    def handler(number: int, frame: Any) -> None:
        nonlocal ran
        ran += 1
        assert np.allclose(func.grad(square)(X), 4 * X)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        for _ in range(300):
            assert np.allclose(func.grad(square)(X), 4 * X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ran


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_beside_a_transform_of_another_thread() -> None:
    inside, leave = threading.Event(), threading.Event()

    def f(x: Any) -> Any:
        inside.set()
        leave.wait()
        return np.sum(x)

    thread = threading.Thread(target=lambda: func.grad(f)(X))
    thread.start()
    inside.wait()
    context = multiprocessing.get_context("fork")
    child = context.Process(target=assert_untouched)
    child.start()
    leave.set()
    child.join()
    thread.join()
    assert child.exitcode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_inside_a_transform() -> None:
    def f(x: Any) -> Any:
        process = os.fork()
        if process == 0:
            try:
                right = np.array([x, x]).shape == (2, 2) and np.array is not OWN["array"]
            finally:
                os._exit(0 if right else 1)
        statuses.append(os.waitpid(process, 0)[1])
        return np.sum(x * x)

    statuses: list[int] = []
    np.testing.assert_allclose(func.grad(f)(X), 2 * X)
    assert statuses == [0]


def test_intercept_in_generators_that_end_elsewhere() -> None:
    def generator() -> Iterator[int]:
        with func.intercept():
            yield 1
            yield 2

    inside = contextvars.copy_context()
    for end in (lambda g: g.close(), lambda g: list(g), lambda g: gc.collect()):
        left = generator()
        inside.run(next, left)
        contextvars.copy_context().run(end, left)
        del left
        assert inside.run(func.grad(_kind_of_zeros), 1.0) == 1.0

    async def numbers() -> Any:
        with func.intercept():
            yield 1

    async def main() -> None:
        async for _ in numbers():
            break

    asyncio.run(main())


def _kind_of_zeros(x: Any) -> Any:
    assert type(np.zeros(3)) is np.ndarray
    return x


def test_dual_levels_of_other_contexts() -> None:
    context = contextvars.copy_context()
    level = context.run(forward_ad.enter_dual_level)
    assert patching.is_tracing() and np.array is OWN["array"]
    later = context.run(contextvars.copy_context)  # still refers to the level
    context.run(lambda: forward_ad.exit_dual_level(level=level))
    assert later is not None


# Compiled code


CRASHING = ("ConvexHull", "Delaunay", "Voronoi", "HalfspaceIntersection", "KDTree", "cKDTree", "SphericalVoronoi")


def test_compiled_geometry_refuses_traced_points() -> None:
    program = f"""
import numpy as np, func, scipy.spatial
p = np.random.default_rng(0).normal(size=(8, 2))
arguments = {{"HalfspaceIntersection": (np.array([[-1, 0., 0.], [0., -1., 0.], [1., 1., -4.]]), np.array([1., 1.])),
              "SphericalVoronoi": (np.concatenate([np.eye(3), -np.eye(3)]),)}}
for name in {CRASHING!r}:
    first, *others = arguments.get(name, (p,))
    for transform in (func.grad, func.vmap, func.jit, lambda f: func.vmap(func.grad(f))):
        for wrap in (lambda f: f, func.intercept()):
            mapped = transform not in (func.grad, func.jit)
            try:
                wrap(transform(lambda x: getattr(scipy.spatial, name)(x, *others).npoints * np.sum(x)))(
                    np.stack([first, first]) if mapped else first)
            except func.errors.FuncError as error:
                pass
            else:
                raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def _with_integers(i: Any) -> Any:
    a = np.zeros(3, dtype=np.int64)
    view = a[:]
    a[0] = i
    a[1] = 7
    return i * 1.0 + scipy.linalg.blas.dasum(view)


def _with_booleans(i: Any) -> Any:
    a = np.zeros(3, dtype=bool)
    a[0] = i > 5
    return i * 1.0 + scipy.linalg.blas.dasum(a)


def _with_floats(i: Any) -> Any:
    a = np.zeros(3)
    view = a[1:]
    a[1] = i
    return scipy.linalg.blas.dasum(view)


@pytest.mark.parametrize("f", [_with_integers, _with_booleans, _with_floats])
def test_compiled_code_refuses_intercepted_memory(f: Callable[[Any], Any]) -> None:
    with func.intercept(), pytest.raises(func.errors.TracerConversionError, match="Compiled code"):
        func.vmap(f)(np.array([5, 6]))


MEMORY: dict[str, Callable[[Any], Any]] = {
    "setfield": lambda a: a.setfield(5.0, float),
    "getfield": lambda a: a.getfield(float),
    "byteswap": lambda a: a.byteswap(),
    "tofile": lambda a: a.tofile(os.devnull),
    "dumps": lambda a: a.dumps(),
    "tobytes": lambda a: a.tobytes(),
    "pickle": lambda a: pickle.dumps(a),
    "resize": lambda a: a.resize((9,)),
    "data": lambda a: a.data,
    "ctypes": lambda a: a.ctypes,
    "view": lambda a: a.view(np.float32),
    "dtype": lambda a: setattr(a, "dtype", np.int64),
    "__array_interface__": lambda a: a.__array_interface__,
    "__array__": lambda a: a.__array__(),
}


@pytest.mark.parametrize("use", MEMORY.values(), ids=MEMORY)
def test_uses_of_intercepted_memory_are_refused(use: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[1] = x
        use(a)
        return np.sum(a)

    with func.intercept(), pytest.raises(func.errors.UnsupportedFunctionError, match="memory"):
        func.grad(f)(2.0)


def test_copies_of_intercepted_arrays_hold_their_values() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[1] = x
        b, c = copy.deepcopy(a), copy.copy(a[1:])
        b[0] = x
        return np.sum(b**2) + np.sum(c * 3) + np.sum(a.real) + np.sum(a.imag)

    with func.intercept():
        assert func.grad(f)(2.0) == 4 * 2.0 + 3 + 1


def test_minimize_in_compiled_code_is_no_silent_start() -> None:
    def solution(a: Any) -> Any:
        return scipy.optimize.minimize(
            lambda x: (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2,
            np.array([2.0, 0.0]),
            method="SLSQP",
            constraints=({"type": "ineq", "fun": lambda x: x[0] - 2 * x[1] + a},),
        ).x[0]

    with func.intercept():  # the projection of (1, 2.5) to the line x - 2 y + a = 0
        np.testing.assert_allclose(func.value_and_grad(solution)(2.0), (1.4, -0.2), rtol=1e-6)


# What leaves a transform


def test_arrays_that_a_library_keeps_end_with_the_transform() -> None:
    """interp1d keeps views of views, some of them listed with several arrays, until after its refusal."""
    for _ in range(2):
        with (
            func.intercept(),
            pytest.raises(func.errors.TracerConversionError, match="float"),
        ):
            func.grad(lambda x: float(scipy.interpolate.interp1d([0, 1.0, 2], [0, 1.0, 4])(x[0])))(np.ones(2))


def test_intercepted_arrays_leave_as_plain_ones() -> None:
    kept: dict[str, Any] = {}

    def f(x: Any) -> Any:
        if not kept:
            kept["array"] = np.ones(3)
            kept["view"] = kept["array"][1:]
        written = np.zeros(3)
        written[1] = x
        return np.sum(written), {"written": written, "plain": np.ones(2), "kept": kept["array"], "view": written[1:]}

    with func.intercept():
        results = [
            func.grad(f, has_aux=True)(3.0)[1],
            func.vjp(f, 3.0, has_aux=True)[2],
            func.jvp(f, (3.0,), (1.0,), has_aux=True)[2],
            func.jacfwd(f, has_aux=True)(3.0)[1],
            func.jacrev(f, has_aux=True)(3.0)[1],
            func.hessian(f, has_aux=True)(3.0)[1],
            func.linearize(f, 3.0, has_aux=True)[2],
        ]
    for aux in results:
        assert all([type(value) is np.ndarray for value in aux.values()])
        assert aux["written"].tolist() == [0.0, 3.0, 0.0] and aux["view"].tolist() == [3.0, 0.0]
    for value in kept.values():
        assert isinstance(value, np.ndarray) and value.__class__ is np.ndarray
        assert type(value * 2) is type(value[:1]) is type(np.sin(value)) is np.ndarray
        assert type(pickle.loads(pickle.dumps(value))) is np.ndarray
        np.testing.assert_array_equal(func.grad(lambda y: np.sum(y * y))(value), 2 * np.asarray(value))


# Errors of the user's own


def test_an_error_raised_from_one_of_funcs_is_the_users() -> None:
    def f(x: Any) -> Any:
        try:
            return float(x)
        except func.errors.TracerConversionError as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine"):
        func.grad(f)(1.0)

    def g(x: Any) -> Any:
        np.zeros(3)[0] = x
        return x

    with pytest.raises(func.errors.TracerConversionError, match="plain array"):
        func.grad(g)(1.0)
