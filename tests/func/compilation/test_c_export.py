"""Exported C computes what the function computes, compiles without warnings, and has no undefined behaviour."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  NumPy knows the name bfloat16 from now on
import numpy as np
import pytest

import func
from func.backends.c.declarations import stored_literal
from func.compilation.c_export import CModule
from func.interpreters.core import PRIMITIVES, dtype_of
from tests.support.c_programs import COMPILER, STRICT, loaded, needs_compiler
from tests.support.random_functions import Maker, tame
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]

SANITIZED = (*STRICT, "-O1", "-fsanitize=undefined")
WATCHED = (*STRICT, "-O0", "-fsanitize=undefined")
"""For many modules, and for further dtypes: gcc takes half as long."""
NAMES = sorted(SAMPLES)
GROUPS = [NAMES[start : start + 25] for start in range(0, len(NAMES), 25)]
OTHER_SIGNS = {"eigh": "the signs of eigenvectors are not LAPACK's", "svd": "nor those of singular vectors"}
TOLERANCES = {"float16": 3e-2, "float32": 2e-5, "complex64": 2e-5}
RNG = np.random.default_rng(12)


@pytest.fixture(autouse=True)
def nothing_is_undefined(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fail a test whose code the sanitizer has found fault with, which it writes and does not raise."""
    yield
    assert "runtime error" not in capfd.readouterr().err


def outputs(name: str, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """The outputs of a primitive as a tuple."""
    out = PRIMITIVES[name](*args, **params)
    return tuple(out) if PRIMITIVES[name].multiple else (out,)


def pullback(name: str, sample: Sample) -> Any:
    """The pullback of a primitive, at random cotangents, as a function of its differentiable arguments."""

    def f(*active: Any) -> list[Any]:
        args = list(sample.args)
        for position, value in zip(sample.differentiable, active, strict=True):
            args[position] = value
        return [out for out in outputs(name, args, sample.params) if dtype_of(out).kind in "fc"]

    def pulled(*active: Any) -> Any:
        outs, pull = func.vjp(f, *active)
        rng = np.random.default_rng(3)
        return pull([rng.normal(size=np.shape(out)).astype(dtype_of(out)) for out in outs])

    return pulled


def check(made: CModule, run: Any, wanted: Any, args: Sequence[Any], what: str) -> None:
    """The results of C are those wanted, with their shapes and dtypes."""
    got = run(*func.tree.leaves(list(args)))
    for place, (a, b) in enumerate(
        zip(got if isinstance(got, tuple) else (got,), func.tree.leaves(wanted), strict=True)
    ):
        expected = np.asarray(b)
        assert (np.asarray(a).dtype, np.shape(a)) == (expected.dtype, expected.shape), (what, place)
        limit = TOLERANCES.get(expected.dtype.name, 1e-9)
        np.testing.assert_allclose(a, expected, rtol=limit, atol=limit, err_msg=f"{what}, output {place}")


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: f"{names[0]}-{names[-1]}")
def test_samples(names: list[str], tmp_path: Path) -> None:
    cases: list[tuple[str, Any, tuple[Any, ...], CModule]] = []
    for name in set(names) - set(OTHER_SIGNS):
        for i, sample in enumerate(SAMPLES[name]):
            tried = [(f"{name} {i}", lambda *args, name=name, s=sample: outputs(name, args, s.params), sample.args)]
            if sample.differentiable:
                active = tuple([sample.args[position] for position in sample.differentiable])
                tried.append((f"pullback of {name} {i}", pullback(name, sample), active))
            for what, function, args in tried:
                try:
                    made = func.to_c(function, name=f"f{len(cases)}")(*args)
                except (func.errors.NoSourceError, func.errors.NotDifferentiableError):
                    continue
                cases.append((what, function, args, made))
    if not cases:
        return
    runs = loaded([case[-1] for case in cases], tmp_path, WATCHED)
    for (what, function, args, made), run in zip(cases, runs, strict=True):
        check(made, run, function(*args), args, what)


def test_what_jit_compiles_has_a_form_in_c() -> None:
    """But for calls of SciPy's functions."""
    without = set()
    native = 0
    for name, samples in SAMPLES.items():
        for sample in samples:
            function = func.jit(lambda *args, name=name, s=sample: outputs(name, args, s.params))
            try:
                lowered = function.lower(*sample.args)
            except Exception:
                continue
            if lowered.kernels is None or lowered.source is not None or "scipy.special." in str(lowered):
                continue
            native += 1
            try:
                func.to_c(function)(*sample.args)
            except func.errors.NoSourceError:
                without.add(name)
    assert native > 300
    assert without <= {"adjugate", "lstsq", "pinv", "solve_assumed", "svd", "svdvals"}


