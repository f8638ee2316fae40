"""All rules in one pass over rows: which rule takes which row, state per key, problems at the end.

Rules: which rules may take a row depends on its codes and status, and most of their keys on its
flow (`Flow`), so that both are looked up once per flow, and the rows of a flow are given to a state
together; memory is bounded by keys a rule (`MAX_KEYS`), beyond which new keys are counted and said.
Problems come sorted: incidents by their gravest problem, the cause first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.expert import ExpertInfo
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from .context import PROXY, Context
from .incidents import grouped, merged
from .keys import Add, Flow, FlowRows
from .messages import AttemptStore, ObservedMessage, span_of_message
from .need import BY_REMOTING, Need
from .problem import (
    LOWER,
    MOST_SPANS,
    OVER,
    Case,
    Confidence,
    Problem,
    ProblemState,
    filter_of,
)
from .registry import Takers, rule_of
from .rule import COVERED, DiagnosisRule, Exchanges, Fold
from .spells import spells

MAX_KEYS: Final = 10_000
"""states of one rule"""
MAX_FLOWS: Final = 10_000
"""flows that are known at a time; a long-lived client has a few, a short-lived one is one"""
BATCH: Final = 24_576
"""exchanges that are taken together, so that there are many of most flows; some 25 MiB"""


@dataclass(slots=True)
class Diagnosis:
    """What the rules say of a capture."""

    problems: list[Problem]
    """by incident, the gravest first; in an incident the cause first"""
    context: Context
    silent: dict[str, list[str]] = field(default_factory=dict)
    """what the capture does not have -> rules that could therefore not speak"""
    spoke: int = 0
    """rules that could"""
    limits: list[str] = field(default_factory=list)
    """bounds that were reached"""


class _Taker:
    """One rule and its states."""

    __slots__ = ("folds", "left_out", "rule")

    def __init__(self, rule: DiagnosisRule) -> None:
        self.rule = rule
        self.folds: dict[str, Fold] = {}
        self.left_out = 0

    def fold(self, key: str) -> Fold | None:
        """Return the state of a key; None where there are too many."""
        found = self.folds.get(key)
        if found is None:
            if len(self.folds) >= MAX_KEYS:
                self.left_out += 1
                return None
            found = self.folds[key] = self.rule.new_fold(key)
        return found


@dataclass(slots=True)
class _FlowTakers:
    """What takes the exchanges of one flow."""

    adders: list[Add]
    """states, whose keys are known, and what the context learns from those that are not the first
    """
    others: list[tuple[Exchanges, _Taker]]
    """rules whose key is that of the exchange"""
    rows: FlowRows = field(default_factory=FlowRows)
    """exchanges of the flow that wait"""

    def take(self) -> None:
        """Give the exchanges that wait to the rules."""
        rows, self.rows = self.rows, FlowRows()
        for add in self.adders:
            add(rows)
        for one, taker in self.others:
            key_of, folds = one.key, taker.folds
            for row in rows:
                key = key_of(row)
                if key is not None:
                    fold = folds.get(key) or taker.fold(key)
                    if fold is not None:
                        fold.add_exchange(row)


class Engine:
    """Rules over rows. Feed it, then ask for `diagnosis`, also several times."""

    def __init__(self, rules: Sequence[DiagnosisRule], only: Collection[str] | None = None) -> None:
        self.context = Context()
        self._only = only
        """ids of the rules whose problems are wanted; None: all"""
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
        """fewer than BATCH exchanges, which are taken with those that follow"""
        self._with_pending: list[Fold] = []
        """states that were given something that is not settled"""

    def begin_input(self, name: str) -> None:
        """Take what follows for rows of that input: conversations are numbered anew in each."""
        self._take_waiting()
        self._store.source = name

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take exchanges, in any order."""
        self._waiting += rows
        if len(self._waiting) >= BATCH:
            self._take_waiting()

    def _take_waiting(self) -> None:
        """Give the exchanges that wait to context and rules."""
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        flows, touched = self._flows, []
        for row in rows:
            # In the order of `Flow`, which equals it: a tuple takes a third of the time.
            flow = (
                row.request_code,
                row.response_code,
                row.status,
                not (row.facts or row.brokers),
                row.requester,
                row.responder,
                row.topic,
                row.group,
            )
            takers = flows.get(flow)
            if takers is None:
                takers = self._takers_of_flow(Flow(*flow), row)
            if not takers.rows:
                touched.append(takers)
            takers.rows.append(row)
        for takers in touched:
            takers.take()
        self.context.add_span(rows)

    def _takers_of_flow(self, flow: Flow, row: ExchangeRecord) -> _FlowTakers:
        """Return what takes the exchanges of a flow, of which this is one."""
        adders: list[Add] = []
        others: list[tuple[Exchanges, _Taker]] = []
        missing = False
        for one, rule in self._plan.of(row):
            taker = self._taker_of[rule.id]
            if one.of_flow:
                key = one.key(row)
                if key is not None:
                    fold = taker.folds.get(key) or taker.fold(key)
                    if fold is not None:
                        adders.append(fold.adder_of(flow))
                    missing = missing or fold is None
            elif not (one.with_facts and flow.plain):
                others.append((one, taker))
        self.context.add_exchange(row)
        if (learn := self.context.adder_of(flow)) is not None:
            adders.append(learn)
        if (store := self._store.adder_of(flow)) is not None:
            adders.append(store)
        takers = _FlowTakers(adders, others)
        if not missing:  # else the rows that a state is missing for are counted one by one
            if len(self._flows) >= MAX_FLOWS:
                self._flows.clear()
            self._flows[flow] = takers
        return takers

    def add_connections(self, rows: Iterable[ConversationRecord]) -> None:
        """Take TCP connections."""
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
        """Take what is not settled at a moment, in place of what was not before.

        `now` is in ns, by the clock of the capture; 0: it has ended, and all is settled. The rows
        are provisional: the final ones are added when they are settled.
        """
        self._take_waiting()
        for before in self._with_pending:
            before.pending, before.unended = [], []
        self._with_pending = []
        for row in requests:
            self.context.learn(row)
            for one, rule in self._plan.of(row):
                if rule.takes_pending and not (one.with_facts and not (row.facts or row.brokers)):
                    fold = self._fold_of_pending(self._taker_of[rule.id], one.key(row))
                    if fold is not None:
                        fold.pending.append(row)
        for connection in connections:
            self.context.note_connection(connection)
            for key_of, taker in self._of_connections:
                if taker.rule.takes_pending:
                    fold = self._fold_of_pending(taker, key_of(connection))
                    if fold is not None:
                        fold.unended.append(connection)
        self.context.watched, self.context.goes_on = True, now > 0
        if self.context.last_time is not None:
            self.context.last_time = max(self.context.last_time, now)

    def _fold_of_pending(self, taker: _Taker, key: str | None) -> Fold | None:
        """Return the state of a key that is given something that is not settled."""
        fold = None if key is None else taker.folds.get(key)
        if fold is None and key is not None and len(taker.folds) < MAX_KEYS:
            fold = taker.fold(key)
        if fold is not None and not fold.pending and not fold.unended:
            self._with_pending.append(fold)
        return fold

    def add_findings(self, found: Iterable[ExpertInfo]) -> None:
        """Take findings about the input."""
        for info in found:
            self.context.add_finding(info)

    def diagnosis(self) -> Diagnosis:
        """Return what is wrong so far."""
        self._take_waiting()
        folds = {id(taker): taker.folds for taker in self._takers}
        problems: list[Problem] = []
        limits: list[str] = []
        messages = self._store.messages(self.context.names_of_ports())
        of_messages = self._message_folds(messages, limits)
        for taker in self._takers:
            states = [*folds[id(taker)].values(), *of_messages.get(taker.rule.id, ())]
            problems.extend(problems_of(taker.rule, states, self.context, limits))
            if taker.left_out:
                limits.append(f"{taker.rule.id}: {taker.left_out} rows of further keys")
        if self._store.left_out:
            limits.append(f"{self._store.left_out} failed messages were not looked at")
        rules, only = [taker.rule for taker in self._takers], self._only
        if only is not None:
            rules = [rule for rule in rules if rule.id in only]
            problems = [one for one in problems if one.rule in only]
        return concluded(rules, problems, self.context, limits)

    def _message_folds(
        self, messages: Iterable[ObservedMessage], limits: list[str]
    ) -> dict[str, list[Fold]]:
        """Return states that took the messages, which are stitched anew each time.

        They are apart from the states of exchanges, unless the rule asks for them there; cases of
        one subject are joined later.
        """
        for _, taker in self._of_messages:
            if taker.rule.joined_messages:
                for joined in taker.folds.values():
                    joined.forget_messages()
        found: dict[str, dict[str, list[ObservedMessage]]] = {}
        left_out: Counter[str] = Counter()
        for message in messages:
            for key_of, taker in self._of_messages:
                key = key_of(message)
                if key is None:
                    continue
                if taker.rule.joined_messages:
                    with_rows = taker.folds.get(key)
                    if with_rows is not None:  # else the rows of its key are over a bound
                        with_rows.add_message(message)
                    continue
                by_key = found.setdefault(taker.rule.id, {})
                if key not in by_key and len(by_key) >= MAX_KEYS:
                    left_out[taker.rule.id] += 1
                    continue
                by_key.setdefault(key, []).append(message)
        limits += [
            f"{rule}: {number} messages of further keys" for rule, number in left_out.items()
        ]
        return {
            name: [
                fold
                for key, several in by_key.items()
                for fold in folds_of_messages(self._taker_of[name].rule, key, several)
            ]
            for name, by_key in found.items()
        }


