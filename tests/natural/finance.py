"""Finance and econometrics as packages write them: cash flows, trees, rates that solve an equation, panels."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import newton
from scipy.stats import norm

from tests.support.natural_code import Row


class Kind(enum.Enum):
    CALL = 1
    PUT = -1


def present_value(rate: Any, values: Any) -> Any:
    values = np.atleast_1d(values)
    return (values / (1 + rate) ** np.arange(len(values))).sum(axis=0)


def annuity(rate: Any, nper: int = 12, pv: Any = 1000.0, when: str = "end") -> Any:
    when_code = {"end": 0, "begin": 1}[when]
    temp = (1 + rate) ** nper
    mask = rate == 0
    masked = np.where(mask, 1, rate)
    fact = np.where(mask, nper, (1 + masked * when_code) * (temp - 1) / masked)
    return -pv * temp / fact


def internal_rate(flows: Any) -> Any:
    rate, last = 0.1, None
    while last is None or abs(rate - last) > 1e-13:
        powers = np.arange(len(flows))
        disc = (1 + rate) ** -powers
        f, df = np.dot(flows, disc), -np.dot(flows * powers, disc / (1 + rate))
        last, rate = rate, rate - f / df
    return rate


def black_scholes(s: Any, k: Any, t: Any, r: Any, sigma: Any, kind: Kind = Kind.CALL) -> Any:
    if t <= 0:
        return max(kind.value * (s - k), 0)
    d1 = (math.log(s / k) + (r + sigma**2 / 2) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)
    sign = kind.value
    return sign * (s * norm.cdf(sign * d1) - k * math.exp(-r * t) * norm.cdf(sign * d2))


def erf_normal_cdf(x: Any) -> Any:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def implied_volatility(price: Any, s: Any, k: Any) -> Any:
    def difference(sigma: Any) -> Any:
        d1 = (np.log(s / k) + sigma**2 / 2) / sigma
        return s * norm.cdf(d1) - k * norm.cdf(d1 - sigma) - price

    return newton(difference, 0.3, tol=1e-13, maxiter=100)


def binomial_american(s: Any, k: Any, r: Any, sigma: Any, steps: int = 4) -> Any:
    dt = 1 / steps
    up = np.exp(sigma * np.sqrt(dt))
    p = (np.exp(r * dt) - 1 / up) / (up - 1 / up)
    prices = s * up ** np.arange(steps, -steps - 1, -2)
    value = np.maximum(k - prices, 0)
    for step in range(steps - 1, -1, -1):
        prices = s * up ** np.arange(step, -step - 1, -2)
        value = np.exp(-r * dt) * (p * value[:-1] + (1 - p) * value[1:])
        value = np.maximum(value, k - prices)
    return value[0]


def bootstrap_curve(par_rates: Any) -> Any:
    n = len(par_rates)
    df = np.zeros(n)
    for i in range(n):
        df[i] = (1 - par_rates[i] * np.sum(df[:i])) / (1 + par_rates[i])
    return -np.log(df) / np.arange(1, n + 1)


def nelson_siegel(tau: Any, beta: Any, lam: Any) -> Any:
    x = tau / lam
    load = -np.expm1(-x) / x
    return beta[0] + beta[1] * load + beta[2] * (load - np.exp(-x))


@dataclass
class Bond:
    face: Any
    coupon: Any
    years: int
    frequency: int = 2

    def __post_init__(self) -> None:
        if self.years * self.frequency <= 0:
            raise ValueError("no payments")

    def flows(self) -> list[tuple[float, Any]]:
        n = self.years * self.frequency
        flows = [(i / self.frequency, self.face * self.coupon / self.frequency) for i in range(1, n + 1)]
        flows[-1] = (flows[-1][0], flows[-1][1] + self.face)
        return flows

    def price(self, y: Any) -> Any:
        return sum(cf * math.exp(-y * t) for t, cf in self.flows())

    def duration(self, y: Any) -> Any:
        return sum(t * cf * math.exp(-y * t) for t, cf in self.flows()) / self.price(y)


def bond_numbers(face: Any, coupon: Any, y: Any) -> Any:
    bond = Bond(face, coupon, 2)
    return bond.price(y), bond.duration(y)


def max_drawdown(returns: Any) -> Any:
    wealth = np.cumprod(1 + returns)
    peak = np.maximum.accumulate(wealth)
    return ((wealth - peak) / peak).min()


def sharpe(returns: Any, rf: Any = 0.0, periods: int = 252) -> Any:
    excess = returns - rf
    sd = excess.std(ddof=1)
    if sd == 0 or np.isnan(sd):
        return np.nan
    return excess.mean() / sd * np.sqrt(periods)


def garch_likelihood(params: Any, r: Any) -> Any:
    omega, alpha, beta = params
    if alpha + beta >= 1:
        return 1e10
    sigma2 = np.empty(len(r))
    sigma2[0] = np.var(r)
    for t in range(1, len(r)):
        sigma2[t] = omega + alpha * r[t - 1] ** 2 + beta * sigma2[t - 1]
    return 0.5 * np.sum(np.log(2 * np.pi * sigma2) + r**2 / sigma2)


def minimum_variance(returns: Any) -> Any:
    cov = np.cov(returns, rowvar=False)
    try:
        chol = np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        chol = np.linalg.cholesky(cov + 1e-8 * np.eye(len(cov)))
    w = np.linalg.solve(chol.T, np.linalg.solve(chol, np.ones(len(cov))))
    return w / w.sum()


def within_estimator(y: Any, x: Any) -> Any:
    groups = np.array([0, 0, 1, 1, 1])
    yd, xd = y.copy(), x.copy()
    for g in np.unique(groups):
        rows = groups == g
        yd[rows] -= yd[rows].mean()
        xd[rows] -= xd[rows].mean()
    return (xd @ yd) / (xd @ xd)


def newey_west(u: Any, lags: int = 2) -> Any:
    n = len(u)
    s = u @ u / n
    for lag in range(1, lags + 1):
        s += 2 * (1 - lag / (lags + 1)) * (u[lag:] @ u[:-lag]) / n
    return s


def ewma(x: Any, span: float = 4.0) -> Any:
    alpha = 2 / (span + 1)
    weights = (1 - alpha) ** np.arange(len(x))[::-1]
    out = np.full(len(x), np.nan)
    for i in range(len(x)):
        w = weights[-(i + 1) :]
        out[i] = np.dot(w, x[: i + 1]) / w.sum()
    return out


RET = np.array([0.01, -0.02, 0.015, 0.03, -0.01])
ROWS = [
    Row(present_value, 0.05, np.array([-100.0, 30.0, 40.0, 60.0])),
    Row(annuity, 0.05),
    Row(internal_rate, np.array([-100.0, 30.0, 40.0, 60.0])),
    Row(black_scholes, 100.0, 105.0, 0.5, 0.02, 0.25),
    Row(lambda s, v: black_scholes(s, 95.0, 1.0, 0.01, v, Kind.PUT), 100.0, 0.3),
    Row(erf_normal_cdf, 0.4),
    Row(implied_volatility, 10.0, 100.0, 101.0),
    Row(binomial_american, 100.0, 104.0, 0.03, 0.3),
    Row(bootstrap_curve, np.array([0.02, 0.025, 0.03]), intercept=True),
    Row(nelson_siegel, np.array([1.0, 5.0, 10.0]), np.array([0.03, -0.02, 0.01]), 2.0),
    Row(bond_numbers, 100.0, 0.05, 0.03),
    Row(max_drawdown, RET),
    Row(sharpe, RET, 0.001),
    Row(garch_likelihood, np.array([1e-4, 0.1, 0.8]), RET, intercept=True),
    Row(minimum_variance, np.array([[0.01, 0.02], [-0.02, 0.01], [0.03, -0.01], [0.0, 0.015]])),
    Row(within_estimator, np.array([1.0, 2.0, 0.5, 1.5, 3.0]), np.array([0.3, 1.1, 0.2, 0.9, 1.7])),
    Row(newey_west, RET * 100),
    Row(ewma, RET * 100, intercept=True),
]
