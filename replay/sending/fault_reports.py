"""What the producer tells its fault strategy about each attempt, and in which order.

Rules, Java's: an asynchronous attempt is reported twice, when it is handed over and when its end is
known. Up to 5.1 the connection is opened before the handing over, so that a failure to connect is
known first and the handing over, with the time that it took, has the last word; since 5.2 the
connection is opened behind it.
RocketMQ: DefaultMQProducerImpl.sendDefaultImpl (updateFaultItem), MQClientAPIImpl.sendMessageAsync,
NettyRemotingClient.invokeAsync.
"""

from __future__ import annotations

from typing import Final

from dissectors.remoting.versions import ordinal_of

from .errors import (
    AnswerError,
    BrokerError,
    ClientError,
    ConnectError,
    RouteError,
    TooManyRequestsError,
    UnknownBrokerError,
)
from .fault import Event, FaultStrategy
from .network import MS, Network

_V5_2_0: Final = 453


class FaultReports:
    """Reports of one producer to its strategy."""

    __slots__ = ("_connects_behind", "_network", "_strategy", "enabled")

    def __init__(self, strategy: FaultStrategy, network: Network) -> None:
        self._strategy = strategy
        self._network = network
        self.enabled = strategy.settings.enabled
        """whether the strategy is on"""
        since = ordinal_of(strategy.settings.rules.name) or 0
        self._connects_behind = since >= _V5_2_0

    def report(self, broker: str, event: Event, began: int) -> None:
        """An attempt that began then has come to this, now."""
        if self.enabled:
            now = self._network.now()
            self._strategy.report(broker, event, (now - began) // MS, now // MS)

    def synchronous(self, broker: str, error: ClientError, began: int) -> None:
        """An attempt of a synchronous send has failed."""
        if isinstance(error, BrokerError):
            event = Event.BROKER_ERROR
        elif isinstance(error, (AnswerError, RouteError)):
            event = Event.CLIENT_ERROR
        else:
            event = Event.TRANSPORT_ERROR
        self.report(broker, event, began)

    def handing_over(self, broker: str, connected: bool, began: int) -> bool:
        """An asynchronous attempt is handed over; whether that is still to be reported."""
        if not self.enabled:
            return False
        if connected or self._connects_behind:
            self.report(broker, Event.HANDED_OVER, began)
            return False
        return True

    def asynchronous(
        self, broker: str, error: ClientError | None, began: int, handed_late: bool
    ) -> None:
        """An attempt of an asynchronous send has ended; `handed_late` as `handing_over` said."""
        event = self._async_event_of(error)
        if handed_late and event is not Event.NOT_SENT:
            self.report(broker, Event.HANDED_OVER, began)
        self.report(broker, event, began)
        if handed_late and event is Event.NOT_SENT:
            self.report(broker, Event.HANDED_OVER, began)

    def _async_event_of(self, error: ClientError | None) -> Event:
        if error is None:
            return Event.ANSWERED
        if isinstance(error, (BrokerError, AnswerError)):
            return Event.ASYNC_ERROR
        if isinstance(error, (UnknownBrokerError, TooManyRequestsError)):
            return Event.NOT_SENT
        if isinstance(error, ConnectError) and not self._connects_behind:
            return Event.NOT_SENT
        return Event.ASYNC_LOST
