"""Compiled programs and exported source compute what NumPy computes, at the corners too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import func
from func.interpreters.primitives.structural.shapes import convert

COMPILERS = ["llvm", "numpy"]
X32 = np.array([0.5, 0.7, 0.9], np.float32)
Z = np.array([0 + 1j, 1, 0, -0.0j])
INDEX = np.array([0, 2, 1, 0])
WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])
CUBE = np.arange(24.0).reshape(2, 4, 3)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "truth of complex": (lambda z: z.astype(bool), (Z,)),
    "and of complex": (lambda z: np.logical_and(z, 1), (Z,)),
    "or of complex": (lambda z: np.logical_or(z, 0), (Z,)),
    "xor of complex": (lambda z: np.logical_xor(z, 0j), (Z,)),
    "not of complex": (np.logical_not, (Z,)),
    "any of complex": (lambda z: np.any(z.reshape(2, 2), axis=1), (Z,)),
    "all of complex": (lambda z: np.all(z.reshape(2, 2), axis=1), (Z,)),
    "where of complex": (lambda z: np.where(z, 1.0, 2.0), (Z,)),
    "negative step near the start": (lambda a: a[-3::-2, 1], (CUBE[0],)),
    "negative step beyond the start": (lambda a: a[-9::-2], (CUBE[0],)),
    "clipped by a Python number": (lambda x: scipy.special.xlogy(x, 2.0), (X32,)),
}
for _name in ("gammainc", "gammaincc", "beta", "betaln", "xlogy", "xlog1py", "struve", "expn", "kn"):
    PROGRAMS[f"{_name} of a Python number"] = (lambda x, name=_name: getattr(scipy.special, name)(2, x), (X32,))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_dtype(name: str, compiler: str) -> None:
    function, args = PROGRAMS[name]
    got, expected = func.jit(function, compiler=compiler)(*args), function(*args)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-13)


SUMS: dict[str, Callable[..., Any]] = {
    "of vectors and a cube": lambda w, c: np.bincount(INDEX, weights=w) + c,
    "in the other order": lambda w, c: c + np.bincount(INDEX, weights=w),
    "of two axes": lambda w, c: np.bincount(INDEX, weights=w)[None, :2, None].transpose(1, 0, 2) + c,
    "of another precision": lambda w, c: np.bincount(INDEX, weights=w) + c.astype(np.float32),
    "of a gradient": lambda w, c: func.grad(lambda w: np.sum(w[np.array([0, 0, 3])] ** 2))(w) + c[0, :, :1],
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", SUMS)
def test_scattered_sums_are_broadcast(name: str, compiler: str) -> None:
    function, args = SUMS[name], (WEIGHTS, CUBE)
    expected = func.jvp(function, args, args)
    for got in (
        func.jvp(func.jit(function, compiler=compiler), args, args),
        func.jit(lambda *args: func.jvp(function, args, args), compiler=compiler)(*args),
    ):
        for ours, theirs in zip(got, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-13)


ZEROS: dict[str, Any] = {
    "identity": np.eye(3),
    "multiple of the identity": 3 * np.eye(3),
    "diagonal": np.diag([0.0, 1.0, 2.0]),
    "permutation": np.eye(3)[[2, 0, 1]],
    "rows of the identity": np.eye(3)[:2],
    "superdiagonal": np.eye(3, k=1),
    "one-hot": np.array([0.0, 1.0, 0.0]),
    "zero and ones": np.array([0.0, 1.0, 1.0]),
    "zeros": np.zeros((3, 3)),
    "triangle": np.tri(3),
}
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda c, x: c @ x,
    "product of matrices": lambda c, x: np.atleast_2d(c) @ np.stack([x, 2 * x], axis=1),
    "product from the left": lambda c, x: x @ c.T,
    "einsum": lambda c, x: np.einsum("...j,j", c, x),
    "times": lambda c, x: c * x,
    "negative times": lambda c, x: -x * c[..., ::-1],
    "over": lambda c, x: c / (1 / x),
    "squares": lambda c, x: np.sum((c * x) ** 2),
    "noise": lambda c, x: x[::-1] ** 2 + x[0] * c,
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ZEROS)
def test_zeros_of_constants_times_infinity_are_nan(name: str, compiler: str) -> None:
    constant = ZEROS[name]
    for x in (np.array([np.inf, 1.0, 2.0]), np.array([1.0, np.nan, 2.0])):
        for label, product in PRODUCTS.items():
            with np.errstate(all="ignore"):
                got = func.jit(lambda x, product=product: product(constant, x), compiler=compiler)(x)
                np.testing.assert_array_equal(got, product(constant, x), err_msg=label)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["zero and ones", "one-hot"])
def test_second_derivatives_know_computed_zeros_from_those_of_seeds(name: str, compiler: str) -> None:
    constant = ZEROS[name]
    x = np.array([0.0, 1.0, 2.0])
    for f in (lambda x: np.sum(constant @ np.log(x)), lambda x: np.sum(constant * np.sqrt(x))):
        with np.errstate(all="ignore"):
            expected = func.hessian(f)(x)
            for second in (func.hessian, lambda f: func.jacrev(func.jacrev(f)), lambda f: func.jacfwd(func.jacfwd(f))):
                np.testing.assert_array_equal(second(f)(x), expected)
                np.testing.assert_array_equal(func.jit(second(f), compiler=compiler)(x), expected)
            assert not expected[~np.eye(3, dtype=bool)].any()


def written(x: Any, *places: Any) -> Any:
    out = np.zeros_like(x, shape=(3,) * len(places))
    out[places] = x
    return out


def added(x: Any) -> Any:
    out = np.zeros_like(x)
    func.numpy.at(out)[np.array([1, 0])].add(x[:2])
    return out


WRITTEN: dict[str, Callable[[Any], Any]] = {
    "np.diag": np.diag,
    "a diagonal": lambda x: written(x, [0, 1, 2], [0, 1, 2]),
    "two elements": lambda x: written(x[:2], [0, 1]),
    "sums": added,
    "a transposed product": lambda x: (np.diag(x) * 2.0).T + np.diag(x),
}
FACTORS: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda z, y: z * y,
    "from the left": lambda z, y: y * z,
    "over": lambda z, y: z / (1 / y),
    "product": lambda z, y: z @ y,
    "product from the left": lambda z, y: y.T @ z,
    "sums": lambda z, y: np.sum(z * y, axis=-1) + np.mean(y * z),
    "a diagonal matrix": lambda z, y: z @ np.diag(y),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("is_constant", [False, True], ids=["an argument", "a constant"])
@pytest.mark.parametrize("name", WRITTEN)
def test_zeros_that_values_were_written_into_are_numbers(name: str, is_constant: bool, compiler: str) -> None:
    x = np.array([1.0, 2.0, 3.0])
    for y in (np.array([np.inf, 1.0, 2.0]), np.array([1.0, np.nan, 0.0]), x):
        for label, product in FACTORS.items():
            with np.errstate(all="ignore"):
                expected = product(WRITTEN[name](x), y)
                if is_constant:
                    got = func.jit(lambda x, y=y, p=product: p(WRITTEN[name](x), y), compiler=compiler)(x)
                else:
                    got = func.jit(lambda x, y, p=product: p(WRITTEN[name](x), y), compiler=compiler)(x, y)
                np.testing.assert_array_equal(got, expected, err_msg=label)


CONSTANTS: dict[str, Any] = {
    "empty": np.zeros((0, 3)),
    "empty columns": np.zeros((3, 0)).T,
    "empty indices": np.zeros((0, 2), np.int64),
    "signed zeros": np.array([0.0, -0.0, 1.0]),
    "complex signed zeros": np.array([complex(-0.0, 1.0), complex(1.0, -0.0), complex(-0.0, -0.0)]),
    "infinite": np.array([np.inf, -np.inf, np.nan]),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_exported_source(name: str) -> None:
    constant = CONSTANTS[name]

    def program(x: Any) -> Any:
        return np.take(x, constant) if constant.dtype == np.int64 else (x * constant, np.copysign(x, constant.real))

    x = np.array([1.0, 2.0, 3.0])
    namespace: dict[str, Any] = {}
    exec(func.to_source(program)(x), namespace)
    got, expected = namespace["program"](x), program(x)
    for ours, theirs in zip(np.atleast_1d(got), np.atleast_1d(expected), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("compiler", ["llvm", "numpy"])
def test_places_take_values_in_order_where_a_traced_mask_holds(compiler: str) -> None:
    def f(x: Any, values: Any) -> Any:
        y = x * 1
        np.place(y, y > 2, values)
        return y

    for dtype in ("float64", "float32", "int32"):
        x = np.arange(6).astype(dtype).reshape(2, 3)
        for values in ([7, 8], [1, 2, 3, 4, 5, 6, 7], 5):
            got = func.jit(lambda x, values=values: f(x, values), compiler=compiler)(x)
            assert got.dtype == x.dtype and np.array_equal(got, f(x, values))


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda p: np.roots(p), "companion matrix"),
        (lambda p: func.grad(lambda q: np.sum(np.abs(np.roots(q))))(p), "companion matrix"),
    ],
    ids=["roots", "gradient of roots"],
)
def test_zeros_of_polynomials_that_decide_a_shape_are_questions(call: Any, instead: str) -> None:
    p = np.array([0.0, 1.0, 3.0, 2.0])
    compiled = func.jit(call)
    for x in (p, np.roll(p, 1), p):
        np.testing.assert_allclose(np.sort(compiled(x)), np.sort(call(x)), atol=1e-12)
    with pytest.raises(func.errors.StagingError, match=instead):
        func.jit(call, guards=False)(p)


def test_conditions_of_python_select_traced_scalars() -> None:
    for f in (lambda x: np.where(True, x, 3.0), lambda x: np.where(False, 3.0, x)):
        assert func.jit(f)(2.0) == func.jvp(f, (2.0,), (1.0,))[0] == 2.0
        assert np.array_equal(func.vmap(f)(np.array([1.0, 2.0])), [1.0, 2.0])


LAYOUTS: dict[str, Any] = {
    "vecdot": lambda x: np.vecdot(x, x),
    "vecdot along another axis": lambda x: np.vecdot(x, x, axis=0),
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 1], axis=1),
    "product by einsum": lambda x: np.einsum("ijk,ijk->ijk", x, x),
    "broadcast product by einsum": lambda x: np.einsum("ijk,ij->ijk", x, x[..., 0]),
    "Q": lambda x: np.linalg.qr(x)[0],
    "R": lambda x: np.linalg.qr(x)[1],
    "select": lambda x: np.select([x > 3, x > 6], [x, x * 2]),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("axes", [(2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_raveled_results_are_copies_where_numpy_copies(name: str, axes: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        y = LAYOUTS[name](x) * 1.0
        y.ravel()[...] = 9.0
        return y

    numbers = np.arange(1.0, 25.0).reshape(2, 3, 4)
    x = numbers.transpose(axes).copy().transpose(np.argsort(axes))
    for mode in (func.jit(f), func.jit(f, compiler="numpy"), lambda x: func.vjp(f, x)[0]):
        assert np.allclose(mode(x), f(x))


def test_tangents_of_singular_values_have_their_dtype() -> None:
    a, b = np.arange(1.0, 7.0, dtype="float32").reshape(3, 2), np.ones(3)
    values, tangents = func.jvp(lambda a, b: np.linalg.lstsq(a, b)[3], (a, b), (a, b))
    assert values.dtype == tangents.dtype == np.linalg.lstsq(a, b)[3].dtype


def test_conversion_of_complex_numbers_to_bool_sees_both_parts() -> None:
    converted = convert(np.array([1j, 1.0, 0j]), dtype=np.dtype(bool))
    np.testing.assert_array_equal(converted, [True, True, False])
