"""Requests about topics at a broker: create, change, list, statistics.

RocketMQ: AdminBrokerProcessor.
"""

from __future__ import annotations

from dissectors.remoting.bodies.registry import encode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.fastjson.codec import encode_json
from dissectors.remoting.topic_names import is_system_topic

from ..configs import OWN_TOPICS, TopicConfig, topic_of_value, why_no_name
from ..request import BadRequest, ReceivedRequest, serves
from ..server import HandlerResponse
from ..state import StateHandlers
from .client_requests import json_object, objects_of


class TopicHandlers(StateHandlers):
    """Serves topic administration at one broker."""

    @serves(RequestCode.UPDATE_AND_CREATE_TOPIC)
    def update(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 17: create or change a topic."""
        config = TopicConfig(
            request.text("topic"),
            request.number("readQueueNums"),
            request.number("writeQueueNums"),
            request.number("perm"),
            request.number("topicSysFlag", 0),
            request.flag("order"),
            request.text("topicFilterType", "SINGLE_TAG"),
            _attributes(request.text("attributes", "")),
        )
        self._put(config)
        return HandlerResponse()

    @serves(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST)
    def update_list(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 18: create or change several topics."""
        for value in objects_of(json_object(request.body).get("topicConfigList")):
            config = topic_of_value(value)
            if config is not None:
                self._put(config)
        return HandlerResponse()

    def _put(self, config: TopicConfig) -> None:
        problem = why_no_name(config.name, self._state.options.is_5)
        if problem is None and is_system_topic(config.name):
            problem = f"The topic[{config.name}] is conflict with system topic."
        if problem is None and not (
            0 <= config.read_queues <= 65536 and 0 <= config.write_queues <= 65536
        ):
            problem = "the numbers of queues are out of range"
        if problem is None and not 0 <= config.perm <= 7:
            problem = f"perm {config.perm} is illegal"
        if problem is not None:
            raise BadRequest(problem, self._state.argument_code)
        if not self._state.put_topic(config):
            raise BadRequest("there are too many topics")

    @serves(RequestCode.GET_ALL_TOPIC_CONFIG)
    def all_configs(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 21: return every topic."""
        is_5 = self._state.options.is_5
        table = {config.name: config.value(is_5) for config in self._state.topics}
        value: dict[str, object] = {
            "dataVersion": self._state.data_version(self._state.topics.changes),
            "topicConfigTable": table,
        }
        if not is_5:
            return HandlerResponse(body=encode_json(value))
        value["mappingDataVersion"] = self._state.data_version(0)
        value["topicQueueMappingDetailMap"] = value["topicQueueMappingInfoMap"] = {}
        return HandlerResponse(0, {"totalTopicNum": str(len(table))}, encode_json(value))

    @serves(RequestCode.GET_TOPIC_CONFIG)
    def config(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 351: return one topic."""
        config = self._topic(request, "No topic in this broker. topic: {}")
        return HandlerResponse(body=encode_json(config.value()))

    @serves(RequestCode.GET_TOPIC_STATS_INFO)
    def stats(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 202: return offsets and times of the queues of a topic."""
        config = self._topic(request, "topic[{}] not exist")
        table = []
        for queue_id in range(max(config.read_queues, config.write_queues)):
            queue = self._state.store.queue(config.name, queue_id)
            last = queue.at(queue.max_offset - 1)
            table.append(
                {
                    "key": self._state.queue_key(config.name, queue_id),
                    "value": {
                        "lastUpdateTimestamp": last.store_ms if last is not None else 0,
                        "maxOffset": queue.max_offset,
                        "minOffset": queue.min_offset,
                    },
                }
            )
        value: dict[str, object] = {"offsetTable": table}
        if self._state.options.is_5:
            value["topicPutTps"] = 0.0
        return HandlerResponse(body=encode_body(RequestCode.GET_TOPIC_STATS_INFO, True, value))

    @serves(RequestCode.DELETE_TOPIC_IN_BROKER)
    def delete(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 215: remove a topic and its queues."""
        topic = request.text("topic")
        if is_system_topic(topic):
            raise BadRequest(f"The topic[{topic}] is conflict with system topic.")
        self._state.drop_topic(topic)
        return HandlerResponse()

    @serves(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    def system_topics(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 305: return RocketMQ's own topics."""
        return HandlerResponse(body=encode_json({"topicList": sorted(OWN_TOPICS)}))

    def _topic(self, request: ReceivedRequest, remark: str) -> TopicConfig:
        topic = request.text("topic")
        config = self._state.topics.get(topic)
        if config is None:
            raise BadRequest(remark.format(topic), ResponseCode.TOPIC_NOT_EXIST)
        return config


def _attributes(text: str) -> tuple[tuple[str, str], ...]:
    """Return the attributes that `+name=value,-other` sets."""
    pairs = []
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name.startswith("+") and equals:
            pairs.append((name[1:], value))
    return tuple(pairs)
