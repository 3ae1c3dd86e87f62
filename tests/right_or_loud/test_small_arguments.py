"""Empty trees, options with two names, decorators with options, memory of chunks, and the words of errors."""

from __future__ import annotations

import gc
import pickle
import re
import tracemalloc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import func
from func.interpreters.core import PRIMITIVES
from tests.support.traced_memory import tracing

X = np.ones(3)
LARGE = 2**70
EMPTY: list[Any] = [None, [], {}, (), {"layer": []}, ((), [None])]


def constant(p: Any) -> Any:
    return np.sum(X)


TAKES_EMPTY: dict[str, Callable[[Any], Any]] = {
    "grad": lambda e: func.grad(constant)(e),
    "value_and_grad": lambda e: func.value_and_grad(constant)(e)[1],
    "grad of a loss": lambda e: func.grad(lambda p, x: np.sum(x * 2), argnums=(0, 1))(e, X)[0],
    "vjp": lambda e: func.vjp(constant, e)[1](1.0)[0],
    "hvp": lambda e: func.hvp(constant, (e,), (e,)),
    "vhp": lambda e: func.vhp(constant, (e,), (e,)),
    "ggnvp": lambda e: func.ggnvp(lambda p: X, lambda out: np.sum(out**2), (e,), (e,)),
    "jacrev": lambda e: func.jacrev(constant)(e),
    "jacfwd": lambda e: func.jacfwd(constant)(e),
    "jacobian": lambda e: func.jacobian(constant)(e),
    "hessian": lambda e: func.hessian(constant)(e),
    "jit": lambda e: func.jit(lambda p: p)(e),
    "jit of grad": lambda e: func.jit(func.grad(constant))(e),
    "vmap": lambda e: func.vmap(lambda p, x: p)(e, X),
    "vmap of grad": lambda e: func.vmap(func.grad(lambda p, x: x * 2.0))(e, X),
    "scan": lambda e: func.scan(lambda c, x: (c, x), e, X)[0],
    "cond": lambda e: func.cond(True, lambda p: p, lambda p: p, e),
    "while_loop": lambda e: func.while_loop(lambda p: False, lambda p: p, e),
    "checkpoint": lambda e: func.checkpoint(lambda p: p)(e),
    "tree.map": lambda e: func.tree.map(np.sin, e),
}


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
@pytest.mark.parametrize("name", TAKES_EMPTY)
def test_an_empty_tree_is_an_empty_tree(name: str, empty: Any) -> None:
    assert TAKES_EMPTY[name](empty) == empty


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_tangents_of_empty_trees_are_zeros(empty: Any) -> None:
    value, tangent = func.jvp(constant, (empty,), (empty,))
    assert (value, tangent) == (3.0, 0.0)
    value, push = func.linearize(constant, empty)
    assert (value, push(empty)) == (3.0, 0.0)


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_jacobians_of_trees_by_empty_trees(empty: Any) -> None:
    for jacobian in (func.jacrev, func.jacfwd, func.jacobian):
        assert jacobian(lambda p: {"a": X, "b": (X, X)})(empty) == {"a": empty, "b": (empty, empty)}


def test_none_is_an_axis_under_both_names() -> None:
    outs = [
        func.vmap(lambda x, c: c, in_dims=(0, None), out_dims=None)(np.ones(2), 5.0),
        func.vmap(lambda x, c: c, in_axes=(0, None), out_axes=None)(np.ones(2), 5.0),
    ]
    assert outs == [5.0, 5.0] and [np.shape(out) for out in outs] == [(), ()]
    for name in ("in_dims", "in_axes"):
        options: dict[str, Any] = {name: None}
        assert func.vmap(lambda x: x, axis_size=3, **options)(np.ones((3, 2))).shape == (3, 3, 2)


@pytest.mark.parametrize("names", [("in_dims", "in_axes"), ("out_dims", "out_axes")])
@pytest.mark.parametrize("values", [(0, 0), (0, None), (None, 0), (1, 1)])
def test_one_of_two_names_is_given(names: tuple[str, str], values: tuple[Any, Any]) -> None:
    options: dict[str, Any] = dict(zip(names, values, strict=True))
    with pytest.raises(func.errors.ArgumentError, match=f"{names[1]} is a synonym of {names[0]}; give one of them"):
        func.vmap(lambda x: x, **options)


