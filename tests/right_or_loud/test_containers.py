"""Other libraries' containers with traced values: the right derivative, or an error that func words.

Packages that are not installed are skipped; the extra `containers` has pandas and xarray.
"""

from __future__ import annotations

import array
import collections
import decimal
import fractions
import functools
import importlib
import itertools
import numbers
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import func

X = np.array([0.45, 0.7, 1.1])
B = np.array([1.0, 2.0, 3.0])


class Metres:
    """A class with reflected operators only: a number with a unit."""

    def __rmul__(self, other: Any) -> Any:
        return other * B


CONTAINERS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "Series": ("pandas", lambda pd, b: pd.Series(b)),
    "DataFrame": ("pandas", lambda pd, b: pd.DataFrame(b[None])),
    "Index": ("pandas", lambda pd, b: pd.Index(b)),
    "DataArray": ("xarray", lambda xr, b: xr.DataArray(b)),
    "Variable": ("xarray", lambda xr, b: xr.Variable(["d"], b)),
    "Dataset": ("xarray", lambda xr, b: xr.Dataset({"v": (["d"], b)})),
    "pint": ("pint", lambda pint, b: pint.get_application_registry().Quantity(b, "m")),
    "astropy": ("astropy.units", lambda units, b: b * units.m),
    "unyt": ("unyt", lambda unyt, b: unyt.unyt_array(b, "m")),
    "dask": ("dask.array", lambda da, b: da.from_array(b)),
    "COO": ("sparse", lambda sparse, b: sparse.COO.from_numpy(b)),
    "csr_array": ("scipy.sparse", lambda sparse, b: sparse.csr_array(b[None])),
    "csr_matrix": ("scipy.sparse", lambda sparse, b: sparse.csr_matrix(b[None])),
    "torch": ("torch", lambda torch, b: torch.tensor(b)),
    "jax": ("jax.numpy", lambda jnp, b: jnp.asarray(b)),
    "masked": ("numpy.ma", lambda ma, b: ma.array(b, mask=[False, True, False])),
    "matrix": ("numpy", lambda np, b: np.matrix(b)),
    "recarray": ("numpy", lambda np, b: b.view(np.recarray)),
    "objects": ("numpy", lambda np, b: b.astype(object)),
    "list": ("numpy", lambda np, b: b.tolist()),
    "tuple": ("numpy", lambda np, b: tuple(b.tolist())),
    "range": ("numpy", lambda np, b: range(1, 4)),
    "array.array": ("numpy", lambda np, b: array.array("d", b)),
    "memoryview": ("numpy", lambda np, b: memoryview(b)),
    "deque": ("numpy", lambda np, b: collections.deque(b.tolist())),
    "Fraction": ("numpy", lambda np, b: fractions.Fraction(1, 3)),
    "times": ("numpy", lambda np, b: np.array([1, 2, 3], "m8[s]")),
    "texts": ("numpy", lambda np, b: np.array(["a", "b", "c"])),
}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul,
    "-": operator.sub,
    "@": operator.matmul,
    "+=": operator.iadd,
    "multiply": np.multiply,
    "concatenate": lambda a, b: np.concatenate([a, b]),
}
RIGHT = {
    "Series",
    "Index",
    "DataArray",
    "Variable",
    "Dataset",
    "pint",
    "jax",
    "list",
    "tuple",
    "range",
    "deque",
    "objects",
}
"""Those of which products with a traced array have to be right, on both sides."""


def plain(value: Any) -> Any:
    """The array in a container."""
    for _ in range(3):
        package = type(value).__module__.split(".")[0]
        if type(value).__name__ == "Dataset":
            value = value["v"]
        elif package == "xarray":
            value = value.data
        elif package == "pint":
            value = value.magnitude
        elif package == "astropy":
            value = value.value
        elif package == "unyt":
            value = np.asarray(value.d)
        elif package == "pandas":
            value = value.to_numpy()
        elif package == "dask":
            value = value.compute()
        elif package == "torch":
            value = value.numpy()
        elif package in ("jax", "jaxlib"):
            value = np.asarray(value)
        elif hasattr(value, "todense"):
            value = value.todense()
    return value


def tensor_gradient(f: Callable[[Any], Any]) -> Any:
    t = func.tensor(X, requires_grad=True)
    out = f(t)
    if not hasattr(out, "backward"):
        return np.zeros(3)  # the tensor's numbers only: a comparison
    out.backward()
    return t.grad.detach().numpy()