def folds_of_messages(
    rule: DiagnosisRule, key: str, messages: Iterable[ObservedMessage]
) -> list[Fold]:
    """Return states that took the messages of one key, one for each spell."""
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
    """Return the problems of one rule: its cases, those of one subject together."""
    return merged(found_by(rule, folds, context), limits)


def found_by(rule: DiagnosisRule, folds: Iterable[Fold], context: Context) -> list[Problem]:
    """Return a problem for each case of one rule; `merged` joins those of one subject."""
    doubts = context.quality.reasons()
    found = []
    for fold in folds:
        for case in fold.cases(context):
            of = rule if case.rule is None else rule_of(case.rule)
            assert of is not None, f"{rule.id} has cases of {case.rule}, which is not a rule"
            found.append(_problem(of, case, doubts if of.rests_on_absence else []))
    return found


def concluded(
    rules: Sequence[DiagnosisRule], problems: list[Problem], context: Context, limits: list[str]
) -> Diagnosis:
    """Return the diagnosis: problems in incidents, and which rules were skipped."""
    silent: dict[str, list[str]] = {}
    for rule in rules:
        met = context.needs | context.called if rule.grpc == COVERED else context.needs
        for need in sorted(rule.needs - met):
            silent.setdefault(str(need), []).append(rule.id)
    mute = {name for names in silent.values() for name in names}
    described = {rule.id: rule for rule in rules}
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
    """Let quiet end nothing that follows from a problem that quiet does not end."""
    last = {
        (one.incident, one.rule)
        for one in problems
        if one.state is not ProblemState.OVER and not rules[one.rule].quiet_ends
    }
    for one in problems:
        cause = (one.incident, one.consequence_of)
        if one.state is ProblemState.OVER and rules[one.rule].quiet_ends and cause in last:
            one.state = None