DECORATORS: dict[str, tuple[Any, Callable[..., Any], tuple[Any, ...], Any]] = {
    "grad": (func.grad(argnums=1), lambda x, y: x * y * y, (2.0, 3.0), 12.0),
    "value_and_grad": (func.value_and_grad(argnums=1), lambda x, y: x * y, (2.0, 3.0), (6.0, 2.0)),
    "grad_and_value": (func.grad_and_value(argnums=1), lambda x, y: x * y, (2.0, 3.0), (2.0, 6.0)),
    "jacrev": (func.jacrev(argnums=1), lambda x, y: x * y, (2.0, 3.0), 2.0),
    "jacfwd": (func.jacfwd(argnums=1), lambda x, y: x * y, (2.0, 3.0), 2.0),
    "jacobian": (func.jacobian(mode="rev"), lambda x: x * x, (3.0,), 6.0),
    "hessian": (func.hessian(argnums=1), lambda x, y: x * y * y, (2.0, 3.0), 4.0),
    "checkpoint": (func.checkpoint(policy=None), lambda x: x * 2, (3.0,), 6.0),
    "jit": (func.jit(static_argnums=1), lambda x, n: x**n, (3.0, 2), 9.0),
    "hessian by name": (func.hessian(argnames="y"), lambda x, y: x * y * y, (2.0, 3.0), 4.0),
    "jacrev by name": (func.jacrev(argnames="y"), lambda x, y: x * y * y, (2.0, 3.0), 12.0),
    "jacfwd by name": (func.jacfwd(argnames="y"), lambda x, y: x * y * y, (2.0, 3.0), 12.0),
    "jacobian by names": (func.jacobian(argnames=("y",)), lambda x, y: x * y * y, (2.0, 3.0), {"y": 12.0}),
    "custom_gradient": (func.custom_gradient(), lambda x: (x, lambda ct: 2 * ct), (3.0,), 3.0),
}


@pytest.mark.parametrize("name", DECORATORS)
def test_decorators_with_options(name: str) -> None:
    decorator, function, args, expected = DECORATORS[name]
    assert decorator(function)(*args) == expected


def test_custom_rules_as_decorators_that_are_called() -> None:
    for rule in (func.custom_jvp, func.custom_vjp, func.custom_vmap):
        assert isinstance(rule()(np.sin), rule)


def test_programs_by_decorators_with_options() -> None:
    def power(x: Any, n: int) -> Any:
        return x**n

    program = func.make_program(static_argnums=1)(power)(3.0, 2)
    assert program.run([3.0]) == [9.0] or tuple(program.run([3.0])) == (9.0,)
    assert "def power(x)" in func.to_source(static_argnums=1)(power)(3.0, 2)


