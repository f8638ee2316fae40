"""Attempts as a table: sends of hosts in, one row per attempt out, both in Arrow.

This is the only part of the retry reports outside SQL: the outcome of an attempt depends on the
next one. Columns of the message are the same in all rows of its attempts, apart from
`_OF_ALL_ATTEMPTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dissectors.foreign import hexadecimal_of

from ..report import table_columns
from ..schema import SOURCE, arrow_rows
from ..sql.engine import with_texts
from ..sql.relation import Relation
from . import sends
from .attempts import (
    REFUSED,
    STORED_UNCONFIRMED,
    UNSURE,
    ConnectFailure,
    ObservedAttempt,
    Send,
    timeout_learnt,
)
from .calls import attempts_of_message
from .chains import Chain, Limits, chain_of

if TYPE_CHECKING:
    import pyarrow

    from ..kept import Kept

MOST_IN_ORDER = 64
"""Most attempts of a message that are named in one text."""
MESSAGE_COLUMNS = table_columns("""
    unique_key string: UNIQ_KEY or message ID shared by all attempts; empty: the request has none
    topic string: topic of the message
    group string: producer group
    client string: client address without port
    process string: process in the key: process ID and loader hash, or MAC address for gRPC
    language string: language of the client
    version_name string: version reported by the client
    messages int: messages in the send; more than one: a batch
    attempts int: attempts known, with the inferred ones
    views int: requests of the message in all captures, including duplicates of one packet
    final string: `stored`, `stored, client not told`, `failed`, `may be stored` (failed for the
      client without a broker response), or `unknown`
    copies int: number of broker responses that confirm storage
    unsure int: unanswered or inconclusive attempts that may also have stored the message
    late int: attempts that succeeded after the client gave up
    over_budget int: attempts that started after sendMsgTimeout; not for gRPC
    verdict string: verdict on the retries; empty: nothing unusual
    brokers string: brokers in attempt order, the first 64
    causes string: outcome of each attempt, in order, the first 64
    begin time: start of the first attempt
    lasted_us int µs: time from the first attempt to the last event
""")
"""Columns of the result of a message's attempts."""

_OF_ALL_ATTEMPTS = ("brokers", "causes")
"""Texts that only the first attempt has: with thousands of attempts they take most memory."""

ATTEMPT_COLUMNS = table_columns("""
    attempt int: attempt number, starting at 1
    protocol string: `remoting` or `gRPC`
    broker string: target broker, or proxy for gRPC calls
    last_broker string: broker of the previous attempt; empty for the first
    next_broker string: broker of the next attempt; empty for the last
    queue_id int: requested queue ID
    asked_broker string: broker named in the request
    stale_queue bool: whether the request names another broker's queue, as async retries do
    outcome string: outcome; `unknown`: not captured
    cause string: error code name, or outcome
    response_code int: response code
    remark string: response remark
    attempt_begin time: start of the attempt, as far as packets show
    attempt_end time: end of the attempt for the client, as far as packets show
    latency_us int µs: latency from request to response; empty without a response
    gap_us int µs: time since the start of the previous attempt
    after_budget bool: whether the attempt started after sendMsgTimeout
    certain bool: whether the packets prove the outcome; false: the capture has gaps here
    inferred bool: whether the attempt is inferred from a failed connection attempt
    client_address string: client `address:port`
    server_address string: broker or proxy `address:port`
    source string: input
    capture string: capture file
    conversation int: TCP connection
    request_packet int: request packet number
    response_packet int: response packet number
""")
"""Columns of one attempt."""

_ROWS = 4096
"""Rows that are objects at a time."""
_SEND_FIELDS = tuple(name for name in Send._fields if name not in ("end", "how_ended"))
SEND_SELECTION = (*_SEND_FIELDS, "end_us", "end")
"""Columns of the sends that `attempt_rows` reads."""


