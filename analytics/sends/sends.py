"""Sends among the exchanges, with the columns that the retry and isolation reports need.

A send is a request that carries a producer's message, by remoting or gRPC.

RocketMQ: MessageClientIDSetter.
"""

from __future__ import annotations

from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.ids.message_ids import GRPC_ID, KEY_LENGTHS
from dissectors.remoting.row_facts.names import STREAM_RESET
from dissectors.remoting.topic_names import DLQ_PREFIX, RETRY_PREFIX
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import CLOSING_US
from dissectors.rows.outcome import FAILED, SEND_CALLS

from .. import derived
from ..report import column_names
from ..schema import SOURCE
from ..sql.expressions import numbers, text, texts
from ..sql.relation import Relation
from .broker_names import with_names

OF_CONSUMERS = (
    f"(coalesce(contains(topic, {text(RETRY_PREFIX)}), false)"
    f" or coalesce(contains(topic, {text(DLQ_PREFIX)}), false))"
)
"""SQL: the topic is a retry topic or DLQ of consumers."""
LOGGED = "(request_packet is null and response_packet is null)"
"""SQL: the send was logged by its sender, not captured: `replay.sending.attempt`."""
CALL = f"(request_code is null and coalesce(request_name in {texts(SEND_CALLS)}, false))"
"""SQL: an exchange is a gRPC send."""
_CLOSING_US = text(f"{CLOSING_US}=")
_CLOSING = (
    f"coalesce(try_cast(substring_index(get(filter(facts, f -> startswith(f, {_CLOSING_US})), 0),"
    " '=', -1) as long), 0L)"
)
"""SQL: µs from the first FIN of a connection to its last packet."""
_RESET = text(f"{STREAM_RESET}=")
RESET = f"substring_index(get(filter(facts, f -> startswith(f, {_RESET})), 0), {_RESET}, -1)"
"""SQL: why the stream of a call was reset, and by which side."""
_BEGIN = text("\x01")
_WAS_RESET = (
    f"coalesce(contains({_BEGIN} || array_join(facts, {_BEGIN}), {_BEGIN} || {_RESET}), false)"
)
"""SQL: the stream of a call was reset. Spark generates no code for a query with `RESET` in it."""
FAILED_ITSELF = (
    f"(coalesce(outcome_class = '{FAILED}', false) or coalesce(status = 'unanswered'"
    f" and (`end` in ('reset', 'closed') or was_reset or {LOGGED}), false))"
)
"""SQL: a send was refused, or its connection or stream ended before a response."""
_COLUMNS = (
    SOURCE,
    *column_names(
        "capture conversation client_address server_address status end opaque request_packet"
        " response_packet request_time response_time latency_us outcome_class response_code"
        " response_name remark language version version_name topic group queue_id broker_name"
        " unique_key key_time offset_msg_id message_count body_bytes"
    ),
)
"""Columns of a send that are read at all."""
_TAIL = 24
"""Hex digits of a UNIQ_KEY after the address: process, loader, time of the month, count."""


def _maker_of(key: str) -> str:
    """Return, as SQL, the address in a UNIQ_KEY: the only one of a send that never left."""
    # 32 hex digits: an IPv4 address of 8; 56: an IPv6 address of 32; then process, loader, time
    parts = ", ".join(f"conv(substr({key}, {place}, 2), 16, 10)" for place in (1, 3, 5, 7))
    return (
        f"case length({key}) when 32 then concat_ws('.', {parts})"
        f" when 56 then substr({key}, 1, 32) else '' end"
    )


def made_by_grpc(key: str) -> str:
    """Return, as SQL, whether a gRPC client created a key, which a proxy may pass on."""
    return f"(octet_length({key}) = 34 and regexp_like({key}, '^{GRPC_ID}$'))"


def process_of(key: str) -> str:
    """Return, as SQL, the digits of a UNIQ_KEY that identify its process; null for other keys.

    They start with the process id, followed by the class loader or, for gRPC, the MAC address.
    """
    # gRPC: two digits of the version, twelve of the MAC address, four of the process, time, count
    return (
        f"case when octet_length({key}) in {numbers(KEY_LENGTHS)} then substr({key}, -{_TAIL}, 12)"
        f" when {made_by_grpc(key)}"
        f" then substr({key}, 15, 4) || substr({key}, 3, 12) end"
    )


