"""to_source: modules that give func's answers without func."""

from __future__ import annotations

import ast
import base64
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import func

X = np.linspace(0.2, 1.4, 5)
ALLOWED = {"base64", "functools", "importlib", "math", "ml_dtypes", "numpy", "scipy"}
LARGE = np.arange(200.0)
A = np.eye(5) * 3 + np.outer(X, X)
PARAMS = {"w": np.linspace(-1, 1, 15).reshape(5, 3), "b": [np.ones(3), np.float32(2)]}


def module(text: str) -> dict[str, Any]:
    """The names that the text defines; it may import nothing of func."""
    lines = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.name for node in lines for alias in node.names if isinstance(node, ast.Import)}
    assert {name.split(".")[0] for name in imported} <= ALLOWED
    names: dict[str, Any] = {}
    exec(compile(text, "exported", "exec"), names)
    return names


def model(params: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ params["w"] + params["b"][0]) ** 2) * params["b"][1]


def likelihood(scale: Any, x: Any) -> Any:
    k = np.exp(-((x[:, None] - x[None, :]) ** 2) / scale) + np.eye(5)
    return 0.5 * x @ np.linalg.solve(k, x) + 0.5 * np.linalg.slogdet(k)[1]


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "value": (lambda x: np.sin(x) * 2, (X,)),
    "gradient": (func.grad(model), (PARAMS, X)),
    "hessian": (func.hessian(lambda x: np.sum(np.exp(x[1:] * x[:-1]))), (X,)),
    "per-sample": (func.vmap(func.grad(model), in_dims=(None, 0)), (PARAMS, np.stack([X, X + 1]))),
    "likelihood": (func.value_and_grad(likelihood), (2.0, X)),
    "cholesky": (func.grad(lambda a: np.sum(np.linalg.cholesky(a))), (A,)),
    "eigenvalues": (func.jacobian(lambda a: np.linalg.eigvalsh(a)), (A,)),
    "special": (func.grad(lambda x: np.sum(scipy.special.gammaln(x) + scipy.special.erf(x))), (X,)),
    "fft": (func.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2)), (X,)),
    "sorting": (func.grad(lambda x: np.sum(np.sort(x)[::-1] * np.arange(5))), (X[::-1].copy(),)),
    "choices": (func.grad(lambda x: np.sum(np.where(x > 0.5, x**2, np.log(x)))), (X,)),
    "indices": (func.jacrev(lambda x: x[np.array([3, 1, 1])] * x[1:4]), (X,)),
    "nothing": (lambda x: {"x": x, "both": (x.T, None, [3.0])}, (X,)),
    "constant": (lambda x: x[0] * LARGE, (X,)),
    "not finite": (lambda x: np.where(x > 1, np.inf, np.nan * x), (X,)),
    "single": (func.grad(lambda x: np.sum(x**3 * 2)), (X.astype(np.float32),)),
    "complex": (func.grad(lambda z: np.sum(np.abs(z * z) ** 2)), (X + 1j,)),
    "jitted": (func.jit(func.grad(lambda x: np.sum(x * x))), (X,)),
    "shapes": (lambda x: np.prod(x) if x.ndim == 1 else x, (X,)),
    "scan": (func.value_and_grad(lambda x: func.scan(lambda c, a: (c * a + 1, np.sin(c)), x[0], x)[1].sum()), (X,)),
    "while": (lambda x: func.while_loop(lambda c: c[1] < 4, lambda c: (c[0] * X, c[1] + 1), (x, 0)), (X,)),
    "branches": (func.grad(lambda x: func.cond(x[0] > 0.1, lambda y: np.sum(y**2), lambda y: np.sum(y), x)), (X,)),
    "trap": (func.grad(lambda x: np.sum(np.where(x > 0.3, x / (x - 0.2) * x, 0.0))), (np.array([0.2, 0.5]),)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_the_module_gives_the_same_answers(name: str) -> None:
    function, args = CASES[name]
    text = func.to_source(function)(*args)
    exported = [value for value in module(text).values() if callable(value)][-1]
    got, expected = exported(*args), function(*args)
    assert func.tree.structure(got) == func.tree.structure(expected)
    for a, b in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=2e-6 if np.asarray(a).dtype == np.float32 else 1e-10, atol=1e-12)
    assert not [line for line in text.splitlines() if len(line) > 180]