def test_vmap_and_custom_rules_as_decorators_with_options() -> None:
    @func.vmap(in_dims=(0, None))
    def scaled(x: Any, c: Any) -> Any:
        return x * c

    @func.custom_jvp(nondiff_argnums=(1,))
    def power(x: Any, n: int) -> Any:
        return x**n

    @power.defjvp
    def _power_jvp(n: int, primals: Any, tangents: Any) -> Any:
        return power(primals[0], n), 100.0 * tangents[0]

    np.testing.assert_array_equal(scaled(X, 2.0), X * 2)
    assert func.grad(lambda x: power(x, 2))(3.0) == 100.0


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an argument for argnums": (
        lambda: func.grad(constant, X),  # type: ignore[arg-type]
        TypeError,
        r"func\.grad: argnums must be .* got array.*did you mean func\.grad\(constant\)\(\.\.\.\)\?",
    ),
    "a point for argnums": (
        lambda: func.hessian(constant, 2.0),  # type: ignore[arg-type]
        TypeError,
        r"func\.hessian: argnums must be .* got 2\.0; did you mean func\.hessian\(constant\)",
    ),
    "an argument for in_dims": (
        lambda: func.vmap(constant, X),
        func.errors.ArgumentError,
        r"vmap takes the function alone: did you mean func\.vmap\(f\)\(x\)\?",
    ),
    "a scalar keyword of vmap": (
        lambda: func.vmap(lambda x, *, s: x * s)(X, s=2.0),
        func.errors.MappedAxisError,
        r"the keyword argument s is a scalar and has no axis to map; put .* in_dims=\(0, {'s': None}\)",
    ),
    "a dict of axes": (
        lambda: func.vmap(lambda a: a["a"], in_dims={"a": 0})({"a": X}),
        func.errors.MappedAxisError,
        r"for one argument write a tuple of one entry, in_dims=\(\{\.\.\.\},\)",
    ),
    "a flag of jit": (
        lambda: func.jit(lambda x, mode: x)(X, "fast"),
        func.errors.UnsupportedArrayError,
        r"func\.jit: mode cannot be traced: str is not an array .* static_argnames",
    ),
    "a flag inside an argument of jit": (
        lambda: func.jit(lambda config: config["x"])({"x": X, "mode": "fast"}),
        func.errors.UnsupportedArrayError,
        r"func\.jit: config\['mode'\] cannot be traced: str",
    ),
    "a flag behind a static argument": (
        lambda: func.jit(lambda n, mode: n, static_argnums=0)(3, "fast"),
        func.errors.UnsupportedArrayError,
        r"func\.jit: mode cannot be traced",
    ),
    "a function for jit": (
        lambda: func.jit(lambda x, f: f(x))(X, np.sin),
        func.errors.UnsupportedArrayError,
        r"func\.jit: f cannot be traced: ufunc .* static_argnames",
    ),
    "an object": (
        lambda: func.jit(lambda self, x: x)(re.compile("x"), X),
        func.errors.UnsupportedArrayError,
        r"self cannot be traced: Pattern .* static_argnames .* if Pattern holds arrays, .*func\.tree\.register_node",
    ),
    "an object for make_program": (
        lambda: func.make_program(lambda x, mode: x)(X, "fast"),
        func.errors.UnsupportedArrayError,
        r"func\.make_program: mode cannot be traced: .* static_argnums",
    ),
    "an object for grad": (
        lambda: func.grad(lambda self, x: x)(re.compile("x"), 2.0),
        func.errors.UnsupportedArrayError,
        "func.grad: self cannot be traced: Pattern .* choose other argnums",
    ),
    "an object for vmap": (
        lambda: func.vmap(lambda self, x: x)(re.compile("x"), X),
        func.errors.UnsupportedArrayError,
        "self cannot be traced: Pattern .* None in in_dims",
    ),
    "a large integer for jit": (
        lambda: func.jit(lambda x: x)(LARGE),
        func.errors.ArgumentError,
        "x is an integer of more",
    ),
    "a large integer in a list": (
        lambda: func.jit(lambda x: x)([LARGE]),
        func.errors.ArgumentError,
        r"x\[0\] is an integer of more than 64 bits, .*: pass a float|pass a float",
    ),
    "a large carry": (
        lambda: func.scan(lambda c, x: (c, x), LARGE, X),
        func.errors.ArgumentError,
        "func.scan: init is an integer of more than 64 bits",
    ),
    "a large carry of while_loop": (
        lambda: func.while_loop(lambda c: False, lambda c: c, LARGE),
        func.errors.ArgumentError,
        "func.while_loop: init is an integer of more than 64 bits",
    ),
    "text": (
        lambda: func.jit(lambda x: x)(np.array(["a"], np.dtypes.StringDType())),
        func.errors.UnsupportedArrayError,
        "arrays of dtype StringDType.* carry no numbers",
    ),
    "text for vmap": (
        lambda: func.vmap(lambda x: x)(np.array(["a"], np.dtypes.StringDType())),
        func.errors.UnsupportedArrayError,
        "arrays of dtype StringDType.* carry no numbers",
    ),
    "no branches": (
        lambda: func.switch(0, None, X),  # type: ignore[arg-type]
        TypeError,
        r"func\.switch takes a list of functions as its branches, not NoneType",
    ),
    "no format": (
        lambda: func.debug.print(None, X),  # type: ignore[arg-type]
        TypeError,
        r"func\.debug\.print takes a format string first, not NoneType",
    ),
    "a format without its field": (
        lambda: func.debug.print("{x}", X),
        func.errors.ArgumentError,
        r"the format string '\{x\}' does not fit its arguments \(KeyError: 'x'\)",
    ),
    "a format with an attribute": (
        lambda: func.debug.print("{.nothing}", X),
        func.errors.ArgumentError,
        "does not fit its arguments .AttributeError",
    ),
    "a traced format without its field": (
        lambda: func.jit(lambda x: func.debug.print("{} {}", x))(X),
        func.errors.ArgumentError,
        "does not fit its arguments .IndexError",
    ),
}
ERRORS["a traced place in a list for ufunc.at of a plain array"] = (
    lambda: func.vmap(lambda x: np.add.at(np.zeros(3), [x.astype(int)[0], 0], 1.0))(np.eye(2)),
    func.errors.TracerConversionError,
    r"list with a traced value.*\n.*\n.*Write np\.array",
)
ERRORS["a column of a frame that is an array inside"] = (
    lambda: func.grad(lambda frame: np.sum(frame["x"]))(np.ones((2, 2))),
    IndexError,
    "pandas and xarray objects are passed as arrays, without their labels",
)
for _name, _pattern in {
    "zero_": r"x\.fill\(0\)",
    "add_": r"x \+= y or x\[\.\.\.\] = y",
    "exp": r"np\.exp\(x\)",
    "mm": "x @ y",
    "unsqueeze": r"np\.expand_dims\(x, axis\)",
    "to": r"x\.astype\(dtype\)",
}.items():
    ERRORS[f"the method {_name} of a tensor"] = (
        lambda name=_name: eval(f"x.{name}", {"x": func.tensor(X)}),
        AttributeError,
        f"no attribute '{_name}'; (write )?{_pattern}",
    )
