"""The contract of a rule: a description as data, what it takes, and a fold over that.

Rules for rules: a fold has no clock and does no I/O; it gives the same cases whatever the order in
which rows come, and may be asked for them several times. State is kept per key, and is small: a
`Tally`, some sets with a bound. While a capture goes on, what is not settled is given beside that
state and replaced each time (`Fold.pending`, `Fold.unended`), so that nothing counts twice. What a
capture does not show is never taken for a fact; a rule that rests on what is absent sets
`rests_on_absence`, and the engine lowers its confidence where the capture is not whole. A rule is
one file in a family under `rules/` that exports `RULE`, and a name in `MODULES` of that family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from .need import Need
from .problem import Case, ProblemSeverity
from .spells import HOUR

if TYPE_CHECKING:
    from .context import Context
    from .keys import Add, Flow
    from .messages import ObservedMessage


NEAR: Final = 30_000_000_000
"""ns between the times of a cause and of what follows from it: the interval of route requests"""
COVERED: Final = "covered"
"""`DiagnosisRule.grpc` of a rule that takes calls of gRPC, or connections whatever they carry"""
REFUSED_CALL: Final = (
    "`call-refused` speaks of what a proxy refuses. Between proxy and broker, this rule does."
)
BEHIND_PROXY: Final = (
    "Clients of gRPC send no such requests. Their proxy does, by remoting: this rule sees those."
)
PROXY_CHOOSES: Final = "The proxy chooses the broker and the queue, not the client."
NO_OFFSETS: Final = (
    "Consumers of gRPC own no queues and store no offsets. Their proxy fetches messages by POP."
)
TELEMETRY: Final = (
    "Check-backs come over the telemetry stream, which has no rows. Between broker and proxy, this"
    " rule sees them."
)
LASTING: Final = "Until somebody changes something: quiet in between does not end it."


class Fold:
    """State of one rule for one key. Override what the rule takes, and `cases`."""

    def __init__(self, key: str) -> None:
        self.key = key
        """what the state is kept for"""
        self.pending: list[ExchangeRecord] = []
        """requests that wait for their response at the moment, where the rule takes such"""
        self.unended: list[ConversationRecord] = []
        """connections that may go on, as they are at the moment, where the rule takes such"""
        self.lasts: int | None = HOUR
        """as in its rule"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Take an exchange."""

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take exchanges of one flow. A rule that takes each send may count them together."""
        for row in rows:
            self.add_exchange(row)

    def adder_of(self, flow: Flow) -> Add:
        """Return what takes the exchanges of a flow: `add_exchanges`, unless much is known of all.

        It is asked for where a rule's key depends on the flow only.
        """
        return self.add_exchanges

    def add_connection(self, row: ConversationRecord) -> None:
        """Take a TCP connection that has ended."""

    def add_message(self, message: ObservedMessage) -> None:
        """Take a message with its attempts."""

    def forget_messages(self) -> None:
        """Forget the messages: those that follow are all that there are by now."""

    def cases(self, context: Context) -> Iterable[Case]:
        """Return what was found so far; nothing where another rule's state finds it."""
        return ()


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Which exchanges a rule takes, and by which key; None: any."""

    key: Callable[[ExchangeRecord], str | None]
    """key of the state; None: the rule does not take this exchange"""
    requests: frozenset[int] | None = None
    """request codes"""
    responses: frozenset[int] | None = None
    """response codes; those without a response are then not taken"""
    statuses: frozenset[str] | None = None
    with_facts: bool = False
    """only those that name brokers or have facts"""
    of_flow: bool = False
    """the key depends on what is in a `keys.Flow` only, and is asked for once per flow"""


@dataclass(frozen=True, slots=True)
class DiagnosisRule:
    """A rule."""

    id: str
    """as in the output and `--explain`"""
    severity: ProblemSeverity
    title: str
    """one general sentence, without names"""
    searched: tuple[str, ...]
    """words that people search for"""
    proof: str
    """what in a capture proves it"""
    explanation: str
    """what happens inside RocketMQ"""
    advice: str
    """what to check or set: the setting's name and default, by version where it differs"""
    grpc: str
    """`COVERED`, or why it cannot speak of clients that use gRPC"""
    fold: Callable[[str], Fold]
    """key -> state"""
    exchanges: tuple[Exchanges, ...] = ()
    connections: Callable[[ConversationRecord], str | None] | None = None
    """key of a connection; None: connections are not taken"""
    messages: Callable[[ObservedMessage], str | None] | None = None
    """key of a message with its attempts; None: messages are not taken"""
    takes_pending: bool = False
    """it looks at what is not settled while a capture goes on"""
    quiet_ends: bool = True
    """it is over where no sign of it was seen for a while; False: only a sign of life ends it"""
    joined_messages: bool = False
    """messages go to the state of their key that has exchanges and connections; else to another"""
    references: tuple[str, ...] = ()
    """public issues, `apache/rocketmq#N`"""
    limits: str = ""
    """what it cannot tell"""
    needs: frozenset[Need] = frozenset()
    rests_on_absence: bool = False
    """it concludes from what was not seen"""
    lasts: int | None = HOUR
    """ns without a sign after which what follows is another problem; None: it is a setting or what
    a program does, which lasts until somebody changes it, so that quiet ends nothing"""
    found_by: str | None = None
    """id of the rule whose state has its cases; None: its own"""
    consequence_of: frozenset[str] = frozenset()
    """ids of rules whose problems lead to this one"""
    follows_within: int = NEAR
    """ns between the times of such a problem and of this one, at the most"""

    @property
    def how_long(self) -> str:
        """A sentence where quiet does not end it; else empty."""
        return LASTING if self.lasts is None else ""

    def new_fold(self, key: str) -> Fold:
        """Return a state for a key."""
        fold = self.fold(key)
        fold.lasts = self.lasts
        return fold