def differences(f: Callable[[Any], Any]) -> Any:
    step = 1e-6
    return np.array([(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(3)], float)


MODES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "grad": (lambda f: func.grad(f)(X), differences),
    "jvp": (lambda f: func.jvp(f, (X,), (np.ones(3),))[1], lambda f: np.sum(differences(f))),
    "vmap": (lambda f: func.vmap(f)(np.stack([X, 2 * X])), lambda f: np.array([f(X.copy()), f(2 * X)], float)),
    "jit": (lambda f: func.jit(f, compiler="numpy")(X), lambda f: float(f(X.copy()))),
    "tensor": (tensor_gradient, differences),
}


def made(name: str) -> Any:
    package, make = CONTAINERS[name]
    root = package.split(".")[0]
    module = pytest.importorskip(package, reason=f"{root} is not installed", exc_type=ImportError)
    if root == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(module, B.copy())


def outcome(run: Callable[[], Any], expected: Callable[[], Any]) -> str:
    """right, named (an error of func's), or what else came of it."""
    try:
        want = expected()
    except Exception:
        want = None  # NumPy, or the library, refuses this
    try:
        got = run()
    except func.errors.FuncError:
        return "named"
    except RecursionError:
        return "RecursionError"
    except Exception as error:
        return "refused" if want is None else f"{type(error).__name__}: {error}"
    if want is None:
        return "refused"  # func does more than the library
    is_right = np.allclose(np.asarray(plain(got), float), want, atol=1e-5)
    return "right" if is_right else f"{got} instead of {want}"


def of_container(name: str, operation: str, side: str) -> Callable[[Any], Any]:
    """A real function of an array and a container."""
    call = OPERATIONS[operation]
    container = made(name)

    def f(x: Any) -> Any:
        c = made(name) if operation == "+=" else container
        return np.sum(plain(call(c, x) if side == "left" else call(x * 1, c)) * 1.0)

    return f


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONTAINERS)
def test_both_sides_of_every_operation(name: str) -> None:
    wrong = []
    for operation, side, mode in itertools.product(OPERATIONS, ("left", "right"), MODES):
        f = of_container(name, operation, side)
        result = outcome(*[functools.partial(way, f) for way in MODES[mode]])
        allowed = {"right"} if name in RIGHT and operation == "*" else {"right", "named", "refused"}
        if result not in allowed and not known(name, operation, side, mode):
            wrong.append(f"{operation} {side} {mode}: {result}")
    assert not wrong, "\n".join(wrong)


def known(name: str, operation: str, side: str, mode: str) -> bool:
    """Errors of the library's own that func cannot word: of a tensor, no transform sees them."""
    if name in ("Series", "DataFrame") and operation == "+=":
        return side == "right"  # shapes
    return name == "dask" and operation == "@"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",  # a product with a csr_matrix is none of elements
    [name for name in CONTAINERS if name not in ("times", "texts", "reflected", "Fraction", "csr_matrix")],
)
def test_arguments_and_results(name: str) -> None:
    container = made(name)
    calls: dict[str, Callable[[], Any]] = {
        "argument of grad": lambda: func.grad(lambda v: np.sum(np.asarray(v) * 1.0 * v))(container),
        "argument of vmap": lambda: func.vmap(lambda v: np.asarray(v) * 2.0)(container),
        "argument of jit": lambda: func.jit(lambda v: np.sum(np.asarray(v) * 2.0))(container),
        "tensor": lambda: func.tensor(container),
        "result of jvp": lambda: func.jvp(lambda v: container * v, (X,), (np.ones(3),)),
        "result of grad": lambda: func.grad(lambda v: (v * container).sum())(X),
        "result of jit": lambda: func.jit(lambda v: v * container)(X),
        "aux": lambda: plain(func.grad(lambda v: (np.sum(v * v), v * container), has_aux=True)(X)[1]) + 0.0,
    }
    expected = {
        "result of jvp": lambda out: np.allclose(plain(out[1]), B),
        "result of grad": lambda out: np.allclose(out, B),
        "result of jit": lambda out: np.allclose(plain(out), X * B),
        "aux": lambda out: np.allclose(out, X * B),
    }
    for label, call in calls.items():
        try:
            out = call()
        except func.errors.FuncError:
            continue
        assert label not in expected or expected[label](out), (label, out)