for _name, _tree in {"list": [1, 2], "dict": {"a": np.arange(3)}, "nested": ([np.int32(1)], None)}.items():
    for _transform in (func.grad, func.jacfwd, func.hessian, lambda f: lambda x: func.vjp(f, x)):
        ERRORS[f"nothing but integers in a {_name} {len(ERRORS)}"] = (
            lambda transform=_transform, tree=_tree: transform(lambda x: 1.0 * func.tree.leaves(x)[0])(tree),
            func.errors.DifferentiatedInputError,
            r"with respect to (x|argument 0|tree)\[\S+, which is an? (Python int|array|number)",
        )


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_to_write(name: str) -> None:
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()


def cyclic(kind: type) -> Any:
    if kind is dict:
        own: dict[str, Any] = {}
        own["a"] = own
        return own
    listed: list[Any] = []
    listed.append((listed,) if kind is tuple else listed)
    return listed


@pytest.mark.parametrize("kind", [list, dict, tuple])
@pytest.mark.parametrize("transform", [func.jit, func.grad, func.vmap, func.jacfwd, func.checkpoint, func.make_program])
def test_trees_that_hold_themselves(kind: type, transform: Any) -> None:
    with pytest.raises(func.errors.ArgumentError, match="a tree holds itself, or is nested too deeply"):
        transform(constant)(cyclic(kind))
    with pytest.raises(func.errors.ArgumentError, match="a tree holds itself"):
        func.jit(lambda x: cyclic(kind))(X)


@pytest.mark.parametrize("transform", [func.jit, func.grad, func.vmap, func.jacrev, func.hessian, func.checkpoint])
def test_coroutine_functions_are_refused(transform: Any) -> None:
    async def loss(x: Any) -> Any:
        return x

    async def losses(x: Any) -> Any:
        yield x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function in (loss, losses):
            with pytest.raises(TypeError, match=f"{function.__name__} is a coroutine function, which computes nothing"):
                transform(function)
        gc.collect()
    assert not caught


class Series:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.arange(3.0)


def test_objects_that_give_an_array() -> None:
    value, push = func.linearize(lambda x: x * 2, Series())
    np.testing.assert_array_equal(value, [0, 2, 4])
    np.testing.assert_array_equal(push(X), [2, 2, 2])
    assert "x0 = np.asarray(x, np.float64)" in func.to_source(lambda x: x * 2)(Series())


@pytest.mark.parametrize("name", func.errors.__all__)
def test_errors_are_called_as_users_import_them(name: str) -> None:
    kind = getattr(func.errors, name)
    assert f"{kind.__module__}.{kind.__qualname__}" == f"func.errors.{name}"
    assert type(pickle.loads(pickle.dumps(kind("text")))) is kind


def outer(x: Any) -> Any:
    return np.sum(np.outer(x, x) ** 2)