def with_attempts(
    kept: Kept, chosen: Relation, failures: Relation | None, limits: Limits, share: str
) -> Relation:
    """Return one row per attempt, with MESSAGE_COLUMNS and ATTEMPT_COLUMNS, computed now.

    `chosen` are all sends of the selected messages, with their connections.
    """
    columns = (*MESSAGE_COLUMNS, *ATTEMPT_COLUMNS)
    sent = chosen.adding({"messages": sends.MESSAGES}).renamed({"broker_name": "asked_broker"})
    sent = sent.select(*SEND_SELECTION, "process")
    # hosts share nothing: not the messages of a key, and not the timeout of a process
    if failures is None:
        made = kept.engine.by_group(sent, "host", _of_one_host(limits), columns)
    else:
        made = kept.engine.by_groups(sent, failures, "host", _with_failures(limits), columns)
    return kept.noted(made, share)


def _of_one_host(limits: Limits) -> Callable[[pyarrow.Table], pyarrow.Table]:
    def attempts(table: pyarrow.Table) -> pyarrow.Table:
        return attempt_rows(with_texts(table), (), limits)

    return attempts


def _with_failures(
    limits: Limits,
) -> Callable[[pyarrow.Table, pyarrow.Table], pyarrow.Table]:
    def attempts(table: pyarrow.Table, failed: pyarrow.Table) -> pyarrow.Table:
        return attempt_rows(table, failures_in(failed), limits)

    return attempts


def failures_in(table: pyarrow.Table) -> list[ConnectFailure]:
    """Return the failures of `sends.connect_failures`, sorted by time."""
    columns = [table.column(name).to_pylist() for name in ConnectFailure._fields]
    return sorted(map(ConnectFailure._make, zip(*columns, strict=True)), key=_begin)


def _begin(failure: ConnectFailure) -> int:
    return failure.begin


def attempt_rows(
    table: pyarrow.Table, failures: Sequence[ConnectFailure], limits: Limits
) -> pyarrow.Table:
    """Return the attempts of messages as an Arrow table; with `failures`, all of one host."""
    import pyarrow

    messages = list(_by_message(table))
    own = _limits_of_processes(messages, limits)
    rows = (
        row
        for sender, same in messages
        for row in _rows_of(
            process_name_of(sender.process),
            attempts_of_message(same, failures, own[sender]),
            own[sender],
        )
    )
    columns = (*MESSAGE_COLUMNS, *ATTEMPT_COLUMNS)
    parts = [arrow_rows([], columns)]
    # dictionaries take far more memory than columns, so only some exist at a time
    while some := list(islice(rows, _ROWS)):
        parts.append(arrow_rows(some, columns))
    return pyarrow.concat_tables(parts)


def sends_in(table: pyarrow.Table) -> Iterator[Send]:
    """Return the sends of an Arrow table with the columns SEND_SELECTION."""
    columns: dict[str, list[Any]] = {
        name: table.column(name).to_pylist() for name in SEND_SELECTION
    }
    # `end` is how the connection ended in a relation, and the time of the response in `Send`.
    columns["how_ended"], columns["end"] = columns["end"], columns["end_us"]
    columns["unique_key"] = [key or "" for key in columns["unique_key"]]
    return map(Send._make, zip(*(columns[name] for name in Send._fields), strict=True))


def process_name_of(digits: str | None) -> str | None:
    """Return the process of a UNIQ_KEY as ``pid-loader``, as `sends.process_name` does."""
    if digits is None:
        return None
    process = hexadecimal_of(digits[:4])
    # 32 characters, but not hexadecimal: another key format
    return digits if process is None else f"{process}-{digits[4:]}"


class _Sender(NamedTuple):
    host: str
    process: str | None


def _limits_of_processes(
    messages: Sequence[tuple[_Sender, list[Send]]], limits: Limits
) -> dict[_Sender, Limits]:
    """Return the limits of each process: configured, learned, or the default."""
    of_process: dict[_Sender, list[list[Send]]] = {}
    for sender, same in messages:
        of_process.setdefault(sender, []).append(same)
    if limits.timeout_known:
        return dict.fromkeys(of_process, limits)
    learned = {sender: timeout_learnt(sends) for sender, sends in of_process.items()}
    return {
        sender: limits
        if timeout is None
        else replace(limits, timeout_us=timeout, timeout_known=True)
        for sender, timeout in learned.items()
    }


