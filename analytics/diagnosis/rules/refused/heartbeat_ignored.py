"""A broker does not read a heartbeat, because its field names are spelled differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.names import RESPELLED, facts_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import HEARTBEAT, WHOLE, Add, Flow, has_room, keep, whole
from ...names import Names, counted_names, listed, only
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, asked
from ...rule import DiagnosisRule, Exchanges, Fold
from ...spells import joined

MAX_CLIENTS: Final = 4_096
_UNKNOWN_GROUP: Final = int(ResponseCode.SUBSCRIPTION_NOT_EXIST)
_SERVED: Final = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    )
)
"""responses of a broker that knows the member"""


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._beats: dict[tuple[str, str], Tally] = {}
        """client and broker (`address:port` each) -> its heartbeats"""
        self._names = Names()
        self._groups: dict[tuple[str, str], str] = {}
        self._served: set[tuple[str, str]] = set()
        self._refused: Counter[tuple[str, str]] = Counter()

    def adder_of(self, flow: Flow) -> Add:
        return self._add_beats if flow.request_code == HEARTBEAT else self._add_pulls

    def _add_beats(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            names = facts_in(row.facts, RESPELLED)
            place = row.client_address, row.server_address
            if not names or not has_room(self._beats, place, MAX_CLIENTS):
                continue
            beats = self._beats.setdefault(place, Tally())
            beats.add(asked(row, f"HEART_BEAT with {', '.join(names)}"))
            self._groups[place] = max(self._groups.get(place, ""), row.group or "")
            for name in names:
                self._names.note(name)

    def _add_pulls(self, rows: Sequence[ExchangeRecord]) -> None:
        row = rows[0]
        place = row.client_address, row.server_address
        # All rows of a flow have one code, so one row shows it for all.
        if row.response_code in _SERVED:
            keep(self._served, place, MAX_CLIENTS)
        elif has_room(self._refused, place, MAX_CLIENTS):
            self._refused[place] += len(rows)

    def cases(self, context: Context) -> Iterable[Case]:
        by_broker: dict[str, list[tuple[str, str]]] = {}
        for place in sorted(self._beats):
            if place not in self._served:  # the broker reads them
                by_broker.setdefault(context.broker(place[1]), []).append(place)
        for broker, places in by_broker.items():
            yield self._case(broker, places, context)

    def _case(self, broker: str, places: list[tuple[str, str]], context: Context) -> Case:
        tally = joined(self._beats[place] for place in places)
        refused = sum(self._refused[place] for place in places)
        clients = {context.client(client) for client, _ in places}
        follows = f"; it refused {counted(refused, 'pull')}" if refused else ""
        reads = "ignores" if refused else "may ignore"
        case = tally.case(
            f"{broker} {reads} the heartbeats of {listed(clients)}: JSON members are spelled"
            f" {listed(self._names)}{follows}",
            Subject(
                broker=broker,
                client=only(clients),
                group=only(self._groups[place] for place in places) or None,
            ),
        )
        case.details = [f"members: {counted_names(self._names)}"]
        if not refused:
            case.severity = ProblemSeverity.WARNING
            case.doubt(
                "the broker may be 5.3 or earlier, which reads any spelling",
                Confidence.POSSIBLE,
            )
        return case


RULE = DiagnosisRule(
    id="heartbeat-ignored",
    severity=ProblemSeverity.ERROR,
    title="A broker does not read the heartbeats of a client",
    searched=(
        "the consumer's group info not exist",
        "consumer is not online after upgrade to 5.4",
        "fastjson2 ClientID clientID",
        "SUBSCRIPTION_NOT_EXIST",
        "or the pull consumer is rejected by server",
        "get consumer id list failed",
    ),
    proof=(
        "A heartbeat (34) has field names that are not spelled as in Java (ClientID for clientID)."
        " The broker responds with SUCCESS, but refuses all pulls of that client with code 24"
        " (SUBSCRIPTION_NOT_EXIST)."
    ),
    explanation=(
        "Brokers up to 5.3 read JSON with fastjson 1, which ignores case and underscores in field"
        " names. Brokers since 5.4 use fastjson2, which skips a misspelled field without an error."
        " A heartbeat without client id or groups registers no member, so the broker refuses the"
        " group's pulls."
    ),
    advice=(
        "Use a release of the client library that spells the names as Java does (clientID,"
        " consumerDataSet, groupName). Until there is one, use a broker of 5.3 or earlier."
    ),
    grpc="Not covered: heartbeats of gRPC are not JSON.",
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests={HEARTBEAT}, with_facts=True, of_flow=True),
        Exchanges(key=whole, requests=FETCHES, responses=_SERVED, of_flow=True),
        Exchanges(
            key=lambda row: WHOLE if row.request_code in FETCHES else None,
            requests=FETCHES,
            responses={_UNKNOWN_GROUP},
            of_flow=True,
        ),
    ),
    limits="If a producer's heartbeat is ignored, a capture shows no consequence.",
    needs={Need.HEARTBEATS},
    lasts=None,
)
