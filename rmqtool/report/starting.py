"""Spark for one report: it starts while captures are decoded, and is always ended.

Rules: Spark starts and computes in separate threads, because PySpark and gRPC have waits that
signals do not interrupt. After an error or Ctrl-C everything is ended at once, even a start in
progress; pending calls then fail.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from ..ui.interrupt import Apart
from .options import ReportRequest

if TYPE_CHECKING:
    from analytics.spark.session import Session

    from ..ui.screen.progress import StageLine

Value = TypeVar("Value")
_MOST_FAIL: Final = 3.0
"""Seconds to wait at the end until threads notice that their calls were ended. An import that
Ctrl-C interrupts in the main thread can block them for ever."""


class Starting:
    """Spark, from its start to its end; a context manager."""

    def __init__(self, request: ReportRequest, steps: StageLine) -> None:
        """Start Spark; raise ReportError if that fails. `steps` shows the shutdown."""
        from analytics.spark.connect import load_libraries
        from analytics.spark.java import java_of
        from analytics.spark.launch import Launch
        from analytics.spark.session import SessionOptions, start_session

        options = SessionOptions(
            master=request.master,
            memory=request.memory,
            verbose=request.verbose,
            settings=request.settings,
        )
        if request.is_connect:
            load_libraries()
        else:
            java_of()  # without Java, this error is enough
        self._steps = steps
        self._launch = launch = Launch()
        self._start = Apart(lambda: start_session(options, launch))
        self._wait_for_failure: Callable[[float], bool] | None = None

    def __enter__(self) -> Starting:
        return self

    def __exit__(self, _: object, error: BaseException | None, *rest: object) -> None:
        if error is None:
            self._end(self.session())
        else:
            self._abort()

    def session(self) -> Session:
        """Wait for Spark; raise the error of a failed start."""
        return self._start.result()

    def computed(self, work: Callable[[], Value]) -> Value:
        """Run `work` with the session; return its result or raise its error."""
        computing = Apart(work)
        self._wait_for_failure = computing.wait
        return computing.result()

    def _end(self, session: Session) -> None:
        try:
            session.stop()
        except KeyboardInterrupt:
            self._abort()
            raise

    def _abort(self) -> None:
        self._steps.at("ending")
        if not self._start.is_done:  # the thread then sees an error and ends
            self._launch.kill()
        if not self._start.wait(_MOST_FAIL):
            return
        with suppress(Exception):  # the failed start was already reported to the caller
            self.session().abort()
        if self._wait_for_failure is not None:
            self._wait_for_failure(_MOST_FAIL)
