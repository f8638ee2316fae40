"""What the producer tells its fault strategy about each attempt, and in which order.

Rules, Java's: an asynchronous attempt is reported twice, when it is handed over and when its end is
known. Up to 5.1 the connection is opened before the handing over, so that a failure to connect is
known first and the handing over, with the time that it took, has the last word; since 5.2 the
connection is opened behind it.
RocketMQ: DefaultMQProducerImpl.sendDefaultImpl (updateFaultItem), MQClientAPIImpl.sendMessageAsync,
NettyRemotingClient.invokeAsync.
"""

from __future__ import annotations

from dissectors.remoting.versions import V5_2_0, ordinal_of

from ..errors import (
    AnswerError,
    BrokerError,
    ClientError,
    ConnectError,
    ForbiddenError,
    HookError,
    InvalidMessageError,
    RouteError,
    TooManyRequestsError,
    UnknownBrokerError,
)
from ..fault import AttemptEvent, FaultStrategy
from ..wire.network import MS, Network

_NOT_THE_BROKERS = (HookError, InvalidMessageError)
"""errors in the application's own code or message, which say nothing of a broker"""


class FaultReports:
    """Reports of one producer to its strategy."""

    __slots__ = ("_connects_behind", "_network", "_strategy", "enabled")

    def __init__(self, strategy: FaultStrategy, network: Network) -> None:
        self._strategy = strategy
        self._network = network
        self.enabled = strategy.settings.enabled
        """whether the strategy is on"""
        since = ordinal_of(strategy.settings.rules.name) or 0
        self._connects_behind = since >= V5_2_0

    def report(self, broker: str, event: AttemptEvent, began: int) -> None:
        """Report the outcome of an attempt that began at `begin`."""
        if self.enabled:
            now = self._network.now()
            self._strategy.report(broker, event, (now - began) // MS, now // MS)

    def synchronous(self, broker: str, error: ClientError, began: int) -> None:
        """Report a failed attempt of a synchronous send."""
        if isinstance(error, _NOT_THE_BROKERS):
            return
        if isinstance(error, BrokerError):
            event = AttemptEvent.BROKER_ERROR
        elif isinstance(error, (AnswerError, ForbiddenError, RouteError)):
            event = AttemptEvent.CLIENT_ERROR
        else:
            event = AttemptEvent.TRANSPORT_ERROR
        self.report(broker, event, began)

    def handing_over(self, broker: str, connected: bool, began: int) -> bool:
        """Hand an asynchronous attempt over; return whether that is still to be reported."""
        if not self.enabled:
            return False
        if connected or self._connects_behind:
            self.report(broker, AttemptEvent.HANDED_OVER, began)
            return False
        return True

    def asynchronous(
        self, broker: str, error: ClientError | None, began: int, handed_late: bool
    ) -> None:
        """Report the end of an attempt of an asynchronous send; `handed_late` as `handing_over`
        said.
        """
        if isinstance(error, _NOT_THE_BROKERS):
            return
        event = self._async_event_of(error)
        if handed_late and event is not AttemptEvent.NOT_SENT:
            self.report(broker, AttemptEvent.HANDED_OVER, began)
        self.report(broker, event, began)
        if handed_late and event is AttemptEvent.NOT_SENT:
            self.report(broker, AttemptEvent.HANDED_OVER, began)

    def _async_event_of(self, error: ClientError | None) -> AttemptEvent:
        if error is None:
            return AttemptEvent.ANSWERED
        if isinstance(error, (BrokerError, AnswerError)):
            return AttemptEvent.ASYNC_ERROR
        if isinstance(error, ForbiddenError):
            return AttemptEvent.CLIENT_ERROR
        if isinstance(error, (UnknownBrokerError, TooManyRequestsError)):
            return AttemptEvent.NOT_SENT
        if isinstance(error, ConnectError) and not self._connects_behind:
            return AttemptEvent.NOT_SENT
        return AttemptEvent.ASYNC_LOST
