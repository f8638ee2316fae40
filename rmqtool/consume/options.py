"""The options of `consume` and `topic`, each declared once."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from dissectors.foreign import natural_of
from dissectors.times import moment_of

from ..send import targets
from ..ui import common_options as common
from ..ui.console import When
from ..ui.declared import argument, declared, option, text_option
from ..ui.option_values import usage_error
from ..ui.status import CommandError, ExitStatus

_TARGET, _SELECT, _OUTPUT = "Target", "Filters", "Output"
_MS = 1_000_000


class ConsumeFormat(StrEnum):
    """The format of messages."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    body = "body"


class TopicFormat(StrEnum):
    """The format of a topic description."""

    table = "table"
    json = "json"


class Start(StrEnum):
    """Named start positions."""

    begin = "begin"
    end = "end"


Place = Start | int | tuple[int]
"""start of reading: an end, an offset, or (ms since the epoch,)"""


def _place_of(name: str, text: str) -> Place:
    if text in tuple(Start):
        return Start(text)
    offset = natural_of(text)
    if offset is not None:
        return offset
    moment = moment_of(text)
    if moment is None or not moment.has_date:
        raise usage_error(
            name,
            f"not a valid start: {text!r}; give begin, end, an offset of the queue, or a UTC time"
            " such as 2026-11-20T10:00:00",
        )
    return (moment.ns // _MS,)


def _topic_of(name: str, named: str | None, positional: str | None) -> str:
    if named is not None and positional is not None and named != positional:
        raise usage_error(name, f"two topics: {positional} and {named}; give one")
    topic = named if named is not None else positional
    if not topic:
        raise CommandError("no topic given; add TOPIC or -t TOPIC", status=ExitStatus.USAGE)
    return topic


def _topic(text: str) -> Any:
    """Declare the topic as an option, beside the argument `named`."""
    return text_option(text, _SELECT, metavar="TOPIC", value="", read=_topic_of, needs=("named",))


@declared
class ClusterRequest:
    """The options of both commands."""

    namesrv: str | None = targets.NAMESRV
    acl: str | None = targets.ACL
    yes: bool = targets.yes(_TARGET, "connecting")
    allow: list[str] | None = targets.allow(_TARGET, "Connect")
    tls: str | None = targets.TLS
    tls_name: str | None = targets.TLS_NAME
    tls_any_name: bool = targets.TLS_ANY_NAME
    tls_cert: str | None = targets.TLS_CERT
    tls_key: str | None = targets.TLS_KEY
    timeout_ms: int = targets.timeout("Timeout of a request.", _TARGET)
    colour: When = common.COLOR
    quiet: bool = common.QUIET


@declared
class ConsumeCommand(ClusterRequest):
    """The options of `consume`."""

    named: str | None = argument("[TOPIC]", "Topic to read.", None)
    topic: str = _topic("Same as TOPIC.")
    start: Place = text_option(
        "Start at begin, end, an offset, or a store time (UTC).",
        _SELECT,
        "begin",
        metavar="begin|end|OFFSET|TIME",
        value=Start.begin,
        read=_place_of,
    )
    limit: int | None = option("Stop after N messages.", _SELECT, min=0, metavar="N")
    follow: bool = option("Wait for new messages until Ctrl-C.", _SELECT, False)
    broker: str | None = option("Read only from this broker.", _SELECT, metavar="NAME")
    queue: int | None = option("Read only this queue of each broker.", _SELECT, min=0, metavar="N")
    tags: str | None = option(
        "Show only messages with one of these tags: 'paid || sent'.", _SELECT, metavar="TAGS"
    )
    key: str | None = option("Show only messages with this key.", _SELECT, metavar="KEY")
    where: str = common.where("Show only messages that match", "reconsume_times > 0")
    format: ConsumeFormat = common.choice(
        ConsumeFormat, "Output format; body: bodies only, one per line.", _OUTPUT
    )


@declared
class TopicCommand(ClusterRequest):
    """The options of `topic`."""

    named: str | None = argument("[TOPIC]", "Topic to describe.", None)
    topic: str = _topic("Same as TOPIC.")
    groups: list[str] | None = option(
        "Show only the lag of this group; repeatable.", _SELECT, names="--group", metavar="GROUP"
    )
    format: TopicFormat = common.choice(TopicFormat, "Output format.", _OUTPUT)
