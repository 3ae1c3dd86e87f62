"""
Deblur an image by its gradient
===============================

A photograph is out of focus and noisy. The sharp image gives the photograph when you blur it again, and has edges but
no noise. Its *total variation* is therefore small (Rudin, Osher and Fatemi, 1992). It has 36,864 unknowns, and one
gradient.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_sample_image

import func

SIZE, PENALTY = 192, 0.0002
sharp = np.mean(load_sample_image("china.jpg")[20:212, 180:372], axis=-1) / 255

# The blur multiplies each frequency by that of a Gaussian of two pixels; the image continues periodically.
frequency = np.fft.fftfreq(SIZE)[:, None] ** 2 + np.fft.rfftfreq(SIZE) ** 2
transfer = np.exp(-2 * (np.pi * 2.0) ** 2 * frequency)


def blur(image):
    """Returns the image (192, 192) out of focus."""
    return np.fft.irfft2(transfer * np.fft.rfft2(image), s=(SIZE, SIZE))


photograph = blur(sharp) + 0.005 * np.random.default_rng(0).normal(size=sharp.shape)


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
assert after < 0.85 * before

# A derivative along one direction, against a central difference.
direction = np.random.default_rng(1).normal(size=SIZE**2)
difference = (loss(photograph.ravel() + 1e-6 * direction) - loss(photograph.ravel() - 1e-6 * direction)) / 2e-6
np.testing.assert_allclose(func.grad(loss)(photograph.ravel()) @ direction, difference, rtol=1e-5)

figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained")
for panel, title, image in zip(axes, ("photograph", "restored", "truth"), (photograph, restored, sharp), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    panel.axis("off")
    panel.set_title(title)
plt.show()
