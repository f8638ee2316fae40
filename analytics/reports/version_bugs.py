"""Published bugs of client versions: affected releases and the issue of each.

Rules: a bug is listed only with a public issue and the releases between which it was fixed; all are
client bugs, since only clients send their version with each request.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dissectors.remoting.versions import (
    V4_6_0,
    V4_7_0,
    V4_9_0,
    V4_9_8,
    V5_0_0_SNAPSHOT,
    V5_1_4,
    V5_2_0,
    V5_3_0,
    V5_3_1,
)

from ..sql.expressions import text


class VersionBug(NamedTuple):
    """A bug of some client releases."""

    language: str
    """as named by clients"""
    said: str
    """effect of the bug, and the first release without it"""
    issue: str
    """``owner/repository#number``"""
    since: int = 0
    """MQVersion ordinal of the first affected release"""
    before: int = 0
    """ordinal of the first release with the fix"""
    version: str = ""
    """gRPC: the only affected release, as it names itself"""


_JAVA: Final = "JAVA"
VERSION_BUGS: Final[tuple[VersionBug, ...]] = (
    VersionBug(
        _JAVA,
        "asynchronous sends are not retried: retryTimesWhenSendAsyncFailed has no effect"
        " (fixed in 4.7.0)",
        "apache/rocketmq#1781",
        since=V4_6_0,
        before=V4_7_0,
    ),
    VersionBug(
        _JAVA,
        "the client ID contains only the process ID, so containers can share one (fixed in 4.9.0)",
        "apache/rocketmq#2730",
        before=V4_9_0,
    ),
    VersionBug(
        _JAVA,
        "with the fault strategy, sends can move to another broker for good (fixed in 4.9.8)",
        "apache/rocketmq#7779",
        before=V4_9_8,
    ),
    VersionBug(
        _JAVA,
        "with the fault strategy, sends can move to another broker for good (fixed in 5.1.4)",
        "apache/rocketmq#7779",
        since=V5_0_0_SNAPSHOT,
        before=V5_1_4,
    ),
    VersionBug(
        _JAVA,
        "with the fault strategy, a broker that failed once may never be used again"
        " (fixed in 5.2.0)",
        "apache/rocketmq#7812",
        since=V5_1_4,
        before=V5_2_0,
    ),
    VersionBug(
        _JAVA,
        "sends refused with SYSTEM_BUSY are not retried on another broker (fixed in 5.3.0)",
        "apache/rocketmq#5838",
        before=V5_3_0,
    ),
    VersionBug(
        _JAVA,
        "a send fails without a retry if GO_AWAY comes twice (fixed in 5.3.1)",
        "apache/rocketmq#8599",
        since=V5_2_0,
        before=V5_3_1,
    ),
    VersionBug(
        "PYTHON",
        "PushConsumer.startup() can hang",
        "apache/rocketmq-clients#1189",
        version="5.1.0",
    ),
)


def known_bugs(language: str, ordinal: str, version: str) -> str:
    """Return, as SQL, the list of a version's bugs; arguments are SQL, too."""
    tests = (
        (
            f"{language} = {text(bug.language)} and {version} = {text(bug.version)}"
            if bug.version
            else f"{language} = {text(bug.language)} and {ordinal} >= {bug.since}"
            f" and {ordinal} < {bug.before}",
            f"{bug.said}: {bug.issue}",
        )
        for bug in VERSION_BUGS
    )
    bugs = ", ".join(f"if({test}, {text(description)}, null)" for test, description in tests)
    return f"filter(array({bugs}), bug -> bug is not null)"
