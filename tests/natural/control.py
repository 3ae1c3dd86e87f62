"""Control and robotics as packages write them: state-space loops, kinematic chains, filters with state."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from typing import Any

import numpy as np
from scipy import linalg as sla

from tests.support.natural_code import Row


def rotation(axis: str, angle: Any) -> Any:
    c, s = math.cos(angle), math.sin(angle)
    if axis == "x":
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    if axis == "y":
        return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    if axis == "z":
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    raise ValueError(f"no axis {axis!r}")


def dh_chain(q: Any, a: tuple[float, ...] = (0.4, 0.3, 0.2)) -> Any:
    t = np.eye(4)
    for qi, ai in zip(q, a, strict=True):
        link = np.eye(4)
        link[:2, :2] = [[np.cos(qi), -np.sin(qi)], [np.sin(qi), np.cos(qi)]]
        link[0, 3] = ai * np.cos(qi)
        link[1, 3] = ai * np.sin(qi)
        t = t @ link
    return t[:3, 3]


def euler_to_quaternion(angles: Any) -> Any:
    half = [0.5 * a for a in angles]
    (cr, cp, cy), (sr, sp, sy) = map(math.cos, half), map(math.sin, half)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def quaternion_rotate(q: Any, v: Any) -> Any:
    norm = np.linalg.norm(q)
    if norm < 1e-12:
        raise ZeroDivisionError("quaternion of norm zero")
    w, *xyz = q / norm
    u = np.array(xyz)
    return v + 2 * np.cross(u, np.cross(u, v) + w * v)


def rodrigues(w: Any) -> Any:
    theta = np.sqrt(np.dot(w, w))
    k = np.zeros((3, 3))
    k[0, 1], k[0, 2], k[1, 2] = -w[2], w[1], -w[0]
    k = k - k.T
    if theta < 1e-8:
        return np.eye(3) + k
    return np.eye(3) + np.sin(theta) / theta * k + (1 - np.cos(theta)) / theta**2 * (k @ k)


def simulate(a: Any, b: Any, u: Any, x0: Any = None) -> Any:
    n, steps = a.shape[0], len(u)
    x = np.zeros((steps + 1, n))
    if x0 is not None:
        x[0] = x0
    for k in range(steps):
        x[k + 1] = a @ x[k] + b * u[k]
    return x


def lqr_gain(q: Any, r: Any) -> Any:
    a = np.array([[0.4, 0.1], [0.0, 0.3]])
    b = np.array([[0.0], [0.5]])
    p, k = np.diag(q), np.zeros((1, 2))
    for _ in range(50):
        k = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        new = np.diag(q) + a.T @ p @ (a - b @ k)
        if np.allclose(new, p, rtol=1e-9, atol=1e-10):
            break
        p = new
    return k


def care_gain(q: Any) -> Any:
    a = np.array([[0.0, 1.0], [-1.0, -0.2]])
    b = np.array([[0.0], [1.0]])
    p = sla.solve_continuous_are(a, b, np.diag(q), np.eye(1))
    return b.T @ p


class PID:
    """A controller with a limited integral."""

    def __init__(self, kp: Any, ki: Any, kd: Any, limits: tuple[Any, Any] = (None, None)) -> None:
        self.kp, self.ki, self.kd = kp, ki, kd
        self._min, self._max = limits
        self.reset()

    def reset(self) -> None:
        self._integral = 0
        self._last = None

    def __call__(self, error: Any, dt: float = 0.1) -> Any:
        self._integral += self.ki * error * dt
        if self._max is not None and self._integral > self._max:
            self._integral = self._max
        elif self._min is not None and self._integral < self._min:
            self._integral = self._min
        d = 0 if self._last is None else (error - self._last) / dt
        self._last = error
        return self.kp * error + self._integral + self.kd * d


def pid_response(kp: Any, ki: Any, kd: Any) -> Any:
    pid = PID(kp, ki, kd, limits=(-1.0, 0.2))
    position, velocity, track = 0.0, 0.0, []
    for _ in range(6):
        force = pid(1.0 - position)
        velocity = velocity + 0.1 * (force - 0.5 * velocity)
        position = position + 0.1 * velocity
        track.append(position)
    return np.array(track)


class Kalman:
    def __init__(self, f: Any, h: Any, q: Any, r: Any) -> None:
        self.f, self.h, self.q, self.r = f, h, q, r
        self.x = np.zeros(len(f))
        self.p = np.eye(len(f))
        self.loglik = 0.0

    def predict(self) -> None:
        self.x = self.f @ self.x
        self.p = self.f @ self.p @ self.f.T + self.q

    def update(self, z: Any) -> None:
        y = z - self.h @ self.x
        s = self.h @ self.p @ self.h.T + self.r
        k = self.p @ self.h.T @ np.linalg.inv(s)
        self.x = self.x + k @ y
        self.p = (np.eye(len(self.x)) - k @ self.h) @ self.p
        sign, logdet = np.linalg.slogdet(s)
        if sign <= 0:
            raise np.linalg.LinAlgError("covariance is not positive definite")
        self.loglik -= 0.5 * (logdet + y @ np.linalg.solve(s, y) + len(y) * math.log(2 * math.pi))


def kalman_loglik(z: Any, noise: Any) -> Any:
    kf = Kalman(np.array([[1.0, 0.2], [0.0, 1.0]]), np.array([[1.0, 0.0]]), 0.01 * np.eye(2), noise * np.eye(1))
    for value in z:
        kf.predict()
        kf.update(np.atleast_1d(value))
    return kf.loglik


def ik_two_link(x: Any, y: Any, l1: float = 1.0, l2: float = 0.8) -> Any:
    d = (x**2 + y**2 - l1**2 - l2**2) / (2 * l1 * l2)
    if abs(d) > 1:
        raise ValueError(f"({x:.2f}, {y:.2f}) is out of reach")
    elbow = math.atan2(math.sqrt(1 - d**2), d)
    shoulder = math.atan2(y, x) - math.atan2(l2 * math.sin(elbow), l1 + l2 * math.cos(elbow))
    return shoulder, elbow


def newton_ik(target: Any) -> Any:
    q = np.array([0.3, 0.6])
    for _ in range(30):
        s1, c1, s12, c12 = np.sin(q[0]), np.cos(q[0]), np.sin(q.sum()), np.cos(q.sum())
        f = np.array([c1 + 0.8 * c12, s1 + 0.8 * s12]) - target
        jac = np.array([[-s1 - 0.8 * s12, -0.8 * s12], [c1 + 0.8 * c12, 0.8 * c12]])
        try:
            step = np.linalg.solve(jac, f)
        except np.linalg.LinAlgError:
            step = np.linalg.lstsq(jac, f, rcond=None)[0]
        q = q - step
        if np.linalg.norm(step) < 1e-13:
            return q
    raise RuntimeError("no convergence")


def min_jerk(t: Any, start: Any, goal: Any, duration: float = 1.0) -> Any:
    tau = np.clip(np.atleast_1d(t) / duration, 0.0, 1.0)
    s = functools.reduce(lambda acc, c: acc * tau + c, [6, -15, 10, 0, 0], 0.0) * tau
    return start + (goal - start) * s


def bode_margin(k: Any, tau: Any) -> Any:
    w = np.logspace(-1, 1, 7)
    loop = k / ((1j * w) * (1 + 1j * w * tau))
    mag = 20 * np.log10(np.abs(loop))
    phase = np.unwrap(np.angle(loop))
    i = np.argmax(mag < 0)
    frac = mag[i - 1] / (mag[i - 1] - mag[i])
    return np.degrees(phase[i - 1] + frac * (phase[i] - phase[i - 1])) + 180


def rewards(r: Any, gamma: Any = 0.9) -> Any:
    discounted = list(itertools.accumulate(reversed(list(r)), lambda acc, x: x + gamma * acc))
    return np.array(discounted[::-1])


def cart_pole_step(state: Any, force: Any) -> Any:
    new = copy.copy(state)
    _, v, th, om = state
    temp = (force + 0.05 * om**2 * np.sin(th)) / 1.1
    alpha = (9.8 * np.sin(th) - np.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 * np.cos(th) ** 2 / 1.1))
    new[0] += 0.02 * v
    new[1] += 0.02 * (temp - 0.05 * alpha * np.cos(th) / 1.1)
    new[2] += 0.02 * om
    new[3] += 0.02 * alpha
    return new


A = np.array([[0.9, 0.2], [-0.1, 0.8]])
ROWS = [
    Row(lambda t: rotation("z", t) @ rotation("x", 2 * t) @ np.array([1.0, 2.0, 3.0]), 0.4),
    Row(dh_chain, np.array([0.3, -0.5, 0.8]), intercept=True),
    Row(euler_to_quaternion, np.array([0.3, -0.5, 0.8])),
    Row(quaternion_rotate, np.array([0.9, 0.1, -0.3, 0.2]), np.array([1.0, 2.0, 3.0])),
    Row(rodrigues, np.array([0.3, -0.5, 0.8]), intercept=True),
    Row(simulate, A, np.array([0.1, 0.3]), np.array([1.0, -0.5, 0.2]), np.array([0.5, 0.0]), intercept=True),
    Row(lqr_gain, np.array([1.0, 0.1]), 0.5),
    Row(care_gain, np.array([1.0, 0.1])),
    Row(pid_response, 2.0, 1.1, 0.1),
    Row(kalman_loglik, np.array([0.1, 0.4, 0.3]), 0.3),
    Row(ik_two_link, 0.9, 0.7),
    Row(newton_ik, np.array([1.1, 0.6])),
    Row(min_jerk, np.array([0.2, 0.7]), 0.5, 2.0),
    Row(bode_margin, 1.5, 0.4),
    Row(rewards, np.array([1.0, 0.5, 2.0])),
    Row(cart_pole_step, np.array([0.1, -0.2, 0.05, 0.3]), 1.5),
]
