"""Run all rules in one pass over rows: dispatch rows, keep state per key, return problems.

Rules: a row's codes and status determine the rules that take it; its flow (`Flow`) determines most
keys. Both are looked up once per flow, and the rows of a flow are passed to a state together.
Memory is bounded by the keys per rule (`MAX_KEYS`); further keys are counted and reported. Problems
are sorted: incidents by their most severe problem, the cause first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.findings import Finding
from dissectors.quantities import counted
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.times import Bounds

from .context import BY_REMOTING, PROXY, Context, Need
from .incidents import grouped, merged
from .keys import Add, Flow, FlowRows
from .messages import AttemptStore, ObservedMessage, span_of_message
from .problem import (
    LOWER,
    MOST_SPANS,
    OVER,
    Case,
    Confidence,
    Impact,
    Problem,
    ProblemState,
    filter_of,
)
from .registry import Takers, rule_of
from .rule import COVERED, DiagnosisRule, Exchanges, Fold
from .spells import spells

MAX_KEYS: Final = 10_000
"""maximum states of one rule"""
MAX_FLOWS: Final = 10_000
"""maximum flows kept at a time; a long-lived client has a few, a short-lived client has one"""
BATCH: Final = 24_576
"""exchanges per batch, large enough to have many per flow; about 25 MiB"""


@dataclass(slots=True)
class Diagnosis:
    """The result of all rules for a capture."""

    problems: list[Problem]
    """by incident, most severe first; in an incident the cause first"""
    context: Context
    silent: dict[str, list[str]] = field(default_factory=dict)
    """missing kind of traffic -> rules skipped because of it"""
    spoke: int = 0
    """number of rules that ran"""
    limits: list[str] = field(default_factory=list)
    """limits that were reached"""


class _Taker:
    """One rule and its states."""

    __slots__ = ("folds", "left_out", "rule")

    def __init__(self, rule: DiagnosisRule) -> None:
        self.rule = rule
        self.folds: dict[str, Fold] = {}
        self.left_out = 0

    def fold(self, key: str) -> Fold | None:
        """Return the state of a key, or None if the limit is reached."""
        fold = self.folds.get(key)
        if fold is None:
            if len(self.folds) >= MAX_KEYS:
                self.left_out += 1
                return None
            fold = self.folds[key] = self.rule.new_fold(key)
        return fold


@dataclass(slots=True)
class _FlowTakers:
    """States and rules for the exchanges of one flow."""

    adders: list[Add]
    """states with known keys, and the context for all exchanges after the first"""
    others: list[tuple[Exchanges, _Taker]]
    """rules whose key depends on the exchange"""
    rows: FlowRows = field(default_factory=FlowRows)
    """queued exchanges of the flow"""

    def take(self) -> None:
        """Pass the queued exchanges to the rules."""
        # A list whose columns were read takes no more rows: its columns are cached.
        rows, self.rows = self.rows, FlowRows()
        for add in self.adders:
            add(rows)
        for exchanges, taker in self.others:
            key_of, folds = exchanges.key, taker.folds
            for row in rows:
                key = key_of(row)
                if key is not None:
                    fold = folds.get(key) or taker.fold(key)
                    if fold is not None:
                        fold.add_exchange(row)


class Engine:
    """Run rules over rows. Feed it, then call `diagnosis`, repeatedly if needed."""

    def __init__(self, rules: Sequence[DiagnosisRule], only: Collection[str] | None = None) -> None:
        self.context = Context()
        self._only = only
        """ids of rules whose problems are reported; None: all"""
        self._times: list[Bounds] = []
        """periods whose problems are reported; empty: all"""
        self._takers = [_Taker(rule) for rule in rules]
        self._taker_of = {taker.rule.id: taker for taker in self._takers}
        self._plan = Takers(rules)
        self._flows: dict[tuple[object, ...], _FlowTakers] = {}
        self._of_connections = [
            (taker.rule.connections, taker)
            for taker in self._takers
            if taker.rule.connections is not None
        ]
        self._of_messages = [
            (taker.rule.messages, taker)
            for taker in self._takers
            if taker.rule.messages is not None
        ]
        self._store = AttemptStore()
        self._waiting: list[ExchangeRecord] = []
        """fewer than BATCH exchanges, queued until the next batch"""
        self._with_pending: list[Fold] = []
        """states with pending exchanges or open connections"""

    def begin_input(self, name: str) -> None:
        """Start an input: conversation numbers are unique only within one input."""
        self._take_waiting()
        self._store.source = name

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add exchanges, in any order."""
        self._waiting += rows
        if len(self._waiting) >= BATCH:
            self._take_waiting()

    def _take_waiting(self) -> None:
        """Pass the queued exchanges to the context and the rules."""
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        flows, touched = self._flows, []
        for row in rows:
            # Same field order as `Flow`: the tuple compares equal and takes a third of the time.
            flow = (
                row.request_code,
                row.response_code,
                row.status,
                not (row.facts or row.brokers or row.client_id),
                row.client_address,
                row.server_address,
                row.topic,
                row.group,
            )
            takers = flows.get(flow)
            if takers is None:
                takers = self._takers_of_flow(Flow(*flow), row)
            # Rows wait for others of their flow: a state takes many at once in one call.
            if not takers.rows:
                touched.append(takers)
            takers.rows.append(row)
        for takers in touched:
            takers.take()
        self.context.add_span(rows)

    def _takers_of_flow(self, flow: Flow, row: ExchangeRecord) -> _FlowTakers:
        """Return the states and rules for a flow, given one of its exchanges."""
        adders: list[Add] = []
        others: list[tuple[Exchanges, _Taker]] = []
        missing = False
        for exchanges, rule in self._plan.of(row):
            taker = self._taker_of[rule.id]
            if exchanges.of_flow:
                key = exchanges.key(row)
                if key is not None:
                    fold = taker.folds.get(key) or taker.fold(key)
                    if fold is not None:
                        adders.append(fold.adder_of(flow))
                    missing = missing or fold is None
            elif not (exchanges.with_facts and flow.plain):
                others.append((exchanges, taker))
        # In full: the context's adder for this flow skips what all its rows have in common.
        self.context.add_exchange(row)
        if (learn := self.context.adder_of(flow)) is not None:
            adders.append(learn)
        if (store := self._store.adder_of(flow)) is not None:
            adders.append(store)
        takers = _FlowTakers(adders, others)
        if not missing:  # otherwise count the rows without a state one by one
            if len(self._flows) >= MAX_FLOWS:
                # Nothing is lost: the next row of a flow finds its states again.
                self._flows.clear()
            self._flows[flow] = takers
        return takers

    def add_connections(self, rows: Iterable[ConversationRecord]) -> None:
        """Add TCP connections."""
        for row in rows:
            self.context.add_connection(row)
            self._store.add_connection(row)
            for key_of, taker in self._of_connections:
                key = key_of(row)
                if key is not None:
                    fold = taker.fold(key)
                    if fold is not None:
                        fold.add_connection(row)

    def see_pending(
        self,
        now: int,
        requests: Iterable[ExchangeRecord],
        connections: Iterable[ConversationRecord],
    ) -> None:
        """Replace the pending rows by those of now.

        `now` is in ns, in capture time; 0: the capture has ended and nothing is pending. The rows
        are provisional: their final versions are added once they are complete.
        """
        self._take_waiting()
        # What was pending before has a final row by now, or is among the given rows again.
        for before in self._with_pending:
            before.pending, before.unended = [], []
        self._with_pending = []
        for row in requests:
            # Not `add_exchange`: a request that still waits is no sign of an incomplete capture.
            self.context.learn(row)
            for exchanges, rule in self._plan.of(row):
                if rule.takes_pending and not (
                    exchanges.with_facts and not (row.facts or row.brokers or row.client_id)
                ):
                    fold = self._fold_of_pending(self._taker_of[rule.id], exchanges.key(row))
                    if fold is not None:
                        fold.pending.append(row)
        for connection in connections:
            # Not `add_connection`: its gaps and directions count once it is complete.
            self.context.note_connection(connection)
            for key_of, taker in self._of_connections:
                if taker.rule.takes_pending:
                    fold = self._fold_of_pending(taker, key_of(connection))
                    if fold is not None:
                        fold.unended.append(connection)
        self.context.watched, self.context.now = True, now

    def _fold_of_pending(self, taker: _Taker, key: str | None) -> Fold | None:
        """Return the state of a key for pending rows."""
        fold = None if key is None else taker.folds.get(key)
        # Beyond the limit, `taker.fold` would count the same pending row as left out each time.
        if fold is None and key is not None and len(taker.folds) < MAX_KEYS:
            fold = taker.fold(key)
        if fold is not None and not fold.pending and not fold.unended:
            self._with_pending.append(fold)
        return fold

    def add_findings(self, found: Iterable[Finding]) -> None:
        """Add capture findings."""
        for info in found:
            self.context.add_finding(info)

    def diagnosis(self) -> Diagnosis:
        """Return the problems so far."""
        self._take_waiting()
        problems: list[Problem] = []
        limits: list[str] = []
        messages = self._store.messages(self.context.names_of_ports())
        # Before any case is built: refusals at a relay's inner hop must not count twice.
        self.context.relays = set(self._store.relays)
        of_messages = self._message_folds(messages, limits)
        states_of = [
            [*taker.folds.values(), *of_messages.get(taker.rule.id, ())] for taker in self._takers
        ]
        if self.context.store is not None:  # one pass for all rules
            sought = (fold.sought() for states in states_of for fold in states)
            self.context.store.look_up(
                {key: topic for topics in sought for key, topic in topics.items()}
            )
        for taker, states in zip(self._takers, states_of, strict=True):
            problems.extend(problems_of(taker.rule, states, self.context, limits))
            if taker.left_out:
                limits.append(f"{taker.rule.id}: {counted(taker.left_out, 'row')} not checked")
        if self._store.left_out:
            limits.append(f"{self._store.left_out} failed messages were not looked at")
        rules, only = [taker.rule for taker in self._takers], self._only
        if only is not None:
            rules = [rule for rule in rules if rule.id in only]
            problems = [problem for problem in problems if problem.rule in only]
        problems = wanted(problems, self._times, self.context)
        return concluded(rules, problems, self.context, limits)

    def want(self, asked: Bounds) -> None:
        """Limit the report to problems in this period and with these ids.

        For inputs that extend beyond the period of interest.
        """
        self._times.append(asked)

    def _message_folds(
        self, messages: Iterable[ObservedMessage], limits: list[str]
    ) -> dict[str, list[Fold]]:
        """Return states with the messages, unless the rule joins them to those of exchanges."""
        # The store returns every message again, so those of the last call must go.
        for _, taker in self._of_messages:
            if taker.rule.joined_messages:
                for joined in taker.folds.values():
                    joined.forget_messages()
        folds: dict[str, dict[str, list[ObservedMessage]]] = {}
        left_out: Counter[str] = Counter()
        for message in messages:
            for key_of, taker in self._of_messages:
                key = key_of(message)
                if key is None:
                    continue
                if taker.rule.joined_messages:
                    with_rows = taker.folds.get(key)
                    if with_rows is not None:  # otherwise the rows of its key exceed a limit
                        with_rows.add_message(message)
                    continue
                # Apart from the states of exchanges: `merged` joins the cases of one subject.
                by_key = folds.setdefault(taker.rule.id, {})
                if key not in by_key and len(by_key) >= MAX_KEYS:
                    left_out[taker.rule.id] += 1
                    continue
                by_key.setdefault(key, []).append(message)
        limits += [
            f"{rule}: {counted(number, 'message')} not checked" for rule, number in left_out.items()
        ]
        return {
            name: [
                fold
                for key, several in by_key.items()
                for fold in folds_of_messages(self._taker_of[name].rule, key, several)
            ]
            for name, by_key in folds.items()
        }