@pytest.mark.parametrize("function", [outer, func.grad(outer)])
def test_automatic_chunks_bound_what_is_between_inputs_and_outputs(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("func.transforms.vmapping.AUTO_CHUNK_BYTES", 1 << 21)
    xs = np.random.default_rng(0).normal(size=(4000, 20))
    whole = func.vmap(function, chunk_size=100)(xs)
    with tracing():
        before = tracemalloc.get_traced_memory()[0]
        mapped = func.vmap(function, chunk_size="auto")(xs)
        peak = tracemalloc.get_traced_memory()[1] - before
    np.testing.assert_allclose(mapped, whole)
    assert peak < 3 * (1 << 21) + 2 * mapped.nbytes


@pytest.mark.parametrize("size", range(5))
def test_automatic_chunks_of_few_elements(size: int) -> None:
    calls: list[int] = []

    def twice(x: Any) -> Any:
        calls.append(1)
        return x * 2

    np.testing.assert_array_equal(func.vmap(twice, chunk_size="auto")(np.ones((size, 2))), np.full((size, 2), 2.0))
    assert len(calls) <= 3


def test_a_dropped_jitted_function_is_freed_at_once() -> None:
    def double(x: Any) -> Any:
        return x * 2

    jitted = func.jit(double)
    jitted(X)
    jitted(X)
    dead = weakref.ref(double)
    gc.collect()
    gc.disable()
    try:
        del jitted, double
        assert dead() is None
    finally:
        gc.enable()


def _written_broadcasts(x: Any) -> Any:
    """np.broadcast_arrays makes arrays of scalars: writes to them do not reach what they were made of."""
    scalar = np.unstack(x)[0] if hasattr(np, "unstack") else x[0]
    first, second = np.broadcast_arrays(scalar, scalar * 2.0)
    first *= 5.0
    second.fill(7.0)
    return first + second + 10.0 * scalar + 100.0 * x


def _compared_with_far_integers(ufunc: Any, x: Any) -> Any:
    return ufunc(x, -2, out=x > 1) + 2.0 * ufunc(300, x, out=x > 1)


EDGES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "no turn of a nested list": (lambda x: np.rot90([[x[0], x[1]], [x[2], x[0]]], 4), X),
    "broadcast scalars that are written": (_written_broadcasts, X),
    **{
        f"{ufunc.__name__} of integers out of range into an array": (
            lambda x, ufunc=ufunc: _compared_with_far_integers(ufunc, x.astype(np.uint8)) + 0 * x,
            np.array([0.0, 1.0, 2.0]),
        )
        for ufunc in (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    },
    "weighted quantiles without numbers": (
        lambda x: np.nanquantile(x, [0.1, 0.9], axis=1, method="inverted_cdf", weights=np.ones((2, 2)) * [1, 2]),
        np.array([[np.nan, np.nan], [np.nan, 2.0]]),
    ),
    "deviation of a number in another precision": (
        lambda x: func.numpy.std(-0.908389095092133, (), dtype=np.float32, ddof=2) + x,
        np.float64(1.0),
    ),
    "nothing into places of flat": (lambda x: (x := x.copy(), x.flat.__setitem__(slice(0, 2), []))[0], X),
    "a list into a truth value": (lambda x: (y := x > 0, y.__setitem__(0, [x[0] - x[0]]), y.fill([]), y + x)[3], X),
    "a transform of no axes": (lambda x: np.fft.fftn(x > 0, axes=()) + x, X),
    "a window of one point": (lambda x: func.numpy.kaiser(1, x), np.float64(np.inf)),
}


if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # from where NumPy knows `copy`
    EDGES["a scalar reshaped without a copy"] = (lambda x: x[0].reshape(-1, copy=False), X)


@pytest.mark.filterwarnings("ignore:All-NaN slice", "ignore:Degrees of freedom", "ignore:.*divide")
@pytest.mark.parametrize("name", EDGES)
def test_functions_at_their_edges(name: str) -> None:
    f, x = EDGES[name]
    np.testing.assert_array_equal(func.jvp(f, (x,), (np.ones_like(x),))[0], f(x))
    np.testing.assert_array_equal(func.jit(f)(x), f(x))


def test_select_refuses_choices_that_the_common_dtype_does_not_hold() -> None:
    def f(x: Any) -> Any:
        return np.select([x > 1, x > 0], [-1, x])

    x = np.array([1, 2], np.uint32)
    for way in (f, func.jit(f), lambda x: func.numpy.select([x > 1, x > 0], [-1, x])):
        with pytest.raises(TypeError, match="same_kind"):
            way(x)


def test_full_like_casts_nan_as_numpy() -> None:
    for shape in ((), (2,)):
        with np.errstate(invalid="ignore"):
            expected = np.full_like(np.ones(2, np.uint16), np.nan, shape=shape)
            np.testing.assert_array_equal(func.numpy.full_like(np.ones(2, np.uint16), np.nan, shape=shape), expected)


@pytest.mark.parametrize("part", [np.real, np.imag, lambda z: np.real(z) * 2, lambda z: z.imag])
@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
def test_parts_of_numbers_of_python(part: Callable[[Any], Any], compiler: Any) -> None:
    for z in (1 + 2j, 2.5, np.complex128(3 - 1j)):
        assert func.jit(part, compiler=compiler)(z) == part(z)


REFUSED: dict[str, tuple[Callable[[Any], Any], Any, type[Exception]]] = {
    "blocks of other depths": (lambda x: np.block([[x, x], [[1.0, 2.0], [1.0, 2.0]]]), X, ValueError),
    "blocks in a tuple": (lambda x: np.block([(x, x)]), X, TypeError),
    "blocks in an empty list": (lambda x: np.block([[x], []]), X, ValueError),
    "an axis before a number": (lambda x: np.insert(x, 0, -2.5, 3), np.ones(2, np.uint8), np.exceptions.AxisError),
    "a place in a scalar": (lambda x: x[0].put([-2], [1.0]), X, IndexError),
    "a list into a number": (lambda x: x.__setitem__(0, [3.0]), X, ValueError),
    "a list of a traced number into a number": (lambda x: x.__setitem__(0, [x[1]]), X, ValueError),
    "a list into a complex number": (lambda x: x.__setitem__(0, [3.0]), X + 0j, TypeError),
    "a list into an integer": (lambda x: x.__setitem__(0, (3,)), np.arange(3), TypeError),
    "a list into an array of one number": (lambda x: x.__setitem__((..., 0), [3.0]), X, ValueError),
    "a list into a scalar place": (lambda x: x.__setitem__(np.array(0), [3.0]), X, ValueError),
    "a list nested too deeply": (lambda x: x.__setitem__(slice(0, 2), [[1.0, 2.0]]), X, ValueError),
    "a list nested too deeply at the place of an integer": (
        lambda x: x.__setitem__(0, [[x[0, 0], 2.0, 3.0]]),
        np.ones((2, 3)),
        ValueError,
    ),
    "a matrix at the places of a mask": (lambda x: x.__setitem__(np.arange(3) < 1, [[3.0]]), X, TypeError),
    "an array to fill with": (lambda x: x.fill(np.ones(3)), X, ValueError),
    "a new axis of flat": (lambda x: x.flat[None], X, IndexError),
    "two places of flat": (lambda x: x.flat[0, 1], X, IndexError),
    "a list in place of others": (lambda x: np.place(x, x > 9, [1j]), X, TypeError),
    **{
        f"{transform.__name__} to an array of another shape": (
            lambda x, transform=transform: transform(x, (4, 2), (0, 1), out=np.zeros_like(x, complex, shape=(4, 2))),
            np.ones((2, 3)),
            ValueError,
        )
        for transform in (np.fft.fftn, np.fft.fft2, np.fft.ifftn, np.fft.rfftn)
    },
    "a place of an axis before a number": (lambda x: x[:0].__setitem__((None, -1), 2 + 1j), X, IndexError),
    "a number before its place": (lambda x: x.__setitem__(np.array([9]), 2 + 1j), X, TypeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_calls_with_a_fault_raise_as_numpy_does(name: str) -> None:
    f, x, kind = REFUSED[name]
    with pytest.raises(kind):
        f(x.copy())
    with pytest.raises(kind):
        func.vmap(f)(np.stack([x, x]))


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0)])
def test_einsum_reads_no_diagonal_past_an_array(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="label 'i' has lengths"):
        func.vjp(lambda x: np.einsum("iij->ij", x), np.ones((*sizes, 2)))


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 1e30])
@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
def test_numbers_that_integers_do_not_have(number: float, compiler: Any) -> None:
    with np.errstate(invalid="ignore"):
        got = func.jit(lambda x, number: np.full_like(x, number), compiler=compiler)(np.ones(2, np.int32), number)
    assert (got.shape, got.dtype) == ((2,), np.int32)


