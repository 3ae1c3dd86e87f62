"""Ctrl-C anywhere: KeyboardInterrupt at a random place of Python's code, or by a timer; afterwards all is as it was.

A program runs until the interrupt comes. Then NumPy's functions are its own, no transform, mode or hook is in force,
and no lock is locked. The same program has the same result.
"""

from __future__ import annotations

import dis
import functools
import random
import signal
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np

import func
from func.autograd import forward_ad
from func.backends.llvm import machine
from func.host import patching
from func.interpreters.core import TRACED
from func.interpreters.core.modes import Setting
from func.interpreters.core.scopes import Entry
from tools.fuzz.cases import Tally, case_limit

QUICK = 60
X = np.array([0.5, 1.5, 2.5])
_OWN = {name: value for name, value in vars(np).items() if callable(value)}
_RNG_SEED = 3
_SETTINGS = (np.geterr(), sys.getrecursionlimit(), np.get_printoptions())


def _loss(x: Any) -> Any:
    return np.sum(np.array([np.sin(x), x * x]) * np.asarray(x))


def _written(x: Any) -> Any:
    a = np.zeros(3)
    a[1:] = x[1:] * x[0]
    return np.sum(a * np.array([1.0, x[0], 2.0]))


def _branching(x: Any) -> Any:
    return np.sin(x) if x > 1 else x * x


def _intercepted() -> Any:
    with func.intercept():
        return func.value_and_grad(_written)(X)


def _jitted(compiler: str) -> Any:
    f = func.jit(lambda x: _loss(x) + np.prod(x), compiler=compiler)
    return f(X), func.grad(f)(X)


def _backward() -> Any:
    w = func.tensor(X, requires_grad=True)
    seen: list[Any] = []
    w.register_hook(lambda ct: seen.append(1))
    with func.no_grad():
        scale = (w * 2).sum().item()
    with func.autograd.graph.saved_tensors_hooks(lambda value: value, lambda value: value):
        (np.sum(np.sin(w) * w) * scale).backward()
    with func.enable_grad(), func.inference_mode():
        np.cos(w)
    return w.grad.numpy(), len(seen)


def _second_order() -> Any:
    w = func.tensor(X, requires_grad=True)
    (first,) = func.autograd.grad(np.sum(w**3), w, create_graph=True)
    return func.autograd.grad(np.sum(first**2), w)[0].numpy()


def _dual() -> Any:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(func.tensor(X), func.tensor(np.ones(3)))
        return forward_ad.unpack_dual(np.sin(x) * x).tangent.numpy()


def _generator() -> Any:
    rng = func.random.Generator(_RNG_SEED)
    return func.vmap(lambda x: x + rng.normal(), randomness="different")(X), rng.random(2)


@func.custom_vjp
def _clipped(x: Any) -> Any:
    return np.clip(x, -1.0, 1.0)


_clipped.defvjp(lambda x: (np.clip(x, -1.0, 1.0), x), lambda x, ct: (ct * (np.abs(x) <= 2),))


@func.custom_jvp
def _softened(x: Any) -> Any:
    return np.log1p(np.exp(x))


@_softened.defjvp
def _softened_jvp(primals: Any, tangents: Any) -> Any:
    return _softened(*primals), tangents[0] * (1 - 1 / (1 + np.exp(primals[0])))


def _loops() -> Any:
    carry, outs = func.scan(lambda c, x: (c * x, c + x), np.array(1.0), X)
    return carry, outs, func.grad(lambda c: func.scan(lambda c, x: (c * np.sin(x), c), c, X)[0])(2.0)