def process_name(digits: str) -> str:
    """Return, as SQL, the result of `process_of` as ``pid-loader``."""
    return f"conv(substr({digits}, 1, 4), 16, 10) || '-' || substr({digits}, 5)"


def sends_of(exchanges: Relation) -> Relation:
    """Return the remoting sends of producers, without those of consumers to retry topics."""
    return _sends_of(exchanges, f"request_code in {numbers(SENDS)}")


def sends_and_calls_of(exchanges: Relation, keys: Relation | None = None) -> Relation:
    """Return the remoting and gRPC sends of producers, limited to a few `keys` if not None."""
    return _sends_of(exchanges, f"(request_code in {numbers(SENDS)} or {CALL})", keys)


def _sends_of(exchanges: Relation, which: str, keys: Relation | None = None) -> Relation:
    chosen = exchanges.where(
        f"{which} and status != 'orphan' and request_time is not null"
        f" and server_address is not null and not {OF_CONSUMERS}"
    )
    if keys is not None:
        # before the columns are added: computing them for all sends would take longer
        chosen = chosen.join(keys, f"{KEY} = key", "left semi", small=True)
    columns = {"call": CALL, "reset": RESET, "was_reset": _WAS_RESET}
    return chosen.adding(columns).select(*_COLUMNS, *columns)


MESSAGES = "coalesce(message_count, 1L)"
"""SQL: number of messages of a send; more than one: a batch."""
HOST = f"if({LOGGED}, {_maker_of('unique_key')}, {derived.address_of('client_address')})"
"""SQL: address of the client."""
PROCESS = process_of("unique_key")
"""SQL: digits of the client process."""
NEVER_OPENED = f"`end` in {texts(tcp.NEVER_OPENED)}"
"""SQL: a connect failed."""
_NO_KEY = "xxhash64(source, capture, conversation, opaque, unix_micros(request_time))"
KEY = f"if(unique_key is null, {_NO_KEY}, xxhash64(unique_key, topic))"
"""SQL: a number that identifies a message, with a quarter of the memory of
`dissectors.rows.identity_of`. A send without UNIQ_KEY, such as a batch of 4.x, is a message of its
own.
"""


def described(sends: Relation, names: Relation) -> Relation:
    """Return sends with `host`, `process`, `broker`, and in µs `begin`, `end_us` and `lead`.

    `lead` is the time since message creation; null if the key has no time.
    """
    return with_names(sends, names).adding(
        {
            "host": HOST,
            "process": PROCESS,
            "begin": "unix_micros(request_time)",
            "end_us": "unix_micros(response_time)",
            "lead": "unix_micros(request_time) - unix_micros(key_time)",
        },
    )


def connect_failures(conversations: Relation, names: Relation, known: bool = True) -> Relation:
    """Return the connections never established, as `attempts.ConnectFailure`.

    With `known`, only those to known brokers; otherwise those to any server.
    """
    named = with_names(conversations.where(NEVER_OPENED), names)
    return (named.where("broker != server_address") if known else named).select(
        f"{derived.address_of('client_address')} as host",
        "server_address as server",
        "broker",
        "unix_micros(start_time) as begin",
        "unix_micros(end_time) as `end`",
        "`end` = 'refused' as refused",
        SOURCE,
        "capture",
        "conversation",
    )


def with_connections(sends: Relation, conversations: Relation | None) -> Relation:
    """Return sends with `connected`, `closed` (µs), `ended_by`, and `whole` of the connection."""
    if conversations is None:
        return sends.adding(
            {
                "connected": "cast(null as long)",
                "closed": "cast(null as long)",
                "ended_by": "cast(null as string)",
                "whole": "cast(null as boolean)",
            },
        )
    facts = conversations.select(
        SOURCE,
        "conversation",
        # a connection that was open before the capture has no time of its connect
        "if(start != 'midstream', unix_micros(start_time), null) as connected",
        f"if(`end` != 'open', unix_micros(end_time) - {_CLOSING}, null) as closed",
        "ended_by",
        "directions = 'both' and coalesce(gaps, 0) = 0 as _whole",
    )
    joined = sends.join(facts, [SOURCE, "conversation"], "left")
    return joined.adding({"whole": "coalesce(_whole, false)"}).without("_whole")
