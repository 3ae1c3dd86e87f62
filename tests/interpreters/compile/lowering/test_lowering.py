"""The source text of every primitive, run where func is not in sight, against the primitive itself."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import numpy as np
import pytest
import scipy
import scipy.linalg
import scipy.special

import func
from func.backends.array_helpers import arrays
from func.backends.source.literals import literal
from func.errors import NoSourceError
from func.interpreters.compile.lowering.code import Code
from func.interpreters.compile.lowering.rules import lower
from func.interpreters.core import PRIMITIVES, PYTHON_SCALARS, Aval, aval_of
from func.interpreters.program.program import Equation, Var
from tests.interpreters.primitives.test_devices import ON_THE_HOST_ALONE
from tests.support.device_double import DeviceArray
from tests.support.device_double import namespace as device
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

WITHOUT_SOURCE = {
    *("checkpoint_call", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "linear_call"),
    "saved_output",
    *("callback", "pure_callback", "remote_map", "cond_call", "while_call", "scan_call", "program_call"),
    *[name for name in PRIMITIVES if PRIMITIVES[name].communicates],
}
"""Primitives whose parameters are functions, programs or communicators."""
ALL = [
    pytest.param(name, sample, id=f"{name}-{i}")
    for name, own in SAMPLES.items()
    if name not in WITHOUT_SOURCE
    for i, sample in enumerate(own)
]


def equation_of(name: str, args: Sequence[Any], params: dict[str, Any]) -> Equation:
    """A primitive applied to values of these kinds; Python scalars stay."""
    primitive = PRIMITIVES[name]
    inputs = tuple([x if type(x) in PYTHON_SCALARS else Var(aval_of(x)) for x in args])
    out = primitive.aval(*[aval_of(x) for x in args], **params)
    return Equation(primitive, inputs, params, tuple([Var(aval) for aval in (out if primitive.multiple else (out,))]))


def pasted(helpers: Sequence[Callable[..., Any]]) -> dict[str, Any]:
    """A module of nothing but NumPy, SciPy and the source of the array helpers."""
    names: dict[str, Any] = {"numpy": numpy, "np": np, "scipy": scipy, "math": math}
    exec(code_of(tuple(helpers)), names)
    return names


@functools.cache
def code_of(helpers: tuple[Callable[..., Any], ...]) -> Any:
    """The source of functions as a module."""
    text = "\n\n".join(["from __future__ import annotations", *[inspect.getsource(function) for function in helpers]])
    return compile(text, "<pasted>", "exec")


def run(text: str, helpers: Sequence[Callable[..., Any]], args: Sequence[Any], **extra: Any) -> Any:
    """The value of a text, with names for arrays and literals for Python scalars."""
    names = pasted(helpers) | extra
    words = []
    for i, arg in enumerate(args):
        words.append(literal(arg) if type(arg) in PYTHON_SCALARS else f"operand_{i}")
        names[f"operand_{i}"] = arg
    with np.errstate(all="ignore"):
        return eval(text.format(*words, out="out"), names)


def eager_value(name: str, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The eager result of the primitive."""
    with np.errstate(all="ignore"):
        return PRIMITIVES[name](*args, **params)


def assert_same(got: Any, want: Any) -> None:
    """The same bits, dtype and shape, in the same kind of object; tuples item by item."""
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for got_item, want_item in zip(got, want, strict=True):
            assert_same(got_item, want_item)
        return
    assert isinstance(got, np.ndarray) == isinstance(want, np.ndarray)
    assert (type(got) in PYTHON_SCALARS) == (type(want) in PYTHON_SCALARS)
    x, y = np.asarray(got), np.asarray(want)
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    np.testing.assert_array_equal(x, y)
    assert np.array_equal(np.signbit(x.real), np.signbit(y.real)) if x.dtype.kind in "fc" else True


def check(name: str, args: Sequence[Any], params: dict[str, Any]) -> Code:
    """Every text of one equation against the primitive."""
    equation = equation_of(name, args, params)
    code = lower(equation)
    want = eager_value(name, args, params)
    got = run(code.fresh, code.helpers, args)
    assert_same(got, want)
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    if not code.view:
        for out in got if isinstance(got, tuple) else (got,):
            if isinstance(out, np.ndarray):
                assert not any([np.shares_memory(out, array) for array in arrays])
                assert out.flags.writeable
    if code.out and equation.outputs[0].shape:
        check_out(code, equation.outputs[0].aval, args, want)
    return code