class _Cubed(func.autograd.Function):
    """A Function with every rule."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 3 * g * ctx.saved_tensors[0] ** 2

    jvp = backward

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return x**3, in_dims[0]


@func.custom_vmap
def _tripled(x: Any) -> Any:
    return 3 * x


_tripled.def_vmap(lambda size, in_batched, x: (x + 2 * x, in_batched[0]))


def _of_functions() -> Any:
    f = _Cubed.apply
    return (
        func.vmap(func.grad(f))(X),
        func.grad(func.grad(f))(2.0),
        func.jvp(f, (X,), (X,)),
        func.jit(func.grad(f))(2.0),
    )


def _hooks_and_rules() -> Any:
    w = func.tensor(X, requires_grad=True)
    seen: list[float] = []
    w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.sum().item()))
    y = np.sin(w)
    y.register_hook(lambda g: 2 * g)
    y.retain_grad()
    z = _Cubed.apply(func.autograd.checkpoint(lambda v: np.exp(v) * w, y))
    z.grad_fn.register_prehook(lambda gradients: (seen.append(1.0), gradients)[1])
    np.sum(z).backward(create_graph=True)
    return w.grad.detach().numpy(), y.grad.detach().numpy(), seen


def _views_and_modes() -> Any:
    w = func.tensor(X, requires_grad=True)
    v = (w * 2)[1:]
    v[0] *= w[0]
    with func.no_grad():
        w[0] += 1
        d = w.detach()
        d *= 2
    np.sum(v * v).backward()
    return w.grad.numpy(), w.detach().numpy()


def _behind_rules() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 1, _clipped(np.sqrt(x - 1)), x))

    w = func.tensor(np.ones(3), requires_grad=True)
    f(w).backward()
    return func.grad(f)(np.ones(3)), func.jacfwd(f)(np.ones(3)), w.grad.numpy()


def _dual_of_leaf() -> Any:
    w = func.tensor(X, requires_grad=True)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(w, func.tensor(np.ones(3)))
        (g,) = func.autograd.grad(np.sum(d**3), d)
        return [part.numpy() for part in forward_ad.unpack_dual(g)]


def _lists() -> Any:
    w = func.tensor(X, requires_grad=True)
    np.linalg.norm([w[0], w[1]]).backward()
    return func.grad(lambda x: np.sum([x[0], x[1] * x[2]]) + np.linalg.det([[x[0], 1.0], [2.0, x[1]]]))(
        X
    ), w.grad.numpy()


PROGRAMS: dict[str, Callable[[], Any]] = {
    "Functions": _of_functions,
    "hooks and rules": _hooks_and_rules,
    "views and modes": _views_and_modes,
    "NaN behind rules": _behind_rules,
    "dual of a leaf": _dual_of_leaf,
    "lists": _lists,
    "custom_vmap": lambda: func.vmap(func.jacrev(lambda x: _tripled(x) * x))(X),
    "jit of rules": lambda: func.jit(func.value_and_grad(lambda x: np.sum(_clipped(x) * _Cubed.apply(x))))(X),
    "grad": lambda: func.grad(_loss)(X),
    "hessian": lambda: func.hessian(_loss)(X),
    "jacfwd": lambda: func.jacfwd(lambda x: np.cumsum(x) * x)(X),
    "vmap that splits": lambda: func.vmap(func.value_and_grad(_branching))(X),
    "linearize": lambda: func.linearize(_loss, X)[1](X),
    "intercept": _intercepted,
    "jit, numpy": lambda: _jitted("numpy"),
    "jit, llvm": lambda: _jitted("llvm"),
    "backward": _backward,
    "second order": _second_order,
    "dual level": _dual,
    "generator": _generator,
    "custom rule": lambda: func.grad(lambda x: np.sum(_clipped(x) * x))(X),
    "checkpoint": lambda: func.grad(lambda x: np.sum(func.checkpoint(np.sin)(x) * x))(X),
    "scan": _loops,
    "at a singular point": lambda: func.grad(lambda x: np.sum(np.where(x > 1, np.sqrt(x - 1), 0.0)))(np.ones(3)),
    "no jit": lambda: _without_jit(),
    "anomalies": lambda: _with_anomalies(),
    "jvp rule": lambda: func.jvp(_softened, (X,), (X,)),
    "explanation": lambda: func.debug.explain(func.grad(_loss))(X).value,
    "export": lambda: len(func.to_source(_loss)(X)),
}


def _without_jit() -> Any:
    f = func.jit(_loss)
    with func.disable_jit():
        return f(X)


def _with_anomalies() -> Any:
    with func.autograd.detect_anomaly():
        w = func.tensor(X, requires_grad=True)
        np.sum(w * w).backward()
    return w.grad.numpy()


def _leaves(value: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in func.tree.leaves(value)]


@functools.cache
def _expected(name: str) -> tuple[list[Any], int]:
    """The result of a program, and how many places an interrupt may come at."""
    value, count = PROGRAMS[name](), 0
    for _ in range(3):
        value = PROGRAMS[name]()
        count = _run_until(PROGRAMS[name], -1)
    return _leaves(value), count


_CHECKED = {dis.opmap[name] for name in dis.opmap if name.startswith(("CALL", "RESUME", "JUMP_BACKWARD", "SEND"))}
"""The bytecodes after which Python looks for signals: no others, so that `with lock:` has no gap before its end."""


def _run_until(run: Callable[[], Any], place: int) -> int:
    """Run with an interrupt at one of the places where Python looks for signals; how many places there were."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code, was_checked = frame.f_code.co_code, True

        def trace_inside(frame: Any, event: str, arg: Any) -> Any:
            nonlocal count, was_checked
            if event == "opcode":
                if was_checked:
                    count += 1
                    if count == place:
                        sys.settrace(None)
                        raise KeyboardInterrupt
                was_checked = code[frame.f_lasti] in _CHECKED
            return trace_inside

        return trace_inside

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        pass
    except Exception:  # C code may put an error of its own in the place of the interrupt
        if count != place:
            raise
    finally:
        sys.settrace(before)
    return count


