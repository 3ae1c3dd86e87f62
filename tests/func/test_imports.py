"""`import func` imports next to nothing. The first use of a public name or module imports the rest, from any thread."""

from __future__ import annotations

import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import func

ROOT = Path(__file__).parents[2]
HEAVY = (
    "numpy",
    "scipy",
    "llvmlite",
    "optree",
    "tqdm",
    "opt_einsum",
    "logging",
    "hashlib",
    "func.numpy",
    "func.host.start",
)
LATE = (
    *("scipy", "llvmlite", "tqdm", "opt_einsum", "numpy.random", "subprocess", "logging", "html"),
    *("func.compilation", "func.control", "func.interpreters.control", "func.linalg", "func.autograd", "optree"),
    *("func.numpy.linalg", "func.numpy.fft", "numpy.fft", "func.interpreters.taylor", "func.host.interception"),
)


def run(script: str) -> str:
    """The output of a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUNC_VALIDATE": "0"}  # it imports modules
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def test_importing_func_imports_nothing_else() -> None:
    assert run(f"import sys, func\nprint([name for name in {HEAVY} if name in sys.modules])") == "[]"
    assert run("import func; print(func.__version__, len(func.__doc__) > 80, 'grad' in dir(func))").endswith(
        "True True"
    )


def test_the_first_use_leaves_out_what_few_programs_need() -> None:
    script = (
        f"import sys, func\nfunc.grad(lambda x: x * x)(3.0)\nprint([name for name in {LATE} if name in sys.modules])"
    )
    assert run(script) == "[]"


LOADED = {"grad": 85, "jit": 210, "jit from the cache": 134}
"""The most modules of func that a first call imports: a gradient, a compiled function, one whose code is on disk."""


@pytest.mark.parametrize("call", LOADED)
def test_a_first_call_imports_few_modules(call: str, tmp_path: Path) -> None:
    script = f"""
import os, sys, numpy as np
os.environ["FUNC_CACHE_DIR"] = {str(tmp_path)!r}
import func
func.{call.split()[0]}(lambda x: np.sum(np.sin(x) * x))(np.ones(3))
print(len([name for name in sys.modules if name.partition(".")[0] == "func"]))
"""
    if call == "jit from the cache":
        run(script)
    assert int(run(script)) <= LOADED[call]


def test_a_transform_is_imported_without_slow_modules_of_others() -> None:
    slow = {"array", "copy", "dataclasses", "scipy", "typing_extensions"}
    added = "{*sys.modules} - before"
    script = f"import sys, numpy\nbefore = {{*sys.modules}}\nfrom func import grad\nprint(*({added}) & {slow})"
    assert run(script) == ""


def test_the_garbage_collector_is_left_as_it_was() -> None:
    state = "gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0"
    for before, expected in (("pass", (True, False)), ("gc.disable()", (False, False)), ("gc.freeze()", (True, True))):
        script = f"""
import gc, weakref

class Node:
    pass

node = Node()
node.itself = node
left = weakref.ref(node)
{before}
import func
usual = gc.get_threshold()
func.grad
del node
gc.collect()
print({state}, usual, left() is None)
"""
        enabled, frozen = expected
        usual = (700, 10, 10) if sys.version_info < (3, 13) else None
        printed = run(script)
        assert printed.startswith(f"{enabled} (") and f") {frozen} (" in printed, printed
        assert printed.endswith(str(not frozen)), printed  # garbage is found, but for what the user has frozen
        assert usual is None or printed.count(str(usual)) == 2, printed


def test_a_product_needs_no_scipy(tmp_path: Path) -> None:
    """Where SciPy is a wheel, its BLAS is loaded without it; elsewhere this holds for programs without products."""
    script = """
