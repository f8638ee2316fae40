"""The Lua dissector on traffic made for the purpose: what no sample shows, and its limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.remoting.code_names import REQUEST_NAMES, request_name, response_name
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.flags import MEANINGS, meaning_of
from dissectors.remoting.header_codec import decode_header
from dissectors.remoting.headers import HEADERS, header_name
from tests.fuzz.corpus import corpus_of
from tests.traffic.commands import Command, frame, route_query, send, sent
from tests.traffic.talk import MILLISECOND, End, Talk, Tcp, merged

from .crafted import PULL, SIZES, Capture, all_of, talked
from .tshark import (
    Layer,
    commands_of,
    experts_of,
    layers_of,
    run_tshark,
    text_of,
    texts_of,
)

pytestmark = pytest.mark.tshark


# -- frames out of segments ---------------------------------------------------------------------


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_frames_cut_anywhere(
    cut: dict[str, dict[int, list[Layer]]], size: int, binary: bool
) -> None:
    found = all_of(cut[f"{size} {binary}"])
    assert [text_of(one, "rocketmq.opaque") for one in found] == ["0", "1", "2"]
    assert {text_of(one, "rocketmq.topic") for one in found} == {"Orders"}


def test_late_segments(dissector: Path, capture: Capture) -> None:
    talk = Talk(mss=100).open()
    for number in range(6):
        talk.say(0, send(number, bytes(300)).frame)
    segments = talk.segments
    segments[6], segments[7] = segments[7], segments[6]
    late = [replace(one, ts=segments[0].ts + index * 1000) for index, one in enumerate(segments)]
    option = ("-o", "tcp.reassemble_out_of_order:TRUE")
    found = all_of(commands_of(dissector, capture(late), *option))
    assert [text_of(one, "rocketmq.opaque") for one in found] == [str(i) for i in range(6)]


def test_what_is_no_frame_is_passed_over(dissector: Path, capture: Capture) -> None:
    talk = talked((0, send(1)))
    talk.say(0, b"\xff" * 20 + send(2).frame).say(0, send(3).frame)
    found = layers_of(dissector, capture(talk.segments))
    assert [text_of(layer, "rocketmq.opaque") for _, layer in found] == ["1", "", "2", "3"]
    assert texts_of(found[1][1], "rocketmq.skipped") == [":".join(["ff"] * 20)]
    assert experts_of(found[1][1]) == {"frame_too_large"}


def test_headers_that_do_not_parse(dissector: Path, capture: Capture) -> None:
    talk = talked((0, send(1)))
    talk.say(0, frame(b'{"code":1,')).say(0, frame(bytes(21), kind=1)).say(0, send(2).frame)
    found = layers_of(dissector, capture(talk.segments))
    assert [experts_of(layer) for _, layer in found[1:2]] == [{"bad_header"}]
    assert text_of(found[2][1], "rocketmq.code") == "0"
    assert text_of(found[3][1], "rocketmq.opaque") == "2"


def _is_plain(data: bytes) -> bool:
    """Return whether a JSON header has its numbers as numbers, under their usual names."""
    try:
        value = json.loads(data)
    except ValueError:
        return False
    numbers = ("code", "opaque", "flag", "version")
    return isinstance(value, dict) and all(type(value.get(name)) is int for name in numbers)


def test_headers_as_our_decoder_reads_them(dissector: Path, capture: Capture) -> None:
    """All headers that fuzzing has found, one conversation each."""
    segments: list[Tcp] = []
    expected = []
    for number, data in enumerate(corpus_of("header")):
        for kind in (0, 1):
            if len(data) < (2, 21)[kind] or (kind == 0 and data[:1] != b"{"):
                continue
            client = End(f"10.2.{number >> 8}.{number & 255}", 40000 + kind)
            talk = Talk(client, End("10.0.0.1", 10911)).open()
            talk.say(0, send(1).frame).say(0, frame(data, b"", kind))
            segments += talk.segments
            expected.append((decode_header(kind, data), data))
    found = layers_of(dissector, capture(segments))
    assert len(found) == 2 * len(expected)
    for (command, data), (_, layer) in zip(expected, found[1::2], strict=True):
        if data[:1] == b"{" and not _is_plain(data):
            continue  # the dissector does not follow all that JSON libraries of Java accept
        assert ("bad_header" in experts_of(layer)) == (command is None), data
        if command is not None:
            for name in ("code", "opaque", "flag", "version"):
                assert text_of(layer, f"rocketmq.{name}") == str(getattr(command, name)), data


# -- which connections --------------------------------------------------------------------------


def test_any_port(dissector: Path, capture: Capture) -> None:
    for binary in (False, True):
        query = route_query(7)
        talk = talked(
            (0, replace(query, binary=binary)),
            (1, replace(query.answer(17, remark="no route"), binary=binary)),
            port=33333,
        )
        found = all_of(commands_of(dissector, capture(talk.segments)))
        assert [text_of(one, "rocketmq.operation") for one in found] == [
            "GET_ROUTEINFO_BY_TOPIC"
        ] * 2


def test_any_port_in_the_middle_of_a_frame(dissector: Path, capture: Capture) -> None:
    whole = send(1, bytes(500)).frame
    talk = Talk(server=End("10.0.0.1", 33333)).say(0, whole[300:] + send(2).frame)
    found = all_of(commands_of(dissector, capture(talk.say(0, send(3).frame).segments)))
    assert [text_of(one, "rocketmq.opaque") for one in found] == ["2", "3"]


def test_decode_as_and_the_preference(dissector: Path, capture: Capture) -> None:
    """8080 is HTTP's; whoever looks at ports first and has a proxy there says so."""
    query = route_query(7)
    path = capture(talked((0, query), (1, query.answer()), port=8080).segments)
    ports = ("-o", "rocketmq.heuristics_first:FALSE")
    assert len(commands_of(dissector, path)) == 2
    assert not commands_of(dissector, path, *ports)
    assert len(commands_of(dissector, path, *ports, "-d", "tcp.port==8080,rocketmq")) == 2
    assert len(commands_of(dissector, path, *ports, "-o", "rocketmq.ports:8080")) == 2


