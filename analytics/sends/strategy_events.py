"""All attempts of producers by remoting as their fault strategy sees them, for the replay of it.

Rules: nearly all texts of an attempt are those of thousands of others, so the attempts of a large
input go to Python as numbers, with one that stands for all of these texts (`coded_events`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dissectors.rows.outcome import FAILED, NOT_DURABLE, OK

from ..report import ReportInput
from ..sql.expressions import texts
from ..sql.relation import Relation
from . import sends
from .attempts import ONEWAY, REFUSED, STORED, UNKNOWN
from .broker_names import with_names
from .stitched import STITCHED, Stitched

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow

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


def _number_of(columns: Sequence[str]) -> str:
    """Return, as SQL, a number for the values of some columns."""
    return f"xxhash64({', '.join(f'`{name}` is null, `{name}`' for name in columns)})"


_OF_PRODUCER = ("client", "process", "group")
_PRODUCER = _number_of(_OF_PRODUCER)
_SEND = (
    *("client", "process", "group", "topic", "responder", "outcome_class"),
    *("response_name", *_TEXTS),
)
_KIND = _number_of(_SEND)
"""SQL: a number for what `_OF_PLAIN` is made of."""
_LOOKED_AT = (
    *("client", "process", "group", "topic", "broker", "last_broker", "outcome", "cause"),
    *("attempt", *_TEXTS),
)
_KIND_LOOKED_AT = _number_of(_LOOKED_AT)


def events(stitch: Stitched) -> Relation:
    """Return the attempts; `begin` and `end` in µs since the epoch.

    Where `plain` is true, `begin` is the time of the request: `isolation_input.born` puts it right.
    """
    sent = with_names(_plain(stitch), stitch.names)
    plain = sent.select(*_OF_PLAIN, "true as plain", "begin", "end", *_MESSAGE)
    looked_at = _looked_at(stitch).select(*_OF_LOOKED_AT, *_TIMES, *_MESSAGE)
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


def _looked_at(stitch: Stitched) -> Relation:
    return stitch.attempts.where("protocol = 'remoting'")


class CodedEvents(NamedTuple):
    """Attempts as numbers, and what these stand for."""

    events: Relation
    """`producer`, a number for a producer, `kind`, `begin`, `end`, and those of `_MESSAGE`"""
    kinds: pyarrow.Table
    """`kind`, and all other columns of `events`"""


def coded_events(given: ReportInput, stitch: Stitched) -> CodedEvents | None:
    """Return what `events` does of a large input, coded; None: there are too many kinds."""
    looked_at = _looked_at(stitch).select(*_OF_LOOKED_AT, *_TIMES, *_MESSAGE)
    coded = looked_at.adding({"kind": _KIND_LOOKED_AT})
    counts = stitch.counts.where("not call").renamed({"host": "client"})
    counted = with_names(counts, stitch.names).adding({"kind": _KIND})
    of_plain = counted.select("kind", *_OF_PLAIN, "true as plain")
    every = of_plain.union(
        coded.select("kind", *(f"`{name}`" for name in _LOOKED_AT), "false as plain")
    )
    found = given.kept.frame(every.distinct().adding({"producer": _PRODUCER}), STITCHED)
    kinds = found.rows
    if kinds is None or not _tells_apart(kinds):
        return None
    columns = (f"{_PRODUCER} as producer", "kind", "begin", "end", *_MESSAGE)
    plain = _plain(stitch).adding({"kind": _KIND})
    both = plain.select(*columns).union(coded.select(*columns))
    return CodedEvents(both, kinds.drop_columns(["producer"]).combine_chunks())


def _tells_apart(kinds: pyarrow.Table) -> bool:
    """Return whether no two kinds, and no two producers, have one number.

    A peer chooses the texts of which the numbers are made, so it can make two equal.
    """
    producers = kinds.group_by([*_OF_PRODUCER]).aggregate([]).num_rows
    numbers_of = {name: len(kinds.column(name).unique()) for name in ("kind", "producer")}
    return numbers_of == {"kind": kinds.num_rows, "producer": producers}
