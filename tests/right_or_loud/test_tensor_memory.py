"""Memory and history of tensors: the changes that a write to a tensor, a view or an alias makes, and does not make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import grad, graph
from func.errors import AnomalyError, FrozenValueWarning, LeafError

A = np.array([1.0, 2.0, 3.0])


def leaf(data: Any = A) -> Any:
    """A tensor that requires a gradient."""
    return func.tensor(data, requires_grad=True)


def halve_a_view(z: Any) -> Any:
    """y = 2 z, of which a view is halved unrecorded."""
    y = z * 2
    v = y[1:]
    with func.no_grad():
        v *= 0.5
    return (v * v).sum() + y.sum()


def overwrite_a_base(z: Any) -> Any:
    """y = 2 z, one element of which is overwritten unrecorded."""
    y = z * 2
    v = y[1:]
    with func.no_grad():
        y[0] = 100.0
        y[2] -= 1.0
    return (v * v).sum() + (y * y).sum()


def write_a_detached_alias(z: Any) -> Any:
    """y = 2 z, of which a detached alias is multiplied by z."""
    y = z * 2
    d = y.detach()
    d *= z
    return (y * y).sum() + d.sum()


def write_a_view_of_an_alias(z: Any) -> Any:
    """The same through views on both sides."""
    y = z * 2
    d = y[::-1].detach()[1:]
    d += z[:2]
    return (y**2 * z).sum() + (d**2).sum()


# The expected gradients are those of the same programs in PyTorch 2.13 (the last by hand: it has no negative strides).
WRITES: list[tuple[Callable[[Any], Any], list[float]]] = [
    (halve_a_view, [2.0, 10.0, 14.0]),
    (overwrite_a_base, [400.0, 32.0, 40.0]),
    (write_a_detached_alias, [10.0, 36.0, 78.0]),
    (write_a_view_of_an_alias, [42.0, 73.0, 108.0]),
]


@pytest.mark.parametrize(("f", "expected"), WRITES)
def test_unrecorded_writes_change_numbers_and_no_history(f: Callable[[Any], Any], expected: list[float]) -> None:
    x = leaf()
    value = f(x)
    np.testing.assert_allclose(grad(value, x)[0].numpy(), expected)
    ways = {
        "grad": func.grad(f),
        "grad of jit": func.grad(func.jit(f)),
        "jit of grad": func.jit(func.grad(f)),
        "vmap": lambda z: func.vmap(func.grad(f))(z[None])[0],
        "jacrev": func.jacrev(f),
    }
    for name, derivative in ways.items():
        np.testing.assert_allclose(derivative(A), expected, err_msg=name)
    assert func.jit(f)(A) == value.item()


def test_a_view_written_under_no_grad_keeps_its_history_and_hooks() -> None:
    x, seen = leaf(), []
    y = x * 2
    v = y[1:]
    v.register_hook(lambda g: seen.append(g.tolist()))
    v.retain_grad()
    node = v.grad_fn
    with func.no_grad():
        v *= 0.5
        y[0] = 7.0
    assert v.requires_grad and v.grad_fn == node
    (v * v).sum().backward()
    assert seen == [[4.0, 6.0]] and v.grad.tolist() == [4.0, 6.0] and x.grad.tolist() == [0.0, 8.0, 12.0]


def _add_to_a_slice(y: Any) -> None:
    y[1:] += func.tensor([1.0, 1.0])


def _add_to_a_view(y: Any) -> None:
    v = y[::2]
    v += 1.0


def _write_an_alias_of_the_alias(y: Any) -> None:
    z = y.detach()
    z.requires_grad_()
    z[1:][:1] *= 2.0
    assert z.requires_grad and z.is_leaf


@pytest.mark.parametrize("write", [_add_to_a_slice, _add_to_a_view, _write_an_alias_of_the_alias])
def test_a_detached_alias_that_was_made_a_leaf_stays_one(write: Callable[[Any], Any]) -> None:
    def gradients(_: Any) -> Any:
        x = leaf()
        y = x.detach()
        y.requires_grad_()
        with func.no_grad():
            write(y)
        assert y.requires_grad and y.is_leaf and x.tolist() == y.tolist() != A.tolist()
        (y * y).sum().backward()
        assert y.grad.tolist() == (2 * y).tolist() and x.grad is None
        return y.grad

    gradients(None)
    func.grad(lambda s: np.sum(gradients(s)) * 0 + s)(1.0)
    func.vmap(lambda s: gradients(s) * s)(A)


def test_parameters_that_are_views_of_a_flat_buffer_stay_leaves() -> None:
    flat = func.tensor(np.zeros(6))
    w = flat[:4].reshape(2, 2).requires_grad_()
    b = flat[4:].requires_grad_()
    ((w + 1) ** 2).sum().backward()
    (b * 3).sum().backward()
    with func.no_grad():
        flat += 1.0
    flat += 1.0  # a constant is no history
    assert w.requires_grad and b.requires_grad and w.is_leaf and b.is_leaf
    with func.no_grad():
        w -= 0.5 * w.grad
        b -= b.grad
    assert flat.tolist() == [1.0, 1.0, 1.0, 1.0, -1.0, -1.0]
    ((w + 1) ** 2).sum().backward()
    assert w.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    with pytest.raises(LeafError):
        w += 1.0
    with pytest.raises(LeafError):
        w[0][:1] += 1.0
    assert flat.tolist() == [1.0, 1.0, 1.0, 1.0, -1.0, -1.0]
    a = leaf(np.ones(6))
    flat += a  # a recorded write: the parameters are computed now
    assert not w.is_leaf and grad((w * w).sum(), a)[0].tolist() == [4.0, 4.0, 4.0, 4.0, 0.0, 0.0]


WRITES_OF_A_COMPUTED: dict[str, Callable[[Any], Any]] = {
    "all": lambda y: y.__imul__(3),
    "a slice": lambda y: y[1:].__imul__(10),
    "an element": lambda y: y.__setitem__(0, 5.0),
    "a mask": lambda y: y.__setitem__(np.array([True, False, True]), 4.0),
    "out=": lambda y: np.multiply(y, y, out=y),
    "fill": lambda y: y[:2].fill(2.0),
    "sort": lambda y: y.sort(),
}


@pytest.mark.parametrize("write", WRITES_OF_A_COMPUTED.values(), ids=WRITES_OF_A_COMPUTED)
def test_retained_gradients_are_those_of_the_present_value(write: Callable[[Any], Any]) -> None:
    x = leaf()
    y = x[::-1] * 2
    v = y[1:]
    y.retain_grad()
    v.retain_grad()
    before = y.sum()
    write(y)
    (y**2).sum().backward(retain_graph=True)
    assert y.grad.tolist() == (2 * y.detach().numpy()).tolist()
    assert v.grad is None
    (v**3 + before).sum().backward()
    assert v.grad.tolist() == (3 * v.detach().numpy() ** 2).tolist()


def test_detached_aliases_share_numbers_and_no_history() -> None:
    c, a = func.tensor([1.0, 2.0]), leaf([3.0, 4.0])
    d = c.detach()
    d += a
    assert not c.requires_grad and d.requires_grad and c.tolist() == d.tolist() == [4.0, 6.0]
    assert grad((c * c).sum() + d.sum(), a)[0].tolist() == [1.0, 1.0]
    c *= 2
    assert d.tolist() == [8.0, 12.0] and grad(d.sum(), a)[0].tolist() == [1.0, 1.0]
    for alias in (lambda t: t.detach(), lambda t: t.data, lambda t: t.detach()[:]):
        w = leaf([1.0, 2.0])
        v = w[1:]
        loss = (w * w).sum()
        d = alias(w)
        d *= a
        assert w.is_leaf and w.requires_grad and w.tolist() == [3.0, 8.0]
        assert grad((v * v).sum(), w)[0].tolist() == [0.0, 16.0]
        assert grad(loss + d.sum(), [w, a])[1].tolist() == [1.0, 2.0]


REFUSED: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.__setitem__(0, 5.0),
    "mask": lambda x: x.__setitem__(x > 1, 5.0),
    "indices": lambda x: x.__setitem__([0, 2], 5.0),
    "view": lambda x: x[1:].__setitem__(0, 5.0),
    "view of a view": lambda x: x[1:][::-1].__iadd__(5.0),
    "fill": lambda x: x.fill(5.0),
    "flat": lambda x: x.flat.__setitem__(1, 5.0),
    "sort": lambda x: x[::-1].sort(),
    "put": lambda x: np.put(x, [0], 5.0),
    "copyto": lambda x: np.copyto(x, 5.0),
    "add.at": lambda x: np.add.at(x, [0], 5.0),
    "iadd": lambda x: x.__iadd__(5.0),
    "out=": lambda x: np.add(A, 5.0, out=x),
    "putmask": lambda x: np.putmask(x, x > 1, 5.0),
    "reshape": lambda x: x.reshape(3, 1).__setitem__(Ellipsis, 5.0),
}


@pytest.mark.parametrize("write", REFUSED.values(), ids=REFUSED)
def test_a_refused_write_writes_nothing(write: Callable[[Any], Any]) -> None:
    x = leaf()
    v = x[1:]
    with pytest.raises(LeafError, match=r"under func\.no_grad"):
        write(x)
    assert x.tolist() == A.tolist() and v.tolist() == [2.0, 3.0] and x._version == 0
    assert grad((v * x[:2]).sum(), x)[0].tolist() == [2.0, 4.0, 2.0]


def test_a_refusal_of_one_output_is_one_of_all() -> None:
    first = np.zeros_like(leaf())
    with pytest.raises(LeafError):
        np.modf(leaf() * 1, out=(first, leaf()))
    assert first.tolist() == [0.0, 0.0, 0.0]


def test_a_write_that_a_hook_or_a_check_refuses_writes_nothing() -> None:
    def refuse(saved: Any) -> Any:
        raise ValueError("not saved")

    x = leaf()
    y = x * 2
    del x
    with pytest.raises(ValueError, match="not saved"), graph.saved_tensors_hooks(refuse, refuse):
        y[1:] *= y[1:]
    with pytest.raises(AnomalyError), func.autograd.detect_anomaly(), np.errstate(divide="ignore"):
        y[0] = np.log(y[0] * 0)
    assert y.tolist() == [2.0, 4.0, 6.0]


def test_versions_are_shared_by_views_and_detached_aliases() -> None:
    x = func.tensor(A)
    v, d, data = x[1:], x.detach(), x.data
    x += 1
    v += 1
    assert (x._version, v._version, d._version, data._version) == (2, 2, 2, 0)
    data += 1
    d[0] = 0.0
    assert (x._version, v._version, d._version, data._version) == (3, 3, 3, 1)
    y = leaf() * 2
    y += 1
    y[0] = 1.0
    assert y._version == y[1:]._version == 2 and (y * 1)._version == 0 and y.copy()._version == 0


def test_gradients_with_respect_to_a_base_flow_through_its_written_views() -> None:
    x, a = leaf(), leaf([10.0, 20.0])
    y = x * 2
    v = y[1:]
    v *= a
    y.retain_grad()
    (gradient,) = grad((v * v).sum(), y, retain_graph=True)
    assert gradient.tolist() == [0.0, 80.0, 240.0]
    y.grad.fill(0.0)
    (v * v).sum().backward()
    assert y.grad.tolist() == [0.0, 80.0, 240.0] and x.grad.tolist() == [0.0, 1600.0, 9600.0]
    assert a.grad.tolist() == [320.0, 1440.0]


def test_views_of_a_frozen_leaf_keep_their_history() -> None:
    x = leaf()
    v = x[1:]
    x.requires_grad_(False)
    x *= 2
    assert v.requires_grad and v.tolist() == [4.0, 6.0]
    x.requires_grad_()
    assert grad((v * v).sum(), x)[0].tolist() == [0.0, 8.0, 12.0]


def test_an_array_that_keeps_old_numbers_is_told_of() -> None:
    x = leaf()
    kept = x.detach().numpy()
    with (
        pytest.warns(FrozenValueWarning, match=r"(?s)still in use.*x\.numpy\(\)\.copy\(\)"),
        func.no_grad(),
    ):
        x += 1
    assert kept.tolist() == A.tolist() and x.tolist() == (A + 1).tolist()
    with func.no_grad():
        x += 1  # it is told once
        copied = x.detach().numpy().copy()
        x *= 2
    assert copied.tolist() == (A + 2).tolist()
    t = func.tensor(A)
    t.numpy()[0] = 9.0
    assert t.tolist() == [9.0, 2.0, 3.0]


def test_a_tensor_that_jit_took_for_a_constant_is_told_of() -> None:
    t = func.tensor([1.0, 2.0])
    f = func.jit(lambda a: a * t[:1])
    assert f(np.ones(1)).tolist() == [1.0]
    with pytest.warns(FrozenValueWarning, match=r"(?s)requires a gradient now.*func\.jit took.*argument"):
        t.requires_grad_()
    u = func.tensor([1.0, 2.0])
    func.jit(lambda a: a * u)(np.ones(2))
    with pytest.warns(FrozenValueWarning, match="was written"):
        u[0] = 5.0
    w = leaf([1.0, 2.0])
    g = func.jit(lambda a: a * w)
    g(np.ones(2))
    w.data[0] = 50.0
    out = g(np.ones(2))
    assert out.tolist() == [50.0, 2.0] and grad(out.sum(), w)[0].tolist() == [1.0, 1.0]

    def own(a: Any) -> Any:
        t = func.tensor([1.0, 2.0])
        z = a * t
        t[0] = 3.0
        return z + a * t

    assert func.jit(own)(np.ones(2)).tolist() == [4.0, 4.0]


def test_elements_and_numbers_are_numpy_scalars() -> None:
    """`e = y[0]; e *= 10` changes e alone, as in NumPy; `y[0] *= 10` changes y."""
    x = leaf([2.0, 3.0])
    y = x * 1
    e = y[0]
    e *= 10
    assert y.tolist() == [2.0, 3.0] and e.item() == 20.0 and grad(e, x, retain_graph=True)[0].tolist() == [10.0, 0.0]
    y[0] *= 10
    assert y.tolist() == [20.0, 3.0] and grad(y.sum(), x)[0].tolist() == [10.0, 1.0]