@pytest.mark.parametrize("name", ["radian", "voigt_profile"])
def test_special_functions_have_the_dtype_of_scipys_loop(name: str) -> None:
    function = getattr(scipy.special, name)
    for dtypes in [("f4", "f4", "f4"), ("f4", "i1", "i1"), ("f2", "f2", "f4"), ("i4", "f4", "f2"), ("f8", "f4", "i1")]:
        operands = [np.ones(2, dtype) for dtype in dtypes]
        assert func.jit(function)(*operands).dtype == function(*operands).dtype


def test_profiles_of_infinite_width() -> None:
    for operands in (
        (1.0, np.inf, np.inf),
        (np.inf, np.inf, 1.0),
        (np.inf, 1.0, 1.0),
        (1.0, 1.0, np.inf),
        (1, np.nan, np.inf),
    ):
        got = func.jit(scipy.special.voigt_profile)(*operands)
        np.testing.assert_equal(float(got), float(scipy.special.voigt_profile(*operands)))


@pytest.mark.skipif(
    np.lib.NumpyVersion(scipy.__version__) < "1.17.0",
    reason="older versions of SciPy convert integers to double precision first",
)
@pytest.mark.parametrize("a", ["?", "i1", "u2", "i8", "f2", "f4", "c8"])
@pytest.mark.parametrize("b", ["i1", "i8", "f2", "f4", "c8", int, float])
def test_weighted_sums_of_exponentials_have_the_dtype_of_both(a: str, b: Any) -> None:
    array, weight = np.ones(2, a), b(1) if isinstance(b, type) else np.ones((), b)
    expected = scipy.special.logsumexp(array, b=weight)
    for run in (func.special.logsumexp, func.jit(lambda a, b: scipy.special.logsumexp(a, b=b))):
        assert run(array, b=weight).dtype == expected.dtype


