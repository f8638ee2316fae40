"""Spark for one report: it starts while captures are decoded, computes, and ends whatever happens.

Rules: Spark starts and computes in threads of its own, because PySpark and gRPC have waits that no
signal ends. After an error or Ctrl-C all is ended at once, also what still starts; what was waited
for fails then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from ..ui.interrupt import Apart
from .options import ReportRequest

if TYPE_CHECKING:
    from analytics.spark.session import Session

    from ..ui.screen.progress import StageLine

Value = TypeVar("Value")
_MOST_FAIL: Final = 3.0
"""Seconds that the end waits until threads have noticed that what they wait for was ended. An
import that Ctrl-C interrupts in the main thread can stop them for ever."""


class Starting:
    """Spark, from its start to its end; a context manager."""

    def __init__(self, request: ReportRequest, rows: int | None, steps: StageLine) -> None:
        """Start it; raise ReportError where that cannot be done.

        `rows` is how many exchanges the input has, about; `steps` shows how it ends.
        """
        from analytics.spark.connect import load_libraries
        from analytics.spark.java import java_of
        from analytics.spark.launch import Launch
        from analytics.spark.session import SessionOptions, start_session

        options = SessionOptions(
            master=request.master,
            rows=rows,
            memory=request.memory,
            verbose=request.verbose,
            settings=request.settings,
        )
        if request.is_connect:
            load_libraries()
        else:
            java_of()  # without Java, that is all there is to say
        self._steps = steps
        self._launch = launch = Launch()
        self._start = Apart(lambda: start_session(options, launch))
        self._wait_for_failure: Callable[[float], bool] | None = None

    def __enter__(self) -> Starting:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._end(self.session())
        else:
            self._abort()

    def session(self) -> Session:
        """Wait for Spark; raise what kept it from starting."""
        return self._start.result()

    def computed(self, work: Callable[[], Value]) -> Value:
        """Return what `work` returns, which computes with the session; raise what it raises."""
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
        if not self._start.is_done:
            self._launch.kill()
        if not self._start.wait(_MOST_FAIL):
            return
        with suppress(Exception):  # the start failed: that was said to who asked for the session
            self.session().abort()
        if self._wait_for_failure is not None:
            self._wait_for_failure(_MOST_FAIL)
