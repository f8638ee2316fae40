"""All remoting attempts of producers as events for the replay of the fault strategy."""

from __future__ import annotations

from dissectors.rows.outcome import FAILED, NOT_DURABLE, OK

from ..sql.expressions import texts
from ..sql.relation import Relation
from . import sends
from .attempts import ONEWAY, REFUSED, STORED, UNKNOWN
from .broker_names import with_names
from .stitched import Stitched

_OUTCOME = (
    f"case when outcome_class in {texts((OK, NOT_DURABLE))} then '{STORED}'"
    f" when outcome_class = '{FAILED}' then '{REFUSED}'"
    f" when outcome_class = 'oneway' then '{ONEWAY}' else '{UNKNOWN}' end"
)
_CAUSE = f"if(outcome_class = '{FAILED}', response_name, null)"
_TEXTS = ("language", "version_name", "capture")
_OF_PLAIN = (
    *("client", "process", "`group`", "topic", "broker", "cast(null as string) as last_broker"),
    *(f"{_OUTCOME} as outcome", f"{_CAUSE} as cause", "1L as attempt", *_TEXTS),
)
"""Columns of attempts not analyzed individually, without message and times."""
_OF_LOOKED_AT = (
    *("client", f"{sends.PROCESS} as process", "`group`", "topic", "broker", "last_broker"),
    *("outcome", "cause", "attempt", *_TEXTS),
)
_NOT_GRPC = f"not coalesce({sends.made_by_grpc('unique_key')}, false)"
"""SQL: the message is not of a gRPC client: those avoid proxies by rules of their own."""
# a signed number: DuckDB's hash is unsigned
_KEY = f"if(unique_key is null, null, cast(xxhash64(unique_key, topic) & {2**63 - 1}L as long))"
"""SQL: a number for the UNIQ_KEY, which takes much less time to sort: `with_unique_keys`."""
_TIE = "if(request_packet is null, unique_key, null)"
"""SQL: what orders attempts without a packet that begin together."""
_MESSAGE = (f"{_KEY} as key", f"{_TIE} as tie", "request_packet")
_TIMES = ("unix_micros(attempt_begin) as begin", "unix_micros(attempt_end) as end")


def events(stitch: Stitched, timeout_us: int) -> Relation:
    """Return the attempts; `begin` and `end` in µs since the epoch.

    An attempt begins at message creation if that is within a timeout of the request.
    """
    plain = with_names(_plain(stitch, timeout_us), stitch.names)
    remoting = stitch.attempts.where(f"protocol = 'remoting' and {_NOT_GRPC}")
    looked_at = remoting.select(*_OF_LOOKED_AT, *_TIMES, *_MESSAGE)
    return plain.select(*_OF_PLAIN, "begin", "end", *_MESSAGE).union(looked_at)


def _plain(stitch: Stitched, timeout_us: int) -> Relation:
    """Return the sends not analyzed individually, with `client`, `process`, and times."""
    sent = stitch.sends.where(f"not call and {_NOT_GRPC}")
    others = sent.join(stitch.keys, f"{sends.KEY} = key", "left anti", small=True)
    asked, created = "unix_micros(request_time)", "unix_micros(key_time)"
    # a message may wait in the application between its creation and its send
    near = f"coalesce({asked} - {created} between 0 and {timeout_us}, false)"
    return others.adding(
        {
            "client": sends.HOST,
            "process": sends.PROCESS,
            "begin": f"if({near}, {created}, {asked})",
            "end": f"if(status = 'oneway', {asked}, unix_micros(response_time))",
        }
    )


def with_unique_keys(rows: Relation, stitch: Stitched) -> Relation:
    """Return a few rows of attempts with the `unique_key` that their `key` stands for."""
    keyed = stitch.sends.where("unique_key is not null").adding({"key": _KEY})
    wanted = rows.where("key is not null").select_distinct("key")
    texts_of_keys = keyed.join(wanted, ["key"], "left semi", small=True).grouped(
        ("key",), {"unique_key": "min(unique_key)"}
    )
    return rows.join(texts_of_keys, ["key"], "left", small=True)
