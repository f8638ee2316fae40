"""Requests about clients: heartbeats, group members, queue locks, and queue assignment (5.x).

RocketMQ: ClientManageProcessor, ConsumerManageProcessor, AdminBrokerProcessor (locks),
QueryAssignmentProcessor, MessageRequestModeManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.remoting.bodies.classes import with_java_names
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.fastjson.codec import decode_json, encode_json
from dissectors.remoting.heartbeat import HEARTBEAT_CLASSES
from dissectors.remoting.row_facts.bodies import LOCK_CLASSES
from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.remoting.versions import V5_3_3

from ..clients import NAME_LIMIT, ConsumerGroup, GroupMember, Subscription, subscription_of
from ..events import EventKind
from ..request import BadRequest, ReceivedRequest, serves
from ..room import BoundedTable, weight_of
from ..server import HandlerResponse
from ..state import ANY_QUEUE, BrokerState, StateHandlers

_QUEUES: Final = 1 << 31
_MOST_QUEUES: Final = 100_000
"""queues of a topic in one response: some 10 MB"""


def json_object(body: bytes) -> dict[str, object]:
    """Return the members of a JSON body; BadRequest if it is not an object."""
    value = decode_json(body).value
    if not isinstance(value, dict):
        raise BadRequest("the body is not a JSON object")
    return value


def text_of(value: object) -> str:
    """Return a text, or an integer as text; empty for anything else."""
    return str(value) if isinstance(value, str) or type(value) is int else ""


def name_of(value: object) -> str:
    """Return a text as `text_of` does; empty if it is too long."""
    text = text_of(value)
    return text if len(text) <= NAME_LIMIT else ""


def objects_of(value: object) -> list[dict[str, object]]:
    """Return the objects of a list; a single object counts as a list, as in Java."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


def queues_of(value: object) -> Iterable[tuple[str, int]]:
    """Yield the (topic, queue id) of a list of MessageQueue."""
    for item in objects_of(value):
        topic, queue_id = item.get("topic"), item.get("queueId")
        if isinstance(topic, str) and isinstance(queue_id, int) and 0 <= queue_id < _QUEUES:
            yield topic, queue_id