@pytest.mark.parametrize("start", range(0, 80, 20))
def test_random_functions(start: int, tmp_path: Path) -> None:
    cases = []
    for seed in range(start, start + 20):
        made = Maker(seed, False).make(seed % 22 + 1)
        active = tuple([place for place, x in enumerate(made.args) if x.dtype.kind == "f"])
        tried = [("value", made.function())]
        if active and "while_loop" not in str(made):
            tried.append(("gradient", func.grad(tame(made.function()), active)))
        for what, function in tried:
            for by_columns in (False, True) if seed % 4 == 0 else (False,):
                name = f"r{seed}{what}{int(by_columns)}"
                module = func.to_c(function, name=name, column_major=by_columns)(*made.args)
                cases.append((f"{name}\n{made}", function, made, module))
    runs = loaded([case[-1] for case in cases], tmp_path, SANITIZED if start == 0 else WATCHED, apart=start == 0)
    for (what, function, made, _), run in zip(cases, runs, strict=True):
        limit = 2e-3 if "float32" in str(made) else 1e-8
        got, wanted = run(*made.args), func.tree.leaves(function(*made.args))
        for a, b in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
            expected = np.asarray(b)
            assert (np.asarray(a).dtype, np.shape(a)) == (expected.dtype, expected.shape), what
            if expected.dtype.kind in "fc":
                scale = max(1.0, np.max(np.abs(expected), initial=0))
                np.testing.assert_allclose(a, expected, rtol=0, atol=limit * scale, err_msg=what)
            else:
                np.testing.assert_array_equal(a, expected, err_msg=what)


ADDRESSES = """
import sys, tempfile
from pathlib import Path
import numpy as np
import func
from tests.support.c_programs import loaded
from tests.support.random_functions import Maker
np.seterr(all="ignore")
cases = []
for seed in range(260, 290):
    made = Maker(seed, False).make(seed % 22 + 1)
    cases.append((made, func.to_c(made.function(), name=f"r{seed}")(*made.args)))
with tempfile.TemporaryDirectory() as folder:
    runs = loaded([case[-1] for case in cases], Path(folder), ("-std=c99", "-O0", "-fsanitize=address"))
    for (made, _), run in zip(cases, runs):
        run(*made.args)
print("done")
"""


