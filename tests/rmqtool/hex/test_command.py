"""`decode hex` and `decode stream`: every way in which people write bytes down, by real tools."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from rmqtool.cli import app
from rmqtool.hex import pasted, run
from rmqtool.hex.pasted import BytesForm, BytesFormError, SideBytes, decode_dump, decode_input
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, route_query, send, sent
from tests.traffic.talk import Talk

from ..command import PROGRAM, ROOT, Result, process, rmqtool

REQUEST, RESPONSE = send(7, bytes(range(256))), sent(7, 9)
BYTES = REQUEST.frame + RESPONSE.frame


def netty(data: bytes) -> str:
    """ByteBufUtil.prettyHexDump."""
    lines = [
        "         +-------------------------------------------------+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
    ]
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"|{at:08x}| {row.hex(' '):<48}|{text:<16}|")
    return "\n".join([*lines, lines[0]])


FORMS = {
    "hex": BYTES.hex(),
    "HEX": BYTES.hex().upper(),
    "blanks": BYTES.hex(" "),
    "colons": BYTES.hex(":"),
    "words in lines": re.sub(r"(.{64})", r"\1\n", BYTES.hex(" ", 4)),
    "C array": "{ " + ", ".join(f"0x{byte:02x}" for byte in BYTES) + " }",
    "escaped": "".join(f"\\x{byte:02x}" for byte in BYTES),
    "base64": base64.b64encode(BYTES).decode(),
    "base64 in lines": base64.encodebytes(BYTES).decode(),
    "base64 of URLs": base64.urlsafe_b64encode(BYTES).decode().rstrip("="),
    "netty": netty(BYTES),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_guessed(name: str) -> None:
    form, parts = decode_input(FORMS[name].encode())
    assert parts == [SideBytes(0, BYTES)]
    assert form is not BytesForm.raw


@pytest.mark.parametrize(
    "command",
    [
        ["xxd"],
        ["xxd", "-p"],
        ["xxd", "-g1"],
        ["xxd", "-c32"],
        ["xxd", "-c20", "-g1"],
        ["xxd", "-c256"],
        ["xxd", "-i"],
        ["hexdump", "-C"],
        ["od", "-Ax", "-tx1", "-v"],
        ["od", "-Ax", "-tx1z", "-v"],
        ["base64"],
    ],
    ids=" ".join,
)
def test_dumps_of_real_tools(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    dump = subprocess.run(command, input=BYTES, capture_output=True, check=True).stdout
    assert decode_input(dump)[1] == [SideBytes(0, BYTES)]


@given(
    st.binary(min_size=1, max_size=300),
    st.binary(max_size=40),
    st.sampled_from([8, 16, 20, 32, 256]),
    st.sampled_from([1, 2, 4]),
)
@example(b"deadbeef cafe babe" * 4, b"", 32, 2)
def test_lines_of_a_dump_may_be_longer_than_16_bytes(
    data: bytes, other: bytes, width: int, group: int
) -> None:
    def lines(data: bytes, indent: str = "") -> str:
        dump = []
        for at in range(0, len(data), width):
            part = data[at : at + width]
            words = " ".join(part[i : i + group].hex() for i in range(0, len(part), group))
            text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
            dump.append(f"{indent}{at:08x}: {words:<{2 * width + width // group}} {text}\n")
        return "".join(dump)

    whole = data + b"." * (
        -len(data) % width
    )  # otherwise, text may look like bytes of the last line
    parts = decode_dump(lines(whole) + lines(other + b"." * (-len(other) % width), "    "))
    assert parts[0].data == whole
    assert b"".join(part.data for part in parts[1:]).startswith(other)


@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_come_back(data: bytes) -> None:
    assert decode_input(data.hex(" ").encode(), BytesForm.hex)[1] == [SideBytes(0, data)]
    assert decode_input(f"0x{data.hex()}".encode(), BytesForm.hex)[1] == [SideBytes(0, data)]
    assert decode_input(base64.b64encode(data), BytesForm.base64)[1] == [SideBytes(0, data)]
    assert decode_dump(netty(data)) == [SideBytes(0, data)]
    assert decode_input(data, BytesForm.raw) == (BytesForm.raw, [SideBytes(0, data)])


def test_lines_of_a_dump_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joined line by line, a dump of a few MB takes minutes."""
    copied = []

    class Line(bytes):
        def __radd__(self, before: bytes) -> bytes:
            copied.append(len(before))
            return before + bytes(self)

    monkeypatch.setattr(pasted, "hex_bytes_of", lambda text: Line(bytes.fromhex(text)))
    data = bytes(range(256)) * 100
    assert decode_dump(netty(data)) == [SideBytes(0, data)]
    assert sum(copied) <= len(data)


