"""The laws of the rows of scipy.spatial.transform, and shapes, mixtures and singular points against SciPy's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.spatial.transform as scipy_transform
from scipy.spatial.transform import Rotation as R

import func
import func.scipy.spatial.transform as own
from tests.support import scipy_spatial_transform
from tests.support.scipy_rows import check, parameters

HAS_HOOKS = own.rotations.HAS_HOOKS
pytestmark = pytest.mark.skipif(not HAS_HOOKS, reason="the classes of SciPy before 1.17 are compiled")
RNG = np.random.default_rng(0)
V = RNG.normal(size=(4, 3))
W = RNG.normal(size=(2, 3, 3))


@pytest.mark.parametrize(("name", "column"), parameters(scipy_spatial_transform.ROWS))
def test_rows(name, column):
    check(scipy_spatial_transform.ROWS[name], "spatial.transform", column)


SHAPES = {
    "stack": lambda x: R.from_rotvec(x).as_quat(),
    "index": lambda x: R.from_rotvec(x)[1].as_matrix(),
    "mask": lambda x: R.from_rotvec(x)[np.array([True, False])].as_matrix(),
    "mean of an axis": lambda x: R.from_rotvec(x).mean(axis=0).as_matrix(),
    "mean with weights": lambda x: R.from_rotvec(x).mean(np.arange(1.0, 7.0).reshape(2, 3), axis=1).as_matrix(),
    "apply": lambda x: R.from_rotvec(x).apply(V[:3]),
    "apply to one": lambda x: R.from_rotvec(x[0, :1]).apply(V[0]),
    "one times many": lambda x: (R.from_rotvec(x[0, :1]) * R.from_rotvec(V)).as_quat(),
    "euler": lambda x: R.from_euler("zyx", x, degrees=True).as_euler("XYX", degrees=True),
    "euler of one axis": lambda x: R.from_euler("x", x[:, :, :1]).as_rotvec(),
    "euler of a number": lambda x: R.from_euler("x", x[0, 0, 0]).as_mrp(),
    "davenport": lambda x: R.from_davenport(np.eye(3)[:2], "e", x[0, :, :2]).as_quat(scalar_first=True),
    "davenport of one axis": lambda x: R.from_davenport([0, 0, 1], "i", x[0, 0, 0]).as_quat(),
    "power": lambda x: (R.from_rotvec(x) ** -1.5).as_matrix(),
    "concatenate": lambda x: R.concatenate([R.from_rotvec(V), R.from_rotvec(x[0])]).as_rotvec(),
    "one pair": lambda x: R.align_vectors(x[0, 0], V[0])[0].as_quat(),
    "a pair in full": lambda x: R.align_vectors(x[0], V[:3], [1, np.inf, 2])[0].as_quat(),
    "distance": lambda x: R.align_vectors(x[0], V[:3])[1],
    "sensitivity": lambda x: R.align_vectors(x[0], V[:3], return_sensitivity=True)[2],
    "reduce": lambda x: R.from_rotvec(x[0]).reduce(None, R.create_group("C3")).as_quat(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_scipys(name):
    call = SHAPES[name]
    expected = call(W)
    value, slope = func.jvp(call, (W,), (W,))
    assert value.shape == expected.shape and value.dtype == expected.dtype
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    h = 1e-6
    np.testing.assert_allclose(slope, (call(W + h * W) - call(W - h * W)) / (2 * h), rtol=1e-6, atol=1e-6)


def test_plain_and_traced_rotations_meet():
    plain = R.from_rotvec(V)

    def f(x):
        r = R.from_rotvec(x)
        assert isinstance(r, R) and isinstance(r, own.Rotation) and r.single and r.shape == ()
        assert type(R.from_rotvec(V)) is R
        changed = R.from_rotvec(V)
        changed[1] = r
        assert isinstance(changed, own.Rotation) and len([*changed]) == len(changed) == 4
        assert plain.approx_equal(plain * r).shape == (4,)
        return (plain * r).as_matrix().sum() + (r * plain).as_quat()[0, 0] + changed.as_rotvec()[1].sum()

    gradient = func.grad(f)(V[0])
    np.testing.assert_allclose(func.jit(func.grad(f))(V[0]), gradient, rtol=1e-12)
    assert np.all(np.isfinite(gradient))


def test_rotations_are_trees():
    rotations = R.from_rotvec(V)
    np.testing.assert_allclose(func.vmap(lambda r: r.as_rotvec())(rotations), V)
    made = func.jit(lambda v: R.from_rotvec(v))(V)
    assert type(made) is R
    np.testing.assert_allclose(pickle.loads(pickle.dumps(made)).as_rotvec(), V)


def test_identity_is_smooth():
    """exp(θ/2)'s second derivative, and that of the logarithm, which is the identity map near zero."""
    hessian = func.jacfwd(func.jacrev(lambda v: R.from_rotvec(v).as_matrix()))(np.zeros(3))
    skew = np.stack([-np.cross(np.eye(3), e) for e in np.eye(3)])  # skew[k] @ x = e_k × x
    expected = np.einsum("aij,bjk->ikab", skew, skew)
    np.testing.assert_allclose(hessian, (expected + np.swapaxes(expected, 2, 3)) / 2, atol=1e-14)
    there = func.jacfwd(func.jacrev(lambda v: R.from_rotvec(v).as_rotvec()))(np.zeros(3))
    np.testing.assert_allclose(there, 0, atol=1e-14)
    assert np.all(func.grad(lambda v: R.from_rotvec(v).magnitude())(np.zeros(3)) == 0)


