"""Many programs on the device that a processor stands for, compiled together and compared with native code."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import func
from func.backends.cuda.plan import Limits
from func.interpreters.core import PRIMITIVES, dtype_of
from tests.interpreters.primitives.test_devices import OF_ANY_PHASE, ON_THE_HOST_ALONE
from tests.interpreters.primitives.test_samples import of_active, outputs
from tests.support.cuda_host import HostDevice
from tests.support.cuda_orders import differing_bits, why_orders_differ
from tests.support.device_double import DeviceArray, namespace, to_device
from tests.support.random_functions import Maker, RandomFunction, tame
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

LIMITS = {"float16": 2e-2, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}
"""How far results of these dtypes may be from native code's; others by 1e-10."""
EXACT = "equal to the last bit"
NO_DERIVATIVE = {"schur": "a real Schur form has a derivative for real eigenvalues only"}


SMALL = Limits(
    short_row=1,
    warp_row=4,
    block_row=8,
    few_rows=4,
    little=6,
    chunk=3,
    lane_chunk=2,
    busy=64,
    many_scans=64,
    library_work=20,
    far=8,
    tile=2,
    updates=2,
    block_work=0,
)
"""Limits with which small arrays take the forms of large ones, and no program is one kernel."""


class Case(NamedTuple):
    """A jitted function and its arguments on the host."""

    title: str
    function: Any
    args: tuple[Any, ...]
    limit: float = 0.0
    """How far results may be from native code's, if not as far as their dtypes say."""


def sample_cases(names: Iterable[str]) -> Iterator[Case]:
    """The value and the pullback of every sample of some primitives."""
    for name in names:
        if name in OF_ANY_PHASE | ON_THE_HOST_ALONE:
            continue
        for number, sample in enumerate(SAMPLES[name]):
            value = func.jit(lambda *args, name=name, params=sample.params: outputs(name, args, params))
            yield Case(f"{name} {number}", value, sample.args)
            if sample.differentiable and name not in NO_DERIVATIVE:
                active = tuple([sample.args[place] for place in sample.differentiable])
                yield Case(f"pullback of {name} {number}", func.jit(pullback(name, sample)), active)


def pullback(name: str, sample: Sample) -> Callable[..., Any]:
    """The pullback of a primitive at random cotangents."""

    def pulled(*active: Any) -> Any:
        outs, pull = func.vjp(of_active(name, sample), *active)
        rng = np.random.default_rng(3)
        return pull([rng.normal(size=np.shape(out)).astype(dtype_of(out)) for out in outs])

    return pulled


def random_cases(seeds: Iterable[int]) -> Iterator[Case]:
    """Random programs, and their gradients where they have one."""
    for seed in seeds:
        made, active = random_program(seed)
        limit = 2e-3 if "float32" in str(made) else 1e-8
        yield Case(f"random {seed}\n{made}", func.jit(made.function()), tuple(made.args), limit)
        if active:
            function = func.jit(func.grad(tame(made.function()), active))
            yield Case(f"gradient of random {seed}\n{made}", function, tuple(made.args), limit)


def random_program(seed: int) -> tuple[RandomFunction, tuple[int, ...]]:
    """A random program and the places of the arguments with respect to which it has a gradient."""
    made = Maker(seed, seed % 3 == 0).make(seed % 22 + 1)
    if "while_loop" in str(made):
        return made, ()
    return made, tuple([place for place, x in enumerate(made.args) if x.dtype.kind == "f"])


def first_seeds(programs: int) -> list[int]:
    """The first seeds that give this number of programs, gradients counted."""
    seeds: list[int] = []
    while programs > 0:
        seeds.append(len(seeds))
        programs -= 2 if random_program(seeds[-1])[1] else 1
    return seeds


def bfloat16_cases() -> Iterator[Case]:
    """Conversions and operations of bfloat16, and programs that compute with it."""
    from tests.support import bfloat16_programs as narrow

    one = tuple([name for name in narrow.UNARY if name != "spacing"])
    pairs = tuple([name for name in narrow.BINARY if name not in narrow.OF_NAN])
    numbers = narrow.SOME[::3]
    for names, args in ((one, (narrow.SOME,)), (pairs, (numbers[:, None], numbers))):
        for name in names:
            yield Case(f"{name} of bfloat16", func.jit(lambda *args, name=name: PRIMITIVES[name](*args)), args)
    for dtype in narrow.DTYPES:
        given, wide = narrow.representable(dtype)[::5], narrow.numbers_of(dtype)[::7]
        yield Case(f"bfloat16 as {dtype}", func.jit(lambda x, d=dtype: x.astype(d)), (given,))
        yield Case(f"{dtype} as bfloat16", func.jit(lambda x: x.astype(narrow.BFLOAT16)), (wide,))
    for name, computed in narrow.PROGRAMS.items():
        limit = 0.1 if name == "running sums" else 0.0  # the lanes of a warp are combined as a tree, rounded each time
        yield Case(f"{name} in bfloat16", func.jit(computed.function), computed.args, limit)


def there(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments on the device."""
    return tuple(func.tree.map(lambda x: to_device(np.asarray(x) if isinstance(x, np.generic) else x), list(args)))


def run_together(
    device: HostDevice, cases: Sequence[Case], numbers: bool = True, orders: Counter[str] | None = None
) -> list[str]:
    """Compile the kernels of all cases at once, run them, and say what differs from native code. Without `numbers`
    kernels are only collected. `orders` counts the cases that have to be equal to the last bit, as EXACT, and others by
    the reason."""
    faults: list[str] = []
    before, namespace.device_of = namespace.device_of, lambda args: device
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            collect(device, cases, numbers)
            for case in cases if numbers else ():
                try:
                    reason = check(case)
                    if orders is not None:
                        orders[reason] += 1
                except Exception as error:
                    faults.append(f"{case.title}: {type(error).__name__}: {str(error)[:600]}")
    finally:
        namespace.device_of = before
    return faults


def collect(device: HostDevice, cases: Sequence[Case], numbers: bool = True) -> None:
    """Plan all cases, and compile what they need; nothing is computed."""
    device.is_dry = True
    for case in cases:
        try:
            case.function(*there(case.args))
        except Exception:  # library calls on memory without values; what is wrong will show
            continue
    if numbers:
        device.is_dry = False
        device.build()


def check(case: Case) -> str:
    """Compare the results on the device with those of native code. They agree to the last bit if the plan fixes
    operations and order: the answer is EXACT. Otherwise they agree as the dtypes allow: the answer is the reason.
    """
    reason = why_orders_differ(case.function, case.args)
    got = func.tree.leaves(case.function(*there(case.args)))
    for place, (own, want) in enumerate(zip(got, func.tree.leaves(case.function(*case.args)), strict=True)):
        expected = np.asarray(want)
        value = own.get() if isinstance(own, DeviceArray) else np.asarray(own)
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape), place
        limit = case.limit or LIMITS.get(expected.dtype.name, 1e-10)
        np.testing.assert_allclose(value, expected, rtol=limit, atol=limit, err_msg=f"output {place}")
        if reason is None:
            count = differing_bits(value, expected)
            assert not count, f"output {place} has {count} elements that differ in last places: {value} and {expected}"
    return reason or EXACT