@pytest.mark.parametrize("number", [1, 1.0, 1j])
def test_traced_numbers_of_python_adapt_in_result_type(number: Any) -> None:
    array, seen = np.ones(2, np.float32), []
    func.jit(lambda x, n: seen.append(np.result_type(x, n)) or x)(array, number)  # type: ignore[func-returns-value]
    assert seen == [np.result_type(array, number)]


def test_tangents_of_chosen_numbers_have_the_dtype_of_the_value() -> None:
    array = np.ones(2, np.float32)
    for f in (lambda y: np.where([True, False], array, y), lambda y: np.where([True, False], y, array)):
        for run in (lambda y: func.jvp(f, (y,), (1.0,)), func.jit(lambda y: func.jvp(f, (y,), (1.0,)))):  # noqa: B023
            value, tangent = run(-2.75)
            assert value.dtype == tangent.dtype == np.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda tree: func.tree.map(lambda leaf: leaf, tree),
        lambda tree: func.tree.map(lambda leaf, other: leaf, tree, tree),
        lambda tree: func.tree.map_with_path(lambda path, leaf: leaf, tree),
        lambda tree: func.tree.path_names(tree),
        lambda tree: func.tree.leaves(tree),
        lambda tree: func.tree.ravel(tree),
    ],
)
def test_deep_trees_have_an_error_of_their_own(call: Any) -> None:
    tree: Any = 1.0
    for _ in range(3000):
        tree = [tree]
    with pytest.raises(func.errors.ArgumentError, match="nested too deeply"):
        call(tree)


def test_a_recursion_of_the_function_that_is_mapped_is_told_as_it_is() -> None:
    def endless(x: Any) -> Any:
        return endless(x)

    with pytest.raises(RecursionError):
        func.tree.map(endless, [1.0])


@pytest.mark.parametrize(("number", "dtype"), [(300, "i1"), (-1, "u1"), (1 << 40, "i4")])
def test_numbers_of_python_that_do_not_fit_are_refused(number: int, dtype: str) -> None:
    weights = np.ones(2, dtype)
    for run in (lambda x: x * number, func.vmap(lambda x: x * number), lambda x: func.jit(np.multiply)(x, number)):
        with pytest.raises(OverflowError):
            run(weights)
    with pytest.raises(OverflowError):
        PRIMITIVES["convert"].impl(np, number, dtype=weights.dtype)