def check_out(code: Code, aval: Aval, args: Sequence[Any], want: Any) -> None:
    """The text that writes into a buffer, also one that holds an operand."""
    before = [np.array(arg) for arg in args]
    out = np.frombuffer(bytes([0xA5]) * (aval.size * aval.dtype.itemsize), np.uint8).copy().view(aval.dtype)
    out = out.reshape(aval.shape)
    assert run(code.text, code.helpers, args, out=out) is out
    assert_same(out, want)
    for arg, copy in zip(args, before, strict=True):
        np.testing.assert_array_equal(np.asarray(arg), copy)
    for position in code.inplace:
        assert (args[position].shape, args[position].dtype) == (aval.shape, aval.dtype)
        buffer = np.array(args[position], order="C")
        operands = [buffer if i == position else arg for i, arg in enumerate(args)]
        assert run(code.text, code.helpers, operands, out=buffer) is buffer
        assert_same(buffer, want)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_text_computes_what_the_primitive_computes(name: str, sample: Sample) -> None:
    check(name, sample.args, sample.params)


def narrowed(value: Any) -> Any:
    """Arrays in single precision."""
    kinds = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype in kinds:
        return value.astype(kinds[value.dtype])
    return value


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_text_in_single_precision(name: str, sample: Sample) -> None:
    check(name, [narrowed(arg) for arg in sample.args], sample.params)


ELEMENTWISE = [
    (name, own[0])
    for name, own in SAMPLES.items()
    if PRIMITIVES[name].numpy is not None and len(own[0].args) <= 2 and not own[0].params
]


@pytest.mark.parametrize(("name", "sample"), ELEMENTWISE, ids=[name for name, _ in ELEMENTWISE])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.bool_])
def test_elementwise_text_follows_numpy_in_every_dtype(name: str, sample: Sample, dtype: Any) -> None:
    args = [np.abs(arg).astype(dtype) for arg in sample.args]
    try:
        eager_value(name, args, {})
        equation_of(name, args, {})
    except (TypeError, ValueError):
        return  # not defined for this dtype, staged or not
    check(name, args, {})


BINARY = [case for case in ELEMENTWISE if len(case[1].args) == 2]


@pytest.mark.parametrize(("name", "sample"), BINARY, ids=[name for name, _ in BINARY])
@pytest.mark.parametrize("place", [0, 1])
def test_elementwise_text_with_a_python_scalar(name: str, sample: Sample, place: int) -> None:
    args = [narrowed(arg) for arg in sample.args]
    args[place] = np.ravel(args[place])[0].item()
    check(name, args, {})


@pytest.mark.parametrize(("name", "sample"), ELEMENTWISE, ids=[name for name, _ in ELEMENTWISE])
def test_elementwise_text_of_scalars(name: str, sample: Sample) -> None:
    scalars = [np.ravel(arg)[0] for arg in sample.args]
    check(name, scalars, {})
    check(name, [scalar.item() for scalar in scalars], {})


def test_text_of_a_formula_takes_an_operand_twice() -> None:
    x = np.array([0.5, -2.0, 3.0])
    primitive, var = PRIMITIVES["over_square_sum"], Var(aval_of(x))
    code = lower(Equation(primitive, (var, var), {}, (Var(aval_of(x)),)))
    assert_same(run(code.fresh, code.helpers, (x, x)), primitive(x, x))


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "f4", "f8", "c16"])
def test_products_with_zeros_are_written_into_memory_of_every_dtype(dtype: str) -> None:
    x, y = np.ones((2, 2), dtype), np.eye(2, dtype=dtype)
    assert np.array_equal(arrays.nan_safe_multiply_into(np, x, y, np.empty((2, 2), dtype)), y)


def test_primitives_without_source_are_those_with_functions_as_parameters() -> None:
    without_source = set()
    for name in PRIMITIVES:
        for sample in SAMPLES.get(name, ()):
            try:
                lower(equation_of(name, sample.args, sample.params))
            except NoSourceError as error:
                assert f"the primitive {name}" in str(error)
                without_source.add(name)
    assert without_source == WITHOUT_SOURCE


def test_no_source_error_names_the_line() -> None:
    def f(x: Any) -> Any:
        return func.checkpoint(np.sin)(x)

    program = func.make_program(f)(np.ones(3))
    (equation,) = [equation for equation in program.equations if equation.primitive.name == "checkpoint_call"]
    with pytest.raises(NoSourceError, match=r"checkpoint_call at .*test_lowering\.py"):
        lower(equation)


def test_support_lists_all_that_it_calls() -> None:
    """Callees come first, so that a module of the sources can be read from top to bottom."""
    sample = SAMPLES["random_loggamma"][0]
    names = [
        function.__name__ for function in lower(equation_of("random_loggamma", sample.args, sample.params)).helpers
    ]
    assert names.index("threefry") < names.index("Trials") < names.index("random_loggamma")
    assert len(set(names)) == len(names)