@given(st.binary(max_size=300))
def test_no_text_does_anything_but_decode_or_say_why(data: bytes) -> None:
    for form in BytesForm:
        with suppress(BytesFormError):
            found, parts = decode_input(data, form)
            assert found is not BytesForm.auto
            assert all(part.side in (0, 1) for part in parts)


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        ("00 1g", BytesForm.hex, "'g' at character 4 is not a hex digit"),
        ("0x000x", BytesForm.hex, "'x' at character 5 is not a hex digit"),
        ("0x00 0x1x", BytesForm.hex, "'x' at character 6 is not a hex digit"),
        ("AAAA=AA", BytesForm.base64, "'A' at character 5 is not base64"),
        ("00 1", BytesForm.hex, "3 hex digits: the last digit is missing"),
        ("AAA*", BytesForm.base64, "'*' at character 3 is not base64"),
        ("00000000: 0001\n00000004: 02", BytesForm.dump, "line 2 starts at 0x4, expected 0x2"),
        ("00000000: 0001\nhello", BytesForm.dump, "line 2 is not a dump line: 'hello'"),
    ],
)
def test_what_does_not_belong_is_named_with_its_place(
    text: str, form: BytesForm, said: str
) -> None:
    with pytest.raises(BytesFormError, match=re.escape(said)):
        decode_input(text.encode(), form)


@pytest.mark.tshark
@pytest.mark.parametrize("lines", [(), ("-V",)])
def test_follow_as_hex_dump_has_both_ends(tmp_path: Path, lines: tuple[str, ...]) -> None:
    talk = Talk().open().say(0, REQUEST.frame).say(1, RESPONSE.frame)
    talk.say(0, route_query(9).frame).close()
    capture, text = tmp_path / "a.pcap", tmp_path / "follow.txt"
    capture.write_bytes(pcap_of(talk.segments))
    done = subprocess.run(
        ["tshark", "-r", capture, "-q", "-z", "follow,tcp,hex,0"],
        capture_output=True,
        text=True,
        check=True,
    )
    dump = "\n".join(
        line
        for line in done.stdout.splitlines()
        if re.match(r"\s*[0-9a-fA-F]{8}  ", line.expandtabs(4))
    )
    text.write_text(dump + "\n")
    result = rmqtool("decode", "stream", text, *lines)
    assert result.status == 0, result.err
    assert [
        word
        for word in ("SEND_MESSAGE_V2", "SUCCESS", "GET_ROUTEINFO_BY_TOPIC")
        if word in result.out
    ] == ["SEND_MESSAGE_V2", "SUCCESS", "GET_ROUTEINFO_BY_TOPIC"]
    rows = _rows(rmqtool("decode", "stream", text, "--format", "jsonl"))
    assert [(row["end"], row["name"], row["offset"]) for row in rows] == [
        (0, "SEND_MESSAGE_V2", 0),
        (1, "SUCCESS", 0),
        (0, "GET_ROUTEINFO_BY_TOPIC", len(REQUEST.frame)),
    ]
    assert rows[1]["request_name"] == "SEND_MESSAGE_V2"


def _rows(result: Result) -> list[dict[str, object]]:
    assert result.status == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_argument_file_and_standard_input_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "frame.hex"
    path.write_text(BYTES.hex())
    by_argument = rmqtool("decode", "hex", BYTES.hex())
    by_file = rmqtool("decode", "hex", path)
    assert by_argument.out == by_file.out != ""
    assert "SEND_MESSAGE_V2: request, bytes 0 to " in by_argument.out
    assert "producerGroup [a]: producers" in by_argument.out


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "frame"
    path.write_bytes(BYTES)
    monkeypatch.setattr(run, "MOST", len(BYTES) - 1)
    result = rmqtool("decode", "hex", path)
    assert (result.status, result.out) == (1, "")
    assert f"{path}: more than 0 MiB\n" in result.err
    assert "SEND_MESSAGE_V2" in rmqtool("decode", "hex", path, "--input", "raw").out
    piped = CliRunner().invoke(app, ["decode", "hex", "-"], input=BYTES)
    assert "standard input: more than 0 MiB\n" in piped.stderr
    monkeypatch.setattr(run, "MOST", len(BYTES))
    piped = CliRunner().invoke(app, ["decode", "hex", "-"], input=BYTES)
    assert "SEND_MESSAGE_V2" in piped.stdout


@pytest.mark.slow
def test_a_stream_on_standard_input_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(BYTES * 1000)
    command = [*PROGRAM, "decode", "stream", "--input", "raw", "-"]
    with path.open("rb") as file:
        done = subprocess.run(command, cwd=ROOT, stdin=file, capture_output=True, check=True)
    offsets = [int(line.split()[0]) for line in done.stdout.splitlines()]
    expected = [
        at for n in range(1000) for at in (n * len(BYTES), n * len(BYTES) + len(REQUEST.frame))
    ]
    assert sorted(offsets) == expected


