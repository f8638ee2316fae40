"""JSON bodies of Java, byte for byte in both directions."""

from __future__ import annotations

import pytest

from dissectors.remoting.bodies.body import JSON, RAW, Body, BodyInput
from dissectors.remoting.bodies.classes import CLASSES
from dissectors.remoting.bodies.json_body import (
    decode_json_body,
    decode_reset_offset,
    decode_unknown,
    encode_json_body,
    json_type_of,
)

from ..vectors import RESET_OFFSET, ROUTE, json_vectors

CLASS_OF_VECTOR = {
    "pop_checkpoint_json": "PopCheckPoint",
    "pop_ack_json": "AckMsg",
    "pop_batch_ack_json": "BatchAckMsg",
    "ConsumerOffsetManager": "ConsumerOffsetSerializeWrapper",
    "string escapes": "ConsumeMessageDirectlyResult",
}
NO_BODIES = {"TopicConfig.encode", "RemotingCommand", "numbers (inf, nan, 1e10, Long.MAX)"}


def decoded(form: str, text: str | bytes, code: int = 0) -> Body:
    data = text if isinstance(text, bytes) else text.encode()
    return decode_json_body(BodyInput(form, code, True, data, {}))


def test_the_bodies_of_java_in_both_directions() -> None:
    tested = set()
    for vector in json_vectors():
        name, text = vector["name"], vector["text"]
        if name in NO_BODIES:
            continue
        form = CLASS_OF_VECTOR.get(name, name.partition("(")[0])
        body = decoded(form, text)
        assert (body.kind, body.problem, body.notes) == (form, None, ()), name
        again = encode_json_body(form, body.value, standard="standard" in name)
        if "$ref" in text:  # what was shared is written twice
            assert decoded(form, again).value == body.value
        else:
            assert again.decode() == text, name
        tested.add(form)
    assert len(tested) > 35
    assert tested <= set(CLASSES)


def test_both_forms_of_a_route_say_the_same() -> None:
    body = decoded("TopicRouteData", ROUTE)
    standard = encode_json_body("TopicRouteData", body.value, standard=True)
    assert b'{"0":"10.0.0.1:10911","1":' in standard
    assert decoded("TopicRouteData", standard) == body


@pytest.mark.parametrize("text", [ROUTE, RESET_OFFSET])
def test_every_cut_gives_what_is_there(text: str) -> None:
    form = "TopicRouteData" if text is ROUTE else "ResetOffsetBody"
    for size in range(1, len(text)):
        body = decoded(form, text[:size])
        assert body.problem is not None
        assert body.kind in (form, RAW)
        assert (body.kind == RAW) == (body.value is None)


def test_lists_and_maps() -> None:
    body = decoded("json-list:UserInfo", '[{"username":"u","userType":"Super"}]')
    assert body == Body("json-list:UserInfo", [{"username": "u", "userType": "Super"}])
    assert decoded("json-list:string", '["a","b"]').value == ["a", "b"]
    assert decoded("json-map", "{a:{0:1}}").value == {"a": {"0": 1}}
    assert decoded("json-list:json-map", "[{a:1}]").value == [{"a": 1}]
    assert encode_json_body("json-list:string", ["a"]) == b'["a"]'
    assert json_type_of("json-list:AclInfo").item == json_type_of("AclInfo")


def test_what_is_no_object_is_a_problem() -> None:
    assert decoded("UserInfo", "5").problem == "no UserInfo but a single value"
    assert decoded("UserInfo", "\x00").kind == RAW
    assert decoded("UserInfo", "[]").notes == ("UserInfo: a list where an object is expected",)


def test_both_forms_of_a_reset() -> None:
    queue = {"brokerName": "broker-a", "queueId": 2, "topic": "TopicTest"}
    java = decode_reset_offset(BodyInput("ResetOffsetBody", 220, False, RESET_OFFSET.encode(), {}))
    assert java == Body("ResetOffsetBody", {"offsetTable": [{"key": queue, "value": 123}]})
    text = b'{"offsetTable":[{"brokerName":"broker-a","offset":5,"queueId":1,"topic":"TopicTest"}]}'
    cpp = decode_reset_offset(BodyInput("ResetOffsetBody", 220, False, text, {}))
    assert (cpp.kind, cpp.problem, cpp.notes) == ("ResetOffsetBodyForC", None, ())
    assert encode_json_body("ResetOffsetBody", java.value) == RESET_OFFSET.encode()
    assert encode_json_body("ResetOffsetBody", cpp.value) == text


def test_a_body_that_nothing_is_known_of() -> None:
    assert decode_unknown(b'{"a":1}', "why") == Body(JSON, {"a": 1}, notes=("why",))
    assert decode_unknown(b"{x", "why") == Body(RAW, problem="why")
    assert decode_unknown(b"\0\1", "why") == Body(RAW, problem="why")
