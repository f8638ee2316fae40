"""Requests about groups: settings, connections, progress, offset resets, client queries.

RocketMQ: AdminBrokerProcessor, Broker2Client.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from dissectors.remoting.bodies.registry import encode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.fastjson.codec import encode_json
from dissectors.remoting.ids.message_ids import decode_offset_id
from dissectors.remoting.messages.message import encode_message
from dissectors.remoting.topic_names import RETRY_PREFIX

from ..clients import ConsumerGroup
from ..configs import TopicConfig, group_of_value
from ..request import BadRequest, ReceivedRequest, serves
from ..server import Connection, HandlerResponse
from ..state import StateHandlers
from ..store.shelf import StoredQueue
from .client_requests import json_object, objects_of

_MOST_ROWS: Final = 100_000
"""queues in one response: some 15 MB"""


class GroupHandlers(StateHandlers):
    """Serves group administration at one broker."""

    # -- settings -------------------------------------------------------------------------------

    @serves(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
    def update(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 200: create or change a group."""
        self._put(json_object(request.body))
        return HandlerResponse()

    @serves(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)
    def update_list(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 225: create or change several groups."""
        for value in objects_of(json_object(request.body).get("groupConfigList")):
            self._put(value)
        return HandlerResponse()

    def _put(self, value: dict[str, object]) -> None:
        config = group_of_value(value)
        if config is None:
            raise BadRequest("the body names no group", ResponseCode.INVALID_PARAMETER)
        if not self._state.put_group(config):
            raise BadRequest("there are too many groups, or the name of this one is too long")

    @serves(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    def all_configs(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 201: return every group."""
        is_5 = self._state.options.is_5
        table = {config.name: config.value(is_5) for config in self._state.groups}
        value = {
            "dataVersion": self._state.data_version(len(table)),
            **({"forbiddenTable": {}} if is_5 else {}),
            "subscriptionGroupTable": table,
        }
        fields = {"totalGroupNum": str(len(table))} if is_5 else None
        return HandlerResponse(0, fields, encode_json(value))

    @serves(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG)
    def config(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 352: return one group."""
        name = request.text("group")
        config = self._state.groups.get(name)
        if config is None:
            raise BadRequest(
                f"No group in this broker: {name}", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
        return HandlerResponse(body=encode_json(config.value()))

    @serves(RequestCode.DELETE_SUBSCRIPTIONGROUP)
    def delete(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 207: remove a group, and its offsets if requested."""
        name = request.text("groupName")
        self._state.drop_group(name, with_offsets=request.flag("cleanOffset"))
        return HandlerResponse()

    # -- connections ----------------------------------------------------------------------------

    @serves(RequestCode.GET_CONSUMER_CONNECTION_LIST)
    def consumers(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 203: return the clients and subscriptions of a consumer group."""
        group = self._online(request.text("consumerGroup"))
        value = {
            "connectionSet": [client.value() for client in group.members.values()],
            "consumeFromWhere": group.from_where,
            "consumeType": group.consume_type,
            "messageModel": group.message_model,
            "subscriptionTable": {
                topic: subscription.value() for topic, subscription in group.subscriptions.items()
            },
        }
        return HandlerResponse(body=encode_json(value))

    def _online(self, name: str) -> ConsumerGroup:
        group = self._state.clients.consumers.get(name)
        if group is None:
            raise BadRequest(
                f"the consumer group[{name}] not online", ResponseCode.CONSUMER_NOT_ONLINE
            )
        return group

    @serves(RequestCode.GET_PRODUCER_CONNECTION_LIST)
    def producers(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 204: return the clients of a producer group."""
        name = request.text("producerGroup")
        members = self._state.clients.producers.get(name)
        if not members:
            raise BadRequest(f"the producer group[{name}] not exist")
        value = {"connectionSet": [client.value() for client in members.values()]}
        return HandlerResponse(body=encode_json(value))

    @serves(RequestCode.GET_ALL_PRODUCER_INFO)
    def all_producers(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 328: return the clients of all producer groups."""
        data = {
            group: [
                {
                    "clientId": client.client_id,
                    "language": client.language or "OTHER",
                    "lastUpdateTimestamp": client.seen_ms,
                    "remoteIP": client.connection.peer,
                    "version": client.version,
                }
                for client in members.values()
            ]
            for group, members in self._state.clients.producers.items()
        }
        return HandlerResponse(body=encode_json({"data": data}))

    # -- progress -------------------------------------------------------------------------------

    @serves(RequestCode.GET_CONSUME_STATS)
    def progress(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 208: return a group's progress in the queues of its topics."""
        group = request.text("consumerGroup")
        wanted = request.fields.get("topic")
        topics = [wanted] if wanted else self._topics_of(group)
        self._check_rows(topics)
        table = [row for topic in topics for row in self._progress_in(group, topic)]
        value = {"consumeTps": 0.0, "offsetTable": table}
        return HandlerResponse(body=encode_body(RequestCode.GET_CONSUME_STATS, True, value))

    def _check_rows(self, topics: Iterable[str]) -> None:
        """Raise BadRequest for so many queues that the response exceeds the frame limit."""
        configs = [self._state.topics.get(topic) for topic in topics]
        if sum(config.read_queues for config in configs if config is not None) > _MOST_ROWS:
            raise BadRequest(f"there are more than {_MOST_ROWS} queues")

    def _progress_in(self, group: str, topic: str) -> Iterable[dict[str, dict[str, Any]]]:
        config = self._state.topics.get(topic)
        for queue_id in range(config.read_queues if config is not None else 0):
            queue = self._state.store.queue(topic, queue_id)
            offset = self._state.offsets.get(group, topic, queue_id) or 0
            last = queue.at(offset - 1)
            yield {
                "key": self._state.queue_key(topic, queue_id),
                "value": {
                    "brokerOffset": queue.max_offset,
                    "consumerOffset": offset,
                    "lastTimestamp": last.store_ms if last is not None else 0,
                    **({"pullOffset": offset} if self._state.options.is_5 else {}),
                },
            }

    @serves(RequestCode.GET_BROKER_CONSUME_STATS)
    def progress_of_all(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 317: return the progress of all groups, or only in ordered topics."""
        ordered = request.flag("isOrder")
        state = self._state
        topics_of = state.offsets.topics_by_group()
        self._check_rows(chain.from_iterable(topics_of.values()))
        stats = []
        behind = 0
        for group in sorted({config.name for config in state.groups} | set(topics_of)):
            of_topics = []
            for topic in topics_of.get(group, ()):
                config = state.topics.get(topic)
                if config is None or (ordered and not config.order):
                    continue
                table = list(self._progress_in(group, topic))
                behind += sum(
                    row["value"]["brokerOffset"] - row["value"]["consumerOffset"] for row in table
                )
                of_topics.append({"consumeTps": 0.0, "offsetTable": table})
            stats.append({group: of_topics})
        value: dict[str, object] = {
            "brokerAddr": state.address,
            "consumeStatsList": stats,
            "totalDiff": behind,
            **({"totalInflightDiff": 0} if state.options.is_5 else {}),
        }
        return HandlerResponse(body=encode_body(RequestCode.GET_BROKER_CONSUME_STATS, True, value))

    @serves(RequestCode.QUERY_CONSUME_TIME_SPAN)
    def time_spans(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 303: return store times of the messages of a topic, and of the consumed ones."""
        group, topic = request.text("group"), request.text("topic")
        config = self._topic(topic)
        now = self._state.now_ms()
        spans = []
        for queue_id in range(config.write_queues):
            queue = self._state.store.queue(topic, queue_id)
            offset = self._state.offsets.get(group, topic, queue_id) or 0
            begin = _stored_ms(queue, queue.min_offset)
            consumed = _stored_ms(queue, offset - 1) if offset else begin
            waits = queue.max_offset > offset
            span: dict[str, object] = {
                "delayTime": now - _stored_ms(queue, offset) if waits else 0,
                "messageQueue": self._state.queue_key(topic, queue_id),
            }
            last = _stored_ms(queue, queue.max_offset - 1)
            times = {"consumeTimeStamp": consumed, "maxTimeStamp": last, "minTimeStamp": begin}
            for name, at_ms in times.items():
                span |= {name: at_ms, f"{name}Str": _time_text(at_ms)}
            spans.append(span)
        return HandlerResponse(body=encode_json({"consumeTimeSpanSet": spans}))

    def _topic(self, topic: str) -> TopicConfig:
        config = self._state.topics.get(topic)
        if config is None:
            raise BadRequest(f"topic[{topic}] not exist", ResponseCode.TOPIC_NOT_EXIST)
        return config

    def _topics_of(self, group: str) -> list[str]:
        """Return the topics of a group: subscribed ones, and those with offsets."""
        consumers = self._state.clients.consumers.get(group)
        wanted = set(consumers.subscriptions) if consumers is not None else set()
        return sorted(wanted | set(self._state.offsets.topics_of(group)))

    @serves(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
    def reset(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 222: reset a group's offsets to a time."""
        group, topic = request.text("group"), request.text("topic")
        config = self._topic(topic)
        time_ms = request.number("timestamp")
        if not self._state.options.is_5 and not self._is_known(group, config):
            raise BadRequest(f"THe consumer group <{group}> not exist")
        table = []
        for queue_id in range(config.read_queues):
            queue = self._state.store.queue(topic, queue_id)
            offset = queue.max_offset if time_ms < 0 else queue.offset_at(time_ms)
            kept = self._state.put_offset(group, topic, queue_id, offset)
            if kept and self._state.options.is_5:
                self._state.offsets.resets.put((group, topic, queue_id), offset)
            table.append({"key": self._state.queue_key(topic, queue_id), "value": offset})
        body = encode_body(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, True, {"offsetTable": table})
        if self._state.options.is_5:  # clients learn it at their next pull, and from 4.x at once
            self._state.holds.wake(topic)
        else:
            self._notify_members(group, topic, time_ms, body)
        return HandlerResponse(body=body)

    def _is_known(self, group: str, config: TopicConfig) -> bool:
        """Return whether a group has an offset in every queue: 4.x resets only such groups."""
        offsets = self._state.offsets
        return all(
            offsets.get(group, config.name, queue_id) is not None
            for queue_id in range(config.write_queues)
        )

    def _notify_members(self, group: str, topic: str, time_ms: int, body: bytes) -> None:
        consumers = self._state.clients.consumers.get(group)
        fields = {"topic": topic, "group": group, "timestamp": str(time_ms), "isForce": "true"}
        for connection in list(consumers.members) if consumers is not None else []:
            connection.ask(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)

    # -- subscriptions --------------------------------------------------------------------------

    @serves(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO)
    def groups_of_topic(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 300: return groups that subscribe to a topic or have offsets in it."""
        topic = request.text("topic")
        online = {
            group.name
            for group in self._state.clients.consumers.values()
            if topic in group.subscriptions
        }
        groups = sorted(online | set(self._state.offsets.groups_of(topic)))
        return HandlerResponse(body=encode_json({"groupList": groups}))

    @serves(RequestCode.QUERY_TOPICS_BY_CONSUMER)
    def topics_of_group(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 343: return topics that a group has offsets in."""
        topics = self._state.offsets.topics_of(request.text("group"))
        value = {"brokerAddr": self._state.address, "topicList": topics}
        return HandlerResponse(body=encode_json(value))

    @serves(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER)
    def subscription(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 345: return a group's subscription to a topic."""
        group, topic = request.text("group"), request.text("topic")
        consumers = self._state.clients.consumers.get(group)
        subscription = consumers.subscriptions.get(topic) if consumers is not None else None
        value: dict[str, object] = {"group": group, "topic": topic}
        if subscription is not None:
            value["subscriptionData"] = subscription.value()
        return HandlerResponse(body=encode_json(value))

    @serves(RequestCode.GET_ALL_CONSUMER_OFFSET)
    def all_offsets(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 43: return every offset."""
        value = {
            "dataVersion": self._state.data_version(0),
            "offsetTable": self._state.offsets.table(),
        }
        return HandlerResponse(body=encode_body(RequestCode.GET_ALL_CONSUMER_OFFSET, True, value))

    # -- asking clients -------------------------------------------------------------------------

    @serves(RequestCode.GET_CONSUMER_RUNNING_INFO)
    def ask_client(self, request: ReceivedRequest) -> None:
        """Handle 307: ask a client for its current consumption state."""
        self._forward(request, dict(request.fields), request.body)

    @serves(RequestCode.CONSUME_MESSAGE_DIRECTLY)
    def consume_directly(self, request: ReceivedRequest) -> None:
        """Handle 309: have a client consume one message immediately."""
        place = decode_offset_id(request.text("msgId"))
        record = self._state.store.at(place.physical_offset) if place is not None else None
        if record is None:
            raise BadRequest("no message has that id")
        stored = record.message()
        group = request.text("consumerGroup")
        topic = stored.properties.get("RETRY_TOPIC", stored.topic)
        if stored.topic == RETRY_PREFIX + group:
            stored = replace(stored, topic=topic, raw_properties=None)
        fields = {**request.fields, "brokerName": self._state.name}
        self._forward(request, fields, encode_message(stored.sealed()))

    def _forward(self, request: ReceivedRequest, fields: dict[str, str], body: bytes) -> None:
        client_id = request.text("clientId")
        target = self._member(self._online(request.text("consumerGroup")), client_id)

        def answered(answer: RemotingCommand | None, body: bytes) -> None:
            response = HandlerResponse(ResponseCode.SYSTEM_ERROR, remark=f"{client_id} is gone")
            if answer is not None:
                response = HandlerResponse(answer.code, answer.ext_fields, body, answer.remark)
            request.respond(response)

        if not target.ask(request.code, fields, body, answered):
            raise BadRequest(f"{client_id} cannot be asked")
        # many may wait for clients that never respond
        request.release()

    @staticmethod
    def _member(group: ConsumerGroup, client_id: str) -> Connection:
        for connection, client in group.members.items():
            if client.client_id == client_id:
                return connection
        raise BadRequest(f"The Consumer <{group.name}> <{client_id}> not online")


def _stored_ms(queue: StoredQueue, offset: int) -> int:
    """Return the store time of a message, ms since the epoch; -1 if there is none."""
    record = queue.at(offset)
    return record.store_ms if record is not None else -1


def _time_text(at_ms: int) -> str:
    """Format a time as Java's UtilAll does, in local time."""
    seconds, ms = divmod(at_ms, 1000)
    return f"{time.strftime('%Y-%m-%d#%H:%M:%S', time.localtime(seconds))}:{ms:03d}"