def test_labels_and_units_stay_where_the_library_keeps_them() -> None:
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    weights = xr.DataArray(B, dims=["row"])
    assert func.grad(lambda w: (weights * w).sum())(2.0) == 6.0
    assert func.grad(lambda w: (weights * w).sum("row").data)(2.0) == 6.0
    np.testing.assert_allclose(func.grad(lambda x: (weights * x).sum())(X), B)
    np.testing.assert_allclose(func.grad(lambda x: (x * weights).sum())(X), B)


def test_units_of_pint_convert() -> None:
    pint = pytest.importorskip("pint", reason="pint is not installed")
    quantity = pint.get_application_registry().Quantity

    def f(x: Any) -> Any:
        return np.sum((x * quantity(2.0, "km") / quantity(1.0, "m")).to("").magnitude)

    np.testing.assert_allclose(func.grad(f)(X), [2000.0] * 3)
    np.testing.assert_allclose(func.jvp(f, (X,), (np.ones(3),))[0], f(X))


def test_values_of_astropy_are_not_confused_with_the_inner_array() -> None:
    units = pytest.importorskip("astropy.units", reason="astropy is not installed")
    for call in (lambda x: np.sum((B * units.m * x).value), lambda x: np.sum((x * (B * units.m)).value)):
        for run in (lambda f: func.grad(f)(X), lambda f: func.vmap(f)(np.stack([X, X]))):
            with pytest.raises(func.errors.UnsupportedArrayError, match=r"x\.value \(astropy\)"):
                run(call)


def test_reflected_operators_of_other_classes_are_asked() -> None:
    np.testing.assert_allclose(func.grad(lambda x: np.sum(x * Metres()))(X), B)
    with pytest.raises(func.errors.UnsupportedArrayError, match="Metres"):
        func.grad(lambda x: np.sum(x + Metres()))(X)


def test_traced_arrays_have_no_attributes_that_libraries_look_for() -> None:
    seen: list[Any] = []
    func.grad(lambda x: (seen.append(type(x)), np.sum(x))[1])(X)
    slots = {name for name in seen[0].__slots__ if name != "__weakref__"}
    assert slots and all(name.startswith("_") for name in slots)
    np.testing.assert_allclose(func.grad(lambda x: np.sum(getattr(x, "value", x) ** 2))(X), 2 * X)
    np.testing.assert_allclose(func.vmap(lambda x: np.sum(getattr(x, "value", x)))(np.stack([X, 2 * X])), [2.25, 4.5])


def test_objects_and_huge_integers() -> None:
    objects = np.array([1, 2, 3], dtype=object)
    for f in (lambda x: np.sum(x * objects), lambda x: np.sum(objects * x), lambda x: np.sum(np.multiply(x, objects))):
        out, tangent = func.jvp(f, (X,), (np.ones(3),))
        assert out == pytest.approx(np.sum(X * B)) and tangent == 6.0
        np.testing.assert_allclose(func.grad(f)(X), B)
        assert func.jit(f)(X) == pytest.approx(np.sum(X * B))
    huge = [10**30, 1, 2]
    assert func.jvp(lambda x: np.sum(x * huge), (X,), (np.ones(3),))[1] == 1e30
    with pytest.raises(func.errors.UnsupportedArrayError, match="carry no numbers"):
        func.grad(lambda x: np.sum(x * np.array([None, 1, 2], dtype=object)))(X)
    with pytest.raises(func.errors.TracerConversionError, match="converted to object"):
        func.jvp(lambda x: np.sum(x.astype(object)), (X,), (np.ones(3),))
    with pytest.raises(func.errors.UnsupportedArrayError, match="timedelta64"):
        func.jvp(lambda x: np.sum(x * np.array([1, 2, 3], "m8[s]")), (X,), (np.ones(3),))


@pytest.mark.parametrize("transform", ["vmap", "jit", "grad", "jvp"])
def test_a_list_times_a_whole_number_is_repeated(transform: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.array([1.0] * np.sum(x > 0)) * x)

    if transform == "vmap":
        np.testing.assert_allclose(func.vmap(f)(np.stack([X, X])), [np.sum(X)] * 2)
        np.testing.assert_allclose(
            func.vmap(lambda n: np.sum(np.array(n * [2.0])))(np.array([1, 3, 1])), [2.0, 6.0, 2.0]
        )
    elif transform == "jit":
        assert func.jit(f)(X) == np.sum(X)
        with pytest.raises(func.errors.StagingError, match="static_argnums"):
            func.jit(f, guards=False)(X)
    elif transform == "grad":
        np.testing.assert_allclose(func.grad(f)(X), np.ones(3))
    else:
        assert func.jvp(f, (X,), (np.ones(3),))[1] == 3.0