import sys
import numpy as np, func
from func.backends.llvm import machine
from func.backends.llvm.linalg import scipy_library
library = machine.available() and scipy_library._library()
in_wheel = bool(library) and hasattr(library, scipy_library.WHEEL.format("dgemm"))
a = np.eye(40)
func.jit(lambda a, b: a @ b + np.linalg.inv(a))(a, a)
print(in_wheel and "scipy" in sys.modules)
"""
    assert run(script) == "False"


@pytest.mark.parametrize(
    "first",
    [
        "from func import grad",
        "from func import *",
        "import func.linalg",
        "import func.interpreters.core.types",
        "import func.backends.llvm.cache",
        "from func.numpy import fft",
        "import importlib.util; importlib.util.find_spec('func.transforms')",
        "import func; func.__path__",
        "import func; hasattr(func, 'nothing')",
        "import func; func.random",
        "import scipy.stats, func; func.config",
        "import func, scipy.stats; func.errors",
        "import func; func.map",
        f"import pickle; pickle.loads({pickle.dumps(func.grad)!r})",
    ],
)
def test_whatever_comes_first_everything_is_there(first: str) -> None:
    script = f"""
{first}
import numpy as np, func, scipy.special
from scipy.optimize import minimize
assert all(getattr(func, name) is not None for name in func.__all__)
print(type(func).__name__, func.grad(lambda x: np.sum(scipy.special.erf(x) + np.linalg.norm([x, x])))(1.0) > 1)
print(func.jit(func.grad(np.sin))(0.0), func.tensor([1.0, 2.0]).sum().item(), func.map is not map)
"""
    assert run(script) == "module True\n1.0 3.0 True"


@pytest.mark.parametrize("name", sorted(module.name for module in pkgutil.iter_modules(func.__path__, "func.")))
def test_no_module_is_imported_twice(name: str) -> None:
    """Two modules of one name would each have their own classes, tables and settings."""
    script = f"""
import func
import {name} as first
import collections, gc, sys, types
assert first is sys.modules[{name!r}] is getattr(func, {name.removeprefix("func.")!r})
assert first.__spec__.loader is not None and "FirstImport" not in type(first.__spec__.loader).__name__
names = [vars(each).get("__name__") for each in gc.get_objects() if isinstance(each, types.ModuleType)]
counts = collections.Counter(name for name in names if isinstance(name, str) and name.split(".")[0] == "func")
print(sorted(name for name, count in counts.items() if count > 1))
"""
    assert run(script) == "[]"


def test_many_threads_use_it_first() -> None:
    script = """
import sys, threading
sys.setswitchinterval(1e-5)
import func
import numpy as np
outs, gate = [], threading.Barrier(8)

def work(number):
    gate.wait()
    if number % 4 == 0:
        import func.numpy as other
    elif number % 4 == 1:
        from func import vmap
    elif number % 4 == 2:
        from func import tree
    outs.append(float(func.grad(lambda x: np.linalg.norm(x.T) * np.fft.ifft(x).real.sum())(np.array([3.0]))[0]))

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(outs == [6.0] * 8, type(func).__name__)
"""
    assert [run(script) for _ in range(3)] == ["True module"] * 3


def test_relative_settings_refer_to_the_folder_at_the_import(tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()
    script = f"""
import os
os.chdir({str(tmp_path)!r})
os.environ["FUNC_CACHE_DIR"] = "cache"
import func
os.chdir("later")
print(func.config.cache_dir)
"""
    assert run(script) == str(tmp_path / "cache")


def test_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute '_nothing'"):
        func._nothing  # noqa: B018
    with pytest.raises(AttributeError, match="nothing"):
        func.nothing  # noqa: B018


def test_late_functions_are_where_the_table_says() -> None:
    """The table of func.numpy has every function of func's, and finds NumPy's functions."""
    import numpy as np

    from func.interpreters.host.public_functions import behind
    from func.numpy import late_names, protocol

    for name, place in late_names.IN_MODULES.items():
        module, _, own = place.partition(":")
        assert behind(getattr(func.numpy, name)) is behind(getattr(importlib.import_module(module), own)), name
    for name in set(func.numpy.__all__) - set(late_names.IN_MODULES) - {"fft", "linalg"}:
        assert name in vars(func.numpy), name
    protocol._import_all()
    elsewhere = set()
    for table in (protocol.FUNCTIONS, protocol.CREATION):
        for function, traced in table.items():
            place = late_names.module_of(function)
            if place is None or not traced.__module__.startswith(place):
                elsewhere.add(f"{function.__module__}.{function.__name__}")
    assert {name for name in elsewhere if name.startswith(("numpy.linalg", "numpy.fft"))} == set()
    assert len(elsewhere) < 12, elsewhere  # what has another name in NumPy; found, but only with all modules
    assert late_names.module_of(np.matmul) == "func.numpy.products"


def test_late_attributes_are_those_that_are_set() -> None:
    script = """