def test_damage_is_named_with_its_offset() -> None:
    junk = random.Random(1).randbytes(100)
    result = rmqtool("decode", "stream", (RESPONSE.frame + junk + REQUEST.frame).hex())
    assert [line.split()[0] for line in result.out.splitlines()] == [
        "0",
        str(len(RESPONSE.frame) + 100),
    ]
    assert f"rmqtool: offset {len(RESPONSE.frame) + 100}: RESYNCHRONIZED: " in result.err


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 8, 50, len(REQUEST.frame) - 1])
def test_a_part_of_a_frame_says_what_is_missing(size: int) -> None:
    result = process("decode", "hex", REQUEST.frame[:size].hex())
    assert "offset 0: FRAME_CUT" in result.err
    has_header = size >= len(REQUEST.frame) - 256
    assert result.status == (0 if has_header else 1)
    assert ("SEND_MESSAGE_V2" in result.out) == has_header
    whole = len(REQUEST.frame)
    said = f"a frame of {whole} bytes begins here, but {whole - size} bytes are missing"
    assert (said in result.err) == (8 <= size < whole - 256)


@pytest.mark.slow
def test_the_recordings_of_the_docs_are_what_is_said_today(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "hex.md").read_text()
    frames = route_query(9).frame + Command(17, 9, 1, remark="No topic route info").frame
    for name, data in (
        ("frames.xxd", netty(frames).encode()),
        ("damaged.bin", bytes(10) + frames),
        ("part.bin", frames[: len(route_query(9).frame) - 20]),
    ):
        (tmp_path / name).write_bytes(data)
        (recorded,) = re.findall(
            rf"\$ rmqtool decode \w+ {name}\n(.*?)(?=\n\$|\n```)", text, re.DOTALL
        )
        view = "hex" if name == "part.bin" else "stream"
        said = process("decode", view, tmp_path / name)
        assert (said.out + said.err).replace(f"{tmp_path}/", "").rstrip() == recorded


def test_nothing_and_what_is_no_frame_have_a_way_out() -> None:
    result = rmqtool("decode", "hex", "zz" * 40, "--input", "hex")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("rmqtool: argument: 'z' at character 0 is not a hex digit\n")
    result = rmqtool("decode", "hex", "11" * 40)
    assert (result.status, result.out) == (1, "")
    assert "no command in 40 bytes" in result.err
    assert rmqtool("decode", "hex", "00", "--format", "parquet").status == 2


@pytest.mark.parametrize(
    "name",
    [
        "no.bin",
        "/no/file",
        "/nowhere/at/all/frame.bin",
        "captures/frame1234567890ab",
        "no/dump.txt",
    ],
)
def test_a_file_that_does_not_exist_is_named(name: str) -> None:
    for form in ("auto", "hex", "base64", "raw"):
        result = rmqtool("decode", "hex", name, "--input", form)
        assert (result.status, result.out) == (1, "")
        assert result.err == f"rmqtool: {name}: no such file\n"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    result = rmqtool("decode", "hex", tmp_path)
    assert (result.status, result.err) == (1, f"rmqtool: {tmp_path}: not a file\n")


@pytest.mark.parametrize("form", ["hex", "raw"])
def test_a_pipe_with_a_name_is_read(tmp_path: Path, form: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = BYTES if form == "raw" else BYTES.hex().encode()
    writer = threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True)
    writer.start()
    result = rmqtool("decode", "stream", "--input", form, pipe)
    writer.join(60)
    assert (result.status, len(result.out.splitlines())) == (0, 2)


@pytest.mark.parametrize(
    "option",
    [("--body-limit", "9"), ("--max-output", "9"), ("--plugin", "examples/order_bodies.py")],
)
def test_lines_without_bodies_refuse_their_options(option: tuple[str, str]) -> None:
    for command in (("stream",), ("hex", "--commands")):
        result = rmqtool("decode", *command, BYTES.hex(), *option)
        assert (result.status, result.out) == (2, "")
        assert f"rmqtool: {option[0]}: lines show no bodies; use -T json\n" in result.err
        assert rmqtool("decode", *command, BYTES.hex(), *option, "-T", "jsonl").status == 0


@pytest.mark.parametrize("command", [("hex",), ("stream", "-V")], ids=" ".join)
def test_a_plugin_decodes_bodies(command: tuple[str, ...]) -> None:
    example = ROOT / "examples" / "order_bodies.py"
    text = send(7, b"order=4711;amount=12").frame.hex()
    result = rmqtool("decode", *command, text, "--plugin", example)
    assert result.status == 0, result.err
    assert "kind: order_bodies" in result.out
    assert "order: 4711" in result.out
    assert "order: 4711" not in rmqtool("decode", *command, text).out
    row = rmqtool("decode", *command[:1], text, "-T", "jsonl", "--plugin", example)
    assert json.loads(row.out)["messages"][0]["content"]["value"] == {
        "order": "4711",
        "amount": "12",
    }


def test_a_plugin_that_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    missing = rmqtool("decode", "hex", REQUEST.frame.hex(), "--plugin", tmp_path / "no.py")
    assert missing.status != 0
    assert "no.py" in missing.err