def answers(value: Any) -> tuple[bool, ...]:
    """The answers of ordinary type checks about a value."""
    kinds = (np.ndarray, float, int, complex, numbers.Number, numbers.Real, np.floating, np.float64, np.generic)
    return (*[isinstance(value, kind) for kind in kinds], np.isscalar(value), np.iterable(value), callable(value))


SCALARS: dict[str, Any] = {
    "float": 2.0,
    "float64": np.float64(2.0),
    "float32": np.float32(2.0),
    "complex": 1 + 2j,
    "array": np.arange(3.0),
    "matrix": np.ones((2, 2)),
    "0-d array": np.array(2.0),
}


def type_checks() -> Iterator[tuple[str, Callable[[Callable[[Any], Any]], Any], Any]]:
    for name, value in SCALARS.items():
        one = np.ones_like(value) if isinstance(value, np.ndarray) else type(value)(1)
        yield f"jvp {name}", lambda f, v=value, t=one: func.jvp(f, (v,), (t,)), value
        yield f"vjp {name}", lambda f, v=value: func.vjp(f, v), value
        yield f"tensor {name}", lambda f, v=value: f(func.tensor(v)), np.asarray(value)
        if name != "0-d array":  # NumPy's functions give scalars: a trace takes every 0-d value for one
            yield f"jit {name}", lambda f, v=value: func.jit(f)(v), value
    yield "vmap", lambda f: func.vmap(f)(np.ones((2, 3))), np.ones(3)
    yield "vmap 0-d", lambda f: func.vmap(f)(np.ones(2)), np.float64(1.0)
    yield "vmap of grad", lambda f: func.vmap(func.grad(f))(np.ones(2)), np.float64(1.0)
    yield "grad of grad", lambda f: func.grad(func.grad(f))(2.0), 2.0
    yield "element", lambda f: func.grad(lambda x: f(x[0]))(X), X[0]
    yield "sum", lambda f: func.jit(lambda x: f(np.sum(x)))(X), np.sum(X)
    yield "integer", lambda f: func.jit(lambda n: f(n))(3), 3


@pytest.mark.parametrize(("label", "run", "value"), [pytest.param(*case, id=case[0]) for case in type_checks()])
def test_checks_of_type_answer_for_the_value(label: str, run: Callable[[Any], Any], value: Any) -> None:
    seen: list[Any] = []
    run(lambda v: (seen.append(answers(v)), np.sum(v) * 1.0)[1])
    assert seen[0] == answers(value)


def test_branches_by_type_are_the_ones_of_numpy() -> None:
    def area(r: Any) -> Any:
        return np.pi * r**2 if isinstance(r, (int, float)) else 100.0 * r

    def total(x: Any) -> Any:
        return np.sum(x) if isinstance(x, np.ndarray) else 5 * np.sum(x)

    assert func.grad(area)(2.0) == pytest.approx(4 * np.pi)
    assert func.jit(func.grad(area))(2.0) == pytest.approx(4 * np.pi)
    np.testing.assert_allclose(func.grad(total)(X), np.ones(3))
    np.testing.assert_allclose(func.vmap(func.grad(total))(np.stack([X, X])), np.ones((2, 3)))


def test_a_leaked_value_still_has_a_class() -> None:
    leaked: list[Any] = []
    for run in (func.grad, func.vmap, func.jit):
        run(lambda x: (leaked.append(x), np.sum(x))[1])(X)
    assert all(isinstance(value, np.ndarray) for value in leaked)


@pytest.mark.parametrize("number", [fractions.Fraction(1, 3), decimal.Decimal("0.1"), mpmath.mpf(1) / 3])
def test_numbers_of_other_classes_are_refused_in_arrays_too(number: Any) -> None:
    x = np.array([number], dtype=object)
    for transform in (func.grad, func.jacfwd, func.jit, func.vmap):
        with pytest.raises(
            func.errors.UnsupportedArrayError, match=f"its elements, {type(number).__name__} objects, would lose"
        ):
            transform(lambda x: np.sum(x * x))(x)
    with pytest.raises(func.errors.UnsupportedArrayError, match="would lose"):
        func.grad(lambda y: np.sum(y * x))(np.ones(1))
