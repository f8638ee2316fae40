"""Queue assignment by the broker, for pull or POP (5.x).

RocketMQ: QueryAssignmentProcessor, MessageRequestModeManager.
"""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.fastjson.codec import encode_json
from dissectors.remoting.topic_names import RETRY_PREFIX

from ..clients import NAME_LIMIT
from ..request import BadRequest, ReceivedRequest, serves
from ..room import BoundedTable, weight_of
from ..server import HandlerResponse
from ..state import ANY_QUEUE, BrokerState
from .client_requests import json_object, text_of

_MOST_QUEUES: Final = 100_000
"""queues of a topic in one response: some 10 MB"""


class AssignmentHandlers:
    """Serves clients that use the broker's rebalance."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._modes = BoundedTable[tuple[str, str], str](
            state.room, lambda key, mode: weight_of(*key, mode)
        )

    @serves(RequestCode.SET_MESSAGE_REQUEST_MODE)
    def set_mode(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 401: set whether a group pulls or pops a topic."""
        value = json_object(request.body)
        topic, group = text_of(value.get("topic")), text_of(value.get("consumerGroup"))
        mode = text_of(value.get("mode"))
        if topic.startswith(RETRY_PREFIX):
            raise BadRequest("retry topic is not allowed to set mode", ResponseCode.NO_PERMISSION)
        short = max(len(topic), len(group)) <= NAME_LIMIT
        if mode in ("PULL", "POP") and not (short and self._modes.put((topic, group), mode)):
            raise BadRequest("there are too many request modes, or a name is too long")
        return HandlerResponse()

    @serves(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
    def all_modes(self, request: ReceivedRequest) -> HandlerResponse:  # noqa: ARG002
        """Handle 402: return the configured modes of groups and topics."""
        modes: dict[str, dict[str, object]] = {}
        for (topic, group), mode in self._modes.items():
            value = {"consumerGroup": group, "mode": mode, "popShareQueueNum": 0, "topic": topic}
            modes.setdefault(topic, {})[group] = value
        return HandlerResponse(body=encode_json({"messageRequestModeMap": modes}))

    @serves(RequestCode.QUERY_ASSIGNMENT)
    def assignment(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 400: return the queues assigned to a client, and the mode."""
        value = json_object(request.body)
        topic, group = text_of(value.get("topic")), text_of(value.get("consumerGroup"))
        client_id = text_of(value.get("clientId"))
        mode = self._modes.get((topic, group), "PULL")
        route = self._state.route(topic)
        if sum(count for _, count in route) > _MOST_QUEUES:
            raise BadRequest(f"topic {topic} has more than {_MOST_QUEUES} queues")
        if mode == "POP":
            # Every client may pop from every queue.
            mine = [(broker, ANY_QUEUE) for broker, _ in route]
        else:
            known = self._state.clients.consumers.get(group)
            members = sorted(known.client_ids()) if known is not None else []
            queues = [(broker, number) for broker, count in route for number in range(count)]
            mine = _share(queues, members, client_id)
        assignments = [
            {
                "messageQueue": {"brokerName": broker, "queueId": queue_id, "topic": topic},
                "mode": mode,
            }
            for broker, queue_id in mine
        ]
        return HandlerResponse(body=encode_json({"messageQueueAssignments": assignments}))


def _share(
    queues: list[tuple[str, int]], members: list[str], client_id: str
) -> list[tuple[str, int]]:
    """Return the queues of one member, by RocketMQ's AVG: ranges, the first ones one longer."""
    if client_id not in members:
        return []
    place = members.index(client_id)
    share, more = divmod(len(queues), len(members))
    begin = place * share + min(place, more)
    return queues[begin : begin + share + (place < more)]
