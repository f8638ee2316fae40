"""The detector of the fault strategy: probes avoided brokers for recovery.

RocketMQ: LatencyFaultToleranceImpl.detectByOneRound, MQClientInstance (ServiceDetector); 5.1.4.
"""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import RequestCode

from ..errors import ClientError
from ..fault import DETECTOR_PERIOD_MS, FaultStrategy
from ..wire.network import MS
from ..wire.request import plain_request
from ..wire.steps import Invoke, Steps
from .client import ClusterClient

GET_MAX_OFFSET: Final = int(RequestCode.GET_MAX_OFFSET)


class Detector:
    """Probes brokers for one strategy, in the background."""

    def __init__(self, client: ClusterClient, strategy: FaultStrategy) -> None:
        """Start probing for `strategy` if it has a detector."""
        self._client = client
        self._strategy = strategy
        if strategy.settings.enabled and strategy.settings.detector:
            client.repeat(DETECTOR_PERIOD_MS, self._step)

    def _step(self, now: int) -> None:
        for broker in self._strategy.due(now // MS):
            self._strategy.probing(broker, now // MS)
            address = self._client.routes.master_of(broker)
            topic = self._client.routes.any_topic()
            if address is None:
                self._strategy.forget(broker)
            elif topic is not None:
                self._client.runner.start(self._probe(broker, address, topic))

    def _probe(self, broker: str, address: str, topic: str) -> Steps[None]:
        timeout = self._strategy.settings.detect_timeout_ms
        fields = {"topic": topic, "queueId": "0"}
        request = plain_request(self._client.config, GET_MAX_OFFSET, fields)
        deadline = self._client.network.now() + timeout * MS
        try:
            invoke = yield from self._client.channels.ask(Invoke(address, request, deadline, True))
        except ClientError:
            return
        assert invoke.command is not None
        self._strategy.probed(broker, invoke.command.code == 0)
