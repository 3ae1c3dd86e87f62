"""Functions with a custom rule and checkpointed ones that write to their arguments: the caller sees it, or an error."""

import numpy as np
import pytest

import func
from func.errors import SharedMemoryError


def scaled(a, b):
    a[0] = 5.0 * b[1]
    return (a * b).sum()


def with_custom_jvp():
    rule = func.custom_jvp(scaled)
    rule.defjvp(
        lambda primals, tangents: (scaled(*primals), (primals[1] * tangents[0] + primals[0] * tangents[1]).sum())
    )
    return rule


def with_custom_vjp():
    rule = func.custom_vjp(scaled)
    rule.defvjp(lambda a, b: (scaled(a, b), (a, b)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
    return rule


def with_custom_vmap():
    rule = func.custom_vmap(scaled)
    rule.def_vmap(lambda size, batched, a, b: (np.stack([scaled(a[i], b) for i in range(size)]), True))
    return rule


def with_custom_gradient():
    def function(a, b):
        return scaled(a, b), lambda ct: (ct * b, ct * a)

    return func.custom_gradient(function)


RULES = {
    "custom_jvp": with_custom_jvp,
    "custom_vjp": with_custom_vjp,
    "custom_vmap": with_custom_vmap,
    "custom_gradient": with_custom_gradient,
}
B = np.array([1.0, 2.0, 3.0])
MODES = {
    "jit": lambda f: func.jit(f)(B),
    "grad": lambda f: func.grad(f)(B),
    "vmap": lambda f: func.vmap(f)(B[None]),
    "jvp": lambda f: func.jvp(f, (B,), (B,)),
    "jit of grad": lambda f: func.jit(func.grad(f))(B),
}


def read_afterwards(h):
    def program(x):
        a = x * 1.0
        return h(a, B) + a[0]

    return program


def read_through_base(h):
    def program(x):
        a = x * 1.0
        return h(a[:], B) + a[0]

    return program


def read_through_view(h):
    def program(x):
        a = x * 1.0
        first = a[:1]
        return h(a, B) + first[0]

    return program


READERS = (read_afterwards, read_through_base, read_through_view)


# custom_gradient calls the function as it is where nobody differentiates: the write reaches the caller.
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rule", [name for name in RULES if name != "custom_gradient"])
def test_what_a_rule_has_written_is_not_used(rule, mode, reader):
    with pytest.raises(SharedMemoryError, match="scaled, which has a custom rule"):
        MODES[mode](reader(RULES[rule]()))


@pytest.mark.parametrize("reader", READERS)
def test_what_a_custom_gradient_has_written_is_not_used(reader):
    with pytest.raises(SharedMemoryError, match="function, which has a custom rule"):
        func.grad(reader(with_custom_gradient()))(B)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("mode", MODES)
def test_checkpointed_function_writes_to_the_callers_array(mode, reader):
    expected = MODES[mode](reader(scaled))
    got = MODES[mode](reader(func.checkpoint(scaled)))
    for a, b in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b)


def test_second_derivative_through_the_write_of_a_checkpoint():
    def step(a):
        a[0] = a[1] ** 3
        return np.sin(a).sum()

    def program(h):
        def of(x):
            a = x * x
            return h(a) * a[0]

        return of

    x = np.array([0.3, 0.5, 0.7])
    np.testing.assert_allclose(func.hessian(program(func.checkpoint(step)))(x), func.hessian(program(step))(x))


def test_checkpoint_writes_to_what_it_reads_from_its_scope():
    def program(x):
        a = x * 1.0

        def step(y):
            a[1] = y
            return y * y

        return func.checkpoint(step)(x[2]) + a[1]

    np.testing.assert_allclose(func.grad(program)(B), [0.0, 0.0, 7.0])


@pytest.mark.parametrize("rule", [name for name in RULES if name != "custom_gradient"])
def test_result_in_place_of_the_argument_is_used(rule):
    def program(x):
        a = x * 1.0
        a = RULES[rule]()(a, B)
        return a * a

    assert np.isfinite(func.grad(program)(B)).all()


@pytest.mark.parametrize("rule", ["custom_jvp", "custom_vjp", "custom_vmap"])
def test_plain_array_that_a_rule_writes(rule):
    def of_second(b):
        plain = np.ones(3)
        RULES[rule]()(plain, B)
        return b[0]

    with pytest.raises(SharedMemoryError, match="writes to an argument"):
        func.jit(of_second)(B)


def test_tensor_that_a_rule_writes():
    x = func.tensor(B, requires_grad=True)
    with pytest.raises(SharedMemoryError, match="writes to an argument"):
        with_custom_vjp()(x, B)
    (x * 2.0).sum().backward()  # the tensor stays usable
    np.testing.assert_allclose(x.grad, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("rule", ["custom_jvp", "custom_vmap"])
def test_rule_under_jit_whose_arguments_share_memory(rule):
    h = RULES[rule]()
    with pytest.raises(SharedMemoryError):
        func.jit(lambda a: h(a, a))(B)
    with pytest.raises(SharedMemoryError):
        func.jit(h)(B, B)
