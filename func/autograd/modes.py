"""Gradient modes: no_grad, enable_grad, set_grad_enabled, inference_mode; anomaly detection."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Self, TypeVar

from func.interpreters.core import next_level
from func.interpreters.core.modes import ANOMALY, MODE, WATCHED, Mode, is_suspended
from func.interpreters.imperative.interpreter import ambient

F = TypeVar("F", bound=Callable[..., Any])


class Switch:
    """A context manager, and a decorator of functions, generators and coroutines, that sets a context variable.

    For a generator or coroutine the setting holds while its own code runs, not while it is suspended.
    """

    _variable: ContextVar[Any]

    def __init__(self) -> None:
        self._tokens: list[Any] = []

    def _setting(self) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        WATCHED.ever = WATCHED.ever or self._variable is ANOMALY
        self._tokens.append(self._variable.set(self._setting()))
        return self

    def __exit__(self, *error: object) -> None:
        self._variable.reset(self._tokens.pop())

    def clone(self) -> Switch:
        """Another switch of the same setting: a decorated function may run in several threads at once."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            raise TypeError(f"decorate the methods of {function.__name__}, not the class, with {type(self).__name__}")
        if inspect.iscoroutinefunction(function):
            return self._coroutine(function)  # type: ignore[no-any-return]
        if inspect.isgeneratorfunction(function):
            return self._generator(function)  # type: ignore[no-any-return]

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return switched  # type: ignore[return-value]

    def _generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            inner = function(*args, **kwargs)
            step: Callable[[], Any] = lambda: next(inner)  # noqa: E731
            try:
                while True:
                    try:
                        with self.clone():
                            value = step()
                    except StopIteration as stop:
                        return stop.value
                    try:
                        sent = yield value
                        step = functools.partial(inner.send, sent)
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step = functools.partial(inner.throw, error)
            finally:
                with self.clone():
                    inner.close()

        return generator

    def _coroutine(self, function: Any) -> Any:
        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Driven(function(*args, **kwargs), self)

        return coroutine


class _Driven:
    """A coroutine each of whose steps runs under a switch."""

    def __init__(self, coroutine: Any, switch: Switch) -> None:
        self.coroutine = coroutine
        self.switch = switch

    def __await__(self) -> Any:
        step: Callable[[], Any] = lambda: self.coroutine.send(None)  # noqa: E731
        while True:
            try:
                with self.switch.clone():
                    value = step()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield value
                step = functools.partial(self.coroutine.send, sent)
            except BaseException as error:
                step = functools.partial(self.coroutine.throw, error)


class _GradSwitch(Switch):
    _variable = MODE
    _records = False

    def __new__(cls, function: Any = None) -> Any:
        """`@no_grad` without parentheses decorates as well."""
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__()

    def _setting(self) -> Mode:
        mode = MODE.get()
        return Mode(next_level(), self._records, mode.inference if mode is not None else False, mode)


class no_grad(_GradSwitch):
    """What is computed inside is not recorded: results require no gradient.

    A context manager, and a decorator of functions, generators and coroutines; it holds for the thread or task.
    Transforms that were entered outside are switched off; one that is entered inside records as always: an inner
    `no_grad` is respected by `func.grad`, an outer one is not. Forward mode is not affected.

    Example:
        >>> import func
        >>> x = func.tensor([1.0], requires_grad=True)
        >>> with func.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
        >>> func.grad(lambda z: z**2 + func.autograd.no_grad()(lambda: z**3)())(2.0)
        np.float64(4.0)
    """


class enable_grad(_GradSwitch):
    """Records again inside `no_grad`.

    Example:
        >>> import func
        >>> x = func.tensor([1.0], requires_grad=True)
        >>> with func.no_grad(), func.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    _records = True


class set_grad_enabled(Switch):
    """Records or not, by a flag: at once when called, and until the end as a context manager.

    Example:
        >>> import func
        >>> x = func.tensor([1.0], requires_grad=True)
        >>> with func.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
        >>> _ = func.set_grad_enabled(True)
        >>> (x * 2).requires_grad
        True
    """

    _variable = MODE

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._tokens.append(MODE.set(self._setting()))

    def _setting(self) -> Mode:
        mode = MODE.get()
        return Mode(next_level(), self.mode, mode.inference if mode is not None else False, mode)

    def __enter__(self) -> Self:
        if not self._tokens:
            self._tokens.append(MODE.set(self._setting()))
        return self

    def clone(self) -> Switch:
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        MODE.reset(self._tokens.pop())  # as a decorator it is not in force here
        return super().__call__(function)


class inference_mode(Switch):
    """`no_grad` whose results can never enter a recorded computation: using one there raises InferenceTensorError.

    Example:
        >>> import func
        >>> x = func.tensor([1.0], requires_grad=True)
        >>> with func.inference_mode():
        ...     y = x * 2
        >>> y.requires_grad, y.is_inference()
        (False, True)
    """

    _variable = MODE

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.__init__()  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = bool(mode)

    def _setting(self) -> Mode:
        return Mode(next_level(), not self.mode, self.mode, MODE.get())

    def clone(self) -> Switch:
        return inference_mode(self.mode)


class detect_anomaly(Switch):
    """Look for NaN and infinity, forwards and backwards: the error shows the line of the forward operation that made
    the offending value, its operands, and the first bad index. Slow; for debugging.

    With `check_nan=False` only the lines are recorded.
    """

    _variable = ANOMALY

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self.check_nan = bool(check_nan)

    def _setting(self) -> bool:
        return self.check_nan

    def clone(self) -> Switch:
        return detect_anomaly(self.check_nan)


class set_detect_anomaly(Switch):
    """`detect_anomaly` by a flag: at once when called, and until the end as a context manager."""

    _variable = ANOMALY

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__()
        self.mode, self.check_nan = bool(mode), bool(check_nan)
        WATCHED.ever = True
        self._tokens.append(ANOMALY.set(self._setting()))

    def _setting(self) -> bool | None:
        return self.check_nan if self.mode else None

    def __enter__(self) -> Self:
        if not self._tokens:
            self._tokens.append(ANOMALY.set(self._setting()))
        return self

    def clone(self) -> Switch:
        return set_detect_anomaly(self.mode, self.check_nan)


def is_grad_enabled() -> bool:
    """Whether operations on tensors are recorded here."""
    return not is_suspended(ambient().level)


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on."""
    mode = MODE.get()
    return mode is not None and mode.inference


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return ANOMALY.get() is not None