def wanted(problems: list[Problem], times: Sequence[Bounds], context: Context) -> list[Problem]:
    """Return the problems that overlap one of these periods, or all problems without periods."""
    if not times:
        return problems
    # An exchange belongs to the period of its request, even if its response came later, so no
    # problem falls between two consecutive periods.
    answered = -1 if context.last_time is None or context.watched else context.last_time
    return [
        problem
        for problem in problems
        if any(
            (since is None or problem.last_time >= since)
            and (until is None or problem.first_time < until or problem.first_time <= answered)
            for since, until in times
        )
    ]


def folds_of_messages(
    rule: DiagnosisRule, key: str, messages: Iterable[ObservedMessage]
) -> list[Fold]:
    """Return states with the messages of one key, one per spell."""
    folds = []
    for spell in spells(messages, span_of_message, rule.lasts):
        fold = rule.new_fold(key)
        for message in spell:
            fold.add_message(message)
        folds.append(fold)
    return folds


def problems_of(
    rule: DiagnosisRule, folds: Iterable[Fold], context: Context, limits: list[str]
) -> list[Problem]:
    """Return the problems of one rule, with cases of one subject merged."""
    return merged(found_by(rule, folds, context), limits)


def found_by(rule: DiagnosisRule, folds: Iterable[Fold], context: Context) -> list[Problem]:
    """Return one problem per case of a rule; `merged` joins those of one subject."""
    doubts = context.quality.reasons()
    problems = []
    for fold in folds:
        for case in fold.cases(context):
            of = rule if case.rule is None else rule_of(case.rule)
            assert of is not None, f"{rule.id} has cases of {case.rule}, which is not a rule"
            problems.append(_problem(of, case, doubts if of.rests_on_absence else []))
    return problems


