"""
Take six derivatives of tanh
============================

``func.grad`` takes a function and returns a function, so you can apply it to its own result. Six times over, it gives
the sixth derivative of :math:`\\tanh`: exact, without difference quotients.
"""

import matplotlib.pyplot as plt
import numpy as np

import func

# %%
# ``grad`` differentiates a function of one number. ``vmap`` makes it a function of many numbers, and ``jit`` compiles
# each of the six to one loop over the points.

x = np.linspace(-5, 4, 400)
derivative = np.tanh
curves = []
for _ in range(6):
    derivative = func.grad(derivative)
    curves.append(func.jit(func.vmap(derivative))(x))

# %%
# The derivative of tanh is 1 - tanh², so each further one is a polynomial in :math:`t = \tanh x`: the chain rule gives
# :math:`p_{n+1}(t) = p_n'(t)\,(1 - t^2)`.

polynomial = np.polynomial.Polynomial([0.0, 1.0])
for curve in curves:
    polynomial = polynomial.deriv() * np.polynomial.Polynomial([1.0, 0.0, -1.0])
    np.testing.assert_allclose(curve, polynomial(np.tanh(x)), atol=1e-10)
print("all six agree with their polynomials; the largest values are", [f"{np.max(curve):.2f}" for curve in curves])

figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
axes.plot(x, np.tanh(x), color="black", label="tanh")
for order, curve in enumerate(curves, start=1):
    axes.plot(x, curve / np.max(np.abs(curve)), color=plt.cm.plasma(order / 7), label=f"derivative {order}")
axes.set(xlabel="x", title="tanh and its derivatives, each divided by its largest value")
axes.legend(loc="upper left", fontsize="small")
plt.show()