def test_it_runs_where_func_is_not(tmp_path: Path) -> None:
    (tmp_path / "exported.py").write_text(func.to_source(func.grad(model))(PARAMS, X))
    code = (
        "import sys; sys.modules['func'] = None\nimport numpy as np\nfrom exported import model\n"
        "params = {'w': np.linspace(-1, 1, 15).reshape(5, 3), 'b': [np.ones(3), np.float32(2)]}\n"
        "print(repr(model(params, np.linspace(0.2, 1.4, 5))['w'].tolist()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    np.testing.assert_allclose(ast.literal_eval(done.stdout), func.grad(model)(PARAMS, X)["w"], rtol=1e-12)


def test_signature_and_header() -> None:
    def energy(q: Any, speeds: Any = 1.0, *, mass: Any) -> Any:
        return mass * np.sum(speeds * q**2)

    text = func.to_source(energy)(X, 2.0, mass=3.0)
    assert text.startswith('"""energy(q: f64[5], speeds: f64[]~, mass: f64[]~)\n\nGenerated by func ')
    assert "def energy(q, speeds, *, mass):" in text
    assert module(text)["energy"](X, 2.0, mass=3.0) == energy(X, 2.0, mass=3.0)


def test_modules_for_cupy_import_cupy() -> None:
    from func.backends.source.numpy_module import Signature, module_text
    from func.interpreters.compile.inlining import prepare_program
    from func.interpreters.compile.planning import plan_program

    program = prepare_program(func.make_program(func.grad(likelihood))(2.0, X))
    plan = plan_program(program, np, True, scratch=False)
    inputs = [(var.shape, var.dtype, var.weak) for var in program.inputs]
    text = module_text(plan, Signature("f", ["s", "x"], ["s", "x"], inputs, "".join, ["f"]), True)
    assert "import cupy as cp\n" in text and "cp.exp(" in text and not re.search(r"\bnp\b", text)
    ast.parse(text)


def test_modules_for_cupy_import_its_scipy() -> None:
    from func.backends.source.numpy_module import Signature, module_text
    from func.interpreters.compile.inlining import prepare_program
    from func.interpreters.compile.planning import plan_program

    weights = np.linspace(0, 1, 100)
    program = prepare_program(func.make_program(lambda x: func.special.erf(x * weights) + np.cumsum(x))(weights))
    plan = plan_program(program, np, True, scratch=False)
    text = module_text(plan, Signature("f", ["x"], ["x"], [((100,), X.dtype, False)], "".join, ["f"]), True)
    assert "errstate" not in text and "import cupyx.scipy.special\n" in text and "cp.frombuffer(" in text
    assert re.findall(r"\S*erf\(", text) == ["cupyx.scipy.special.erf("]
    assert base64.b85encode(weights.tobytes()).decode() == "".join(re.findall(r"^ {8}'(\S*)'$", text, re.MULTILINE))


def test_static_arguments_are_built_in() -> None:
    text = func.to_source(lambda x, n: x**n, static_argnums=1)(X, 3)
    np.testing.assert_array_equal(module(text)["f"](X), X**3)


def test_inputs_are_checked_and_left_alone() -> None:
    exported = module(func.to_source(lambda x: (x * 2 + 1) * x)(X))["f"]
    before = X.copy()
    with pytest.raises(ValueError, match=r"x has shape \(4,\), not \(5,\)"):
        exported(X[:4])
    exported(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(exported(X.tolist()), (X * 2 + 1) * X)


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(func.errors.NoSourceError):
        func.to_source(lambda x: func.debug.callback(print, x) or x)(X)
    with pytest.raises(TypeError, match="plain NumPy source cannot name"):
        from collections import namedtuple

        pair = namedtuple("pair", "a b")
        func.to_source(lambda x: pair(x, x))(X)
    with pytest.raises(func.errors.StagingError):
        func.to_source(lambda x: x * float(x[0]))(X)
    with pytest.raises(TypeError, match=r"func\.to_source takes a function first"):
        func.to_source(3)


def test_a_constant_keeps_the_signs_of_complex_zeros() -> None:
    constant = np.array([complex(-0.0, 1.0), complex(1.0, -0.0)])
    text = func.to_source(lambda x: x + constant)(np.zeros(2))
    names: dict[str, Any] = {}
    exec(text, names)
    kept = next(value for value in names.values() if isinstance(value, np.ndarray))
    assert np.signbit(kept.real).tolist() == [True, False] and np.signbit(kept.imag).tolist() == [False, True]