def concluded(
    rules: Sequence[DiagnosisRule], problems: list[Problem], context: Context, limits: list[str]
) -> Diagnosis:
    """Return the diagnosis: problems grouped into incidents, and skipped rules."""
    silent: dict[str, list[str]] = {}
    for rule in rules:
        met = context.needs | context.called if rule.grpc == COVERED else context.needs
        for need in sorted(rule.needs - met):
            silent.setdefault(str(need), []).append(rule.id)
    mute = {name for names in silent.values() for name in names}
    described = {rule.id: rule for rule in rules}
    # A state may report cases of another rule (`Case.rule`), which was not chosen itself.
    for name in {problem.rule for problem in problems} - described.keys():
        other = rule_of(name)
        if other is not None:
            described[name] = other
    for problem in problems:
        problem.state = _state_of(problem, described[problem.rule], context.last_time)
    ordered = grouped(problems, described)
    if context.watched:
        _keep_open(ordered, described)
    return Diagnosis(ordered, context, silent, len(rules) - len(mute), limits)


def _keep_open(problems: Sequence[Problem], rules: Mapping[str, DiagnosisRule]) -> None:
    """Keep consequences of an ongoing problem open if quiet does not end that problem."""
    last = {
        (problem.incident, problem.rule)
        for problem in problems
        if problem.state is not ProblemState.OVER and not rules[problem.rule].quiet_ends
    }
    for item in problems:
        cause = (item.incident, item.consequence_of)
        if item.state is ProblemState.OVER and rules[item.rule].quiet_ends and cause in last:
            item.state = None


