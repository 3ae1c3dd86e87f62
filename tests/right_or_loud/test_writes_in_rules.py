"""Functions with a custom rule and checkpointed ones that write to their arguments: the caller sees it, or an error."""

import contextlib

import numpy as np
import pytest

import func
from func.errors import SharedMemoryError, TracerConversionError


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


def with_function():
    class Scaled(func.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return scaled(a, b)

        @staticmethod
        def backward(ctx, ct):
            a, b = ctx.saved_tensors
            return ct * b, ct * a

    return Scaled.apply


def with_vmap_of_a_function():
    class Scaled(func.autograd.Function):
        @staticmethod
        def forward(a, b):
            return scaled(a, b)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, ct):
            a, b = ctx.saved_tensors
            return ct * b, ct * a

        @staticmethod
        def vmap(info, in_dims, a, b):
            return np.stack([scaled(a[i], b) for i in range(info.batch_size)]), 0

    return Scaled.apply


RULES = {
    "Function": with_function,
    "Function with vmap": with_vmap_of_a_function,
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
    with pytest.raises(
        SharedMemoryError, match=r"scaled, which has a custom rule|forward, which belongs to a Function"
    ):
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


def writes_and_raises(a, b):
    a[0] = 5.0 * b[1]
    raise ValueError("no result")


def goes_on(h):
    """A program that catches the error and reads the array."""

    def program(x):
        a = x * 1.0
        with contextlib.suppress(ValueError):
            h(a, B)
        return (a * a).sum()

    return program


def goes_on_without(h):
    def program(x):
        a = x * 1.0
        with contextlib.suppress(ValueError):
            h(a, B)
        return (x * x).sum()

    return program


@pytest.mark.parametrize("mode", MODES)
def test_what_a_checkpointed_function_wrote_before_it_raised_is_not_used(mode):
    h = func.checkpoint(writes_and_raises)
    with pytest.raises(SharedMemoryError, match="writes_and_raises, which is checkpointed and raised an error"):
        MODES[mode](goes_on(h))
    got, expected = MODES[mode](goes_on_without(h)), MODES[mode](goes_on_without(writes_and_raises))
    for a, b in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b)


def test_what_a_checkpointed_function_wrote_to_its_scope_before_it_raised_is_not_used():
    def program(x):
        a = x * 1.0

        def step(y):
            a[0] = y
            raise ValueError

        with contextlib.suppress(ValueError):
            func.checkpoint(step)(x[1])
        return (a * a).sum()

    with pytest.raises(SharedMemoryError, match="step, which is checkpointed"):
        func.grad(program)(B)


@pytest.mark.parametrize("mode", ["grad", "jit of grad"])
@pytest.mark.parametrize("rule", ["custom_jvp", "custom_vmap"])
def test_what_a_rule_wrote_before_it_raised_is_not_used(rule, mode):
    h = {"custom_jvp": func.custom_jvp, "custom_vmap": func.custom_vmap}[rule](writes_and_raises)
    if rule == "custom_jvp":
        h.defjvp(lambda primals, tangents: (writes_and_raises(*primals), tangents[0].sum()))
    else:
        h.def_vmap(lambda size, batched, a, b: (a, True))
    with pytest.raises(SharedMemoryError, match="writes_and_raises, which has a custom rule"):
        MODES[mode](goes_on(h))


def test_tensors_written_before_an_error_are_refused_at_once():
    a = func.tensor([1.0, 2.0], requires_grad=True) * 1.0
    with pytest.raises(SharedMemoryError, match="writes to an argument") as caught:
        func.checkpoint(writes_and_raises)(a, B)
    assert isinstance(caught.value.__context__, ValueError)


STATE = None


def with_nonlocal(x, checkpoint):
    state = x * 1.0

    def step(y):
        nonlocal state
        state = state + y
        return y * y

    return checkpoint(step)(x) + state


def with_a_shared_variable(x, checkpoint):
    state = x * 1.0

    def add(y):
        nonlocal state
        state = state + y

    def step(y):
        add(y)
        return state * y

    return checkpoint(step)(x) + state


def with_a_global(x, checkpoint):
    global STATE
    STATE = x * 1.0

    def step(y):
        global STATE
        STATE = STATE + y
        return y * y

    out = checkpoint(step)(x) + STATE
    STATE = None
    return out


def with_a_list(x, checkpoint):
    items = [x * 1.0]
    again = items

    def step(y):
        items.append(y)
        return y * again[1]

    return checkpoint(step)(x) + sum(items)


