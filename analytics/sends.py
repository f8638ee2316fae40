"""The sends among the exchanges, with all that the retry and isolation reports ask of each.

Rules: a send is a request that carries a message of a producer; the client process is told by its
UNIQ_KEY (process id and class loader hash) and the requester's address. Only sends that may be
part of a retry are taken to Python (`telling_keys`): those of which the UNIQ_KEY was seen more than
once, that failed, or before which a connect of the same host failed.
RocketMQ: MessageClientIDSetter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from . import derived
from .attempts import SOON_US, STORED_CODES
from .expressions import adding, grouped, texts
from .schema import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEND_CODES = (10, 310, 320, 324, 325)
"""SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, SEND_REPLY_MESSAGE and its V2."""
OF_CONSUMERS = (
    "(coalesce(contains(topic, '%RETRY%'), false) or coalesce(contains(topic, '%DLQ%'), false))"
)
"""SQL: the topic is one of the retries and dead letters of consumers."""
LOGGED = "(request_packet is null and response_packet is null)"
"""SQL: no packet was captured, the sender itself tells of the send: `replay.attempt_record`."""
FAILED_ITSELF = (
    f"(coalesce(response_code not in ({', '.join(map(str, sorted(STORED_CODES)))}), false)"
    f" or coalesce(status = 'unanswered' and (`end` in ('reset', 'closed') or {LOGGED}), false))"
)
"""SQL: a send was refused, or its connection ended before an answer."""
_COLUMNS = (
    SOURCE,
    *("capture", "conversation", "requester", "responder", "status", "end", "opaque"),
    *("request_packet", "response_packet", "request_time", "response_time"),
    *("response_code", "response_name", "remark", "language", "version", "version_name"),
    *("topic", "group", "queue_id", "broker_name", "unique_key", "offset_msg_id"),
)
"""Columns of a send that are read at all."""
_LENGTHS = "(32, 56)"
"""Hex digits of a UNIQ_KEY with an address of IPv4, IPv6."""
_TAIL = 24
"""Hex digits of a UNIQ_KEY behind the address: process, loader, time of the month, count."""
_ZONES_US = 15 * 60 * 1_000_000
"""The month begins by the client's time zone; all zones are multiples of 15 minutes from UTC."""
_SLACK_US = 1_000_000
"""A clock that steps: a message may seem to be sent so long before it was born."""
_AT_HOME = 0.7
"""A name is at home where its share of the requests is at least this part of its largest share."""
_AFTER_S = SOON_US // 1_000_000
"""Seconds after a failed connect in which the message must be sent."""


def host_of(endpoint: str) -> str:
    """Return, as SQL, the address of an endpoint; without a pattern unless it is IPv6."""
    plain = f"substring_index({endpoint}, ':', 1)"
    return f"if(startswith({endpoint}, '['), {derived.address_of(endpoint)}, {plain})"


def _maker_of(key: str) -> str:
    """Return, as SQL, the address in a UNIQ_KEY: a send that never left has no other."""
    parts = ", ".join(f"conv(substr({key}, {place}, 2), 16, 10)" for place in (1, 3, 5, 7))
    return (
        f"case length({key}) when 32 then concat_ws('.', {parts})"
        f" when 56 then substr({key}, 1, 32) else '' end"
    )


def process_of(key: str) -> str:
    """Return, as SQL, the digits of a UNIQ_KEY for the process that made it; null: another key."""
    return f"if(length({key}) in {_LENGTHS}, substr({key}, -{_TAIL}, 12), null)"


def process_name(digits: str) -> str:
    """Return, as SQL, what `process_of` gives as ``pid-loader``."""
    return f"concat(conv(substr({digits}, 1, 4), 16, 10), '-', substr({digits}, 5, 8))"


def lead_of(key: str, time_us: str) -> str:
    """Return, as SQL, the µs from the birth of a UNIQ_KEY to a time; null for another key.

    What it says is the time of the month in the client's zone, so the answer is known but for
    multiples of 15 minutes, of which the smallest is taken; months begin at such multiples too.
    """
    born_us = f"cast(conv(substr({key}, -12, 8), 16, 10) as long) * 1000"
    lead = f"pmod({time_us} - {born_us} + {_SLACK_US}, {_ZONES_US}) - {_SLACK_US}"
    return f"if(length({key}) in {_LENGTHS}, {lead}, null)"