def test_mean_of_few_has_second_derivatives():
    """The other eigenvalues are equal: the mean of one rotation is the rotation."""
    f = func.hessian(lambda v: np.sum(R.from_rotvec(v[None]).mean().as_matrix() * W[0]))
    g = func.hessian(lambda v: np.sum(R.from_rotvec(v).as_matrix() * W[0]))
    np.testing.assert_allclose(f(V[0]), g(V[0]), rtol=1e-9, atol=1e-12)


def test_gimbal_lock():
    x = np.array([0.3, np.pi / 2, 0.5])
    with pytest.warns(UserWarning, match="Gimbal lock detected"):
        value, slope = func.jvp(lambda x: R.from_euler("xyz", x).as_euler("xyz"), (x,), (np.array([1.0, 0.0, 3.0]),))
    np.testing.assert_allclose(value, [-0.2, np.pi / 2, 0], atol=1e-12)
    np.testing.assert_allclose(slope, [-2, 0, 0], atol=1e-12)
    second = func.hessian(lambda x: R.from_euler("zxz", x).as_euler("zxz", suppress_warnings=True).sum())
    assert np.all(np.isfinite(second(np.array([0.3, 0.0, 0.5]))))


def test_half_turn():
    """At the angle π the vector's sign is that of the branch taken."""
    jacobian = func.jacfwd(lambda v: R.from_rotvec(v).as_rotvec())(np.array([np.pi, 0.0, 0.0]))
    np.testing.assert_allclose(jacobian, np.eye(3), atol=1e-12)


REFUSED = {
    "vectors": lambda x: R.from_rotvec(x[0, 0, :2]),
    "zero": lambda x: R.from_quat(np.zeros(4) * x[0, 0, 0]),
    "left-handed": lambda x: R.from_matrix(-np.eye(3) * (1 + x[0, 0, 0] ** 2)),
    "axes": lambda x: R.from_rotvec(x).as_euler("xyw"),
    "not orthogonal": lambda x: R.from_davenport([[1, 0, 0], [1, 1, 0.0]], "e", x[0, 0, :2]),
    "sizes": lambda x: R.from_rotvec(x) * R.from_rotvec(V),
    "len": lambda x: len(R.from_rotvec(x[0, 0])),
    "index": lambda x: R.from_rotvec(x[0, 0])[0],
    "factor": lambda x: R.from_rotvec(x) * 3,
    "weights": lambda x: R.from_rotvec(x[0]).mean([-1, 2, 3]),
    "time": lambda x: scipy_transform.Slerp([0, 1, 2], R.from_rotvec(x[0]))(3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_scipys_error(name):
    with pytest.raises(Exception) as expected:
        REFUSED[name](W)
    with pytest.raises(type(expected.value)) as got:
        func.jvp(REFUSED[name], (W,), (W,))
    assert str(got.value)[:20] == str(expected.value)[:20]


def test_imperative_api():
    v = func.tensor(V[0], requires_grad=True)
    R.from_rotvec(v).as_matrix().sum().backward()
    np.testing.assert_allclose(v.grad, func.grad(lambda v: R.from_rotvec(v).as_matrix().sum())(V[0]))