EVEN = [
    0,
    -1,
    3.5,
    math.inf,
    -math.inf,
    1 + 2j,
    complex(-0.0, math.inf),
    True,
    None,
    "text",
    (1,),
    (1, (2, 3)),
    (),
    ...,
    slice(1, None),
]


@pytest.mark.parametrize("value", EVEN, ids=repr)
def test_literals_evaluate_to_their_value(value: Any) -> None:
    evaluated = eval(literal(value), {"np": np})
    assert type(evaluated) is type(value)
    assert evaluated == value
    assert repr(evaluated) == repr(value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64", "bool", "complex64"])
def test_literals_of_arrays_and_dtypes(dtype: str) -> None:
    array = np.array([[0, 1], [2, 3]], dtype)
    evaluated = eval(literal(array), {"np": np})
    assert evaluated.dtype == array.dtype and np.array_equal(evaluated, array)
    assert np.dtype(eval(literal(np.dtype(dtype)), {"np": np})) == dtype
    assert math.isnan(eval(literal(math.nan), {"np": np}))


def test_literals_of_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    names = {"np": np, "ml_dtypes": ml_dtypes}
    assert eval(literal(np.dtype(ml_dtypes.bfloat16)), names) is ml_dtypes.bfloat16
    number = eval(literal(ml_dtypes.bfloat16(0.3)), names)
    assert type(number) is ml_dtypes.bfloat16 and number == ml_dtypes.bfloat16(0.3)
    array = eval(literal(np.array([1.5, -np.inf], ml_dtypes.bfloat16)), names)
    assert array.dtype == ml_dtypes.bfloat16 and array.tolist() == [1.5, -np.inf]


PRODUCTS = [
    ("i,i->", (3,), (3,)),
    ("ij,j->i", (3, 4), (4,)),
    ("ij,jk->ki", (3, 4), (4, 2)),
    ("ji,jk->ik", (4, 3), (4, 2)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,jk->bik", (2, 3, 4), (4, 5)),
    ("bij,bkj->kbi", (2, 3, 4), (2, 5, 4)),
    ("bi,bi->b", (2, 3), (2, 3)),
    ("bij,bj->ib", (2, 3, 4), (2, 4)),
    ("ijk,jkl->il", (2, 3, 4), (3, 4, 5)),
    ("ijk,kjl->li", (2, 3, 4), (4, 3, 5)),
    ("i,j->ij", (3,), (4,)),
    ("i,j->ji", (3,), (4,)),
    ("ij,kj->ikj", (3, 4), (2, 4)),
    ("ij,k->kji", (3, 4), (2,)),
]


@pytest.mark.parametrize(("labels", "x_shape", "y_shape"), PRODUCTS, ids=[case[0] for case in PRODUCTS])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int64])
def test_contraction_text(labels: str, x_shape: Any, y_shape: Any, dtype: Any) -> None:
    from func.interpreters.primitives.structural.contraction import spec

    rng = np.random.default_rng(0)
    x, y = [(rng.normal(size=shape) * 5).astype(dtype) for shape in (x_shape, y_shape)]
    operands, out = labels.split("->")
    words = [tuple([ord(letter) for letter in word]) for word in (*operands.split(","), out)]
    code = check("contract", [x, y], {"spec": spec(*words)})
    np.testing.assert_allclose(run(code.fresh, code.helpers, [x, y]), np.einsum(labels, x, y), rtol=1e-5, atol=1e-5)


class DeviceSciPy:
    """scipy with the device's modules."""

    linalg = device.scipy_linalg
    special = device.scipy_special


def on_device(value: Any) -> Any:
    """Arrays on the device; Python scalars stay."""
    return value if type(value) in PYTHON_SCALARS else DeviceArray(np.array(value))


def to_host(value: Any) -> Any:
    """Results on the host."""
    if isinstance(value, tuple):
        return tuple([to_host(item) for item in value])
    return np.asarray(value.get() if isinstance(value, DeviceArray) else value)


@pytest.mark.filterwarnings("ignore::func.errors.HostComputationWarning")
@pytest.mark.parametrize(("name", "sample"), ALL)
def test_text_for_a_device(name: str, sample: Sample) -> None:
    """With `np` bound to the namespace of a device the text computes there what the primitive does."""
    args = [on_device(arg) for arg in sample.args]
    if name in ON_THE_HOST_ALONE:
        with pytest.raises(TypeError, match="on the host"):
            eager_value(name, args, sample.params)
        return
    want = eager_value(name, args, sample.params)
    code = lower(equation_of(name, args, sample.params), device=True)
    got = run(code.fresh, code.helpers, args, np=device, scipy=DeviceSciPy)
    assert_same(to_host(got), to_host(want))
