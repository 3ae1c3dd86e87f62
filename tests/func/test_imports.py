"""`import func` imports next to nothing; the first use of a public name, or of a module of the package, imports the
rest, from any thread, and whatever was imported before."""

from __future__ import annotations

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
    "func.everything",
)
LATE = (
    *("scipy", "llvmlite", "tqdm", "opt_einsum", "numpy.random", "subprocess", "logging", "html"),
    *("func.compilation.c_export", "func.control", "func.interpreters.control", "func.linalg"),
)


def run(script: str) -> str:
    """What a fresh process prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
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
    """Two modules of one name would each have classes, tables and settings of their own."""
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
outs, gate = [], threading.Barrier(8)

def work(number):
    gate.wait()
    if number % 4 == 0:
        import func.numpy as other
    elif number % 4 == 1:
        from func import vmap
    elif number % 4 == 2:
        from func import tree
    outs.append(float(func.grad(lambda x: x * x)(3.0)))

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