def test_no_access_is_out_of_bounds() -> None:
    assert COMPILER is not None
    library = subprocess.run(
        [COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not os.path.isabs(library):
        pytest.skip("the compiler has no address sanitizer")
    environment = os.environ | {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ADDRESSES], env=environment, capture_output=True, text=True, check=False
    )
    assert "AddressSanitizer" not in done.stderr, done.stderr[:3000]
    assert "done" in done.stdout, done.stderr[-3000:]


# -- what parameters are in C
def test_leaves_of_trees_have_names() -> None:
    def model(params: dict[str, Any], t: float, *, double: Any) -> dict[str, Any]:
        return {"y": np.tanh(params["w"] * t) + params["b"][0], "z": (double, 2 * t)}

    args = {"w": np.ones((2, 3)), "b": [np.zeros(3)]}, 0.5
    module = func.to_c(model)(*args, double=np.ones(2))
    assert [array.name for array in module.inputs] == ["params_b_0", "params_w", "t", "double_"]
    assert [array.name for array in module.outputs] == ["out_y", "out_z_0", "out_z_1"]
    assert [array.by_value for array in module.inputs] == [False, False, True, False]
    assert [array.label for array in module.outputs] == ["result['y']", "result['z'][0]", "result['z'][1]"]
    assert "double t" in module.header


def test_repeated_and_forbidden_names() -> None:
    def f(x_: Any, x: dict[str, Any], out: Any, work: Any, int8_t: Any) -> Any:
        return x_ + x["_"] + out + work + int8_t

    module = func.to_c(f)(1.0, {"_": 2.0}, 3.0, 4.0, 5.0)
    names = [array.name for array in (*module.inputs, *module.outputs)]
    assert len(set(names)) == len(names)
    assert module.load()(1.0, 2.0, 3.0, 4.0, 5.0) == 15.0


_NAMES = """
I NULL NAN INFINITY EOF M_PI unix linux y0 j1 gamma exp errno main stdin memory status work i0 v0 s0 p0 m0 out int64_t
size_t bool printf fabs fabsf creal cexp conj memcpy double restrict __x x__ é
"""
NAMES_OF_C = _NAMES.split()


@pytest.mark.parametrize("start", range(0, len(NAMES_OF_C), 12))
def test_parameters_may_have_names_of_c(start: int, tmp_path: Path) -> None:
    modules = []
    for place, name in enumerate(NAMES_OF_C[start : start + 12]):
        scope: dict[str, Any] = {"np": np}
        exec(f"def f({name}):\n    return np.exp({name}) * np.abs({name}) + np.inf * 0.0", scope)
        modules.append(func.to_c(scope["f"], name=f"f{place}")(np.ones(3) + 1j))
    for run in loaded(modules, tmp_path):
        assert np.isnan(run(np.ones(3))).all()


@pytest.mark.parametrize("function", [np.exp, np.sqrt, abs])
def test_functions_with_names_of_c(function: Any) -> None:
    module = func.to_c(function)(np.ones(2))
    assert module.name == f"{function.__name__}_"
    np.testing.assert_allclose(module.load()(np.ones(2)), function(np.ones(2)))


DTYPES = [*[np.dtype(letter).name for letter in "?bBhHiIqQefdFD"], "bfloat16"]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_dtypes_by_value_and_by_address(shape: tuple[int, ...], tmp_path: Path) -> None:
    modules, cases = [], []
    for name in DTYPES:
        x = np.asarray(RNG.integers(0, 5, shape)).astype(name)

        def f(x: Any) -> tuple[Any, Any]:
            return x + x, x == x

        modules.append(func.to_c(f, name=f"f_{name}")(x))
        cases.append((f, x))
    for (f, x), run in zip(cases, loaded(modules, tmp_path), strict=True):
        for a, b in zip(run(x), f(x), strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)


def test_half_precision_rounds_as_numpy_does(tmp_path: Path) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    floats = np.concatenate([every.astype(np.float32), RNG.normal(size=3000).astype(np.float32) * 1e-5])
    near = np.nextafter(floats, np.float32(np.inf))
    modules = [
        func.to_c(lambda x: x.astype(np.float32), name="widened")(every),
        func.to_c(lambda x: x.astype(np.float16), name="rounded")(near),
        func.to_c(lambda x: x.astype(np.float16), name="rounded_twice")(near.astype(np.float64)),
    ]
    widened, rounded, rounded_twice = loaded(modules, tmp_path)
    np.testing.assert_array_equal(widened(every), every.astype(np.float32))
    np.testing.assert_array_equal(rounded(near), near.astype(np.float16))
    np.testing.assert_array_equal(rounded_twice(near.astype(np.float64)), near.astype(np.float16))


def test_long_sums_are_as_exact_as_numpys() -> None:
    x = RNG.uniform(size=(3, 300_001)).astype(np.float32)
    for f in (np.sum, lambda x: np.sum(x, axis=0), lambda x: np.sum(x, axis=1)):
        got = func.to_c(f, name="total")(x).load(flags=[*STRICT, "-O3"])(x)
        np.testing.assert_allclose(got, f(x.astype(np.float64)), rtol=3e-7)


def test_columns_in_memory() -> None:
    def f(a: Any, b: Any) -> Any:
        return a @ b, np.linalg.solve(a, b), a.sum(axis=0)

    a, b = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2))
    module = func.to_c(f, column_major=True)(a, b)
    assert "column by column" in module.header
    for got, wanted in zip(module.load()(a, b), f(a, b), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
        assert got.flags.f_contiguous


def test_static_arguments_are_built_in() -> None:
    def f(x: Any, n: int) -> Any:
        return x**n

    module = func.to_c(f, static_argnums=1)(np.arange(3.0), 3)
    assert [array.name for array in module.inputs] == ["x"]
    np.testing.assert_array_equal(module.load()(np.arange(3.0)), [0.0, 1.0, 8.0])
    assert "pow" not in module.source


def test_derivatives_at_nan_traps() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    module = func.to_c(func.grad(f), name="slope")(np.ones(3))
    assert "slope_nan_safe" in module.source
    np.testing.assert_array_equal(module.load()(np.array([0.0, 4.0, -1.0])), [0.0, 0.25, 0.0])


def test_errors_of_the_code_are_reported() -> None:
    solve = func.to_c(np.linalg.solve, name="solve")(np.eye(2), np.ones(2)).load()
    np.testing.assert_allclose(solve(2 * np.eye(2), np.ones(2)), [0.5, 0.5])
    with pytest.raises(ArithmeticError, match=r"^solve: a matrix is singular, or an index is out of range$"):
        solve(np.zeros((2, 2)), np.ones(2))
    taken = func.to_c(lambda x, i: x[i], name="taken")(np.arange(4.0), 1).load()
    assert taken(np.arange(4.0), -1) == 3.0
    with pytest.raises(ArithmeticError, match="out of range"):
        taken(np.arange(4.0), 4)


def test_numbers_that_are_finite() -> None:
    def f(x: Any) -> Any:
        return np.array([[1.0, 0.0], [0.0, 1.0]]) @ x

    plain, finite = [func.to_c(f, name="f", finite=finite)(np.ones(2)) for finite in (False, True)]
    assert plain.source.count("*") > finite.source.count("*")
    assert np.isnan(plain.load()(np.array([np.inf, 1.0]))).any()
    np.testing.assert_array_equal(finite.load()(np.array([2.0, 3.0])), [2.0, 3.0])


def test_loops_and_branches() -> None:
    def f(x: Any, n: Any) -> Any:
        def halves(state: Any) -> Any:
            return state[0] / 2, state[1] + 1

        small, steps = func.while_loop(lambda state: state[0] > 1.0, halves, (np.sum(x), 0))
        signed = func.cond(n > 2, lambda y: y * 3, lambda y: -y, x)
        chosen = func.switch(n, [lambda y: y, lambda y: y + 1, lambda y: y * 2], x)
        totals = func.scan(lambda total, y: (total + y, total * y), 0.0, x)[1]
        return small, steps, signed, chosen, totals

    x = np.arange(1.0, 6.0)
    run = func.to_c(f, name="loops")(x, 1).load()
    for n in (-1, 0, 1, 2, 3, 7):
        for got, wanted in zip(run(x, n), func.tree.leaves(f(x, n)), strict=True):
            np.testing.assert_allclose(got, wanted)


def test_threads_share_nothing() -> None:
    def f(a: Any) -> Any:
        return np.linalg.inv(a) @ np.tanh(a) @ a

    run = func.to_c(f, name="f")(np.eye(40)).load()
    matrices = [RNG.normal(size=(40, 40)) + 9 * np.eye(40) for _ in range(4)]
    wanted = [run(a) for a in matrices]
    failed: list[int] = []

    def work(place: int) -> None:
        for _ in range(40):
            if not np.array_equal(run(matrices[place]), wanted[place]):
                failed.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


# -- files and callers
def energy(x: Any, stiffness: float) -> Any:
    """A chain of springs."""
    return 0.5 * stiffness * np.sum((x[1:] - x[:-1]) ** 2)


MAINS = {
    "c": """
#include <stdio.h>
#include "springs.h"
int main(void) {
    double x[4] = {0.0, 1.0, 3.0, 4.0}, force[4];
    if (springs(x, 2.0, force, 0) != 0) return 1;
    for (int i = 0; i < 4; ++i) printf("%g ", force[i]);
    return 0;
}
""",
    "cpp": """
#include <iostream>
#include <vector>
#include "springs.h"
int main() {
    const std::vector<double> x{0.0, 1.0, 3.0, 4.0};
    std::vector<double> force(4), work(SPRINGS_WORKSPACE / sizeof(double) + 1);
    if (springs(x.data(), 2.0, force.data(), work.data())) return 1;
    for (double f : force) std::cout << f << " ";
}
""",
    "f90": """
program main
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function springs(x, stiffness, force, work) bind(c)
      import :: c_int, c_double, c_ptr
      real(c_double), intent(in) :: x(4)
      real(c_double), value :: stiffness
      real(c_double), intent(out) :: force(4)
      type(c_ptr), value :: work
    end function
  end interface
  real(c_double) :: x(4) = [0d0, 1d0, 3d0, 4d0], force(4)
  if (springs(x, 2d0, force, c_null_ptr) /= 0) stop 1
  print '(4(F4.1,1X))', force
end program
""",
}


@pytest.mark.parametrize(("ending", "compiler"), [("c", "gcc"), ("cpp", "g++"), ("f90", "gfortran")])
def test_other_languages_call_it(ending: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    x = np.array([0.0, 1.0, 3.0, 4.0])
    func.export(func.grad(energy), tmp_path / "springs.o", kind="object", compiler="gcc")(x, 2.0)
    (tmp_path / f"main.{ending}").write_text(MAINS[ending])
    command = [compiler, f"main.{ending}", "springs.o", "-lm", "-o", "main"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    np.testing.assert_allclose([float(word) for word in done.stdout.split()], func.grad(energy)(x, 2.0))


def test_export_writes_the_file_and_its_header(tmp_path: Path) -> None:
    x = np.arange(4.0)
    module = func.export(energy, tmp_path / "springs.c")(x, 2.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["springs.c", "springs.h"]
    assert (tmp_path / "springs.c").read_text() == module.source
    func.export(energy, tmp_path / "libsprings.so", kind="library")(x, 2.0)
    library = ctypes.CDLL(str(tmp_path / "libsprings.so"))
    out = np.zeros(1)
    status = library.springs(
        x.ctypes.data_as(ctypes.c_void_p), ctypes.c_double(2.0), out.ctypes.data_as(ctypes.c_void_p), None
    )
    assert (status, out[0]) == (0, energy(x, 2.0))


def test_the_header_tells_what_it_is() -> None:
    header = func.to_c(func.grad(energy), name="force")(np.arange(4.0), 2.0).header
    assert "Gradient of energy with respect to x" in header
    assert "x: x, 4 of float64" in header
    assert "stiffness: stiffness, one number of float64" in header
    assert "#define FORCE_WORKSPACE 0" in header


def with_callback(x: Any) -> Any:
    """A function that calls Python back."""
    return func.pure_callback(np.sin, func.make_program(np.sin)(x).outputs[0].aval, x)


BAD = [
    (
        lambda: func.to_c(energy, name="2x"),
        ValueError,
        "func.to_c: name='2x' is not a name that a function in C can have",
    ),
    (
        lambda: func.to_c(energy, name="while"),
        ValueError,
        "func.to_c: name='while' is not a name that a function in C can have",
    ),
    (
        lambda: func.to_c(energy, name="sqrt"),
        ValueError,
        "func.to_c: name='sqrt' is not a name that a function in C can have",
    ),
    (
        lambda: func.export(energy, "a-b.c"),
        ValueError,
        "func.export: 'a-b' is not a name of a function in C; pass name='...'",
    ),
    (
        lambda: func.export(energy, "f.c", kind="exe"),  # type: ignore[arg-type]
        ValueError,
        "func.export: kind='exe' is unknown; write one of 'c', 'object', 'library'",
    ),
    (lambda: func.to_c(3), TypeError, "func.to_c takes a function first, not int"),
]


@pytest.mark.parametrize(("call", "kind", "message"), BAD)
def test_bad_input(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).splitlines()[0] == message


def test_functions_that_c_cannot_have() -> None:
    def logged(x: Any) -> Any:
        func.debug.print("{}", x)
        return x * 2

    for function in (logged, lambda x: func.special.jv(0.5, x)):
        with pytest.raises(func.errors.NoSourceError, match=r"has no form in C: .*; func.to_source writes it"):
            func.to_c(function)(np.ones(2))


def test_missing_compilers_and_wrong_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    module = func.to_c(energy)(np.arange(4.0), 2.0)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(func.errors.NoSourceError, match=r"there is no C compiler 'no-such-compiler' here; name one by"):
        module.load()
    run = module.load(compiler=COMPILER)
    with pytest.raises(ValueError, match=r"^energy: takes 2 arrays, got 1$"):
        run(np.arange(4.0))
    with pytest.raises(ValueError, match=r"^energy: x is f64\[4\], got f64\[5\]$"):
        run(np.arange(5.0), 2.0)
    with pytest.raises(ValueError, match=r"^energy: x is f64\[4\], got c128\[4\]$"):
        run(np.zeros(4, complex), 2.0)


def test_traced_values_of_an_enclosing_transform() -> None:
    with pytest.raises(func.errors.NoSourceError, match="uses traced values of an enclosing transform"):
        func.grad(lambda t: func.to_c(lambda x: x * t)(1.0))(2.0)


def test_constant_arrays_of_zeros_are_short() -> None:
    table = np.zeros((40, 40))
    table[3, 5], table[39, 39], table[0, 1] = 2.5, -1.0, -0.0
    module = func.to_c(lambda x, i: func.numpy.take(table, i, axis=0) * x)(np.ones(40), np.array(3))
    assert module.source.count(" 0.0,") < 50 and "[125] = 2.5" in module.source
    run = module.load()
    for i in (0, 3, 39):
        np.testing.assert_array_equal(np.signbit(run(np.ones(40), np.array(i))), np.signbit(table[i]))
        np.testing.assert_array_equal(run(np.ones(40), np.array(i)), table[i])


STRUCTURE = """
#include "sparse.h"
#include <stdio.h>
int main(void) {
    double x[5] = {1, 2, 3, 4, 5}, out[SPARSE_ENTRIES];
    if (sparse(x, 2.0, out, NULL) != 0) { return 1; }
    for (int i = 0; i < (COLUMNS ? SPARSE_COLUMNS : SPARSE_ROWS); ++i) {
        for (int32_t k = sparse_starts[i]; k < sparse_starts[i + 1]; ++k) {
            printf("%d %d %.17g\\n", i, (int)sparse_indices[k], out[k]);
        }
    }
    return 0;
}
"""


@pytest.mark.parametrize("transform", [func.sparse_jacobian, func.sparse_hessian])
@pytest.mark.parametrize("by_columns", [False, True])
def test_sparse_derivatives_are_entries_and_their_structure(transform: Any, by_columns: bool, tmp_path: Path) -> None:
    def f(x: Any, scale: Any) -> Any:
        out = scale * x[1:] ** 2 * x[:-1] + np.sin(x[0])
        return np.sum(out) if transform is func.sparse_hessian else out

    x = np.arange(1.0, 6.0)
    derivative = transform(f)
    module = func.to_c(derivative, name="sparse", column_major=by_columns)(x, 2.0)
    assert [array.name for array in module.inputs] == ["x", "scale"]
    wanted = derivative(x, 2.0).toarray()
    (tmp_path / "main.c").write_text(STRUCTURE.replace("COLUMNS ?", f"{int(by_columns)} ?"))
    source, _ = module.save(tmp_path)
    assert COMPILER is not None
    command = [COMPILER, *STRICT, "-o", str(tmp_path / "main"), str(tmp_path / "main.c"), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    got = np.zeros_like(wanted)
    for line in subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.splitlines():
        i, j, value = line.split()
        got[(int(j), int(i)) if by_columns else (int(i), int(j))] = float(value)
    np.testing.assert_allclose(got, wanted, rtol=1e-14)
    assert module.structure.nnz == module.outputs[0].shape[0]


SORTED = {
    "sort": lambda x: np.sort(x, axis=0),
    "argsort": lambda x: np.argsort(x, axis=-1, kind="stable"),
    "lexsort": lambda x: np.lexsort((x, x[::-1], np.isnan(x)), axis=0),
    "median": lambda x: np.median(x, axis=1),
    "kth": lambda x: np.partition(x, 2, axis=0)[2],
    "searchsorted": lambda x: np.searchsorted(np.sort(x[0]), x),
}


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_, np.complex128, np.complex64]
)
def test_sorting(dtype: Any, tmp_path: Path) -> None:
    x = (np.random.default_rng(2).normal(size=(7, 13)) * 9).astype(dtype)
    if x.dtype.kind == "f":
        x[2, 3], x[4, 5], x[0, 0] = np.nan, np.inf, -0.0
    if x.dtype.kind == "c":
        x = np.round(x.real) + 1j * np.round(x.real[::-1])
        x[1, 2], x[3, 3], x[5, 1] = complex(np.nan, 1), complex(1, np.nan), complex(np.nan, np.nan)
    skipped = {"b": ("median",), "c": ("median", "searchsorted", "kth")}.get(x.dtype.kind, ())
    functions = {name: f for name, f in SORTED.items() if name not in skipped}
    modules = [func.to_c(f, name=name)(x) for name, f in functions.items()]
    flags = SANITIZED if dtype in (np.float64, np.complex64) else WATCHED
    for run, f in zip(loaded(modules, tmp_path, flags), functions.values(), strict=True):
        np.testing.assert_array_equal(run(x), f(x))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_times_matrices(dtype: Any, tmp_path: Path) -> None:
    """Tiles of columns that do and do not divide their number, rows next to each other and not."""
    cases: list[tuple[Any, tuple[Any, ...]]] = []
    for k, n in ((901, 8), (902, 9), (403, 30), (97, 65)):
        x, y = RNG.normal(size=(k, 3)).astype(dtype), RNG.normal(size=(k, n)).astype(dtype)
        cases += [(lambda x, y: x[:, 1] @ y, (x, y)), (lambda x, y: y.T @ x[:, 0], (x, y))]
        cases.append((lambda x, y: np.einsum("bk,bkn->bn", x, y), (np.stack([x[:, 0]] * 2), np.stack([y, 2 * y]))))
    modules = [func.to_c(f, name=f"f{place}")(*args) for place, (f, args) in enumerate(cases)]
    assert sum(["func_row_" in module.source for module in modules]) >= 8
    for run, (f, args) in zip(
        loaded(modules, tmp_path, SANITIZED if dtype is np.float32 else WATCHED), cases, strict=True
    ):
        limit = 1e-13 if dtype is np.float64 else 1e-5
        np.testing.assert_allclose(run(*args), f(*args), rtol=limit, atol=30 * limit)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_maxima_of_rows_of_any_length(dtype: Any, tmp_path: Path) -> None:
    """Lanes take several elements at once; NaNs pass on from every place, and zeros keep NumPy's value."""
    cases: list[tuple[Any, Any]] = []
    for n in (8, 31, 64, 101, 1100):
        x = (5 * RNG.normal(size=(7, n))).astype(dtype)
        if np.dtype(dtype).kind == "f":
            x[1, -1] = x[2, 0] = x[3, n // 2] = np.nan
            x[4], x[5] = -np.inf, -0.0
        cases += [
            (lambda x: (np.max(x, axis=1), np.min(x, axis=1)), x),
            (lambda x: np.max(x, axis=1) - np.min(2 * x, axis=1) if x.dtype != bool else np.max(x, axis=1), x),
            (lambda x: (np.max(np.abs(x)), np.fmax.reduce(x, axis=1), np.sum(x, axis=1)), x),
        ]
    modules = [func.to_c(f, name=f"f{place}")(x) for place, (f, x) in enumerate(cases)]
    for run, (f, x) in zip(
        loaded(modules, tmp_path, SANITIZED if dtype is np.float32 else WATCHED), cases, strict=True
    ):
        for got, wanted in zip(func.tree.leaves(run(x)), func.tree.leaves(f(x)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12 if dtype != np.float32 else 1e-5)


def test_functions_of_the_c_library_leave_nothing_unused(tmp_path: Path) -> None:
    """With FUNC_LIBM there are no helpers of bodies that are not compiled."""
    x = np.linspace(0.05, 0.95, 40)
    names = (
        "exp",
        "expm1",
        "log",
        "log1p",
        "sinh",
        "tanh",
        "arcsin",
        "arctan",
        "cbrt",
        "exp2",
        "log2",
        "arctanh",
        "sin",
    )
    functions = [lambda x, name=name: getattr(np, name)(x) for name in names]
    functions += [
        lambda x: x**2.5,
        lambda x: np.logaddexp(x, 1.0),
        lambda x: np.hypot(x, 2.0),
        lambda x: np.frexp(x)[0],
    ]
    functions += [func.special.erf, func.special.erfc, func.special.ndtr, lambda x: np.sin(x) + np.exp(x)]
    numbers = {"double": (x, 1e-14), "float": (x.astype(np.float32), 1e-5)}
    together = [lambda x, part=part: [f(x) for f in part] for part in (functions[::2], functions[1::2])]
    modules = [func.to_c(f, name=f"{word}{i}")(x) for word, (x, _) in numbers.items() for i, f in enumerate(together)]
    for place, flags in enumerate((("-DFUNC_LIBM",), ("-march=native",))):
        folder = tmp_path / str(place)
        runs = iter(loaded(modules, folder, (*STRICT, "-O1", *flags)))
        for values, limit in numbers.values():
            for f in together:
                for got, wanted in zip(next(runs)(values), f(values), strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=limit)


TARGETS = '-DFUNC_TARGETS="default","arch=haswell"'


def has_target_clones(folder: Path) -> bool:
    """Whether the compiler writes functions for several processors."""
    (folder / "try.c").write_text('__attribute__((target_clones("default", "arch=haswell"))) int f(void) { return 1; }')
    command = [str(COMPILER), "-shared", "-fPIC", "-o", str(folder / "try.so"), str(folder / "try.c")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_code_for_several_processors(tmp_path: Path) -> None:
    """With FUNC_TARGETS functions of arrays are there for each target, and compute the same."""
    if not has_target_clones(tmp_path):
        pytest.skip("the compiler has no target clones")
    x = RNG.normal(size=(24, 40))

    def softmax(x: Any) -> Any:
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return e / np.sum(e, axis=1, keepdims=True)

    cases = [
        func.grad(lambda x: np.sum(softmax(x) ** 2)),
        lambda x: x @ x.T,
        lambda x: np.linalg.inv(x @ x.T + np.eye(24)),
    ]
    modules = [func.to_c(f, name=f"f{place}")(x) for place, f in enumerate(cases)]
    for run, f in zip(loaded(modules, tmp_path, (*STRICT, "-O2", TARGETS)), cases, strict=True):
        np.testing.assert_allclose(run(x), f(x), rtol=1e-11, atol=1e-13)
    listed = subprocess.run(["nm", str(tmp_path / "all.so")], capture_output=True, text=True, check=True).stdout
    assert "f0_plain.arch_haswell" in listed and "f0_plain.default" in listed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solves_with_small_matrices_share_factors_in_line(dtype: Any, tmp_path: Path) -> None:
    """One or two right-hand sides, of a matrix or its transpose, with exchanges of rows, tiny pivots and none."""
    cases: list[tuple[Any, Any, Any]] = []
    for n in (1, 3, 8, 10):
        a = RNG.normal(size=(n, n)).astype(dtype)
        for k in (1, 3):
            b = RNG.normal(size=(n, k)).astype(dtype)
            cases.append(
                (lambda a, b: (np.linalg.solve(a, b), np.linalg.solve(a, b + 1), np.linalg.solve(a.T, b)), a, b)
            )
            cases.append((lambda a, b: np.linalg.solve(a, b[:, 0]) + np.linalg.solve(a.T, b[:, -1]), a, b))
    swapped = np.array([[0.0, 2.0, 1.0], [1e-300 if dtype is np.float64 else 1e-38, 0.0, 3.0], [4.0, 5.0, 6.0]], dtype)
    cases.append((np.linalg.solve, swapped, np.ones(3, dtype)))
    cases.append((func.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), (0, 1)), swapped, np.ones(3, dtype)))
    modules = [func.to_c(f, name=f"f{place}")(a, b) for place, (f, a, b) in enumerate(cases)]
    assert "func_exchanges_" in modules[0].source and "func_lu_of_8_" in modules[0].source
    runs = loaded(modules, tmp_path, SANITIZED)
    limit = 1e-9 if dtype is np.float64 else 2e-2
    for run, (f, a, b) in zip(runs, cases, strict=True):
        for got, wanted in zip(func.tree.leaves(run(a, b)), func.tree.leaves(f(a, b)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=limit, atol=limit * np.max(np.abs(wanted)))
    for singular in (np.zeros((3, 3), dtype), np.outer(np.arange(1, 4), np.ones(3)).astype(dtype)):
        with pytest.raises(ArithmeticError, match="singular"):
            runs[-2](singular, np.ones(3, dtype))


ANGLES = np.array([0.3, -0.0, 0.0, 1e-300, np.pi, 355.0, 1e5, -524288.5, 1e22, -3e300, np.inf, np.nan])


def turned(carry: Any, x: Any) -> Any:
    """A step that carries its angle and values that follow from its sine."""
    angle, place = carry
    return (angle + x, place + np.cos(angle) * x), np.sin(angle) + angle


def swung(carry: Any, x: Any) -> Any:
    """A step whose angle depends on the sine of the one before."""
    return carry - 0.1 * np.sin(carry) + x, np.cos(carry)


def scanned(step: Any, start: Any, reverse: bool = False) -> Any:
    """All results of a scan over some numbers."""
    return lambda xs: func.tree.leaves(func.scan(step, start, xs, reverse=reverse))


def scan_of_scans(xs: Any) -> Any:
    """A scan whose steps are scans."""
    return func.scan(lambda carry, x: (func.scan(turned, carry, x * np.ones(9))[0], carry[1]), (0.1, 0.2), xs)[1]


SINES: dict[str, tuple[Any, Any, bool]] = {
    "straight": (lambda x: (np.sin(x) * np.cos(x[::-1]), np.cos(np.sin(x))), ANGLES, True),
    "one step after the other": (scanned(turned, (0.1, 0.2)), np.linspace(0.1, 2, 30), True),
    "backwards": (scanned(turned, (0.1, 0.2), True), np.linspace(0.1, 2, 30), True),
    "large steps": (scanned(turned, (0.1, 0.2)), 1e5 * np.linspace(0.1, 2, 30), True),
    "a gradient": (func.grad(lambda xs: np.sum(scanned(turned, (0.1, 0.2))(xs)[2])), np.linspace(0.1, 2, 30), True),
    "nested": (scan_of_scans, np.linspace(0.1, 2, 7), True),
    "in turn": (scanned(swung, 0.3), np.linspace(0.1, 2, 30), False),
}


@pytest.mark.parametrize("finite", [False, True])
def test_sines_in_batches(finite: bool, tmp_path: Path) -> None:
    modules = [func.to_c(f, name=f"f{i}", finite=finite)(x) for i, (f, x, _) in enumerate(SINES.values())]
    for flags in (SANITIZED, (*SANITIZED, "-DFUNC_LIBM")):
        runs = loaded(modules, tmp_path, flags)
        for (name, (f, x, is_batch)), module, run in zip(SINES.items(), modules, runs, strict=True):
            assert ("func_sines(" in module.source) == is_batch, name
            got = run(x)
            for a, b in zip(got if isinstance(got, tuple) else (got,), func.tree.leaves(f(x)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12 if name != "straight" else 5e-16, err_msg=name)
                if not finite:
                    np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=name)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_fourier_transforms(dtype: Any, tmp_path: Path) -> None:
    cases: list[tuple[CModule, Any, Any]] = []
    rng = np.random.default_rng(4)
    for n in (1, 2, 6, 35, 600):
        z = (rng.normal(size=(2, n)) + 1j * rng.normal(size=(2, n))).astype(dtype)
        for norm in ("backward", "ortho", "forward"):
            for f, x in (
                (lambda z, norm=norm: np.fft.fft(z, norm=norm), z),
                (lambda z, norm=norm: np.fft.ifft(z, norm=norm, axis=0), z),
                (lambda z, norm=norm: np.fft.rfft(z, norm=norm), np.real(z)),
                (lambda z, norm=norm, n=n: np.fft.irfft(z, 2 * n - 1, norm=norm), z),
                (func.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2 * np.cos(x[0, 0]))), np.real(z)),
            ):
                cases.append((func.to_c(f, name=f"f{len(cases)}")(x), f, x))
    limit = 1e-11 if dtype is np.complex128 else 2e-4
    flags = SANITIZED if dtype is np.complex64 else WATCHED
    for run, (_, f, x) in zip(loaded([case[0] for case in cases], tmp_path, flags), cases, strict=True):
        wanted = np.asarray(f(x))
        assert run(x).dtype == wanted.dtype
        np.testing.assert_allclose(run(x), wanted, rtol=0, atol=limit * max(1.0, np.max(np.abs(wanted))))


@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no Rust compiler here")
def test_a_rust_caller(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "c-export.md").read_text(encoding="utf-8")
    (tmp_path / "main.rs").write_text(page.split("```rust\n")[1].split("```")[0], encoding="utf-8")

    def energy(x: Any, stiffness: Any) -> Any:
        return 0.5 * stiffness * np.sum((x[1:] - x[:-1]) ** 2)

    func.export(func.grad(energy), tmp_path / "springs.o", kind="object")(np.zeros(4), 2.0)
    command = ["rustc", str(tmp_path / "main.rs"), "-o", str(tmp_path / "main"), "-C", f"link-arg={tmp_path}/springs.o"]
    subprocess.run([*command, "-l", "m"], check=True, capture_output=True)
    done = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[-2.0, -2.0, 2.0, 2.0]"


def test_the_smallest_whole_numbers_fit_their_types() -> None:
    assert stored_literal(-(2**63), np.dtype("i8")) == "(-INT64_C(9223372036854775807) - 1)"
    assert stored_literal(1 - 2**63, np.dtype("i8")) == "INT64_C(-9223372036854775807)"
    assert stored_literal(-(2**31), np.dtype("i4")) == "(-2147483647 - 1)"