def test_other_protocols_on_our_ports(dissector: Path, capture: Capture) -> None:
    talk = Talk().open().say(0, b"GET /topics HTTP/1.1\r\nHost: x\r\n\r\n")
    talk.say(1, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    path = capture(talk.segments)
    assert not layers_of(dissector, path)
    assert "GET /topics" in run_tshark(dissector, path, "-Y", "http")


@pytest.mark.parametrize(
    "head",
    [
        b"PROXY TCP4 10.0.0.5 10.0.0.1 5000 10911\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12),
    ],
    ids=["text", "binary"],
)
def test_haproxy(dissector: Path, capture: Capture, head: bytes) -> None:
    talk = Talk().open().say(0, head + send(1).frame).say(1, sent(1).frame)
    found = layers_of(dissector, capture(talk.segments))
    assert texts_of(found[0][1], "rocketmq.proxy_header") == [head.hex(":")]
    assert [text_of(layer, "rocketmq.operation") for _, layer in found[1:]] == [
        "SEND_MESSAGE_V2"
    ] * 2


# -- pairing ------------------------------------------------------------------------------------


def test_each_end_has_its_own_numbers(dissector: Path, capture: Capture) -> None:
    """Client and broker ask with the same opaque at the same time."""
    talk = talked((0, send(5)), (1, Command(307, 5, ext={"consumerGroup": "g", "clientId": "c"})))
    talk.say(0, Command(0, 5, 1).frame).wait(MILLISECOND).say(1, sent(5).frame)
    found = all_of(commands_of(dissector, capture(talk.segments)))
    assert [text_of(one, "rocketmq.operation") for one in found] == [
        "SEND_MESSAGE_V2",
        "GET_CONSUMER_RUNNING_INFO",
        "GET_CONSUMER_RUNNING_INFO",
        "SEND_MESSAGE_V2",
    ]
    assert [text_of(one, "rocketmq.request_in") for one in found] == ["", "", "5", "4"]
    assert [text_of(one, "rocketmq.response_in") for one in found] == ["7", "6", "", ""]
    assert [text_of(one, "rocketmq.time") for one in found[2:]] == ["0.000100000", "0.001300000"]


def test_ports_used_again(dissector: Path, capture: Capture) -> None:
    """A later connection with the same ports has requests of its own."""
    first = talked((0, send(1))).close()
    second = Talk(at=first.now + 10**9, isn=(90_000, 70_000)).open().say(1, sent(1).frame)
    found = all_of(commands_of(dissector, capture(merged(first, second))))
    assert experts_of(found[0]) == {"no_response"}
    assert experts_of(found[1]) == {"no_request"}


def test_answers_before_their_request(dissector: Path, capture: Capture) -> None:
    talk = talked((1, sent(3)), (0, send(3)))
    segments = talk.segments
    segments[4] = replace(segments[4], ts=segments[3].ts + 5000)
    request, response = sorted(
        all_of(commands_of(dissector, capture(segments))),
        key=lambda one: text_of(one, "rocketmq.flag"),
    )
    assert text_of(request, "rocketmq.response_in") == "4"
    assert text_of(response, "rocketmq.request_in") == "5"
    assert text_of(response, "rocketmq.name") == "SUCCESS"
    assert text_of(response, "rocketmq.time") == "-0.000005000"


def test_what_is_odd_about_pairs(dissector: Path, capture: Capture) -> None:
    talk = talked((0, send(1)), (0, send(1)), (1, sent(1)), (1, sent(9)))
    oneway = Command(
        15, 4, 2, ext={"topic": "T", "consumerGroup": "g", "queueId": "1", "commitOffset": "5"}
    )
    talk.say(0, oneway.frame).say(1, Command(0, 4, 1).frame)
    found = all_of(commands_of(dissector, capture(talk.segments)))
    assert [experts_of(one) for one in found] == [
        {"no_response"},
        {"opaque_reused"},
        set(),
        {"no_request"},
        set(),
        {"oneway_response"},
    ]
    assert text_of(found[4], "rocketmq.kind") == "oneway"


# -- codes and names ----------------------------------------------------------------------------


def test_names_of_all_codes(dissector: Path, capture: Capture) -> None:
    """As an answer to several requests and of responders of several versions."""
    asked = (10, 50, 105, 51001, 200050)
    codes = sorted({*map(int, ResponseCode), 209, 210, 211, 2010, 2011, 2012, -2, 4711})
    talk = Talk(mss=60_000).open()
    expected = []
    for number, request in enumerate(asked):
        for version in (0, 399, 412, 433, 434, 513):
            for code in codes:
                opaque = len(expected)
                command = Command(request, opaque, version=version)
                if number:
                    talk.say(0, command.frame)
                talk.say(1, Command(code, opaque, 1, version=version).frame)
                expected.append(response_name(code, request if number else None, version))
    path = capture(talk.segments)
    found = [
        one
        for one in all_of(commands_of(dissector, path))
        if text_of(one, "rocketmq.kind") == "response"
    ]
    assert [text_of(one, "rocketmq.name") for one in found] == expected


def test_all_requests_in_both_forms(dissector: Path, capture: Capture) -> None:
    """A binary header cuts codes to 16 bits: the real ones are given back."""
    talk = Talk(mss=60_000).open()
    codes = [code for code in sorted(REQUEST_NAMES) if code >= 0]
    for opaque, code in enumerate(codes):
        talk.say(0, Command(code, opaque, binary=True).frame)
        talk.say(0, Command(code, opaque + 10_000).frame)
    found = all_of(commands_of(dissector, capture(talk.segments)))
    binary, plain = found[::2], found[1::2]
    assert [text_of(one, "rocketmq.code") for one in binary] == [str(code) for code in codes]
    assert [text_of(one, "rocketmq.name") for one in plain] == [
        request_name(code) for code in codes
    ]
    cut = {
        text_of(one, "rocketmq.wire_code")
        for one in binary
        if int(text_of(one, "rocketmq.code")) > 65535
    }
    assert "3442" in cut


def test_unknown_codes(dissector: Path, capture: Capture) -> None:
    request = Command(9999, 5, ext={"a": "1", "topic": "T"})
    path = capture(talked((0, request), (1, request.answer(777))).segments)
    found = all_of(commands_of(dissector, path))
    assert [text_of(one, "rocketmq.name") for one in found] == ["UNKNOWN(9999)", "UNKNOWN(777)"]
    assert [experts_of(one) for one in found] == [{"unknown_code"}, {"unknown_code"}]
    assert texts_of(found[0], "rocketmq.other") == ["a=1"]
    assert texts_of(found[0], "rocketmq.topic") == ["T"]


def test_answers_that_are_no_success(dissector: Path, capture: Capture) -> None:
    pull = Command(PULL, 5, ext={"topic": "T"})
    talk = talked(
        (0, pull), (1, pull.answer(19)), (0, send(6)), (1, Command(2, 6, 1, remark="full"))
    )
    found = all_of(commands_of(dissector, capture(talk.segments)))
    assert "other_response" in experts_of(found[1])
    assert "error_response" in experts_of(found[3])
    out = run_tshark(dissector, capture(talk.segments), "-q", "-z", "expert")
    assert "SYSTEM_BUSY: full" in out


# -- fields -------------------------------------------------------------------------------------


def test_fields_that_do_not_parse(dissector: Path, capture: Capture) -> None:
    good = send(1)
    wrong = {"d": "four", "e": "99999999999", "k": "maybe", "g": "9223372036854775808"}
    path = capture(talked((0, replace(good, ext=good.ext | wrong)), (0, Command(310, 2))).segments)
    first, second = all_of(commands_of(dissector, path))
    names = ("defaultTopicQueueNums", "queueId", "bornTimestamp", "unitMode")
    assert set(texts_of(first, "rocketmq.other")) == {
        f"{name}={value}"
        for name, value in zip(
            names, ("four", "99999999999", "9223372036854775808", "maybe"), strict=True
        )
    }
    assert experts_of(first) == experts_of(second) - {"no_response"} | {"no_response"}
    assert "bad_field" in experts_of(first)
    missing = [
        text for text in texts_of(second, "_ws.expert.message") if text.endswith("is missing")
    ]
    assert len(missing) == sum(
        field.required and not field.since and not field.until
        for field in HEADERS["SendMessageRequestHeaderV2"]
    )


def test_large_numbers(dissector: Path, capture: Capture) -> None:
    numbers = ["9223372036854775807", "-9223372036854775808", "9007199254740993", "-1", "0"]
    talk = Talk().open()
    for opaque, number in enumerate(numbers):
        talk.say(0, Command(PULL, opaque, ext={"queueOffset": number}).frame)
    path = capture(talk.segments)
    found = all_of(commands_of(dissector, path))
    assert [text_of(one, "rocketmq.queueOffset") for one in found] == numbers
    selected = run_tshark(dissector, path, "-Y", "rocketmq.queueOffset == 9007199254740993")
    assert len(selected.splitlines()) == 1


def test_meanings(dissector: Path, capture: Capture) -> None:
    """What a number says stands behind it, as in our own trees."""
    values = (-1, 0, 1, 2, 3, 5, 6, 7, 12, 29, 0x301, 0x7FF, 1500, 90_061_001, 1_700_000_000_123)
    cases = []
    talk = Talk(mss=60_000).open()
    for code in sorted(REQUEST_NAMES):
        name = header_name(code, False)
        for field in HEADERS.get(name or "", ()):
            if (name, field.name) in MEANINGS or ("*", field.name) in MEANINGS:
                for value in values:
                    if field.type == "int" and not -(2**31) <= value < 2**31:
                        continue
                    if field.name == "perm" and value > 63:
                        continue  # no permission has that many bits
                    cases.append((name, field.name, value))
                    talk.say(0, Command(code, len(cases), ext={field.wire: str(value)}).frame)
    out = run_tshark(dissector, capture(talk.segments), "-O", "rocketmq", "-V")
    blocks = out.split("RocketMQ Remoting, ")[1:]
    assert len(blocks) == len(cases) > 500
    for (name, field, value), block in zip(cases, blocks, strict=True):
        meaning = meaning_of(name, field, value)
        line = next(line for line in block.splitlines() if f"{field}: {value}" in line)
        assert line.endswith(f"{field}: {value}" + (f" ({meaning})" if meaning else "")), line


INNER = (
    b'innerClientAuthenticationCredentials={"accessKey":"accessible","secretKey":"hidden-5"}\n'
    b'initAuthenticationUser={"username":"admin","password":"hidden-6"}\n'
    b"metricsGrpcExporterTarget=http://u:hidden-8@collector:4317\n"
    b"metricsGrpcExporterHeader=Authorization:Bearer hidden-9\n"
    b'note={"password":"it\'s \\"hidden-10","b":"kept"}\n'
    b'more={"password":[{"a":"hidden-15}"},"hidden-16"],"b":"http://c:1","d":"e@f"}\n'
)


def test_secrets_are_not_shown(dissector: Path, capture: Capture) -> None:
    ext = {"AccessKey": "accessible-key", "Signature": "c2lnbmF0dXJl", "SecurityToken": "token-1"}
    user = Command(3001, 2, ext={"username": "u"}, body=b'{"password":"hidden-1","username":"u"}')
    config = Command(
        25, 3, body=b"brokerName=a\nbrokerPassword=hidden-2\nmySecret = hidden-3\n" + INNER
    )
    inner = Command(
        307,
        5,
        body=b'{"properties":{"a.accessKey":"accessible","inner":"password=hidden-7",'
        b'"passwords":["hidden-11",{"a":"hidden-12"}],'
        b'"c":"{\\"password\\":\\"it\'s hidden-13\\"}"}}',
    )
    remark = "The accessKey=kept and secretKey=hidden-14 cannot be null and longer than 6"
    acl = Command(50, 4, ext={"accessKey": "accessible", "secretKey": "hidden-4"})
    talk = talked(
        (0, replace(send(1), ext=send(1).ext | ext)),
        (0, user),
        (0, config),
        (0, acl),
        (0, inner),
        (1, acl.answer(209, remark=remark)),
    )
    path = capture(talk.segments)
    for view in (("-V",), ("-T", "json", "-J", "rocketmq"), ("-T", "pdml", "-J", "rocketmq"), ()):
        out = run_tshark(dissector, path, *view)
        for secret in ("c2lnbmF0dXJl", "token-1", "hidden-", "accessible"):
            assert secret not in out, view
    found = all_of(commands_of(dissector, path))
    assert texts_of(found[0], "rocketmq.AccessKey") == ["acce***"]
    assert texts_of(found[0], "rocketmq.Signature") == ["***"]
    lines = texts_of(found[2], "rocketmq.text")
    assert lines[:2] == ["brokerName=a", "brokerPassword=***"]
    assert lines[-2:] == [
        'note={"password":"***","b":"kept"}',
        'more={"password":***,"b":"http://c:1","d":"e@f"}',
    ]
    assert texts_of(found[5], "rocketmq.remark") == [remark.replace("hidden-14", "***")]
    assert lines[4] == 'initAuthenticationUser={"username":"admin","password":"***"}'


def test_what_turns_a_line_round_is_escaped_in_labels_and_columns(
    dissector: Path, capture: Capture
) -> None:
    """Values stay as they were sent, so that filters find them."""
    evil = "\u061c\u202e\u2066\u200f\ufeff\u00ad\u180e\U000e0001\U000e0041"
    topic = replace(send(1), ext=send(1).ext | {"b": f"T{evil}", "other": f"x{evil}"})
    client = Command(34, 2, body=f'{{"clientID":"c{evil}"}}'.encode())
    refusal = Command(1, 1, 1, remark=f"r{evil}")
    path = capture(talked((0, topic), (1, refusal), (0, client)).segments)
    for view in (("-V",), ("-T", "fields", "-e", "_ws.col.Info"), ()):
        out = run_tshark(dissector, path, *view)
        assert [char for char in evil if char in out] == [], view
        assert r"\u061c\u202e\u2066\u200f\ufeff\u00ad\u180e\U000e0001\U000e0041" in out
    found = run_tshark(dissector, path, "-T", "fields", "-e", "rocketmq.topic")
    assert f"T{evil}" in found