def _state_of(problem: Problem, rule: DiagnosisRule, end: int | None) -> ProblemState | None:
    """Return whether a problem was over when the capture ended."""
    if problem.state is not None:
        return problem.state
    if rule.lasts is None or end is None:
        return None
    several = problem.count - 1
    usual = 2 * (problem.last_time - problem.first_time) // several if several > 0 else 0
    quiet = end - problem.last_time
    if quiet > max(OVER, usual):
        return ProblemState.OVER if rule.quiet_ends else None
    return ProblemState.GOING_ON if quiet <= usual else None


def _problem(rule: DiagnosisRule, case: Case, doubts: list[str]) -> Problem:
    confidence, reason = case.confidence, case.reason
    if doubts:
        confidence = LOWER[confidence]
        reason = "; ".join(filter(None, (reason, f"the capture is not whole: {doubts[0]}")))
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
        explanation=rule.explanation,
        advice=case.advice or rule.advice,
        references=list(rule.references),
        spans=case.spans if len(case.spans) <= MOST_SPANS else [],
        part=case.part,
        leads_within=case.leads_within,
    )


def not_judged(diagnosis: Diagnosis) -> list[str]:
    """Return what the capture could not show, a sentence each: what is missing, rules skipped."""
    skipped = [
        f"Skipped without {what}: {', '.join(rules)}."
        for what, rules in zip(_missing(diagnosis), diagnosis.silent.values(), strict=True)
    ]
    return _quality(diagnosis) + skipped


def not_judged_in_short(diagnosis: Diagnosis) -> list[str]:
    """Return the same with one sentence for all rules that were skipped."""
    rules = {rule for rules in diagnosis.silent.values() for rule in rules}
    missing = _missing(diagnosis)
    if not rules:
        return _quality(diagnosis)
    *others, last = missing
    what = f"{', '.join(others)} or {last}" if others else last
    skipped = f"{len(rules)} rule{'' if len(rules) == 1 else 's'} skipped"
    return [*_quality(diagnosis), f"{skipped}: no {what} captured."]


def _quality(diagnosis: Diagnosis) -> list[str]:
    quality = diagnosis.context.quality
    lines = [f"Not the whole capture: {one}." for one in quality.reasons()]
    if quality.truncated:
        lines.append("A capture file ends inside a packet: what came after it is not known.")
    return lines


def _missing(diagnosis: Diagnosis) -> list[str]:
    """Return what the capture does not have, in the order of `Diagnosis.silent`."""
    calls = PROXY in diagnosis.context.servers.values()
    return [
        f"{Need(need)}{' by remoting' if calls and need in BY_REMOTING else ''}"
        for need in diagnosis.silent
    ]
