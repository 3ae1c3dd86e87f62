"""Wrong calls and what they are answered: a named error, the user's line, and what to write instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func import errors

X = np.array([1.0, 2.0, 3.0])


def plain_write(x: Any) -> Any:
    plain = np.zeros(3)
    plain[0] = x[0]
    return np.sum(plain)


def plain_index(i: Any) -> Any:
    plain = np.ones((5, 2))
    return plain[i]


CALLS: dict[str, tuple[Callable[[], Any], type[Exception], type[Exception], str]] = {
    "vector output": (
        lambda: func.grad(lambda x: x * 2)(X),
        errors.ScalarOutputError,
        TypeError,
        r"returned an array of shape \(3,\).*func\.jacrev",
    ),
    "tuple output": (lambda: func.grad(lambda x: (x, x))(1.0), errors.ScalarOutputError, TypeError, "returned a tuple"),
    "no output": (lambda: func.grad(lambda x: None)(1.0), errors.ScalarOutputError, TypeError, "returned a NoneType"),
    "complex output": (
        lambda: func.grad(lambda z: z**2)(1 + 2j),
        errors.ScalarOutputError,
        TypeError,
        "holomorphic=True",
    ),
    "python int": (
        lambda: func.grad(lambda x: x * 2)(3),
        errors.DifferentiatedInputError,
        TypeError,
        "with respect to x, which is a Python int.*pass a float",
    ),
    "integer array": (
        lambda: func.grad(np.sum)(np.arange(3)),
        errors.DifferentiatedInputError,
        TypeError,
        r"int64.*\.astype\(float\)",
    ),
    "argnums out of range": (
        lambda: func.grad(np.sum, argnums=2)(X),
        errors.ArgumentError,
        ValueError,
        "argnums=2 is out of range, sum was called with 1 positional argument",
    ),
    "argnums repeated": (
        lambda: func.grad(lambda x, y: np.sum(x * y), argnums=(0, -2))(X, X),
        errors.ArgumentError,
        ValueError,
        "names argument 0 twice",
    ),
    "argnames unknown": (
        lambda: func.grad(lambda x, w=1.0: np.sum(x * w), argnames="v")(X),
        errors.ArgumentError,
        ValueError,
        "names 'v', but <lambda> was not called with it",
    ),
    "no mapped argument": (
        lambda: func.vmap(lambda x: x, in_dims=None)(X),
        errors.MappedAxisError,
        ValueError,
        "no argument of <lambda> is mapped.*axis_size",
    ),
    "mapped sizes": (
        lambda: func.vmap(lambda p, y: p["a"] * y)({"a": X}, np.ones(4)),
        errors.MappedAxisError,
        ValueError,
        r"p\[.a.\] has 3, y has 4",
    ),
    "mapped scalar": (lambda: func.vmap(lambda p: p)(3.0), errors.MappedAxisError, ValueError, "use None in in_dims"),
    "mapped axis": (
        lambda: func.vmap(lambda p: p, in_dims=1)(X),
        errors.MappedAxisError,
        ValueError,
        r"in_dims=1 is out of range for p of shape \(3,\)",
    ),
    "in_dims tree": (
        lambda: func.vmap(lambda p: p["a"], in_dims=({"b": 0},))({"a": X}),
        errors.MappedAxisError,
        ValueError,
        "does not fit",
    ),
    "out_dims": (
        lambda: func.vmap(lambda p: p, out_dims=None)(X),
        errors.MappedAxisError,
        ValueError,
        "may differ within the batch; if it does not",
    ),
    "randomness": (lambda: func.vmap(np.sin, randomness="some")(X), errors.ArgumentError, ValueError, "'some'"),
    "chunk size": (lambda: func.vmap(np.sin, chunk_size=0)(X), errors.ArgumentError, ValueError, "positive int"),
    "ragged elements": (
        lambda: func.vmap(lambda x: np.array([x]) if x > 1.5 else np.array([x, x]))(X),
        errors.RaggedLanesError,
        ValueError,
        r"\(2,\), \(1,\).*np\.where",
    ),
    "tangent shape": (
        lambda: func.jvp(np.sin, (X,), (np.ones(2),)),
        errors.TangentError,
        ValueError,
        r"primals\[0\] has shape \(3,\), but its tangent has shape \(2,\)",
    ),
    "tangent dtype": (
        lambda: func.jvp(np.sin, (X,), (np.ones(3, np.float32),)),
        errors.TangentError,
        TypeError,
        r"float64, but its tangent has dtype float32.*astype\(np\.float64\)",
    ),
    "tangent tree": (lambda: func.jvp(np.sin, (X,), ((X,),)), errors.TangentError, ValueError, "have the tree"),
    "cotangent shape": (
        lambda: func.vjp(np.sin, X)[1](np.ones(2)),
        errors.TangentError,
        ValueError,
        r"has shape \(2,\), but the output has shape \(3,\)",
    ),
    "cotangent tree": (lambda: func.vjp(np.sin, X)[1]((X, X)), errors.TangentError, ValueError, "must have the tree"),
    "plain write": (
        lambda: func.grad(plain_write)(X),
        errors.TracerConversionError,
        TypeError,
        r"plain\[0\] = x\[0\](.|\n)*np\.zeros_like",
    ),
    "plain index": (
        lambda: func.jit(func.vmap(plain_index))(np.arange(3)),
        errors.TracerConversionError,
        TypeError,
        r"plain\[i\](.|\n)*func\.numpy\.take\(a, i, axis=0\)",
    ),
    "float()": (
        lambda: func.grad(lambda x: float(x) * x)(3.0),
        errors.TracerConversionError,
        TypeError,
        r"float\(\) of a traced value would silently lose its derivative(.|\n)*float\(x\) \* x",
    ),
    "item()": (lambda: func.grad(lambda x: x.item() * x)(3.0), errors.TracerConversionError, TypeError, r"\.item\(\)"),
    "math.sin": (lambda: func.grad(math.sin)(3.0), errors.TracerConversionError, TypeError, r"np\.sin, not math\.sin"),
    "memory": (
        lambda: func.grad(lambda x: np.sum(x) * x.strides[0])(X),
        AttributeError,
        TypeError,
        r"`\.strides` is about the memory of an array(.|\n)*Use NumPy functions",
    ),
    "object array": (
        lambda: func.grad(np.sum)(np.array([1.0, None], dtype=object)),
        errors.UnsupportedArrayError,
        TypeError,
        r"dtype object.*astype\(float\)",
    ),
    "string array": (
        lambda: func.grad(np.sum)(np.array(["a"])),
        errors.UnsupportedArrayError,
        TypeError,
        "func.grad: a cannot be traced",
    ),
    "masked array": (
        lambda: func.grad(np.sum)(np.ma.array([1.0, 2.0])),
        errors.UnsupportedArrayError,
        TypeError,
        r"masked arrays; use x\.filled",
    ),
    "value-dependent staging": (
        lambda: func.make_program(lambda x: x if x > 0 else -x)(1.0),
        errors.StagingError,
        TypeError,
        r"value of bool\[\] is not(.|\n)*func\.cond",
    ),
    "has_aux without a pair": (lambda: func.grad(np.sum, has_aux=True)(X), TypeError, TypeError, "a pair"),
    "not a function": (lambda: func.grad(3), TypeError, TypeError, r"func\.grad takes a function first"),
    "jacobian mode": (lambda: func.jacobian(np.sin, mode="up"), errors.ArgumentError, ValueError, "'auto', 'fwd' or"),
    "no rule": (lambda: func.custom_jvp(np.sin)(X), errors.CustomRuleError, TypeError, "has no rule yet"),
    "not linear": (
        lambda: func.linear_transpose(np.sin, X)(X),
        errors.NotDifferentiableError,
        TypeError,
        "sin is not linear",
    ),
    "affine": (
        lambda: func.linear_transpose(lambda x: x + 1.0, X),
        errors.NotDifferentiableError,
        TypeError,
        "adds a constant",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_words(name: str) -> None:
    call, named, standard, words = CALLS[name]
    with pytest.raises(standard, match=words) as caught:
        call()
    assert isinstance(caught.value, named)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrix_subclass() -> None:
    with pytest.raises(errors.UnsupportedArrayError, match=r"np\.asarray\(x\) and write products with @"):
        func.grad(np.sum)(np.matrix([[1.0, 2.0]]))


def test_leaked_value_names_the_transform_and_the_use() -> None:
    kept: list[Any] = []

    def leaky(x: Any) -> Any:
        kept.append(np.sin(x))
        return np.sum(x)

    func.grad(leaky)(X)
    with pytest.raises(
        errors.LeakedTracerError, match=r"func\.grad(.|\n)*func\.grad\(leaky\)\(X\)(.|\n)*kept\[0\] \+ 1"
    ):
        kept[0] + 1
    assert "leaked" in repr(kept[0])


def test_outer_array_written_inside_names_the_write() -> None:
    def outer(x: Any) -> Any:
        y = x * 1

        def inner(z: Any) -> Any:
            y[0] = z
            return z * z

        func.grad(inner)(2.0)
        return np.sum(y)

    with pytest.raises(errors.LeakedTracerError, match=r"y\[0\] = z"):
        func.grad(outer)(X)


def test_custom_rule_that_captures_a_traced_value() -> None:
    def outer(x: Any) -> Any:
        @func.custom_jvp
        def scaled(y: Any) -> Any:
            return x * y

        scaled.defjvp(lambda primals, tangents: (x * primals[0], x * tangents[0]))
        return scaled(x)

    with pytest.raises(errors.CustomRuleError, match="pass the value as an argument"):
        func.grad(outer)(2.0)


def test_empty_arrays() -> None:
    assert func.grad(np.sum)(np.zeros(0)).shape == (0,)
    assert func.hessian(lambda x: np.sum(x * x))(np.zeros(0)).shape == (0, 0)
    assert func.vmap(np.sin)(np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match="zero-size array"):
        func.grad(np.max)(np.zeros(0))


def test_engine_frames_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(x: Any) -> Any:
        return np.sum(x.reshape(5))

    def frames() -> list[str]:
        with pytest.raises(ValueError, match="cannot reshape") as caught:
            func.grad(broken)(X)
        return [entry.path.name if hasattr(entry.path, "name") else str(entry.path) for entry in caught.traceback]

    assert "shaping.py" not in frames()
    monkeypatch.setenv("FUNC_TRACEBACK", "full")
    assert "shaping.py" in frames()
