"""`func.intercept(modules=...)`: names that modules imported from NumPy and `math` take traced values."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError, StagingError, TracerConversionError
from func.host.patching import SUBSTITUTES
from func.host.rebinding import Chooser, NumberChooser

SOURCE = """
from math import log, exp as e, pi
from math import hypot
from numpy import array, zeros, float64, asarray, linspace, r_, sum as total

def values(x):
    y = zeros(3, dtype=float64)
    y[0] = log(x)
    y[1] = e(-x)
    y[2] = float64(x) * pi
    z = array([x, 1.0], dtype=float64) + asarray([x, x]) * linspace(0, 1, 2) + r_[x, x]
    assert isinstance(float64(3.0), float64) and y.dtype == float64
    return total(y) + total(z) + hypot(x, 1.0)
"""
ORIGINALS = {"log": math.log, "e": math.exp, "zeros": np.zeros, "float64": np.float64, "r_": np.r_, "pi": math.pi}


@pytest.fixture
def code() -> Iterator[Any]:
    """A package whose submodule imports by name."""
    package, module = types.ModuleType("imported_names"), types.ModuleType("imported_names.values")
    exec(compile(SOURCE, "imported_names.py", "exec"), vars(module))
    sys.modules |= {"imported_names": package, "imported_names.values": module}
    try:
        yield module
        assert_original(module)
    finally:
        del sys.modules["imported_names"], sys.modules["imported_names.values"]


def assert_original(module: Any) -> None:
    changed = [name for name, value in vars(module).items() if type(value) in (Chooser, NumberChooser)]
    assert not changed
    assert all([getattr(module, name) is value for name, value in ORIGINALS.items()])


def slope(function: Any, x: float, step: float = 1e-6) -> float:
    return float((function(x + step) - function(x - step)) / (2 * step))


@pytest.mark.parametrize("modules", ["imported_names", "imported_names.values", "imported_*", ["imported_names.*"]])
def test_imported_names_take_traced_values(code: Any, modules: Any) -> None:
    expected = slope(code.values, 1.3)
    with func.intercept(modules=modules):
        for name in ("log", "e", "zeros", "float64", "r_"):
            assert type(getattr(code, name)) in (Chooser, NumberChooser)
        assert func.grad(code.values)(1.3) == pytest.approx(expected)
        assert func.jit(func.grad(code.values))(1.3) == pytest.approx(expected)
        assert func.jvp(code.values, (1.3,), (1.0,))[1] == pytest.approx(expected)
        np.testing.assert_allclose(func.vmap(code.values)(np.array([1.3, 2.0])), [code.values(1.3), code.values(2.0)])
    assert_original(code)


TRANSFORMS: dict[str, Any] = {
    "grad": lambda f, **options: func.grad(f, **options)(1.3),
    "value_and_grad": lambda f, **options: func.value_and_grad(f, **options)(1.3)[1],
    "grad_and_value": lambda f, **options: func.grad_and_value(f, **options)(1.3)[0],
    "elementwise_grad": lambda f, **options: func.elementwise_grad(f, **options)(1.3),
    "jacobian": lambda f, **options: func.jacobian(f, **options)(1.3),
    "jacrev": lambda f, **options: func.jacrev(f, **options)(1.3),
    "jacfwd": lambda f, **options: func.jacfwd(f, **options)(1.3),
    "divergence": lambda f, **options: func.divergence(f, **options)(1.3),
    "derivatives": lambda f, **options: func.derivatives(f, order=1, **options)(1.3)[1],
    "directional_derivatives": lambda f, **options: func.directional_derivatives(f, 1, **options)(1.3, 1.0)[1],
    "jit": lambda f, **options: func.grad(func.jit(f, **options))(1.3),
    "checkpoint": lambda f, **options: func.grad(func.checkpoint(f, **options))(1.3),
    "vmap": lambda f, **options: func.grad(lambda x: func.vmap(f, **options)(np.stack([x, x])).sum() / 2)(1.3),
    "vjp": lambda f, **options: func.vjp(f, 1.3, **options)[1](1.0)[0],
    "jvp": lambda f, **options: func.jvp(f, (1.3,), (1.0,), **options)[1],
    "linearize": lambda f, **options: func.linearize(f, 1.3, **options)[1](1.0),
    "jet": lambda f, **options: func.jet(f, (1.3,), ([1.0],), **options)[1][0],
    "taylor": lambda f, **options: func.taylor(f, 1.3, 1.0, 1, **options)[1],
    "taylor_flow": lambda f, **options: func.taylor_flow(f, 1.3, 2, **options)[2] / (0.5 * f(1.3)),
    "propagate": lambda f, **options: np.sqrt(func.propagate(f, **options)(1.3, 1.0)) * np.sign(slope(f, 1.3)),
}
SECOND: dict[str, Any] = {
    "hessian": lambda f, **options: func.hessian(f, **options)(1.3),
    "laplacian": lambda f, **options: func.laplacian(f, **options)(1.3),
    "hessian_diagonal": lambda f, **options: func.hessian_diagonal(f, **options)(1.3),
    "hvp": lambda f, **options: func.hvp(f, (1.3,), (1.0,), **options),
    "vhp": lambda f, **options: func.vhp(f, (1.3,), (1.0,), **options),
    "lagrangian_hessian": lambda f, **options: func.lagrangian_hessian(f, **options)(1.3, 1.0),
}


@pytest.mark.parametrize("name", [*TRANSFORMS, *SECOND])
def test_every_transform_takes_the_modules(code: Any, name: str) -> None:
    expected = (
        slope(code.values, 1.3) if name in TRANSFORMS else slope(lambda x: slope(code.values, x, 1e-4), 1.3, 1e-4)
    )
    derivative = {**TRANSFORMS, **SECOND}[name](code.values, intercept=["imported_names"])
    assert float(derivative) == pytest.approx(expected, rel=1e-5)
    assert_original(code)
    with pytest.raises((TracerConversionError, StagingError), match=r"modules=\['imported_names.values'\]"):
        {**TRANSFORMS, **SECOND}[name](code.values, intercept=True)


def test_results_of_transforms_keep_the_option(code: Any) -> None:
    gradient = func.grad(in_an_own_array, intercept=True)
    assert repr(gradient) == "func.grad(in_an_own_array, argnums=0, intercept=True)"
    assert gradient == func.grad(in_an_own_array, intercept=True) != func.grad(in_an_own_array)
    assert pickle.loads(pickle.dumps(gradient))(3.0) == 6.0
    jitted = func.jit(in_an_own_array, intercept=True)
    assert repr(jitted) == "func.jit(in_an_own_array, intercept=True)"
    assert pickle.loads(pickle.dumps(jitted))(3.0) == copy.copy(jitted)(3.0) == 9.0
    decorated = func.grad(intercept=True)(in_an_own_array)
    assert decorated(3.0) == 6.0


def in_an_own_array(x: Any) -> Any:
    array = np.zeros(2)
    array[1] = x**2
    return array.sum()


def test_outside_of_transforms_the_names_do_what_they_do(code: Any) -> None:
    with func.intercept(modules="imported_names"):
        assert code.log(2.0) == math.log(2.0)
        assert type(code.zeros(2)) is np.ndarray
        assert code.float64 == np.float64 and np.dtype(code.float64) == np.float64
        assert {code.float64: 1}[np.float64] == 1
        assert issubclass(np.float64, code.float64) and type(code.float64(2)) is np.float64
        assert code.zeros == np.zeros and code.zeros.__name__ == "zeros"
        assert repr(code.log) == repr(math.log)
        assert pickle.loads(pickle.dumps(code.log)) is math.log
        assert copy.deepcopy(code.zeros) is np.zeros
        np.testing.assert_array_equal(code.r_[1.0, 2.0], [1.0, 2.0])


def test_every_replaced_object_is_bound_and_comes_back() -> None:
    module = types.ModuleType("all_names")
    originals = {f"n{i}": entry.original for i, entry in enumerate(list(SUBSTITUTES.values()))}
    vars(module).update(originals)
    sys.modules["all_names"] = module
    try:
        with func.intercept(modules=module):
            rebound = [name for name in originals if getattr(module, name) is not originals[name]]
            assert [name for name in originals if name not in rebound] in (
                [],
                [name for name, value in originals.items() if value is np.bool_],  # a class without subclasses
            )
            assert all([getattr(module, name) == value for name, value in originals.items()])
        assert all([getattr(module, name) is value for name, value in originals.items()])
    finally:
        del sys.modules["all_names"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_blocks_may_end_in_any_order(code: Any, order: Any) -> None:
    blocks = [func.intercept(modules="imported_names") for _ in range(3)]
    for block in blocks:
        block.__enter__()
    for place in order:
        assert type(code.log) is Chooser
        blocks[place].__exit__(None, None, None)


def test_names_come_back_after_errors(code: Any) -> None:
    with pytest.raises(KeyError), func.intercept(modules="imported_names"):
        raise KeyError
    assert_original(code)
    code.zeros = zeros = np.zeros
    with func.intercept(modules="imported_names"):
        code.zeros = np.ones  # the module's own change stays
    assert code.zeros is np.ones
    code.zeros = zeros


def test_a_generator_that_is_dropped_restores(code: Any) -> None:
    def generate() -> Iterator[Any]:
        with func.intercept(modules="imported_names"):
            yield code.log

    generator = generate()
    assert type(next(generator)) is Chooser
    generator.close()
    assert_original(code)


def test_threads_see_the_originals_values(code: Any) -> None:
    seen: list[Any] = []
    with func.intercept(modules="imported_names"):
        expected = func.grad(code.values)(1.3)

        def work() -> None:
            with func.intercept(modules="imported_names"):
                gradient = func.grad(code.values)(1.3)
            seen.append((type(code.zeros(2)), code.log(2.0), gradient))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert type(code.log) is Chooser
    assert seen == [(np.ndarray, math.log(2.0), expected)] * 8


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ("no_such_module", "modules holds 'no_such_module': No module named 'no_such_module'"),
        ("no_such*", "no loaded module has a name like 'no_such\\*'; import it first"),
        (["numpy.linalg"], "modules holds 'numpy.linalg', but func has versions of the functions of NumPy"),
        ([3], "modules holds 3, which is neither a module nor its name"),
        (3, "modules=3 is neither a module, its name, nor a list of these"),
        (None, "modules=None is neither a module, its name, nor a list of these"),
    ],
)
def test_modules_that_do_not_exist(modules: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words), func.intercept(modules=modules):
        pass
    with pytest.raises(ArgumentError, match=words):
        func.grad(in_an_own_array, intercept=modules)(1.0)


HINTS = {
    "log(x)": "imported log by name. Inside `with func.intercept(modules=['imports']):`",
    "logarithm(x)": "math.log takes numbers of Python: write np.log(x)",
    "float64(x)": "imported float64 by name.",
    "array([x, x])[0]": "imported array by name.",
}


@pytest.mark.parametrize("expression", HINTS)
def test_errors_name_the_module(expression: str) -> None:
    names: dict[str, Any] = {"__name__": "imports"}
    lines = "from math import log, log as logarithm\nfrom numpy import array, float64, zeros\n"
    exec(
        lines + f"def f(x):\n    return {expression}\ndef g(x):\n    y = zeros(2)\n    y[0] = x\n    return y[0]", names
    )
    try:
        assert float(func.grad(names["f"])(2.0)) == 1.0
    except TracerConversionError as error:
        assert HINTS[expression] in str(error)
    with pytest.raises(TracerConversionError) as raised:
        func.grad(names["g"])(2.0)
    assert "The module imports imported zeros by name." in str(raised.value)
