"""All attempts of producers by remoting as their fault strategy sees them, for the replay of it."""

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
"""What is known of an attempt that was not looked at, but for its message and times."""
_OF_LOOKED_AT = (
    *("client", f"{sends.PROCESS} as process", "`group`", "topic", "broker", "last_broker"),
    *("outcome", "cause", "attempt", *_TEXTS),
)
_MESSAGE = ("unique_key", "request_packet")
_TIMES = ("unix_micros(attempt_begin) as begin", "unix_micros(attempt_end) as end")


def events(stitch: Stitched) -> Relation:
    """Return the attempts; `begin` and `end` in µs since the epoch.

    Where `plain` is true, `begin` is the time of the request: `isolation_input.born` puts it right.
    """
    sent = with_names(_plain(stitch), stitch.names)
    plain = sent.select(*_OF_PLAIN, "true as plain", "begin", "end", *_MESSAGE)
    remoting = stitch.attempts.where("protocol = 'remoting'")
    looked_at = remoting.select(*_OF_LOOKED_AT, *_TIMES, *_MESSAGE)
    return plain.union(looked_at.adding({"plain": "false"}))


def _plain(stitch: Stitched) -> Relation:
    """Return the sends that were not looked at, with `client`, `process` and their times."""
    sent = stitch.sends.where("not call")  # clients by gRPC avoid proxies, by rules of their own
    others = sent.join(stitch.keys, f"{sends.KEY} = key", "left anti", small=True)
    begin = "unix_micros(request_time)"
    return others.adding(
        {
            "client": sends.HOST,
            "process": sends.PROCESS,
            "begin": begin,
            "end": f"if(status = 'oneway', {begin}, unix_micros(response_time))",
        }
    )