from func import grad
from func.interpreters.core import Tracer
from func.numpy.methods import OF_TENSORS, LateAttribute
late = [name for name, value in vars(Tracer).items() if type(value) is LateAttribute]
assert set(OF_TENSORS) < set(late) and len(late) > 50
for name in late:
    assert type(getattr(Tracer, name)) is not LateAttribute, name
assert not [name for name, value in vars(Tracer).items() if type(value) is LateAttribute]
from func.autograd.tensors import attributes
print(set(attributes()) == set(OF_TENSORS))
"""
    assert run(script) == "True"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("np.linalg.norm(x)", 5.0),
        ("np.fft.fft(x).real.sum()", 6.0),
        ("np.round_(x).sum() if hasattr(np, 'round_') else np.around(x).sum()", 7.0),
        ("(x @ x)", 25.0),
        ("np.matmul(x, x)", 25.0),
        ("np.maximum.reduce(x)", 4.0),
        ("np.lib.stride_tricks.sliding_window_view(x, 2).sum()", 7.0),
        ("x.at[0].set(1.0).sum()", 5.0),
        ("x.reshape(1, 2).T.flatten().detach().sum() + x.real.max()", 11.0),
        ("np.asarray([1.0, 2.0]).clip(x[0], None).sum()", 6.0),
        ("np.tri(2, like=x).sum() * x[0] / 3", 3.0),
        ("(x.sort(), x[0])[1]", 3.0),
        ("func.numpy.einsum('i,i', x, x)", 25.0),
        ("func.numpy.abs(-x).sum()", 7.0),
        ("np.polyval([1.0, x[0]], x[1])", 7.0),
    ],
)
def test_what_comes_first_of_numpy_is_found(body: str, result: float) -> None:
    """The first function of a process, whichever it is, and its derivative."""
    script = f"""
import numpy as np, func
value, gradient = func.value_and_grad(lambda x: {body})(np.array([3.0, 4.0]))
print(float(value), gradient.shape)
"""
    assert run(script) == f"{result} (2,)"


def test_public_names_are_themselves_wherever_they_are_asked_for() -> None:
    script = """
import pickle
import func.numpy
import func.numpy.einsums, func.numpy.sorting
names = func.numpy.__all__
first = {name: getattr(func.numpy, name) for name in names}
assert all(getattr(func.numpy, name) is first[name] for name in names)
assert func.numpy.abs is func.numpy.absolute and func.numpy.abs.__qualname__ == "absolute"
assert func.numpy.sum.__module__ == "func.numpy" and pickle.loads(pickle.dumps(func.numpy.sum)) is func.numpy.sum
from func.numpy import *
from func import *
print(sorted, einsum is func.numpy.einsum, set(names) <= set(dir(func.numpy)))
"""
    assert run(script) == "<built-in function sorted> True True"


def test_errors_have_their_public_names_from_the_start() -> None:
    """Also where nobody has imported func.errors, whose classes every one of its names gives."""
    script = """
import sys, func
try:
    func.grad(lambda x: x * 2)([1.0, 2.0], 3)
except Exception as error:
    print(type(error).__module__)
try:
    func.jit(lambda x: float(x))(1.0)
except Exception as error:
    print(type(error).__module__)
print("func.errors" in sys.modules)
"""
    assert run(script).split("\n")[1:] == ["func.errors", "False"]
    for name in func.errors.__all__:
        error = getattr(func.errors, name)
        assert (error.__module__, pickle.loads(pickle.dumps(error))) == ("func.errors", error)


@pytest.mark.parametrize("code", ["np.r_[x, 1.0]", "np.c_[x, x]", "np.r_[0:3, x[:1]]"])
def test_concatenators_of_numpy_need_no_other_name(code: str) -> None:
    """np.r_ is not a function that NumPy passes on: a module that nobody has imported yet replaces it."""
    script = f"import numpy as np, func\nprint(func.grad(lambda x: np.sum({code} * 2))(np.ones(3)).sum())"
    assert float(run(script)) in (2.0, 6.0, 12.0)
