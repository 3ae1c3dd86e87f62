"""
Tune a penalty for every feature
================================

How strongly should you regularise a model? For one penalty you try ten values. Here each of 20 features has its own,
and no grid can search them. The best penalties :math:`\\lambda` solve a *bilevel* problem. The weights that training
with these penalties gives must predict other data well,

.. math::
    \\min_\\lambda \\; V(w^*(\\lambda)) \\quad \\text{where} \\quad
    w^*(\\lambda) = \\arg\\min_w \\; T(w) + \\tfrac12 \\textstyle\\sum_i e^{\\lambda_i} w_i^2 .

Both levels are calls of ``scipy.optimize.minimize``, one inside the other. The outer one needs the derivative *of a
minimiser*. func takes it from the equation :math:`\\nabla_w = 0` of the minimiser, not from the solver's steps.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import func

FEATURES, RELEVANT = 20, 4

rng = np.random.default_rng(2)
truth = np.zeros(FEATURES)
truth[:RELEVANT] = [2.0, -1.5, 1.0, -1.0]


def sample(size):
    """Draws features (size, 20) and labels ±1, which depend on the first four features."""
    x = rng.normal(size=(size, FEATURES))
    return x, np.where(rng.uniform(size=size) < expit(x @ truth), 1.0, -1.0)


training, validation, test = sample(80), sample(1000), sample(2000)


def loss(weights, data):
    """Returns the mean logistic loss."""
    x, label = data
    return np.mean(np.logaddexp(0, -label * (x @ weights)))


def train(log_penalties):
    """Returns the weights (20,) with the smallest penalised loss on the training data."""

    def penalised(weights):
        return loss(weights, training) + np.sum(np.exp(log_penalties) * weights**2) / 2

    derivatives = {"jac": func.grad(penalised), "hess": func.hessian(penalised)}
    return minimize(penalised, np.zeros(FEATURES), **derivatives, method="trust-exact", tol=1e-8).x


def validate(log_penalties):
    """Returns the loss of the trained weights on the validation data."""
    return loss(train(log_penalties), validation)


# %%
# The gradient of a program that trains
# -------------------------------------
# ``func.grad(validate)`` differentiates through the inner ``minimize``. Its 20 components cost one linear system with
# the Hessian of the training loss; differences would cost 40 trainings.

start = np.full(FEATURES, np.log(0.1))
gradient = func.grad(validate)(start)
direction = rng.normal(size=FEATURES)
difference = (validate(start + 1e-4 * direction) - validate(start - 1e-4 * direction)) / 2e-4
print(f"derivative along a direction {gradient @ direction:.8f}, by differences {difference:.8f}")

assert np.isclose(gradient @ direction, difference, rtol=1e-4)

# %%
# The outer problem
# -----------------
# The comparison is the usual method: the best single penalty of a grid. Bounds keep the penalties of useless features
# finite.

grid = np.linspace(-5, 2, 15)
single = grid[np.argmin([validate(np.full(FEATURES, level)) for level in grid])]

outer = minimize(
    func.value_and_grad(validate), np.full(FEATURES, single), jac=True, method="L-BFGS-B", bounds=[(-5, 5)] * FEATURES
)
results = {"one penalty": train(np.full(FEATURES, single)), "a penalty for each": train(outer.x)}
for name, weights in results.items():
    print(f"{name}: loss {loss(weights, validation):.3f} on validation data, {loss(weights, test):.3f} on test data")
print(f"the true weights: {loss(truth, test):.3f} on test data; {outer.nfev} trainings for {FEATURES} penalties")

assert loss(results["a penalty for each"], test) < 0.9 * loss(results["one penalty"], test)
assert outer.x[:RELEVANT].max() < np.median(outer.x[RELEVANT:])

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
colors = ["C0"] * RELEVANT + ["C7"] * (FEATURES - RELEVANT)
left.bar(range(FEATURES), np.exp(outer.x), color=colors)
left.axhline(np.exp(single), color="k", linestyle=":", label="best single one")
left.legend(loc="upper left")
left.set_xticks(range(0, FEATURES, 5))
right.set_xticks(range(0, FEATURES, 5))
left.set(yscale="log", ylim=(None, 3e3), xlabel="feature (blue: relevant)", title="best penalties")
right.plot(truth, "k_", markersize=12, label="truth")
for (name, weights), marker in zip(results.items(), "xo", strict=True):
    right.plot(weights, marker, markersize=5, label=name)
right.set(xlabel="feature", title="weights after training")
right.legend()
plt.show()
