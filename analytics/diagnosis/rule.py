"""The contract of a rule: a description as data, its inputs, and a fold over them.

A fold has no clock and does no I/O; it returns the same cases whatever the order of rows, and may
be asked for them several times. State is kept per key and is small: a `Tally`, some bounded sets. A
rule is one file in a family under `rules/` that exports `RULE`, and a name in `MODULES` there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissectors.grpc.names import GRPC_STATUSES
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord

from .problem import Case, Impact, ProblemSeverity, Tally
from .spells import HOUR

if TYPE_CHECKING:  # help and lists of rules need no state of a diagnosis
    from .context import Context, Need
    from .keys import Add, Flow
    from .messages import ObservedMessage

NEAR: Final = 30_000_000_000
"""maximum ns between a cause and its consequences: the interval of route requests"""
COVERED: Final = "covered"
"""`DiagnosisRule.grpc` of a rule that takes gRPC calls, or connections of any protocol"""
REFUSED_CALL: Final = (
    "`call-refused` covers refusals by a proxy. This rule covers those between proxy and broker."
)
BEHIND_PROXY: Final = (
    "gRPC clients send no such requests, but their proxy does, over remoting. This rule covers the"
    " proxy's requests."
)
ALWAYS_RETRIED: Final = (
    "Not covered: gRPC clients retry every failed send, including asynchronous ones, except"
    " transactional ones."
)
ISOLATES_PROXIES: Final = (
    "Not covered: after a failed send, gRPC clients avoid a proxy until it responds to a Heartbeat."
    " The proxy chooses the broker."
)
PROXY_CHOOSES: Final = "Not covered: the proxy chooses the broker and the queue, not the client."
NO_OFFSETS: Final = (
    "Not covered: gRPC consumers own no queues and store no offsets. Their proxy fetches messages"
    " by POP."
)
GRPC_FAILURES: Final = frozenset(range(1, len(GRPC_STATUSES)))
"""gRPC's own status codes of failed calls"""
LASTING: Final = "The problem lasts until its cause is fixed. A quiet period does not end it."


class Fold:
    """State of one rule for one key. Override the methods for its inputs, and `cases`."""

    def __init__(self, key: str) -> None:
        self.key = key
        """key of the state"""
        # The engine replaces pending rows each time, so nothing counts twice.
        self.pending: list[ExchangeRecord] = []
        """currently pending requests, if the rule takes them"""
        self.unended: list[ConversationRecord] = []
        """currently open connections, if the rule takes them"""
        self.lasts: int | None = HOUR
        """as in its rule"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Add an exchange; called if the rule's key does not depend on the flow alone."""

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add exchanges of one flow. A rule that takes all sends may count them together."""
        for row in rows:
            self.add_exchange(row)

    def adder_of(self, flow: Flow) -> Add:
        """Return the function that adds exchanges of a flow, by default `add_exchanges`.

        Called only if the rule's key depends on the flow.
        """
        return self.add_exchanges

    def add_connection(self, row: ConversationRecord) -> None:
        """Add a closed TCP connection."""

    def add_message(self, message: ObservedMessage) -> None:
        """Add a message with its attempts."""

    def forget_messages(self) -> None:
        """Forget the messages: the following calls provide all messages again."""

    def sought(self) -> Mapping[str, str]:
        """Return messages to look up in broker stores, as UNIQ_KEY → topic."""
        return {}

    def cases(self, context: Context) -> Iterable[Case]:
        """Return the cases so far; empty if another rule's state reports them."""
        return ()


class TallyFold(Fold):
    """State of a rule with at most one case per key, made from one tally."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()

    def cases(self, context: Context) -> Iterable[Case]:
        """Return the case, if anything was counted."""
        if self.tally.count and (case := self.case(context)) is not None:
            yield case

    def case(self, context: Context) -> Case | None:
        """Return the case of what was counted; None if it is no problem."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Exchanges:
    """The exchanges that a rule takes, and their key; None: any."""

    key: Callable[[ExchangeRecord], str | None]
    """key of the state; None: the rule ignores this exchange"""
    requests: AbstractSet[int] | None = None
    """request codes"""
    responses: AbstractSet[int] | None = None
    """response codes; exchanges without a response are then ignored. gRPC's own status codes are
    taken only with all of `GRPC_FAILURES`"""
    statuses: AbstractSet[str] | None = None
    with_facts: bool = False
    """only exchanges with brokers or facts"""
    of_flow: bool = False
    """the key depends only on the `keys.Flow`, and is computed once per flow"""

    def takes_response(self, row: ExchangeRecord) -> bool:
        """Return whether the response code of an exchange is one of `responses`."""
        code = row.response_code
        if self.responses is None:
            return True
        # gRPC's own status codes are the same numbers as codes of RocketMQ for other reasons.
        if code in GRPC_FAILURES and is_call(row.request_name):
            return self.responses >= GRPC_FAILURES
        return code in self.responses


@dataclass(frozen=True, slots=True, eq=False)
class DiagnosisRule:
    """The description and inputs of a rule."""

    id: str
    """as in the output and in `--explain`"""
    severity: ProblemSeverity
    title: str
    """one general sentence without names"""
    searched: tuple[str, ...]
    """search terms"""
    proof: str
    """evidence of it in a capture"""
    explanation: str
    """mechanism inside RocketMQ"""
    advice: str
    """what to check or set: setting name and default, by version if it differs"""
    grpc: str
    """`COVERED`, or why clients with gRPC cannot be covered"""
    fold: Callable[[str], Fold]
    """key -> state"""
    grpc_explanation: str = ""
    """`explanation` for gRPC clients; empty: the same"""
    grpc_advice: str = ""
    """`advice` for gRPC clients, which have other settings; empty: the same"""
    exchanges: tuple[Exchanges, ...] = ()
    connections: Callable[[ConversationRecord], str | None] | None = None
    """key of a connection; None: the rule ignores connections"""
    messages: Callable[[ObservedMessage], str | None] | None = None
    """key of a message with its attempts; None: the rule ignores messages"""
    takes_pending: bool = False
    """takes pending rows during a capture"""
    quiet_ends: bool = True
    """ends after a while without signs; False: only a sign of recovery ends it"""
    joined_messages: bool = False
    """messages go to the state with the exchanges and connections of their key; otherwise to a
    separate one"""
    references: tuple[str, ...] = ()
    """public issues, `apache/rocketmq#N`"""
    impact: Impact | None = None
    """effect on the counted messages; None: it counts something else"""
    limits: str = ""
    """what the rule cannot detect"""
    needs: AbstractSet[Need] = frozenset()
    rests_on_absence: bool = False
    """concludes from missing traffic: its confidence is lower if the capture is incomplete"""
    lasts: int | None = HOUR
    """ns without a sign after which a further sign is another problem; None: it is a setting or
    program behavior, which lasts until someone changes it, so quiet does not end it"""
    found_by: str | None = None
    """id of the rule whose state reports its cases; None: its own"""
    consequence_of: AbstractSet[str] = frozenset()
    """ids of rules whose problems can cause this one"""
    leads_to_all: bool = False
    """its problems can cause any problem that quiet ends and that has no other cause"""
    follows_within: int = NEAR
    """maximum ns between the cause and this problem"""

    @property
    def how_long(self) -> str:
        """How long it lasts if quiet does not end it; otherwise empty."""
        return LASTING if self.lasts is None else ""

    def new_fold(self, key: str) -> Fold:
        """Return a new state for a key."""
        fold = self.fold(key)
        fold.lasts = self.lasts
        return fold
