"""Meanings of numbers in header fields: flag bits, permissions, levels, times, special values.

A describer accepts any int and never raises; undefined bits and values are shown as numbers.
RocketMQ: MessageSysFlag, PullSysFlag, TopicSysFlag, PermName, MessageType, ForbiddenType,
RequestSource, ConsumeInitMode, MessageStoreConfig.messageDelayLevel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from .ids.pop_receipts import ORDER_REVIVE_QUEUE
from .sysflag import COMMIT, NO_TRANSACTION, PREPARED, ROLLBACK, names_of

Describer = Callable[[int], str | None]

COMMAND_FLAGS: Final = {1: "RESPONSE", 2: "ONEWAY"}
"""Bits of a command's flag."""
PULL_FLAGS: Final = {
    1: "COMMIT_OFFSET",
    2: "SUSPEND",
    4: "SUBSCRIPTION",
    8: "CLASS_FILTER",
    16: "LITE_PULL_MESSAGE",
}
"""Bits of sysFlag in a pull request."""
UNIT_FLAGS: Final = {1: "UNIT", 2: "UNIT_SUB"}
"""Bits of topicSysFlag and groupSysFlag."""
TRANSACTION_TYPES: Final = {
    NO_TRANSACTION: "NOT_TYPE",
    PREPARED: "PREPARED",
    COMMIT: "COMMIT",
    ROLLBACK: "ROLLBACK",
}
"""commitOrRollback, and the transaction bits of a message's sysFlag; NOT_TYPE ends nothing."""
MESSAGE_TYPES: Final = (
    "Normal_Msg",
    "Trans_Msg_Half",
    "Trans_msg_Commit",
    "Delay_Msg",
    "Order_Msg",
)
"""Message types by ordinal, as trace records carry them."""
FORBIDDEN_TYPES: Final = {
    1: "by the broker",
    2: "by the consumer group",
    3: "by the topic",
    4: "broadcasting is disabled",
    5: "by the subscription",
}
"""Reason of a NO_PERMISSION response to a pull."""
REQUEST_SOURCES: Final = {
    -1: "SDK",
    0: "PROXY_FOR_ORDER",
    1: "PROXY_FOR_BROADCAST",
    2: "PROXY_FOR_STREAM",
}
"""Source of a pull request."""
INIT_MODES: Final = {0: "MIN", 1: "MAX"}
"""Start of a new POP group: smallest or largest offset."""
# fmt: off
DELAY_LEVELS: Final = (
    "1s", "5s", "10s", "30s", "1m", "2m", "3m", "4m", "5m",
    "6m", "7m", "8m", "9m", "10m", "20m", "30m", "1h", "2h",
)
# fmt: on
"""Delay of level 1, 2, …; the default of the broker option messageDelayLevel."""

