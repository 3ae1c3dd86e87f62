"""The table of public functions, continued: func.special, func.linalg and func.random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

import func
from func import random, special
from tests.func.linalg.test_linalg import CASES
from tests.func.random.test_random import DISCRETE, PARAMETERS
from tests.func.special.test_special import MANY, U
from tests.support.functions import Call
from tests.support.sampling import real, restart, spd
from tests.support.special_arguments import BY_EQUATIONS

restart(5)
A = np.diag([1.0, 2.5, 4.0]) + 0.3 * real(3, 3)
S = spd(3)
KEY = random.key(3)
SCIPY_FUNCTIONS: dict[str, Call] = {}

SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "logsumexp": lambda library, x: library.logsumexp(x, axis=1),
    "softmax": lambda library, x: library.softmax(x, axis=0),
    "log_softmax": lambda library, x: library.log_softmax(x, axis=1),
    "multigammaln": lambda library, x: library.multigammaln(x + 2, 2),
    "comb": lambda library, x: library.comb(x + 3, 2),
    "perm": lambda library, x: library.perm(x + 3, 2),
    "zetac": lambda library, x: library.zetac(x + 1.5),
    "cotdg": lambda library, x: library.cotdg(40 * x),
}
NO_DERIVATIVE = {"bernoulli"}
"""Tables of numbers."""


def _of_place(name: str, args: tuple[Any, ...], place: int, library: Any) -> Callable[[Any], Any]:
    return lambda x: getattr(library, name)(*args[:place], x, *args[place + 1 :])


for _name in special.__all__:
    if _name in BY_EQUATIONS:
        continue
    _library = scipy.special if hasattr(scipy.special, _name) else special
    if _name in NO_DERIVATIVE:
        continue
    if _name in SUMS:
        _function, _plain, _x = [lambda x, n=_name, m=m: SUMS[n](m, x) for m in (special, _library)] + [U]  # type: ignore[misc]
    elif _name in MANY:
        _args, _places = MANY[_name]
        _function, _plain = [_of_place(_name, _args, _places[-1], m) for m in (special, _library)]
        _x = np.asarray(_args[_places[-1]])
    else:
        _function, _plain = [lambda x, n=_name, m=m: getattr(m, n)(x) for m in (special, _library)]  # type: ignore[misc]
        _x = U
    SCIPY_FUNCTIONS[f"special.{_name}"] = Call(_function, _x, exact=False, plain=_plain)

MORE: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "cho_factor": (lambda library, x: np.triu(library.cho_factor((x + np.conj(x.T)) / 2)[0]), S),
    "fractional_matrix_power": (lambda library, x: library.fractional_matrix_power(x, 0.3), S),
    "orthogonal_procrustes": (lambda library, x: library.orthogonal_procrustes(A, x)[1], A.T + 1),
    "solve_continuous_lyapunov": (lambda library, x: library.solve_continuous_lyapunov(x, S), A),
    "solve_discrete_lyapunov": (lambda library, x: library.solve_discrete_lyapunov(0.1 * x, S), A),
    "solve_lyapunov": (lambda library, x: library.solve_lyapunov(x, S), A),
    "solve_sylvester": (lambda library, x: library.solve_sylvester(x, S, A), A),
}
CONSTANTS = {"LinAlgError", "dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"}


def _in(library: Any, call: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: call(library, x)


for _name in func.linalg.__all__:
    if _name in CONSTANTS:
        continue
    _found = [case for key, case in CASES.items() if key == _name or key.startswith(f"{_name}-")]
    _call, _x = MORE[_name] if _name in MORE else _found[0]
    SCIPY_FUNCTIONS[f"linalg.{_name}"] = Call(_in(func.linalg, _call), _x, exact=False, plain=_in(scipy.linalg, _call))

SHAPED: dict[str, Callable[[Any], Any]] = {
    "cauchy": lambda x: random.cauchy(KEY, (3,), loc=x[0], scale=x[1]),
    "logistic": lambda x: random.logistic(KEY, (3,), loc=x[0], scale=x[1]),
    "maxwell": lambda x: x * random.maxwell(KEY, (2,)),
    "double_sided_maxwell": lambda x: random.double_sided_maxwell(KEY, x[0], x[1], (3,)),
    "generalized_normal": lambda x: x * random.generalized_normal(KEY, 2.5, (2,)),
    "loggamma": lambda x: random.loggamma(KEY, x[0], (3,)),
    "ball": lambda x: x * random.ball(KEY, 2),
    "orthogonal": lambda x: x * random.orthogonal(KEY, 2),
    "wald": lambda x: x * random.wald(KEY, 1.5, (2,)),
}
SETTINGS = {"Generator", "RandomnessError", "default_rng", "key", "split", "fold_in", "bits"}


def _of_number(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: call(x[0])


def _of_nothing(call: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: call(KEY, (3,))


for _name in random.__all__:
    if _name in SETTINGS:
        continue
    if _name in SHAPED:
        _function, _x = SHAPED[_name], np.array([0.7, 0.4])
    elif _name in PARAMETERS:
        _function, _x = _of_number(PARAMETERS[_name][0]), np.array([PARAMETERS[_name][1]])
    else:
        _function, _x = _of_nothing(DISCRETE[_name][0]), np.array([0.7])
    SCIPY_FUNCTIONS[f"random.{_name}"] = Call(_function, _x, exact=False)