def with_a_dict_in_a_tuple(x, checkpoint):
    pair = ({"state": x * 1.0, "other": 3}, x)

    def step(y):
        pair[0]["state"] = pair[0]["state"] + y
        pair[0]["new"] = y
        del pair[0]["other"]
        return y * pair[1]

    out = checkpoint(step)(x) + pair[0]["state"]
    assert list(pair[0]) == ["state", "new"]
    return out


class Holder:
    def __init__(self, state):
        self.state = state


def with_an_attribute(x, checkpoint):
    holder = Holder(x * 1.0)
    holders = [holder, holder]

    def step(y):
        holders[0].state = holders[1].state + y
        return y * y

    return checkpoint(step)(x) + holder.state


def with_a_swap(x, checkpoint):
    first, second = x * np.ones(2), x * np.array([2.0, 3.0])
    kept = second

    def step(y):
        nonlocal first, second
        first, second = second, first
        return y * y

    out = checkpoint(step)(x)
    first[0] = 7.0  # it is the array that `kept` names
    return out + (first * second).sum() + kept.sum()


def with_an_error(x, checkpoint):
    items = [x * 1.0]

    def step(y):
        items[0] = items[0] + y
        raise ValueError

    with contextlib.suppress(ValueError):
        checkpoint(step)(x)
    return items[0] * x


def with_a_list_as_argument(x, checkpoint):
    items = [x, {"state": 2.0 * x}]

    def step(items):
        items.append(items[0] * items[1]["state"])
        items[1]["state"] = items[0]
        return items[2]

    return checkpoint(step)(items) * items[2] + items[1]["state"]


def with_a_method(x, checkpoint):
    holder = Holder(x * np.ones(2))

    def write(self, y):
        self.state[0] = y * y
        return self.state.sum()

    holder.write = write.__get__(holder)
    return checkpoint(holder.write)(x) + holder.state[0]


STATES = (
    with_a_list_as_argument,
    with_a_method,
    with_nonlocal,
    with_a_shared_variable,
    with_a_global,
    with_a_list,
    with_a_dict_in_a_tuple,
    with_an_attribute,
    with_a_swap,
    with_an_error,
)


def with_tensors(step):
    return lambda *args: func.autograd.checkpoint(step, *args)


@pytest.mark.parametrize("program", STATES)
@pytest.mark.parametrize("checkpoint", [func.checkpoint, with_tensors])
@pytest.mark.parametrize("mode", [func.grad, lambda f: func.grad(func.grad(f)), lambda f: func.jit(func.grad(f))])
def test_what_a_checkpointed_function_stores_is_stored(mode, checkpoint, program):
    expected = mode(lambda x: program(x, lambda step: step))(3.0)
    np.testing.assert_allclose(mode(lambda x: program(x, checkpoint))(3.0), expected)


@pytest.mark.parametrize("program", STATES)
def test_what_a_checkpointed_function_of_tensors_stores_is_stored(program):
    x = func.tensor(3.0, requires_grad=True)
    program(x, with_tensors).backward()
    np.testing.assert_allclose(x.grad.numpy(), func.grad(lambda x: program(x, lambda step: step))(3.0))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("mode", [func.grad, lambda f: func.jit(func.grad(f)), lambda f: func.hessian(f)])
def test_checkpointed_function_of_tensors_writes_to_the_callers_array(mode, reader):
    def h(a, b):
        return func.autograd.checkpoint(scaled, a, b)

    np.testing.assert_allclose(mode(reader(h))(B), mode(reader(scaled))(B))
    x = func.tensor(B, requires_grad=True)
    reader(h)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), func.grad(reader(scaled))(B))


def test_checkpointed_function_of_tensors_that_writes_to_a_plain_array():
    b = func.tensor(B, requires_grad=True)
    with pytest.raises(TracerConversionError, match="scaled, which is checkpointed, writes to a plain array"):
        func.autograd.checkpoint(scaled, B.copy(), b)
    counts = np.zeros(1, int)

    def counted(counts, b):
        counts[0] += 1
        return (b * b).sum()

    func.autograd.checkpoint(counted, counts, b).backward()
    np.testing.assert_array_equal(counts, [1])
    np.testing.assert_allclose(b.grad.numpy(), 2 * B)


class Pair(tuple):
    """A tuple whose class wants two arguments, and has attributes."""

    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))


def test_checkpoint_finds_traced_values_in_tuples_of_classes():
    def program(x):
        pair = Pair(x, x * 2)
        pair.factor = 3.0
        return func.checkpoint(lambda y: (pair[0] * pair[1] * y).sum() * pair.factor)(x)

    np.testing.assert_allclose(func.grad(program)(B), 18 * B**2)
