"""Registrations of brokers (103) as Java writes them. RocketMQ: RegisterBrokerBody.encode."""

from __future__ import annotations

from dissectors.remoting.bodies.classes import java_type_of
from dissectors.remoting.bodies.json_body import encode_json_body, wire_value
from dissectors.remoting.fastjson.codec import encode_json
from dissectors.remoting.messages.compression import compress

WRAPPER = "topicConfigSerializeWrapper"


def encode_topic_config(config: dict[str, object]) -> str:
    """Encode a TopicConfig as in compressed registrations."""
    attributes = encode_json(config.get("attributes") or {}).decode()
    names = ("topicName", "readQueueNums", "writeQueueNums", "perm", "topicFilterType")
    return " ".join([*(str(config.get(name, "")) for name in names), attributes])


def encode_registration(
    value: object, *, compressed: bool = False, queue_mappings: bool = True
) -> bytes:
    """Encode a registration; `queue_mappings` only affects the compressed form.

    Raise ValueError for a value that is not a RegisterBrokerBody.
    """
    if not compressed:
        return encode_json_body("RegisterBrokerBody", value)
    wrapper = value.get(WRAPPER) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(wrapper, dict):
        raise ValueError(f"a registration is a dict with {WRAPPER}")
    parts = [_sized(_json_of(wrapper.get("dataVersion") or {}, "DataVersion"))]
    topics = wrapper.get("topicConfigTable") or {}
    parts.append(len(topics).to_bytes(4, "big"))
    parts += [_sized(encode_topic_config(config).encode()) for config in topics.values()]
    parts.append(_sized(encode_json(value.get("filterServerList") or [])))
    if queue_mappings:
        mappings = wrapper.get("topicQueueMappingInfoMap") or {}
        parts.append(len(mappings).to_bytes(4, "big"))
        parts += [_sized(_json_of(item, "TopicQueueMappingInfo")) for item in mappings.values()]
    return compress(b"".join(parts), "zlib", 9)


def _json_of(value: object, class_name: str) -> bytes:
    return encode_json(wire_value(value, java_type_of(class_name)))


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
