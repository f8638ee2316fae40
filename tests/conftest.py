"""What all tests share: which implementation runs, examples, lanes, tools that are absent.

`RMQTOOL_PURE=1` runs the decode path from its sources although compiled modules are there.
`RMQTOOL_WITHOUT_TOOLS=1` hides optional programs and libraries, installed or not: `tests.tools`.
`HYPOTHESIS_PROFILE=explore` tries many random examples in place of a few fixed ones.
"""

from __future__ import annotations

import gc
import shutil
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import lengthy, profiles, tools
from tests.pure import implementation, import_sources, wants_sources
from tests.spark_session import released as released
from tests.spark_session import rmqtool_here as rmqtool_here
from tests.spark_session import spark as spark

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

if tools.are_hidden():
    tools.hide()
if wants_sources():
    import_sources()

profiles.load()
_OTHER_PROCESSES = ("cluster", "spark", "tshark", "slow")
"""marks of tests that wait for processes of their own"""
_WHOLE_COMMANDS = ("tests/rmqtool/replay/", "tests/rmqtool/send/", "tests/rmqtool/browse/views/")
"""folders whose tests run whole commands, by a sandbox or by keys: no unit tests"""
_SECOND_TRY = pytest.mark.flaky(reruns=1, reruns_delay=2)
"""A busy machine can delay other processes past any wait; the summary names what ran twice."""
_QUIET = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""py4j leaves its sockets to the garbage collector"""


_wait_for_end = subprocess.Popen.__exit__


def _end(process: subprocess.Popen[bytes], kind: type[BaseException] | None, *error: Any) -> None:
    """End a process whose test failed: to wait for it, as Python does, might be for ever."""
    if kind is not None:
        process.kill()
    _wait_for_end(process, kind, *error)


subprocess.Popen.__exit__ = _end  # type: ignore[method-assign,assignment]


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background so, and processes of tests would not end by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    absent = ", ".join(tools.absent()) or "none"
    why = f" (hidden by {tools.SWITCH})" if tools.are_hidden() else ""
    return [f"decode path: {implementation()}", f"optional tools absent: {absent}{why}"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders whose tests would all be deselected: what they import takes long."""
    place = f"{collection_path.relative_to(config.rootpath).as_posix()}/"
    if "not commands" in config.option.markexpr and place.startswith(_WHOLE_COMMANDS):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what can be seen: the Spark session, random examples, other processes."""
    took = lengthy.listed()
    for item in items:
        seconds = lengthy.seconds_of(item.nodeid, took)
        if seconds >= lengthy.LEAST:
            item.add_marker(pytest.mark.lengthy)
        if seconds >= lengthy.EXTENDED:
            item.add_marker(pytest.mark.extended)
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.examples)
        if item.nodeid.startswith(_WHOLE_COMMANDS):
            item.add_marker(pytest.mark.commands)
        if item.get_closest_marker("spark"):
            item.add_marker(_QUIET)
        if any(item.get_closest_marker(mark) for mark in _OTHER_PROCESSES):
            item.add_marker(_SECOND_TRY)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: what is made stays, and it takes a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Take the tests, which stay until the end, out of what the garbage collector looks at."""
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took."""
    lengthy.add(report)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("tshark") and shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")


@pytest.fixture(scope="session")
def right_to_capture() -> None:
    """Skip where packets cannot be captured; what is tried takes long, so only for such tests."""
    from tests.dissectors.live.test_interface import missing_right

    if reason := missing_right():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def capture_filters(right_to_capture: None) -> None:
    """Skip if no capture filter can be compiled; it needs libpcap."""
    from tests.dissectors.live.test_interface import missing_right

    if reason := missing_right("tcp"):
        pytest.skip(reason)


class Lanes:
    """Hooks of pytest-xdist, where it is installed."""

    @pytest.hookimpl
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> Scheduling:
        from tests.lanes import LaneScheduling

        return LaneScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin("xdist"):  # its session is made after this
        config.pluginmanager.register(Lanes())