def _state_of(problem: Problem, rule: DiagnosisRule, end: int | None) -> ProblemState | None:
    """Return whether a problem had ended by the end of the capture."""
    if problem.state is not None:
        return problem.state
    if rule.lasts is None or end is None:
        return None
    several = problem.count - 1
    # Twice the mean distance of its signs: the next sign of a rare problem may still come.
    usual = 2 * (problem.last_time - problem.first_time) // several if several > 0 else 0
    quiet = end - problem.last_time
    if quiet > max(OVER, usual):
        return ProblemState.OVER if rule.quiet_ends else None
    return ProblemState.GOING_ON if quiet <= usual else None


def _problem(rule: DiagnosisRule, case: Case, doubts: list[str]) -> Problem:
    confidence, reason = case.confidence, case.reason
    if doubts and not case.settled:
        confidence = LOWER[confidence]
        reason = "; ".join(filter(None, (reason, f"the capture is incomplete: {doubts[0]}")))
    return Problem(
        rule=rule.id,
        severity=case.severity or rule.severity,
        confidence=confidence,
        reason=reason if confidence is not Confidence.CERTAIN else None,
        title=case.title,
        subject=case.subject,
        count=case.count,
        first_time=case.first_time,
        last_time=case.last_time,
        state=case.state,
        evidence=case.evidence,
        filter=filter_of(case.evidence),
        details=case.details,
        explanation=(case.grpc and rule.grpc_explanation) or rule.explanation,
        advice=case.advice or (case.grpc and rule.grpc_advice) or rule.advice,
        references=list(rule.references),
        spans=case.spans if len(case.spans) <= MOST_SPANS else [],
        part=case.part,
        leads_within=case.leads_within,
        impact=_impact(rule, case),
    )


def _impact(rule: DiagnosisRule, case: Case) -> dict[Impact, int]:
    if case.impact:  # a case whose impact is 0 has none
        return {effect: number for effect, number in case.impact.items() if number}
    return {rule.impact: case.count} if rule.impact is not None else {}


def not_judged(diagnosis: Diagnosis) -> list[str]:
    """Return the limits of the diagnosis, one sentence each: capture gaps and skipped rules."""
    skipped = [
        f"Rules skipped because no {what} were captured: {', '.join(rules)}."
        for what, rules in zip(_missing(diagnosis), diagnosis.silent.values(), strict=True)
    ]
    return _quality(diagnosis) + skipped


def not_judged_in_short(diagnosis: Diagnosis) -> list[str]:
    """Return the limits of the diagnosis, with one sentence for all skipped rules."""
    rules = {rule for rules in diagnosis.silent.values() for rule in rules}
    missing = _missing(diagnosis)
    if not rules:
        return _quality(diagnosis)
    skipped = f"{counted(len(rules), 'rule')} skipped"
    return [*_quality(diagnosis), f"{skipped}. Not captured: {'; '.join(missing)}."]


def _quality(diagnosis: Diagnosis) -> list[str]:
    quality = diagnosis.context.quality
    lines = [f"The capture is incomplete: {reason}." for reason in quality.reasons()]
    if quality.truncated:
        lines.append("A capture file ends inside a packet: what came after it is unknown.")
    return lines


def _missing(diagnosis: Diagnosis) -> list[str]:
    """Return the missing kinds of traffic, in the order of `Diagnosis.silent`."""
    calls = PROXY in diagnosis.context.servers.values()
    return [
        f"{Need(need)}{' over remoting' if calls and need in BY_REMOTING else ''}"
        for need in diagnosis.silent
    ]
