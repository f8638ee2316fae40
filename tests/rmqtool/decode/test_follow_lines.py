"""`decode pcap --follow-conversation`: what both ends said, as text that a terminal may show."""

from __future__ import annotations

from pathlib import Path

from dissectors.decode.pipeline import Decode
from rmqtool.decode.follow_lines import _body_lines
from tests.rmqtool.command import EVIL, ROOT, capture_in, rmqtool

SAMPLE = ROOT / "samples" / "push-consumer-5x.pcap"


def test_every_command_of_the_conversation_and_no_other() -> None:
    ended = rmqtool("decode", "pcap", SAMPLE, "--follow-conversation", "2")
    assert ended.status == 0
    seen = [one for batch in Decode([str(SAMPLE)]).commands() for one in batch]
    own = [one for one in seen if one.pdu.conversation == 2]
    titles = [line for line in ended.out.splitlines() if " packet " in line]
    assert len(titles) == len(own) > 10
    client = own[0].pdu.src
    for title, one in zip(titles, own, strict=True):
        assert title.startswith("→" if one.pdu.src == client else "←")
        assert f"#{one.pdu.opaque} " in title
    assert '"topic": "PushTopic"' in ended.out


def test_a_filter_chooses_commands_of_the_conversation() -> None:
    arguments = ("decode", "pcap", SAMPLE, "--follow-conversation", "2", "-Y")
    ended = rmqtool(*arguments, "kind == request and name ~ PULL")
    titles = [line for line in ended.out.splitlines() if " packet " in line]
    assert len(titles) > 2
    assert all(title.startswith("→ request ") and "PULL" in title for title in titles)
    none = rmqtool(*arguments, "opaque == -7")
    assert none.out == ""
    assert none.err.startswith("rmqtool: no matches (")
    assert " commands checked)" in none.err
    wrong = rmqtool(*arguments, "nosuch == A")
    assert (wrong.status, wrong.out) == (2, "")


def test_what_the_network_sent_does_not_reach_the_terminal(tmp_path: Path) -> None:
    ended = rmqtool("decode", "pcap", capture_in(tmp_path), "--follow-conversation", "0")
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert EVIL not in ended.out
    assert "abc=" not in ended.out  # a signature
    assert "rmqtool" in ended.out or "SEND_MESSAGE_V2" in ended.out


def test_bytes_that_are_no_text_are_a_dump() -> None:
    sample = ROOT / "samples" / "send-compressed-5x.pcap"
    arguments = ("decode", "pcap", sample, "--follow-conversation", "1")
    cut = rmqtool(*arguments, "--body-limit", "64")
    assert "00000000  " in cut.out
    assert "more bytes; --body-limit shows more" in cut.out
    whole = rmqtool(*arguments, "--body-limit", "1MiB")
    assert "more bytes" not in whole.out
    assert len(whole.out) > len(cut.out)


def test_a_text_that_is_cut_in_a_character_is_a_text() -> None:
    assert _body_lines("消息".encode()[:5], True, masked=True) == ["消"]
    assert _body_lines("消息".encode()[:5], False, masked=True)[0].startswith("00000000  e6 b6 88")
    dump = _body_lines(b"\xffsecretKey=hidden", False, masked=True)
    assert "hidden" not in "".join(line[59:] for line in dump)
    assert _body_lines(b"\xff\xe6", True, masked=True)[0].startswith("00000000  ff e6")


def test_it_has_a_form_of_its_own() -> None:
    ended = rmqtool("decode", "pcap", SAMPLE, "--follow-conversation", "1", "--format", "jsonl")
    assert ended.status == 2
    both = rmqtool("decode", "pcap", SAMPLE, "--follow-conversation", "1", "--summary")
    assert both.status == 2
    assert "--summary, --follow-conversation" in both.err


def test_the_recording_of_the_page_is_what_is_shown() -> None:
    page = (ROOT / "docs" / "follow.md").read_text()
    recorded = page.split("--body-limit 160\n", 1)[1].split("\n```", 1)[0]
    sample = ROOT / "samples" / "send-unknown-topic-4x.pcap"
    limits = ("--limit", "4", "--body-limit", "160")
    ended = rmqtool("decode", "pcap", sample, "--follow-conversation", "1", *limits)
    assert ended.out.rstrip() == recorded
