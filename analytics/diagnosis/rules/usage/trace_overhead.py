"""The message trace is a large share of what producers send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.remoting.topic_names import TRACE_TOPIC
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import Add, Flow, has_room, is_traced, whole
from ...names import MAX_NAMED, counted_names, only
from ...problem import Case, ProblemSeverity, Subject, Tally, asked, time_of
from ...rule import DiagnosisRule, Exchanges, Fold

SHARE: Final = 0.2
FEWEST: Final = 20
"""minimum sends for a meaningful share"""


class _Fold(Fold):
    """All sends. Runs for each of them, so those that are no traces are only counted."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.others = 0
        self.other_bytes = 0
        self.bytes = 0
        self.traces = Tally()
        self.topics: Counter[str] = Counter()

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Add a trace."""
        if row.response_code not in (None, *STORED):
            return  # a refused trace takes no disk space
        size = row.request_bytes or 0
        self.bytes += size
        if not self.traces.add_late(time_of(row)):
            self.traces.add(asked(row, f"trace of {size} bytes to {row.topic}"))
        topic = row.topic or ""
        if has_room(self.topics, topic, MAX_NAMED):
            self.topics[topic] += 1

    def adder_of(self, flow: Flow) -> Add:
        return self.add_exchanges if is_traced(flow) else self._count

    def _count(self, rows: Sequence[ExchangeRecord]) -> None:
        self.others += len(rows)
        self.other_bytes += sum([row.request_bytes or 0 for row in rows])

    def cases(self, context: Context) -> Iterable[Case]:
        count = self.traces.count
        sends, size = count + self.others, self.bytes + self.other_bytes
        # Without the traced messages there is nothing to compare with.
        if not count or not self.others or sends < FEWEST:
            return
        of_sends, of_bytes = count / sends, self.bytes / size if size else 0.0
        # Either one: many small traces cost requests, few large ones cost disk space.
        if max(of_sends, of_bytes) <= SHARE:
            return
        topic = only(self.topics)
        case = self.traces.case(
            f"message traces to {topic or counted_names(self.topics)} are {of_bytes:.0%} of the"
            f" bytes and {of_sends:.0%} of the requests that producers send",
            Subject(topic=topic),
        )
        case.details.append(
            f"{count:,} traces with {self.bytes:,} bytes; {self.others:,} other sends with"
            f" {self.other_bytes:,} bytes"
        )
        yield case


RULE = DiagnosisRule(
    id="trace-overhead",
    severity=ProblemSeverity.INFO,
    title="Message traces are a large share of what producers send",
    searched=(TRACE_TOPIC, "enableMsgTrace", "message trace overhead"),
    proof=(
        "Sends to RMQ_SYS_TRACE_TOPIC, or of the tracer's group, are more than a fifth of the bytes"
        " or of the requests of all sends (at least 20 sends)."
    ),
    explanation=(
        "With message trace on, producers and consumers record when they sent or consumed each"
        " message, in small batches, in a separate topic. For small messages, the trace is as large"
        " as the messages. It uses disk, page cache, and threads of a broker."
    ),
    advice=(
        "Turn the trace off if nobody uses it (enableTrace, default false; the constructor's"
        " enableMsgTrace before 5.3.0), or keep its topic on a dedicated broker"
        " (traceTopicEnable=true only there). traceMsgBatchNum (since 5.3.1, default 10, at most"
        " 20) is the number of messages per trace."
    ),
    grpc="Not covered: gRPC clients send no message traces.",
    fold=_Fold,
    exchanges=(Exchanges(key=whole, requests=SENDS, of_flow=True),),
    limits="Bytes of repeated attempts count, too.",
    needs={Need.SENDS},
    lasts=None,
)