def _by_message(table: pyarrow.Table) -> Iterator[tuple[_Sender, list[Send]]]:
    messages: dict[tuple[str, str | int, str | None], tuple[_Sender, list[Send]]] = {}
    processes = table.column("process").to_pylist()
    for place, (send, process) in enumerate(zip(sends_in(table), processes, strict=True)):
        # without a key, each send is a message of its own
        # A forwarder sends a message on with its UNIQ_KEY, to another topic.
        identity = send.host, send.unique_key or place, send.topic
        messages.setdefault(identity, (_Sender(send.host, process), []))[1].append(send)
    return iter(messages.values())


def _rows_of(
    process: str | None, attempts: Sequence[ObservedAttempt], limits: Limits
) -> Iterator[dict[str, object]]:
    message = _message_row(process, attempts, chain_of(attempts, limits))
    begin = attempts[0].begin
    for place, attempt in enumerate(attempts):
        following = attempts[place + 1] if place + 1 < len(attempts) else None
        row = _attempt_row(attempt)
        row["last_broker"] = attempts[place - 1].send.broker if place else None
        row["next_broker"] = following.send.broker if following else None
        row["gap_us"] = attempt.begin - attempts[place - 1].begin if place else None
        row["after_budget"] = attempt.is_after_budget(begin, limits.timeout_us)
        yield {**message, **row}
        # for the rows of all further attempts
        message |= dict.fromkeys(_OF_ALL_ATTEMPTS)


def _message_row(
    process: str | None, attempts: Sequence[ObservedAttempt], chain: Chain
) -> dict[str, object]:
    first = attempts[0].send
    last = max(max(attempt.begin, attempt.send.end or 0, attempt.end or 0) for attempt in attempts)
    return {
        "unique_key": first.unique_key or None,
        "topic": first.topic,
        "group": first.group,
        "client": first.host,
        "process": process,
        "language": first.language,
        "version_name": first.version_name,
        "messages": first.messages,
        "attempts": len(attempts),
        "views": sum(attempt.views for attempt in attempts if not attempt.inferred),
        "final": chain.final,
        "copies": chain.copies,
        "unsure": chain.unsure,
        "late": chain.late,
        "over_budget": chain.after_budget,
        "verdict": chain.verdict,
        "brokers": _in_order([attempt.send.broker for attempt in attempts]),
        "causes": _in_order([cause_of(attempt) for attempt in attempts]),
        "begin": attempts[0].begin,
        "lasted_us": last - attempts[0].begin,
    }


def _in_order(texts: Sequence[str]) -> str:
    """Return texts of attempts as one, which every row of the message has: the first of many."""
    if len(texts) <= MOST_IN_ORDER:
        return " → ".join(texts)
    shown = texts[:MOST_IN_ORDER]
    return " → ".join((*shown, f"{len(texts) - len(shown)} more"))


def cause_of(attempt: ObservedAttempt) -> str:
    """Return the name of the error code, or else the outcome."""
    send = attempt.send
    if attempt.outcome in (REFUSED, UNSURE, STORED_UNCONFIRMED) and send.end is not None:
        return send.response_name or str(send.response_code)
    return attempt.outcome


def _attempt_row(attempt: ObservedAttempt) -> dict[str, object]:
    send = attempt.send
    row: dict[str, object] = {
        name: getattr(send, name)
        for name in (
            "broker",
            "queue_id",
            "asked_broker",
            "response_code",
            "remark",
            "client_address",
            "server_address",
            SOURCE,
            "capture",
            "conversation",
            "request_packet",
            "response_packet",
        )
    }
    return {
        **row,
        "attempt": attempt.number,
        "protocol": "gRPC" if send.call else "remoting",
        "stale_queue": attempt.stale_queue,
        "outcome": attempt.outcome,
        "cause": cause_of(attempt),
        "attempt_begin": attempt.begin,
        "attempt_end": attempt.end,
        "latency_us": None if send.end is None else send.end - send.begin,
        "certain": attempt.certain,
        "inferred": attempt.inferred,
    }
