"""Run operations: execute each step of a generator and resume it with the result.

Rules: an operation ends once, with a value or an error, and has no callbacks afterwards. A step
fails at its deadline in any case. Cancelling an operation abandons its step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from ..errors import ClientError, TooManyRequestsError
from .channel import ChannelPool
from .network import Timer
from .steps import Acquire, Await, Invoke, Join, Resumable, Steps

T = TypeVar("T")

_CAUSES = 4
"""causes of causes that are looked at"""


class RunningOperation(Generic[T]):
    """A running operation."""

    __slots__ = ("_forget", "_on_end", "_runner", "_steps", "_timer", "done", "error", "value")

    def __init__(
        self, runner: Runner, steps: Steps[T], on_end: Callable[[RunningOperation[T]], None] | None
    ) -> None:
        self.done = False
        self.value: T | None = None
        self.error: Exception | None = None
        self._runner = runner
        self._steps: Steps[T] | None = steps
        self._on_end = on_end
        self._forget: Callable[[], None] | None = None
        self._timer: Timer | None = None

    @property
    def result(self) -> T:
        """Its result; raises its error."""
        if self.error is not None:
            raise self.error
        return cast(T, self.value)

    def resume(self, value: object) -> None:
        """Resume the operation with the result of the step."""
        steps = self._steps
        if steps is None:
            return
        if self._timer is not None or self._forget is not None:
            self._leave_step()
        try:
            step = steps.send(value)
        except StopIteration as stop:
            self._end(stop.value, None)
        except Exception as error:
            self._end(None, error)
        else:
            self._do(step)

    def fail(self, error: Exception) -> None:
        """Resume the operation with the error of the step."""
        steps = self._steps
        if steps is None:
            return
        self._leave_step()
        try:
            # One error may end many requests; each starts a new traceback.
            step = steps.throw(error.with_traceback(None))
        except StopIteration as stop:
            self._end(stop.value, None)
        except Exception as raised:
            self._end(None, raised)
        else:
            self._do(step)

    def cancel(self) -> None:
        """Cancel it without a callback."""
        steps, self._steps = self._steps, None
        self._on_end = None
        self.done = True
        forget = self._forget
        self._leave_step()
        if forget is not None:
            forget()
        if steps is not None:
            steps.close()

    def _do(self, step: object) -> None:
        """Start a step; an error ends only this operation."""
        try:
            if type(step) is Invoke:
                step.waiter = self
                self._runner.channels.invoke(step)
            else:
                self._begin(step)
        except Exception as error:
            self.fail(error)

    def _begin(self, step: object) -> None:
        if isinstance(step, Join):
            self._watch(step.deadline, step.error)
            self._runner.join(step, self)
        elif isinstance(step, Acquire):
            self._watch(step.deadline, _too_many)
            self._forget = step.permits.wait(step.count, lambda: self.resume(None))
        elif isinstance(step, Await):
            self._watch(step.deadline, step.error)
            self._forget = step.forget
            step.begin(self)
        else:
            raise TypeError(f"not a step: {step!r}")

    def _watch(self, deadline: int, error: Callable[[], ClientError]) -> None:
        def over() -> None:
            forget = self._forget
            # first: permits that come later must not go to an operation that has moved on
            if forget is not None:
                forget()
            self.fail(error())

        self._timer = self._runner.channels.network.call_at(deadline, over)

    def _leave_step(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._forget = None

    def _end(self, value: T | None, error: Exception | None) -> None:
        self._steps = None
        self.done = True
        self.value = value
        self.error = error
        if isinstance(error, ClientError):
            _drop_frames(error)
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(self)


def _drop_frames(error: BaseException) -> None:
    """Drop the traceback frames of an error, which its text does not need."""
    inner: BaseException | None = error
    for _ in range(_CAUSES):
        if inner is None:
            return
        # frames keep the message and more alive, for each error that a caller keeps
        inner.__traceback__ = None
        inner = inner.__cause__ or inner.__context__


def _too_many() -> TooManyRequestsError:
    hint = "send more slowly, or raise the limit"
    return TooManyRequestsError("too many requests were in flight until the timeout", hint)


class Runner:
    """Runs the operations of one client."""

    def __init__(self, channels: ChannelPool) -> None:
        self.channels = channels
        self._joined: dict[object, list[Resumable]] = {}

    def start(
        self, steps: Steps[T], on_end: Callable[[RunningOperation[T]], None] | None = None
    ) -> RunningOperation[T]:
        """Start an operation; `on_end` is called when it has ended."""
        operation = RunningOperation(self, steps, on_end)
        operation.resume(None)
        return operation

    def join(self, step: Join, waiter: Resumable) -> None:
        """Let `waiter` wait for the operation of this key; start it if it is not running."""
        waiting = self._joined.get(step.key)
        if waiting is not None:
            waiting.append(waiter)
            return
        self._joined[step.key] = [waiter]

        def ended(operation: RunningOperation[object]) -> None:
            # out of the table first: a waiter may ask for the same key again
            for joined in self._joined.pop(step.key):
                if operation.error is not None:
                    joined.fail(operation.error)
                else:
                    joined.resume(operation.value)

        self.start(step.make(), ended)
