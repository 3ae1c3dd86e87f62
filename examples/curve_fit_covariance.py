"""
A curve fit with its exact covariance
=====================================

A damped oscillation was measured with noise. ``curve_fit`` of SciPy finds amplitude, decay and frequency, and from the
Jacobian their covariance. By default that Jacobian is made of differences; ``func.jacobian`` gives the exact one.
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

fine = np.linspace(0, 8, 300)
slopes = jacobian(fine, *fit)
band = 2 * np.sqrt(np.sum((slopes @ covariance) * slopes, axis=1))
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
axes.fill_between(fine, model(fine, *fit) - band, model(fine, *fit) + band, alpha=0.3, label="± 2 standard deviations")
axes.plot(fine, model(fine, *fit), label="fit")
axes.plot(times, data, "k.", markersize=4, label="data")
axes.set(xlabel="time", title="A damped oscillation, and how well the curve is known")
axes.legend(frameon=False)
plt.show()
