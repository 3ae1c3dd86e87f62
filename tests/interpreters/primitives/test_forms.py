"""A form that a primitive lacks is missing on purpose: its own record declares it, or this file has the reason."""

from __future__ import annotations

import subprocess
import sys

import pytest

from func.interpreters.core import PRIMITIVES
from tests.support.primitive_forms import NONE, Forms, table

pytest.importorskip("llvmlite")

TABLE = {forms.name: forms for forms in table([])}
CALLS = {"cond_call", "program_call", "scan_call", "while_call"}
"""Calls of programs, which are lowered, counted and translated equation by equation."""
REFUSED = {"qr_raw"}
"""The derivative of LAPACK's packed form is not defined, and asking for it raises."""
NOT_NATIVE = {
    "LAPACK's routine is called through NumPy or SciPy": """
        eig eigvals eigh_by_driver eigh_pencil eigh_tridiagonal eigvalsh_tridiagonal expm expm_frechet
        fractional_matrix_power fractional_matrix_power_frechet logm logm_frechet qr_order schur solve_banded
        solveh_banded sqrtm sylvester
    """,
    "SuperLU is called through SciPy": "sparse_solve",
    "SciPy's compiled filters are called": "correlate_windows recurrence spline_coefficients window_products",
    "the order of eigenvalues, which only `eig` needs": "match_values",
    "NumPy's selection and FFT are as fast": "argpartition fft irfft lexsort partition partition_order rfft",
    "a special function of several outputs, or with a parameter": """
        i0 log1prel polygamma spherical_in spherical_jn spherical_kn spherical_yn stirling weighted_logsumexp
    """,
    "a relative of a special function, computed in NumPy": """
        exp_rest gammaln_gap log_cosh log_gammainc log_gammaincc polygamma_gap
        pseudo_huber_ddelta pseudo_huber_dr
    """,
    "a function of SciPy of degrees and derivatives": """
        assoc_legendre_p_0 assoc_legendre_p_1 assoc_legendre_p_2 assoc_legendre_p_normalized_0
        assoc_legendre_p_normalized_1 assoc_legendre_p_normalized_2 legendre_p_0 legendre_p_1 legendre_p_2
        sph_legendre_p_0 sph_legendre_p_1 sph_legendre_p_2
    """,
    "a derivative of a special function, computed in NumPy": """
        betainc_da betainc_daa betainc_dab betainc_db betainc_dbb ellipeinc_dm ellipeinc_dmm ellipkinc_dm
        ellipkinc_dmm kolmogorov_bend kolmogorov_slope mathieu_a_bend mathieu_a_slope mathieu_b_bend mathieu_b_slope
        obl_cv_bend obl_cv_slope pro_cv_bend pro_cv_slope smirnov_bend smirnov_slope
    """,
    "bits are drawn by NumPy code, the same on every backend": """
        random_binomial random_bits random_fold_in random_gamma_slope random_integers random_key random_loggamma
        random_mills random_ndtr random_ndtri random_normal random_poisson random_polygamma random_split random_unit
        random_wald
    """,
    "a method of a distribution is called through SciPy": "scipy_distribution",
    "a collective, which vmap replaces": """
        all_gather all_to_all broadcast_from pmax pmin ppermute psum psum_scatter reduce_to
    """,
}
"""By reason; besides these, what calls Python, or a function that SciPy does not export as one of real numbers."""


PASSED_ON = {"checkpoint_call", "custom_vjp_call", "saved_output"}
"""Calls whose outputs are operands: they stand in Programs under transforms, and are gone before code is made."""
REPLACED = {
    "cusped", "entangled", "exponential_share", "invariant_basis", "modulus_power", "rotation", "signed_power",
    "singular_basis",
}  # fmt: skip
"""Primitives that inlining replaces by those of their bodies."""


def lacking(form: str) -> set[str]:
    """The primitives without a form."""
    return {name for name, forms in TABLE.items() if getattr(forms, form) == NONE}


@pytest.mark.parametrize("form", ["value", "batch", "samples"])
def test_forms_that_every_primitive_has(form: str) -> None:
    assert lacking(form) == set()


@pytest.mark.parametrize("form", ["jvp", "pullback"])
def test_what_has_no_derivative_says_so(form: str) -> None:
    assert lacking(form) == REFUSED | {name for name in TABLE if not PRIMITIVES[name].differentiable}


def test_what_has_no_numpy_text_calls_python_or_a_program() -> None:
    calling_python = {name for name in TABLE if PRIMITIVES[name].calls_python}
    assert lacking("numpy_text") - REPLACED == CALLS | PASSED_ON | calling_python


def test_what_has_no_cost_is_a_program() -> None:
    assert lacking("cost") == CALLS


def test_what_has_no_native_form_is_known_with_its_reason() -> None:
    by_rule = {name for name in TABLE if PRIMITIVES[name].calls_python or PRIMITIVES[name].scipy is not None}
    assert lacking("native") - by_rule - PASSED_ON - REPLACED == set(" ".join(NOT_NATIVE.values()).split())


def test_the_command_prints_the_table() -> None:
    command = [sys.executable, "-m", "tests.support.primitive_forms", "sin", "sort_of_nothing"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "sort_of_nothing" in done.stderr
    lines = subprocess.run(command[:-1], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].split()[:4] == ["name", "value", "jvp", "pullback"]
    assert tuple(lines[1].split()) == Forms("sin", "Unary", "partials", "partials", "rule", "yes", "yes", "15", "3")
