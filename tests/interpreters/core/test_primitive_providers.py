"""Programs that are loaded find the primitives of modules that nobody has imported."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import scipy.stats

import func
from func.interpreters.core.primitive import PRIMITIVES, PROVIDERS, primitive_named

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


def test_a_loaded_program_imports_what_provides_its_primitives(tmp_path):
    def quantile(p):
        return scipy.stats.t.ppf(p[0], p[1])

    path = str(tmp_path / "quantile.func")
    func.save(func.make_program(quantile)(np.array([0.3, 2.0])), path)
    done = subprocess.run([sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(float(done.stdout), scipy.stats.t.ppf(0.3, 2.0))
