"""Context managers of the gradient modes, of inference mode and of anomaly detection."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TypeVar

from func.interpreters.core import modes, next_level
from func.interpreters.core.modes import ANOMALY, MODE, WATCHED, Entered, Mode, Setting
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.imperative.interpreter import ambient

F = TypeVar("F", bound=Callable[..., Any])


class ModeContext:
    """A context manager, and a decorator of functions, generators and coroutines, that sets a context variable.

    In a generator or coroutine the setting applies while its own code runs, not during suspension.
    """

    _variable: ContextVar[Any]

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments
        self._entered: list[tuple[Setting, Entered]] = []

    def __repr__(self) -> str:
        arguments = ", ".join([repr(argument) for argument in self._arguments])
        return f"{self._public_name()}({arguments})"

    def _public_name(self) -> str:
        return f"func.{'autograd.' if self._variable is ANOMALY else ''}{type(self).__name__}"

    def _setting(self) -> Setting:
        raise NotImplementedError

    def _set(self) -> None:
        WATCHED.ever = WATCHED.ever or self._variable is ANOMALY
        setting = self._setting()
        self._entered.append((setting, modes.enter(self._variable, setting)))

    def __enter__(self) -> Self:
        self._set()
        return self

    def __exit__(self, *error: object) -> None:
        self._leave()

    def _leave(self) -> None:
        """End the last setting of this context: several threads may have entered it."""
        entered, present = self._entered, self._variable.get()
        place = len(entered) - 1
        if entered[place][0] is not present:
            place = next((i for i in reversed(range(place)) if entered[i][0] is present), place)
        modes.leave(self._variable, *entered.pop(place))

    def clone(self) -> Self:
        """Another context with the same setting: a decorated function may run in several threads at once."""
        return type(self)(*self._arguments)

    @without_engine_frames
    def __call__(self, function: F) -> F:
        if not callable(function):
            raise TypeError(
                f"{type(self).__name__} decorates functions, and got {type(function).__name__}; for a block of code "
                f"write `with func.{type(self).__name__}():`"
            )
        if inspect.isclass(function):
            raise TypeError(f"decorate the methods of {function.__name__}, not the class, with {type(self).__name__}")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                return await _Awaitable(self._steps(function(*args, **kwargs)))

            return coroutine  # type: ignore[return-value]
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Any:
                return (yield from self._steps(function(*args, **kwargs)))

            return generator  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            try:
                with self.clone():
                    return function(*args, **kwargs)
            except Exception as error:
                hide_outside(error)
                raise

        return wrapped  # type: ignore[return-value]

    def _steps(self, coroutine: Any) -> Generator[Any, Any, Any]:
        """Run a generator or coroutine, entering this context for each of its steps."""
        step = functools.partial(coroutine.send, None)
        while True:
            try:
                with self.clone():
                    value = step()
            except StopIteration as stop:
                return stop.value
            try:
                step = functools.partial(coroutine.send, (yield value))
            except BaseException as error:
                step = functools.partial(coroutine.throw, error)


class _Awaitable(NamedTuple):
    """The steps of a coroutine as an awaitable."""

    steps: Generator[Any, Any, Any]

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.steps


class _ImmediateContext(ModeContext):
    """A context that applies from its construction, and as a context manager until the end of the block."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._set()
        self._entered[0][0].scoped = False

    def __enter__(self) -> Self:
        if not self._entered:
            return super().__enter__()
        self._entered[0][0].scoped = True
        return self

    @without_engine_frames
    def __call__(self, function: F) -> F:
        self._leave()  # a decorator sets it in calls of the function alone
        return super().__call__(function)


def _recording_mode(records: bool) -> Mode:
    """A mode inside the present one. Inference mode records nothing, even in modes inside it."""
    infers = is_inference_mode_enabled()
    return Mode(next_level(), records and not infers, infers, MODE.get())


