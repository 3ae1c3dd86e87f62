"""Kernels that compute with bfloat16: its conversions, operations and programs, against native code."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import func
from func.backends.cuda import plan
from tests.support.bfloat16_programs import BFLOAT16, PROGRAMS, assert_same
from tests.support.cuda_cases import EXACT, SMALL, bfloat16_cases, run_together
from tests.support.cuda_host import HostDevice, needs_compiler
from tests.support.cuda_orders import plan_of
from tests.support.device_double import DeviceArray, namespace, to_device

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("limits", [plan.Limits(), SMALL], ids=["usual", "small"])
def test_bfloat16(monkeypatch: pytest.MonkeyPatch, limits: plan.Limits) -> None:
    """With the limits of large arrays for the programs alone."""
    monkeypatch.setattr(plan, "LIMITS", limits)
    cases = [case for case in bfloat16_cases() if limits != SMALL or " in bfloat16" in case.title]
    orders: Counter[str] = Counter()
    faults = run_together(HostDevice(DeviceArray), cases, orders=orders)
    assert not faults, faults
    assert orders[EXACT] > (0.8 if limits != SMALL else 0.2) * len(cases)


def test_programs_are_kernels_as_a_whole() -> None:
    """No part is left to the library of the device."""
    for computed in PROGRAMS.values():
        source = plan_of(func.jit(computed.function), *computed.args).source
        assert "__nv_bfloat16" not in source and "#include" not in source


def test_arrays_of_the_device_in_eager_code() -> None:
    """Functions that the device has for bfloat16 run there, others convert their operands or run on the host."""
    x = np.array([0.5, 2, -0.0, np.inf], BFLOAT16)
    for name in ("exp", "maximum", "float_power", "logical_not", "logical_xor", "floor_divide", "isnan", "sign"):
        ufunc = getattr(np, name)
        args = (x,) * ufunc.nin
        with np.errstate(all="ignore"):
            got, want = getattr(namespace, name)(*map(to_device, args)), ufunc(*args)
        assert_same(got.get(), want)
    slope = func.grad(lambda x: np.sum((x * x).astype(np.float32)))(to_device(x))
    assert_same(slope.get(), x * 2)