def _run_for(run: Callable[[], Any], seconds: float) -> None:
    """Run with an interrupt by a signal."""

    is_armed, was_raised = True, False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal was_raised
        if is_armed:
            was_raised = True
            raise KeyboardInterrupt

    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)  # the time limit of a test may use this timer
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            run()
        finally:
            is_armed = False
    except KeyboardInterrupt:
        is_armed = False
    except Exception:  # see above
        if not was_raised:
            raise
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, left)


def _variables() -> dict[str, ContextVar[Any]]:
    return {
        f"{module.__name__}.{name}": value
        for module in list(sys.modules.values())
        if str(getattr(module, "__name__", "")).startswith("func.")
        for name, value in list(vars(module).items())
        if isinstance(value, ContextVar)
    }


def in_force(value: Any) -> bool:
    """Whether the value of a context variable means something: not what has ended, and not a default."""
    if isinstance(value, Entry):
        return value.scope() is not None or in_force(value.outer)
    if isinstance(value, Setting):
        return not value.ended or in_force(value.outer)
    if isinstance(value, tuple):
        return any(in_force(entry) for entry in value)
    if isinstance(value, weakref.ref):
        return value() is not None
    if isinstance(value, patching.OpenedTransform):
        return value.is_open
    return value is not None and value is not False


def check_process() -> None:
    """NumPy is its own, nothing is in force, and no lock is locked."""
    assert type(np) is types.ModuleType, "the module numpy has another class"
    assert all(getattr(np, name) is value for name, value in _OWN.items()), "a function of NumPy's is replaced"
    assert not patching.is_tracing(), "a transform runs"
    assert not TRACED.run, "NumPy's dispatchers look for traced values"
    for name, variable in _variables().items():
        if not name.endswith((".swallowed_errors._LAST", ".forward_ad._LEVELS")):
            assert not in_force(variable.get(None)), f"{name} is {variable.get()}"
    assert not forward_ad._levels(), "a dual level is open"
    assert np.geterr() == _SETTINGS[0], f"np.geterr() is {np.geterr()}"
    assert (sys.getrecursionlimit(), np.get_printoptions()) == _SETTINGS[1:], "a setting has changed"
    held = [what for what, take in _LOCKS.items() if not _is_done_elsewhere(take)]
    assert not held, f"held: {', '.join(held)}"


def _compiles() -> None:
    with machine.lock:
        for llvmlite_lock in machine.compiler()._llvmlite_locks():
            with llvmlite_lock:
                pass


def _accumulates() -> None:
    w = func.tensor(1.0, requires_grad=True)
    func.autograd.backward(w * w)


_LOCKS = {"the lock of the compiler": _compiles, "the turn to add to gradients": _accumulates}
"""Actions that need another thread to have left them free."""


def _is_done_elsewhere(work: Callable[[], None]) -> bool:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(case_limit() / 2)  # native code may be compiled in the background
    return not thread.is_alive()


def case(choices: random.Random, tally: Tally) -> None:
    """One interrupt of one program."""
    name = choices.choice(list(PROGRAMS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, places = _expected(name)
        if choices.random() < 0.75 or threading.current_thread() is not threading.main_thread():
            place = choices.randrange(1, places + 1)
            tally.show(f"{name}: interrupted at place {place} of {places}")
            end = functools.partial(_run_until, PROGRAMS[name], place)
        else:
            seconds = choices.random() * 0.01
            tally.show(f"{name}: interrupted after {seconds:.5f} s")
            end = functools.partial(_run_for, PROGRAMS[name], seconds + 1e-5)

        def run() -> None:
            end()
            check_process()
            for got, right in zip(_leaves(PROGRAMS[name]()), expected, strict=True):
                np.testing.assert_allclose(got, right, rtol=1e-12)
            tally.checked()

        hook = sys.unraisablehook
        sys.unraisablehook = lambda unraisable: None  # a generator that is dropped swallows the interrupt
        try:
            copy_context().run(run)
        finally:
            sys.unraisablehook = hook
