"""A gRPC call timed out at the client."""

from __future__ import annotations

from dissectors.remoting.row_facts.names import STREAM_RESET, fact_in
from dissectors.rows.outcome import LONG_POLLS, is_call
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context
from ...names import only
from ...outages import named
from ...problem import ProblemSeverity, Subject
from ...refusals import Refusals
from ...rule import COVERED, DiagnosisRule, Exchanges
from .attempt_words import BUSY, NO_RESPONSE


class _Fold(Refusals):
    per_broker = True

    def subject(self, context: Context) -> Subject:
        # A proxy, not a broker: it may wait for any broker.
        return Subject(server=self.key, topic=only(self.topics), group=only(self.groups))

    def title(self, context: Context) -> str:
        server = named(context, self.key)
        return f"{server} did not respond to {self.what} before the client's deadline"


def _key(row: ExchangeRecord) -> str | None:
    if not is_call(row.request_name) or row.request_name in LONG_POLLS:
        return None
    reset = fact_in(row.facts, STREAM_RESET)
    # gRPC ends a call past its deadline with CANCEL; other codes mean errors of the stream.
    return row.server_address if reset is not None and reset.startswith("CANCEL ") else None


RULE = DiagnosisRule(
    id="call-given-up",
    severity=ProblemSeverity.ERROR,
    title="gRPC calls end at their deadline without a response",
    searched=("DEADLINE_EXCEEDED", "deadline exceeded after"),
    proof=(
        "Either side resets the stream of a call (RST_STREAM, CANCEL) before there is a response."
    ),
    explanation=(
        "A 5.x client gives each call a deadline (the request timeout, default 3 s) and cancels the"
        " call when it expires; the proxy knows the deadline and may cancel first. A proxy whose"
        " threads are all busy queues calls, and drops them without a response if the queue is"
        " full. A producer retries immediately; the first attempt may have been stored anyway."
    ),
    advice=(
        "Check the load of the proxy, and of the brokers behind it: rmqtool trace of one message"
        " shows how long the broker took. grpcProducerThreadPoolNums and"
        " grpcProducerThreadQueueCapacity (default 10000) apply to sends; other settings apply to"
        " consumers and routes. NAT and load balancers must not cut connections that are idle for 5"
        " minutes, because the Java client sends keepalive pings at that interval."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, statuses={UNANSWERED}, with_facts=True),),
    limits="A program that cancels a call itself looks the same. Long polls are ignored.",
    consequence_of=NO_RESPONSE | BUSY | {"broker-slow-vs-network", "client-hung"},
)