_PERM_PRIORITY: Final = 8
_PERM_LETTERS: Final = ((4, "R"), (2, "W"), (1, "X"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_TIME_MS: Final = 253402300799999  # the end of year 9999, the last one of datetime


def _bits_of(value: int, names: dict[int, str]) -> list[str]:
    set_names = [name for bit, name in names.items() if value & bit]
    rest = value & 0xFFFFFFFF & ~sum(names)  # Java ints are signed: -1 has all bits
    return [*set_names, f"{rest:#x}"] if rest else set_names


def describe_command_flag(value: int) -> list[str]:
    """Return the names for the bits of a command's flag; a request has the first bit unset."""
    names = _bits_of(value, COMMAND_FLAGS)
    return names if value & 1 else ["REQUEST", *names]


def describe_perm(value: int) -> str:
    """Return a permission in RocketMQ's form, `RW-`, then priority and undefined bits."""
    text = "".join(letter if value & bit else "-" for bit, letter in _PERM_LETTERS)
    rest = value & 0xFFFFFFFF & ~0xF
    return text + (" PRIORITY" if value & _PERM_PRIORITY else "") + (f" {rest:#x}" if rest else "")


def delay_of(level: int) -> str | None:
    """Return the default time of a delay level, `10s`; levels above the last are the last."""
    if level < 1:
        return None
    return DELAY_LEVELS[min(level, len(DELAY_LEVELS)) - 1]


def describe_send_back_level(level: int) -> str | None:
    """Return the meaning of delayLevel in CONSUMER_SEND_MSG_BACK."""
    if level < 0:
        return "dead-letter queue"
    # A broker replaces 0 by 3 + reconsumeTimes, 10 s at first.
    return delay_of(level) if level else "the broker decides by reconsumeTimes"


def describe_time_ms(value: int) -> str | None:
    """Format epoch ms as UTC, `2023-11-14T22:13:20.000Z`; None for 0 and invalid times."""
    if not 0 < value <= _LAST_TIME_MS:
        return None
    return f"{_text_of_second(value // 1000)}{value % 1000:03d}Z"


@lru_cache(maxsize=4096)
def _text_of_second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.")


def describe_duration_ms(value: int) -> str | None:
    """Format a duration in ms, `1m 30s`; None below a second, where ms are clearest."""
    if value < 1000:
        return None
    seconds, milliseconds = divmod(value, 1000)
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join([*parts, f"{milliseconds}ms"] if milliseconds else parts)


def describe_broker_id(value: int) -> str | None:
    """Return the role of a broker id in groups without a controller."""
    return "master" if value == 0 else "slave" if value > 0 else None


def _joined(describe: Callable[[int], Sequence[str]]) -> Describer:
    return lru_cache(maxsize=1024)(lambda value: "|".join(describe(value)) or None)


_ANY_QUEUE: Final[Describer] = {-1: "any queue"}.get
_UNIT: Final = _joined(lambda value: _bits_of(value, UNIT_FLAGS))
_MESSAGE: Final = _joined(names_of)

# Fields with the same meaning in every header.
_EVERYWHERE: Final[dict[str, Describer]] = {
    "perm": describe_perm,
    "readAheadMode": {0: "MADV_NORMAL", 1: "MADV_RANDOM"}.get,
    "commitOrRollback": TRANSACTION_TYPES.get,
    "topicSysFlag": _UNIT,
    "groupSysFlag": _UNIT,
    "suggestWhichBrokerId": describe_broker_id,
    "forbiddenType": FORBIDDEN_TYPES.get,
    "requestSource": REQUEST_SOURCES.get,
    "initMode": INIT_MODES.get,
    "reviveQid": {ORDER_REVIVE_QUEUE: "ordered consumption"}.get,
    **dict.fromkeys(
        (
            "beginTimestamp",
            "bornTime",
            "bornTimestamp",
            "checkTimeMillis",
            "checkStoreTime",
            "endTimestamp",
            "fromTime",
            "indexLastUpdateTimestamp",
            "invokeTime",
            "lastUpdateTimestamp",
            "popTime",
            "storeTimestamp",
            "subVersion",
            "timestamp",
            "toTime",
        ),
        describe_time_ms,
    ),
    **dict.fromkeys(
        (
            "heartbeatTimeoutMillis",
            "heartbeatTimeoutMills",
            "invisibleTime",
            "pollTime",
            "suspendTimeoutMillis",
        ),
        describe_duration_ms,
    ),
}

# Headers of groups without a controller, where 0 is the master; a controller counts from 1.
_ROLE_HEADERS: Final = (
    "RegisterBrokerRequestHeader",
    "UnRegisterBrokerRequestHeader",
    "QueryDataVersionRequestHeader",
    "RegisterFilterServerResponseHeader",
)

MEANINGS: Final[dict[tuple[str, str], Describer]] = {
    **{("*", field): describer for field, describer in _EVERYWHERE.items()},
    **{(header, "brokerId"): describe_broker_id for header in _ROLE_HEADERS},
    ("SendMessageRequestHeader", "sysFlag"): _MESSAGE,
    ("SendMessageRequestHeaderV2", "sysFlag"): _MESSAGE,
    ("ReplyMessageRequestHeader", "sysFlag"): _MESSAGE,
    ("PullMessageRequestHeader", "sysFlag"): _joined(lambda value: _bits_of(value, PULL_FLAGS)),
    ("PopMessageRequestHeader", "queueId"): _ANY_QUEUE,
    ("PeekMessageRequestHeader", "queueId"): _ANY_QUEUE,
    ("NotificationRequestHeader", "queueId"): _ANY_QUEUE,
    ("ResetOffsetRequestHeader", "timestamp"): lambda value: (
        "the end of the queue" if value == -1 else describe_time_ms(value)
    ),
    ("ConsumerSendMsgBackRequestHeader", "delayLevel"): describe_send_back_level,
}
"""(header class or `*`, field) → describer; a class row precedes the one of `*`."""


def meaning_of(header_name: str | None, field: str, value: object) -> str | None:
    """Return the meaning of a typed header field, or None if its number needs none."""
    if type(value) is not int:
        return None
    describer = MEANINGS.get((header_name, field)) if header_name else None
    describer = describer or _EVERYWHERE.get(field)
    return describer(value) if describer is not None else None
