"""
Compute option greeks in one compiled loop
==========================================

The *greeks* of an option are derivatives of its price: delta and gamma by the share price, vega by the volatility,
theta by time. Black and Scholes (1973) gave the price. func computes all greeks of a whole book of options at once, and
``profile()`` shows the time of each compiled kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

import func

STRIKE, RATE = 100.0, 0.02


def price(share, volatility, years):
    """Returns the price of ONE European call option."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(share / STRIKE) + RATE * years) / spread + spread / 2
    return share * ndtr(d1) - STRIKE * np.exp(-RATE * years) * ndtr(d1 - spread)


def greeks(share, volatility, years):
    """Returns delta, vega, theta and gamma of ONE option."""
    delta, vega, slope = func.grad(price, argnums=(0, 1, 2))(share, volatility, years)
    return delta, vega, -slope, func.grad(func.grad(price))(share, volatility, years)


# %%
# ``vmap`` turns one option into a book, and ``jit`` turns the book into one compiled loop.

book = func.jit(func.vmap(greeks))
rng = np.random.default_rng(0)
options = rng.uniform(60, 140, 20_000), rng.uniform(0.1, 0.5, 20_000), rng.uniform(0.1, 2.0, 20_000)
delta, vega, theta, gamma = book(*options)
print(book.profile(*options))

# %%
# The closed forms agree: delta is :math:`\Phi(d_1)`, and :math:`\text{vega} = \gamma S^2 \sigma T`.

share, volatility, years = options
spread = volatility * np.sqrt(years)
d1 = (np.log(share / STRIKE) + RATE * years) / spread + spread / 2
np.testing.assert_allclose(delta, ndtr(d1), rtol=1e-10, atol=1e-12)
np.testing.assert_allclose(vega, gamma * share**2 * volatility * years, rtol=1e-8, atol=1e-8)

line = np.linspace(60, 140, 200)
figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.6), layout="constrained", sharex=True)
for years in (0.1, 0.5, 2.0):
    values = book(line, np.full(200, 0.25), np.full(200, years))
    for panel, name, value in zip(axes.flat, ("delta", "vega", "theta", "gamma"), values, strict=True):
        panel.plot(line, value, label=f"{years} years")
        panel.set(title=name)
axes[0, 0].legend()
figure.supxlabel("value of the share; strike 100, volatility 25 %")
plt.show()
