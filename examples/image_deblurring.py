"""
Image deblurring
================

A camera out of focus, and noise. The sharp image is the one that, blurred again, gives the photograph, and has edges
but no noise: its *total variation* is small (Rudin, Osher and Fatemi, 1992). It has 4,096 unknowns, and one gradient.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import func

SIZE, PENALTY = 64, 0.0006
rows, columns = np.mgrid[:SIZE, :SIZE]
sharp = 0.2 + 0.6 * ((rows - 24) ** 2 + (columns - 24) ** 2 < 180) + 0.4 * ((rows > 36) & (columns > 30) & (rows < 54))
sharp = sharp - 0.5 * (np.abs(rows - columns) < 2)

# The blur multiplies each frequency by that of a Gaussian of two pixels; the image continues periodically.
frequency = np.fft.fftfreq(SIZE)[:, None] ** 2 + np.fft.rfftfreq(SIZE) ** 2
transfer = np.exp(-2 * (np.pi * 2.0) ** 2 * frequency)


def blur(image):
    """Returns the image (64, 64) out of focus."""
    return np.fft.irfft2(transfer * np.fft.rfft2(image), s=(SIZE, SIZE))


photograph = blur(sharp) + 0.01 * np.random.default_rng(0).normal(size=sharp.shape)


def loss(pixels):
    """Returns misfit plus penalty; the small constant rounds the corner of the absolute value."""
    image = pixels.reshape(SIZE, SIZE)
    across, down = image - np.roll(image, 1, axis=1), image - np.roll(image, 1, axis=0)
    return np.sum((blur(image) - photograph) ** 2) / 2 + PENALTY * np.sum(np.sqrt(across**2 + down**2 + 1e-4))


# %%
# The gradient goes through NumPy's FFT, compiled together with the rest.

result = minimize(
    func.jit(func.value_and_grad(loss)), photograph.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300}
)
restored = result.x.reshape(SIZE, SIZE)
before, after = (np.sqrt(np.mean((image - sharp) ** 2)) for image in (photograph, restored))
print(f"{result.nit} steps: root mean square error {before:.3f} -> {after:.3f}")
assert after < 0.7 * before

# A derivative along one direction, against a central difference.
direction = np.random.default_rng(1).normal(size=SIZE**2)
difference = (loss(photograph.ravel() + 1e-6 * direction) - loss(photograph.ravel() - 1e-6 * direction)) / 2e-6
np.testing.assert_allclose(func.grad(loss)(photograph.ravel()) @ direction, difference, rtol=1e-5)

figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.9), layout="constrained")
for panel, title, image in zip(axes, ("sharp", "photograph", "restored"), (sharp, photograph, restored), strict=True):
    panel.imshow(image, cmap="gray", vmin=-0.2, vmax=1.2)
    panel.set(title=title, xticks=[], yticks=[])
plt.show()