class ClientHandlers(StateHandlers):
    """Serves heartbeats, locks, and assignments of clients at one broker."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__(state)
        self._modes = BoundedTable[tuple[str, str], str](
            state.room, lambda key, mode: weight_of(*key, mode)
        )

    def _object(self, body: bytes, class_names: tuple[str, ...]) -> dict[str, object]:
        """Return the members of a JSON body as this release reads them."""
        value = json_object(body)
        if self._state.options.version > V5_3_3:  # fastjson2 requires Java's spelling of the names
            return value
        return with_java_names(value, class_names)[0]

    # -- heartbeats -----------------------------------------------------------------------------

    @serves(RequestCode.HEART_BEAT)
    def heartbeat(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 34: register a client with its groups and subscriptions."""
        value = self._object(request.body, HEARTBEAT_CLASSES)
        client_id = text_of(value.get("clientID"))
        client = GroupMember(
            client_id,
            request.connection,
            request.command.language,
            request.command.version,
            self._state.now_ms(),
        )
        new = False
        for member in objects_of(value.get("producerDataSet")):
            group = text_of(member.get("groupName"))
            if group and self._state.clients.add_producer(group, client):
                new = True
                self._notify(client, f"producer group {group}")
        without = value.get("withoutSub") is True
        for member in objects_of(value.get("consumerDataSet")):
            new |= self._consumer(client, member, without)
        if not self._state.options.is_5:
            return HandlerResponse()
        changed = str(new).lower()
        return HandlerResponse(0, {"IS_SUB_CHANGE": changed, "IS_SUPPORT_HEART_BEAT_V2": "true"})

    def _consumer(self, client: GroupMember, member: dict[str, object], without: bool) -> bool:
        name = text_of(member.get("groupName"))
        if not name:
            return False
        state = self._state
        state.groups.of(name)
        state.topic_of_retries(RETRY_PREFIX + name, state.groups.of(name).retry_queues)
        group = ConsumerGroup(
            name,
            name_of(member.get("consumeType")).upper() or "CONSUME_PASSIVELY",
            name_of(member.get("messageModel")).upper() or "CLUSTERING",
            name_of(member.get("consumeFromWhere")).upper() or "CONSUME_FROM_LAST_OFFSET",
        )
        subscriptions = None if without else _subscriptions(member.get("subscriptionDataSet"))
        changed = state.clients.add_consumer(group, client, subscriptions)
        if changed:
            topics = ", ".join(sorted(state.clients.consumers[name].subscriptions))
            self._notify(client, f"consumer group {name} of {topics or 'nothing'}")
            state.notify_group(name)
        return changed

    def _notify(self, client: GroupMember, detail: str) -> None:
        self._state.tell(EventKind.CLIENT, client.connection, f"{client.client_id}: {detail}")

    @serves(RequestCode.UNREGISTER_CLIENT)
    def unregister(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 35: let a client leave a producer or consumer group."""
        producer = request.fields.get("producerGroup")
        consumer = request.fields.get("consumerGroup")
        if producer or consumer:
            left = self._state.clients.remove(request.connection, producer, consumer)
            client_id = request.fields.get("clientID", "")
            for group in (*left[0], *left[1]):
                self._state.tell(
                    EventKind.CLIENT_GONE, request.connection, f"{client_id}: group {group}"
                )
            for group in left[1]:
                self._state.notify_group(group)
        return HandlerResponse()

    @serves(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
    def members(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 38: return the ids of the clients of a consumer group."""
        name = request.text("consumerGroup")
        group = self._state.clients.consumers.get(name)
        ids = group.client_ids() if group is not None else []
        if not ids:
            raise BadRequest(f"no consumer for this group, {name}")
        return HandlerResponse(body=encode_json({"consumerIdList": ids}))

    @serves(RequestCode.CHECK_CLIENT_CONFIG)
    def check(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 46: check whether a subscription is supported; SQL92 is not."""
        value = self._object(request.body, ("CheckClientRequestBody", "SubscriptionData"))
        subscription = value.get("subscriptionData")
        kind = subscription.get("expressionType") if isinstance(subscription, dict) else None
        if kind not in (None, "TAG"):
            raise BadRequest(
                f"The broker does not support consumer to filter message by {kind}",
                ResponseCode.SYSTEM_ERROR,
            )
        return HandlerResponse()

    # -- locks ----------------------------------------------------------------------------------

    @serves(RequestCode.LOCK_BATCH_MQ)
    def lock(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 41: lock queues for one client; return the locked ones."""
        value = self._object(request.body, LOCK_CLASSES)
        got = self._state.locks.lock(
            text_of(value.get("consumerGroup")),
            text_of(value.get("clientId")),
            queues_of(value.get("mqSet")),
            self._state.now_ms(),
        )
        queues = [self._state.queue_key(*queue) for queue in got]
        return HandlerResponse(body=encode_json({"lockOKMQSet": queues}))

    @serves(RequestCode.UNLOCK_BATCH_MQ)
    def unlock(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 42: unlock queues of a client."""
        value = self._object(request.body, LOCK_CLASSES)
        self._state.locks.unlock(
            text_of(value.get("consumerGroup")),
            text_of(value.get("clientId")),
            queues_of(value.get("mqSet")),
        )
        return HandlerResponse()

    # -- assignment -------------------------------------------------------------------------------

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
    def all_modes(self, request: ReceivedRequest) -> HandlerResponse:
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


def _subscriptions(value: object) -> list[Subscription]:
    subscriptions = []
    for item in objects_of(value):
        topic = text_of(item.get("topic"))
        version = item.get("subVersion")
        if topic:
            subscriptions.append(
                subscription_of(
                    topic,
                    text_of(item.get("subString")),
                    text_of(item.get("expressionType")),
                    version if isinstance(version, int) and abs(version) < 1 << 63 else 0,
                )
            )
    return subscriptions
