"""Programs that are loaded find the primitives of modules that nobody has imported."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import subprocess
import sys

import numpy as np
import scipy.stats

import func
from func.interpreters.core.wiring import PRIMITIVES, PROVIDERS, RENAMED, primitive_named

SCRIPT = """
import sys
import numpy as np, func

program = func.load(sys.argv[1])
print(float(program(np.array([0.3, 2.0]))[0]))
"""


def test_the_table_names_the_modules_that_define_the_primitives():
    for name, module in PROVIDERS.items():
        provided = importlib.import_module(module)
        assert primitive_named(name) is PRIMITIVES[name]
        assert provided.__name__.startswith("func.")


def test_every_primitive_is_found_by_its_name_in_a_process_that_has_just_imported_func():
    engine = importlib.import_module("func.interpreters")
    for module in pkgutil.walk_packages(engine.__path__, "func.interpreters."):
        importlib.import_module(module.name)
    own = sorted(name for name, primitive in PRIMITIVES.items() if primitive.defined_in.startswith("func."))
    script = f"""
import func
func.grad
from func.interpreters.core.wiring import primitive_named
print([name for name in {own} if primitive_named(name).name != name])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_loaded_program_with_loops_imports_them(tmp_path):
    def loops(x):
        total, _ = func.scan(lambda carry, row: (carry + np.sin(row), None), x[0] * 0, x)
        total = func.while_loop(lambda y: y[0] < 3, lambda y: y + 1, total)
        return func.cond(total[0] > 0, lambda y: y * 2, lambda y: y, total)

    x = np.array([[0.3, 2.0], [0.1, 0.2]])
    path = str(tmp_path / "loops.func")
    func.save(func.make_program(loops)(x), path)
    script = SCRIPT.replace("np.array([0.3, 2.0])", repr(x).replace("array", "np.array"))
    script = script.replace("float(", "(").replace("[0]))", "[0].tolist()))")
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert done.stdout.strip() == str(np.asarray(loops(x)).tolist()), done.stderr


def test_a_loaded_program_imports_what_provides_its_primitives(tmp_path):
    def quantile(p):
        return scipy.stats.t.ppf(p[0], p[1])

    path = str(tmp_path / "quantile.func")
    func.save(func.make_program(quantile)(np.array([0.3, 2.0])), path)
    done = subprocess.run([sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(float(done.stdout), scipy.stats.t.ppf(0.3, 2.0))


def test_files_and_pickles_may_have_an_earlier_name():
    for earlier, present in RENAMED.items():
        assert primitive_named(earlier).name == present
        written = b"cfunc.interpreters.core.primitive\nprimitive_named\n(S'" + earlier.encode() + b"'\ntR."
        assert pickle.loads(written) is PRIMITIVES[present]
