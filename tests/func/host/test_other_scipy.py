"""A SciPy without one of the private names that func needs: that function refuses by name, and all others work."""

import re
import subprocess
import sys

import pytest

# For each private module or name: a call whose version in func needs it, and a call of the same package that does not.
MISSING = {
    "scipy.stats._binned_statistic": (
        "stats.binned_statistic(np.arange(3.0), x, bins=2).statistic",
        "stats.norm.pdf(x)",
    ),
    "scipy.stats._morestats": ("stats.boxcox_normmax(x, method='pearsonr')", "stats.norm.pdf(x)"),
    "scipy.stats._stats_py._validate_distribution": (
        "stats.wasserstein_distance(x, np.ones(3))",
        "stats.norm.cdf(x)",
    ),
    "scipy.integrate._bvp": (
        "integrate.solve_bvp(lambda t, y: -y, lambda a, b: a - x[0], np.linspace(0, 1, 5), np.ones((1, 5))).y",
        "integrate.trapezoid(x)",
    ),
    "scipy.integrate._ivp.radau": (
        "integrate.solve_ivp(lambda t, y: -y, (0, 1), x, method='Radau').y",
        "integrate.trapezoid(x)",
    ),
}
SCRIPT = """
import sys, numpy as np, scipy.signal as signal, scipy.stats as stats, scipy.integrate as integrate, importlib
import func
place = {missing!r}
outer, _, name = place.rpartition(".")
holder = importlib.import_module(outer)
if place in sys.modules:
    sys.modules[place] = None
if hasattr(holder, name):
    delattr(holder, name)
x = np.array([0.5, 1.25, 2.0])
print(func.grad(lambda x: np.sum({other}))(x).shape)
try:
    func.grad(lambda x: np.sum({call}))(x)
except Exception as error:
    print(type(error).__name__, str(error).replace(chr(10), " | "))
else:
    print("worked")
"""


@pytest.mark.parametrize("missing", MISSING)
def test_a_missing_private_name_is_told_by_name(missing):
    call, other = MISSING[missing]
    script = SCRIPT.format(missing=missing, call=call, other=other)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    first, second = done.stdout.splitlines() or [done.stderr, ""]
    assert first == "(3,)"
    assert re.match(r"UnsupportedFunctionError scipy\.\w+\.\w+ takes no traced values with SciPy [\d.]+", second), (
        second
    )
    assert f"func's version needs {missing}, which this SciPy lacks" in second