class _RecordingContext(ModeContext):
    _variable = MODE
    _records = False

    @without_engine_frames
    def __new__(cls, function: Any = None) -> Any:
        """`@no_grad` without parentheses decorates as well."""
        context = super().__new__(cls)
        if function is None:
            return context
        context.__init__()  # type: ignore[misc]
        return context(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__()

    def _setting(self) -> Mode:
        return _recording_mode(self._records)


class no_grad(_RecordingContext):
    """Switches recording off: results require no gradient.

    A context manager, and a decorator of functions, generators and coroutines; it applies to the thread or task. It
    stops every transform that runs already, of forward mode too; transforms that start inside it ignore it. Dual
    numbers of `func.autograd.forward_ad` keep their tangents.

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


class no_grad_of_tensors(_RecordingContext):
    """Switches recording off for tensors alone: the mode of the forward functions of rules.

    An outer transform continues, as it may need the derivatives of their computations.
    """

    def _setting(self) -> Mode:
        mode = super()._setting()
        mode.tensors = True
        return mode


class enable_grad(_RecordingContext):
    """Switches recording on again inside `no_grad`.

    Example:
        >>> import func
        >>> x = func.tensor([1.0], requires_grad=True)
        >>> with func.no_grad(), func.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    _records = True


class set_grad_enabled(_ImmediateContext):
    """Switches recording on or off from the call on, and as a context manager until the end of the block.

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
        self.mode = bool(mode)
        super().__init__(self.mode)

    def _setting(self) -> Mode:
        return _recording_mode(self.mode)


class inference_mode(ModeContext):
    """A `no_grad` whose results cannot take part in recorded computations: InferenceTensorError.

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
        """`@inference_mode` without parentheses decorates as well."""
        context = super().__new__(cls)
        if isinstance(mode, bool):
            return context
        context.__init__()  # type: ignore[misc]
        return context(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = bool(mode)
        super().__init__(self.mode)

    def _setting(self) -> Mode:
        return Mode(next_level(), not self.mode, self.mode, MODE.get())


class detect_anomaly(ModeContext):
    """Raises at the first NaN or infinity in the forward or backward pass; slow, for debugging.

    The error shows the line of the forward operation that computed the value, its operands and the first index.
    `check_nan=False` records only the lines.

    Example:
        >>> import numpy as np, func
        >>> x = func.tensor(0.0, requires_grad=True)
        >>> with func.autograd.detect_anomaly(), np.errstate(divide="ignore"):
        ...     try:
        ...         np.log(x)
        ...     except func.errors.AnomalyError as error:
        ...         print("log" in str(error))
        True
    """

    _variable = ANOMALY

    @without_engine_frames
    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = bool(check_nan)
        super().__init__(self.check_nan)

    def _setting(self) -> Setting:
        return Setting(self.check_nan, ANOMALY.get())


class set_detect_anomaly(_ImmediateContext):
    """Switches `detect_anomaly` on or off from the call on, and as a context manager until the end of the block.

    Example:
        >>> import func
        >>> with func.autograd.set_detect_anomaly(True):
        ...     func.autograd.is_anomaly_enabled()
        True
    """

    _variable = ANOMALY

    @without_engine_frames
    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.mode, self.check_nan = bool(mode), bool(check_nan)
        super().__init__(self.mode, self.check_nan)

    def _setting(self) -> Setting:
        return Setting(self.check_nan if self.mode else None, ANOMALY.get())


def is_grad_enabled() -> bool:
    """Whether operations on tensors are recorded here.

    Example:
        >>> import func
        >>> with func.no_grad():
        ...     func.is_grad_enabled()
        False
    """
    return not modes.is_suspended(ambient().level)


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on.

    Example:
        >>> import func
        >>> with func.inference_mode():
        ...     func.autograd.is_inference_mode_enabled()
        True
    """
    mode = modes.in_force(MODE)
    return mode is not None and mode.inference


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on.

    Example:
        >>> import func
        >>> func.autograd.is_anomaly_enabled()
        False
    """
    return modes.anomaly() is not None
