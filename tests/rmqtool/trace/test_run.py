"""`rmqtool trace`: inputs of all kinds, forms of the output, errors that say what to do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rmqtool.command import EVIL, ROOT, rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send
from tests.traffic.talk import Talk

SAMPLES = ROOT / "samples"
TWICE = SAMPLES / "stored-twice-5x.pcap"
RETRY = SAMPLES / "push-retry-dlq-5x.pcap"


def lives(*arguments: str | Path) -> list[dict[str, object]]:
    ended = rmqtool("trace", *arguments, "-T", "jsonl")
    assert ended.status == 0, ended
    return [json.loads(line) for line in ended.out.splitlines()]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_decoded_log_tells_the_same_life(tmp_path: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    log = tmp_path / "log"
    assert rmqtool("decode", "pcap", TWICE, "-T", form, "-o", f"{log}/").status == 0
    assert lives(log, "key-5") == lives(TWICE, "key-5")
    for option in ("--decode-as", "--max-ratio", "--jobs"):  # which say how captures are read
        refused = rmqtool("trace", log, "key-5", option, "9")
        assert (refused.status, refused.out) == (2, "")
        assert f"{option}: is for captures, and the input is already decoded" in refused.err
        assert rmqtool("trace", log, TWICE, "key-5", option, "9").status == 0


@pytest.mark.slow
def test_captures_and_processes_make_no_difference(tmp_path: Path) -> None:
    (one,) = lives(RETRY, "key-1")
    assert lives(RETRY, "key-1", "-j", "2") == [one]
    (other,) = lives(TWICE, RETRY, "-Y", f"unique_key == {one['message']}")
    assert [step["packet"] for step in other["steps"]] == [  # type: ignore[attr-defined]
        step["packet"]
        for step in one["steps"]  # type: ignore[attr-defined]
    ]


def test_forms_follow_from_the_name_of_the_output(tmp_path: Path) -> None:
    for name, start in (("a.html", "<!doctype html>"), ("a.json", '{"resourceSpans"'),
                        ("a.jsonl", '{"message"'), ("a.txt", "Message C0")):  # fmt: skip
        assert rmqtool("trace", TWICE, "key-5", "-o", tmp_path / name).status == 0
        assert (tmp_path / name).read_text().startswith(start), name


def test_a_file_has_colours_on_request(tmp_path: Path) -> None:
    coloured, plain = tmp_path / "coloured.txt", tmp_path / "plain.txt"
    assert rmqtool("trace", TWICE, "key-5", "--color", "always", "-o", coloured).status == 0
    assert rmqtool("trace", TWICE, "key-5", "-o", plain, FORCE_COLOR="1").status == 0
    assert "\x1b[" in coloured.read_text()
    assert "\x1b[" not in plain.read_text()


def test_what_cannot_be_asked_is_said(tmp_path: Path) -> None:
    nothing = rmqtool("trace", TWICE, "no-such-key")
    assert nothing.status == 1
    assert "no message matches the key no-such-key" in nothing.err
    alone = rmqtool("trace", TWICE)
    assert alone.status == 2
    assert "no message given" in alone.err
    wrong = rmqtool("trace", TWICE, "-Y", "event == eaten")
    assert wrong.status == 2
    log = tmp_path / "log"
    options = ("-T", "jsonl", "-o", f"{log}/", "--no-message-rows")
    assert rmqtool("decode", "pcap", TWICE, *options).status == 0
    assert "no messages table" in rmqtool("trace", log, "key-5").err
    assert rmqtool("trace", SAMPLES / "missing.pcap", "key-5").status != 0


def test_what_the_wire_says_is_inert_in_every_form(tmp_path: Path) -> None:
    markup = f"<script>alert(1)</script>{EVIL}"
    properties = f"KEYS\x01order {markup}\x02TAGS\x01{markup}\x02UNIQ_KEY\x01{markup}"
    asked = replace(send(7), ext=send(7).ext | {"b": markup, "i": properties, "n": markup})
    talk = Talk().open().say(0, asked.frame)
    talk = talk.say(1, asked.answer(1, remark=markup).frame).close()
    path = tmp_path / "evil.pcap"
    path.write_bytes(pcap_of(talk.segments))
    for columns in ("80", "120", "160"):
        shown = rmqtool("trace", path, "order", COLUMNS=columns)
        assert shown.status == 0, shown
        assert not any(char in shown.out for char in "\x1b\x9b\u202e")
        assert max(map(len, shown.out.splitlines())) <= int(columns)
    page = tmp_path / "page.html"
    assert rmqtool("trace", path, "order", "-o", page).status == 0
    html = page.read_text()
    assert "<script>alert" not in html
    assert html.count("<script>") == 1
    assert not any(char in html for char in "\x1b\x9b\u202e")
    for form in ("jsonl", "otlp"):
        exact = rmqtool("trace", path, "order", "-T", form)
        assert json.loads(exact.out)
        assert markup in json.dumps(json.loads(exact.out), ensure_ascii=False).replace(
            "\\u001b", "\x1b"
        ).replace("\\n", "\n")


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert rmqtool("trace", RETRY, "key-0", "-o", page).status == 0
    html = page.read_text()
    assert "default-src 'none'" in html
    assert not re.search(r"(?:src|href)=\"(?!#)", html)
    assert html.count("<polygon") == 9


@pytest.mark.parametrize("zone", [(), ("--tz", "+08:00")])
@pytest.mark.slow
def test_since_and_until_take_times_of_day_for_captures_and_logs(
    tmp_path: Path, zone: tuple[str, ...]
) -> None:
    """`docs/trace.md` shows the three steps of this message: 08:43:47.447, .961 and .970."""
    log = tmp_path / "log"
    assert rmqtool("decode", "pcap", TWICE, "-T", "jsonl", "-o", f"{log}/").status == 0
    day, hour = ("2026-11-22T", "16") if zone else ("2026-11-22T", "08")
    for date in ("", day):
        for given, expected in (
            (("--since", f"{date}{hour}:43:47.9"), ["stored", "delivered", "acknowledged"]),
            (("--until", f"{date}{hour}:43:47.9"), ["sent"]),
            (
                ("--since", f"{date}{hour}:43:47.965", "--until", f"{date}{hour}:43:47.971"),
                ["delivered"],
            ),
        ):
            key = "C000020A06964E0E2F2A6E0517750005"
            found = [lives(name, key, *given, *zone) for name in (TWICE, log)]
            for (one,) in found:
                events = [step["event"] for step in one["steps"]]  # type: ignore[attr-defined]
                assert events[: len(expected)] == expected, (given, events)
            assert found[0] == found[1]
    since = ("--since", f"{hour}:43:47.9", *zone)
    assert lives(TWICE, key, *since, "-j", "2") == lives(TWICE, key, *since)


def test_a_delivery_to_a_pull_from_before_the_capture_is_a_step() -> None:
    result = rmqtool("trace", SAMPLES / "stored-twice-5x.pcap", "key-0")
    assert "packet 25: delivered to twice_group from TwiceTopic, queue 1, offset 0\n" in result.out
    assert "no delivery was seen" not in result.out


def test_the_example_with_a_filter_finds_something() -> None:
    examples = re.findall(r"-Y '([^']+)'", rmqtool("trace", "--help").out)
    assert examples
    for where in examples:
        result = rmqtool("trace", SAMPLES / "dead-letters-5x.pcap", "-Y", where)
        assert (result.status, result.out.startswith("Message ")) == (0, True), where