def broker_homes(exchanges: DataFrame) -> DataFrame:
    """Return (responder, broker): the name of the broker at an address.

    A name goes to the address where its share is largest, so that retries of asynchronous sends,
    which keep the first broker's name, do not rename the broker they were sent to. An address at
    home to several names, a proxy, has the one that nearly all ask for, or none.
    """
    name_server = f"request_name in {texts(derived.NOT_TO_A_BROKER)}"
    named = grouped(
        exchanges.where(f"broker_name != '' and responder is not null and not {name_server}"),
        ("responder", "broker_name"),
        {"asked": "count(*)"},
    )
    shares = adding(named, {"share": "asked / sum(asked) over (partition by responder)"})
    best = adding(shares, {"best": "max(share) over (partition by broker_name)"})
    chosen = grouped(
        best.where(f"share >= best * {_AT_HOME}"),
        ("responder",),
        {
            "broker": "max_by(broker_name, struct(asked, broker_name))",
            "share": "max(share)",
            "names": "count(*)",
        },
    )
    telling = chosen.where(f"names = 1 or share >= {derived.AGREEMENT}")
    return telling.select("responder", "broker")


def sends_of(exchanges: DataFrame) -> DataFrame:
    """Return the sends of producers as they are; those of consumers to retry topics are not."""
    codes = ", ".join(map(str, SEND_CODES))
    return exchanges.where(
        f"request_code in ({codes}) and status != 'orphan' and request_time is not null"
        f" and not {OF_CONSUMERS}"
    ).select(*_COLUMNS)


def described(sends: DataFrame, homes: DataFrame) -> DataFrame:
    """Return sends with `host`, `process`, `broker`, `lead`, `begin` and `end_us` (µs)."""
    named = F.broadcast(homes.withColumnRenamed("broker", "_broker"))
    return adding(
        sends.join(named, "responder", "left"),
        {
            "host": f"if({LOGGED}, {_maker_of('unique_key')}, {host_of('requester')})",
            "process": process_of("unique_key"),
            "broker": "coalesce(_broker, responder)",
            "lead": lead_of("unique_key", "unix_micros(request_time)"),
            "begin": "unix_micros(request_time)",
            "end_us": "unix_micros(response_time)",
        },
    )


def connect_failures(conversations: DataFrame, homes: DataFrame) -> DataFrame:
    """Return the connects to brokers that never came about, as `attempts.ConnectFailure`."""
    failed = conversations.where("`end` in ('refused', 'no_answer')")
    named = failed.join(F.broadcast(homes.withColumnRenamed("responder", "server")), "server")
    # all named anew: both sides of a cogroup must not have the same columns
    return named.selectExpr(
        f"{host_of('client')} as host",
        "server as server",
        "broker as broker",
        "unix_micros(start_time) as begin",
        "unix_micros(end_time) as end",
        "`end` = 'refused' as refused",
        f"{SOURCE} as {SOURCE}",
        "capture as capture",
        "conversation as conversation",
    )


def telling_keys(sends: DataFrame, homes: DataFrame, failures: DataFrame | None) -> DataFrame:
    """Return the UNIQ_KEYs of which the attempts are looked at one by one (`unique_key`)."""
    keyed = sends.where("unique_key is not null")
    keys = grouped(keyed, ("unique_key",), {"seen": "count(*)", "wrong": f"max({FAILED_ITSELF})"})
    chosen = keys.where("seen > 1 or wrong").select("unique_key")
    if failures is None:
        return chosen
    return chosen.union(_after_failures(described(keyed, homes), failures)).distinct()


def _after_failures(keyed: DataFrame, failures: DataFrame) -> DataFrame:
    """Return the keys of messages that were being sent when a connect of their host failed."""
    second = "cast(floor({} / 1000000) as long)"
    ended = second.format("`end`")
    near = failures.selectExpr(
        "host",
        "broker as failed_broker",
        "begin as failed_begin",
        "`end` as failed_end",
        f"explode(sequence({ended}, {ended} + {_AFTER_S})) as second",
    )
    late = adding(keyed, {"second": second.format("begin")})
    joined = late.join(F.broadcast(near), ["host", "second"])
    meanwhile = "failed_begin >= begin - lead - 1000"
    soon = f"begin between failed_end and failed_end + {SOON_US}"
    chosen = joined.where(f"{meanwhile} and {soon} and failed_broker != broker")
    return chosen.select("unique_key")


def with_connections(sends: DataFrame, conversations: DataFrame | None) -> DataFrame:
    """Return sends with `connected`, `closed` (µs), `ended_by` and `whole` of their connection."""
    if conversations is None:
        return adding(
            sends,
            {
                "connected": "cast(null as long)",
                "closed": "cast(null as long)",
                "ended_by": "cast(null as string)",
                "whole": "cast(null as boolean)",
            },
        )
    facts = conversations.selectExpr(
        SOURCE,
        "conversation",
        "if(start != 'midstream', unix_micros(start_time), null) as connected",
        "if(`end` != 'open', unix_micros(end_time), null) as closed",
        "ended_by",
        "directions = 'both' and coalesce(gaps, 0) = 0 as _whole",
    )
    joined = sends.join(facts, [SOURCE, "conversation"], "left")
    return adding(joined, {"whole": "coalesce(_whole, false)"}).drop("_whole")
