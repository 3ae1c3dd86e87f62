"""
Fit a curve with its exact covariance
=====================================

The data are a damped oscillation with noise. SciPy's ``curve_fit`` estimates amplitude, decay and frequency, and
computes their covariance from the Jacobian. By default it uses finite differences; ``func.jacobian`` is exact.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import curve_fit

import func

TRUE, NOISE = np.array([2.0, 0.3, 4.0]), 0.3


def model(t, amplitude, decay, frequency):
    """Returns the oscillation at the times t."""
    return amplitude * np.exp(-decay * t) * np.cos(frequency * t)


jacobian = func.jit(lambda t, *p: func.jacobian(lambda p: model(t, *p))(np.stack(p)))

# %%
# The same function gives the band around the curve: the variance of a prediction is :math:`J C J^T` to first order.

rng = np.random.default_rng(3)
times = np.linspace(0, 6, 60)
data = model(times, *TRUE) + NOISE * rng.normal(size=times.shape)
fit, covariance = curve_fit(
    model, times, data, p0=[1.5, 0.5, 3.8], sigma=np.full(60, NOISE), absolute_sigma=True, jac=jacobian
)
for name, value, error, true in zip(
    ("amplitude", "decay", "frequency"), fit, np.sqrt(np.diagonal(covariance)), TRUE, strict=True
):
    print(f"{name} = {value:.3f} ± {error:.3f}   (true {true})")

# At the minimum the covariance is (JᵀJ)⁻¹σ², with J by hand.
wave, phase = np.exp(-fit[1] * times), fit[2] * times
J = np.stack([wave * np.cos(phase), -fit[0] * times * wave * np.cos(phase), -fit[0] * times * wave * np.sin(phase)], 1)
np.testing.assert_allclose(covariance, np.linalg.inv(J.T @ J) * NOISE**2, rtol=1e-4, atol=1e-10)

# %%
# The covariance makes a promise: experiments with new noise scatter like its ellipse, which should contain 86 % of them
# (two standard deviations in the plane).

again = []
for _ in range(400):
    repeated = model(times, *fit) + NOISE * rng.normal(size=times.shape)
    again.append(curve_fit(model, times, repeated, p0=fit, jac=jacobian)[0][:2])
distance = np.array(again) - fit[:2]
inside = np.mean(np.sum(distance @ np.linalg.inv(covariance[:2, :2]) * distance, axis=1) < 4)
print(f"{inside:.0%} of the repeated experiments are inside the ellipse")
assert abs(inside - 0.86) < 0.06

fine = np.linspace(0, 8, 300)
slopes = jacobian(fine, *fit)
band = 2 * np.sqrt(np.sum((slopes @ covariance) * slopes, axis=1))
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.6), layout="constrained", width_ratios=(5, 4))
left.fill_between(fine, model(fine, *fit) - band, model(fine, *fit) + band, alpha=0.3, label="± 2 deviations")
left.plot(fine, model(fine, *fit), label="fit")
left.plot(times, data, "k.", markersize=4, label="data")
left.set(xlabel="time", title="a damped oscillation", ylim=(-2.2, 4))
left.legend()
circle = 2 * np.stack([np.cos(np.linspace(0, 2 * np.pi, 99)), np.sin(np.linspace(0, 2 * np.pi, 99))])
right.plot(*np.array(again).T, ".", color="0.6", markersize=4)
right.plot(*(fit[:2, None] + np.linalg.cholesky(covariance[:2, :2]) @ circle), "C3")
right.set(xlabel="amplitude", ylabel="decay", title="repeated experiments")
plt.show()
