"""`rmqtool diagnose`: inputs, formats, conditions; what is wrong with them is said in a line."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest

import rmqtool as api
from analytics.diagnosis.problem import NOT_WRITTEN, Problem
from analytics.diagnosis.registry import rules
from rmqtool.ui.console import cells
from tests.analytics.diagnosis.diagnosis_docs import PAGE, page_with_rules
from tests.dissectors.conversations.test_recognition import CLIENT_HELLO
from tests.expected import captures
from tests.traffic.captures import pcap, pcap_of
from tests.traffic.talk import Talk

from ..command import PROGRAM, ROOT, capture_in, process, rmqtool
from .diagnosed import HEALTHY, KILL, SAMPLES, found_in

RULES = {"broker-gone", "ambiguous-outcome", "broker-isolated", "send-retried"}


def without_places(problems: list[dict[str, object]]) -> list[dict[str, object]]:
    """Problems without the name of the capture, which is that of the file that was read."""
    for one in problems:
        for evidence in one["evidence"]:  # type: ignore[attr-defined]
            evidence["capture"] = Path(evidence["capture"]).name
    return problems


# -- inputs ---------------------------------------------------------------------------------------


def test_a_capture() -> None:
    result = rmqtool("diagnose", KILL, "-q")
    assert result.status == 0
    first, second, empty, impact, cause, *_ = result.out.splitlines()
    assert first == "fault-kill-5x.pcap: 1 incident: 1 error, 1 warning, 2 info"
    assert second.startswith(
        "2026-11-21 02:46:09.474 to 02:46:31.682 UTC (22.2 s): 181 exchanges on "
    )
    assert empty == ""
    assert impact == "Impact: 1 message may be stored twice; 1 send succeeded on retry"
    assert cause.startswith("ERROR    broker-b (127.77.0.12:10921) wa")
    assert result.err == ""


def test_an_ongoing_problem_is_shown_without_an_end() -> None:
    result = rmqtool("diagnose", SAMPLES / "fault-freeze-detector-5x.pcap", "-q")
    assert " to 02:50:31.896, 5 occurrences, ended; " in result.out
    assert " since 02:50:28.333, ongoing; " in result.out


def test_a_healthy_capture_says_what_it_could_not_show() -> None:
    result = rmqtool("diagnose", HEALTHY, "-q")
    assert result.out.startswith("push-orderly-4x.pcap: no problems found\n")
    assert "rules skipped. Not captured: producer sends; " in result.out
    assert found_in(HEALTHY) == []


def _first_column(text: str) -> set[str]:
    """Return the names in the first column of tables."""
    return set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.*?)\|", text, re.M))))


def test_json_lines_have_all_fields_of_the_document() -> None:
    problems = found_in(KILL)
    assert {one["rule"] for one in problems} == RULES
    fields = tuple(name for name in Problem.__struct_fields__ if name not in NOT_WRITTEN)
    assert {tuple(one) for one in problems} == {fields}
    text = PAGE.read_text()
    of_problems = text[text.index("## Problems") : text.index("## Live diagnosis")]
    assert _first_column(of_problems) | {"reason"} == set(fields)
    of_events = text[text.index("## Live diagnosis") : text.index("## Limitations")]
    assert _first_column(of_events) == {"event", "time", "state"}
    assert problems[0]["first_time"] == "2026-11-21T02:46:11.106072Z"
    assert problems[0]["consequence_of"] is None
    assert {one["consequence_of"] for one in problems[1:]} == {"broker-gone"}


@pytest.mark.parametrize("form", ["log", "jsonl log", "rows.jsonl", "rows.parquet"])
def test_decoded_logs_and_files_of_rows_say_the_same(tmp_path: Path, form: str) -> None:
    expected = without_places(found_in(KILL))
    if form.startswith("rows"):
        target = tmp_path / form
        rmqtool("decode", "pcap", KILL, "-o", target, "-q")
        found = without_places(found_in(target))
        assert "send-retried" in {one["rule"] for one in found}
        return
    target = tmp_path / "log"
    arguments = ("-T", "jsonl" if form == "jsonl log" else "parquet")
    made = rmqtool("decode", "pcap", KILL, *arguments, "-o", f"{target}/", "-q")
    assert made.status == 0, made.err
    found = without_places(found_in(target))
    for one in (*expected, *found):  # rows of logs have microseconds
        one["first_time"] = one["last_time"] = None
        one.pop("details")
    assert found == expected


@pytest.mark.parametrize(
    ("name", "form"),
    [(one.name, ("jsonl", "parquet")[number % 2]) for number, one in enumerate(captures())],
)
def test_the_log_of_a_sample_says_the_same(tmp_path: Path, name: str, form: str) -> None:
    log = tmp_path / "log"
    rmqtool("decode", "pcap", SAMPLES / name, "-T", form, "-o", f"{log}/", "-q")
    assert (log / "manifest.json").exists()  # where all is encrypted, too, which has a status
    expected, found = (without_places(found_in(place)) for place in (SAMPLES / name, log))
    for one in (*expected, *found):
        for timed in (one, *one["evidence"]):  # type: ignore[misc]
            for at in timed.keys() & {"first_time", "last_time", "time"}:
                timed[at] = timed[at][: len("2026-11-21T02:46:11.106072")]  # logs have microseconds
    assert found == expected


@pytest.mark.slow
def test_standard_input() -> None:
    done = subprocess.run(
        [*PROGRAM, "diagnose", "-", "-q"],
        input=KILL.read_bytes(),
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"standard input: 1 incident: 1 error, 1 warning, 2 info")


def test_folders_of_captures_and_several_inputs(tmp_path: Path) -> None:
    for name in (KILL.name, "disk-full.pcap"):
        (tmp_path / name).symlink_to(KILL if name == KILL.name else SAMPLES / "acl-5x.pcap")
    both = found_in(tmp_path)
    assert {"broker-gone", "acl-signature"} <= {one["rule"] for one in both}
    one_by_one = found_in(tmp_path / KILL.name, tmp_path / "disk-full.pcap")
    assert [one["title"] for one in one_by_one] == [one["title"] for one in both]
    rmqtool("decode", "pcap", SAMPLES / "acl-5x.pcap", "-T", "parquet", "-o", tmp_path / "log")
    mixed = found_in(KILL, tmp_path / "log")
    assert {one["rule"] for one in mixed} == {one["rule"] for one in both}


def test_a_time_limits_what_is_looked_at() -> None:
    assert found_in(KILL, "--until", "02:46:10") == []
    result = rmqtool("diagnose", KILL, "--since", "02:46:10", "--until", "02:46:12", "-q")
    assert result.status == 0
    assert "\n2026-11-21 02:46:1" in result.out


def test_connections_outside_of_that_time_are_not_judged(tmp_path: Path) -> None:
    """The broker is killed at 02:46:10: refused connects, and connections that last until then."""
    log = tmp_path / "log"
    rmqtool("decode", "pcap", KILL, "-T", "parquet", "-o", log)
    for given in (KILL, log):
        assert "broker-gone" in {one["rule"] for one in found_in(given)}
        assert found_in(given, "--until", "02:46:10") == []
        for one in found_in(given, "--since", "02:46:20"):
            assert str(one["last_time"]) >= "2026-11-21T02:46:20"


LOST = SAMPLES / "grpc-calls-lost-5x.pcap"
"""A connection whose data was not acknowledged until 04:02:38; it goes on."""


def test_reports_and_programs_leave_out_what_ended_before(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    log = tmp_path / "log"
    rmqtool("decode", "pcap", LOST, "-T", "parquet", "-o", log)
    rule, time = "packets-unacknowledged", "2026-11-27T04:02:39"
    report = ("report", "diagnosis", log, "-T", "json")
    for options, is_there in (((), True), (("--since", time), False)):
        since = time if options else None
        found = rmqtool(*report, *options)
        tables = json.loads(found.out)["reports"][0]["tables"]
        told = [{row["rule"] for row in tables["diagnosis_problems"]["rows"]}]
        for given in (LOST, log):
            told.append({str(one["rule"]) for one in found_in(given, *options)})
            told.append({one.rule for one in api.read(given).problems(since=since)})
        assert [rule in rules for rules in told] == [is_there] * 5
        assert all(rules == told[0] for rules in told)


def test_a_refusal_after_the_end_is_of_the_request_before() -> None:
    """So it is not between two times that follow one another."""
    refused = SAMPLES / "busy-page-cache-5x.pcap"
    until = "2026-11-22T08:43:01.333925"
    (found,) = [
        one for one in found_in(refused, "--until", until) if one["rule"] == "page-cache-busy"
    ]
    assert (found["count"], found["first_time"] > until) == (4, True)  # type: ignore[operator]


def a_day_later(capture: bytes) -> bytes:
    """Return a classic capture, little endian, with its packets on the next day."""
    changed, at = bytearray(capture), 24
    while at < len(capture):
        second, _, size = struct.unpack_from("<III", capture, at)
        struct.pack_into("<I", changed, at, second + 86400)
        at += 16 + size
    return bytes(changed)


@pytest.mark.slow
def test_a_time_of_day_is_of_the_first_day(tmp_path: Path) -> None:
    """In captures; each decoded log has a first day of its own."""
    window = ("--since", "00:00", "--until", "23:59:59")
    (tmp_path / "next.pcap").write_bytes(a_day_later((SAMPLES / "acl-5x.pcap").read_bytes()))
    both = found_in(KILL, tmp_path / "next.pcap")
    assert max(str(one["last_time"]) for one in both) > "2026-11-22"
    first = found_in(KILL, tmp_path / "next.pcap", *window)
    assert "broker-gone" in {one["rule"] for one in first}
    assert max(str(one["last_time"]) for one in first) < "2026-11-22"
    rmqtool("decode", "pcap", tmp_path / "next.pcap", "-T", "parquet", "-o", tmp_path / "log")
    logged = found_in(KILL, tmp_path / "log", *window)
    assert max(str(one["last_time"]) for one in logged) > "2026-11-22"


# -- rules ----------------------------------------------------------------------------------------


def test_only_some_rules() -> None:
    assert [one["rule"] for one in found_in(KILL, "--rule", "broker-gone")] == ["broker-gone"]
    (isolated,) = found_in(KILL, "--rule", "broker-isolated", "--rule", "broker-isolated")
    assert (isolated["rule"], isolated["count"]) == ("broker-isolated", 1)
    assert found_in(KILL, "--rule", "isolated-broker-still-used") == []
    assert found_in(KILL, "--rule", "disk-full") == []


def test_all_rules_are_listed_and_explained() -> None:
    listed = rmqtool("diagnose", "--list")
    assert listed.status == 0
    ids = re.findall(r"^  (\S+) +(?:error|warning|info) ", listed.out, re.M)
    assert ids == [rule.id for rule in rules()]
    for rule in rules()[::5]:
        told = rmqtool("diagnose", "--explain", rule.id)
        assert told.status == 0
        assert told.out.startswith(f"{rule.id} ({rule.severity}): {rule.title}")
        assert rule.advice in told.out


@pytest.mark.parametrize("width", [80, 120, 160])
def test_lists_and_explanations_fit(width: int) -> None:
    for arguments in (("--list",), *(("--explain", rule.id) for rule in rules()[::9])):
        result = rmqtool("diagnose", *arguments, COLUMNS=str(width))
        assert result.status == 0
        assert max(map(cells, result.out.splitlines())) <= width


def test_the_rules_in_the_document_are_those_of_the_code() -> None:
    page = PAGE.read_text()
    assert page == page_with_rules(page), (
        "python -m tests.analytics.diagnosis.diagnosis_docs writes them anew"
    )


# -- --fail-on ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        (["error"], 4),
        (["warning"], 4),
        (["info"], 4),
        (["send-retried"], 4),
        (["disk-full"], 0),
        (["disk-full", "broker-gone"], 4),
    ],
)
def test_conditions(conditions: list[str], status: int) -> None:
    arguments = [part for one in conditions for part in ("--fail-on", one)]
    result = rmqtool("diagnose", KILL, "-q", *arguments)
    assert result.status == status
    assert result.out.startswith("fault-kill-5x.pcap: ")
    assert result.err.startswith("rmqtool: --fail-on " if status else "")


@pytest.mark.parametrize(
    ("name", "severity", "status"),
    [
        ("tls-5x.pcap", "info", 4),
        ("tls-5x.pcap", "warning", 0),
        ("ha-replication-5x.pcap", "warning", 4),
        ("ha-replication-5x.pcap", "error", 0),
        (HEALTHY.name, "info", 0),
    ],
)
def test_severities_hold_from_theirs_on(name: str, severity: str, status: int) -> None:
    assert rmqtool("diagnose", SAMPLES / name, "-q", "--fail-on", severity).status == status


# -- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "no input given; name a file, or an interface with -i"),
        (("x.pcap", "-i", "lo"), 2, "an interface and files cannot be combined"),
        ((KILL, "-f", "tcp port 10911"), 2, "--filter: is for live captures; add -i NAME"),
        ((KILL, "--duration", "1s"), 2, "--duration: is for live captures; add -i NAME"),
        (("-i", "lo", "--max-ratio", "9"), 2, "--max-ratio: is for files, not for -i"),
        (("--list", "--explain", "disk-full"), 2, "--list and --explain: cannot be combined"),
        (("no-such-file.pcap",), 1, "no-such-file.pcap"),
        (("no-such-folder/",), 1, "no-such-folder"),
        ((KILL, "--rule", "broker-gon"), 2, "broker-gone"),
        (
            (KILL, "--rule", "broker-gone", "--fail-on", "disk-full"),
            2,
            "--fail-on: disk-full is not checked; add --rule disk-full",
        ),
        ((KILL, "--fail-on", "eror"), 2, "unknown rule: 'eror'"),
        (("--explain", "disk-ful"), 2, "disk-full"),
        ((KILL, "--since", "yesterdy"), 2, "--since"),
        ((KILL, "-o", KILL), 2, "fault-kill-5x.pcap"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    arguments: tuple[str | Path, ...], status: int, said: str
) -> None:
    result = rmqtool("diagnose", *arguments, "-q")
    assert (result.status, result.out) == (status, "")
    assert result.err.startswith("rmqtool: ")
    assert said in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "option", [("-d", "9999"), ("--tls-keylog", "keys.txt"), ("--max-ratio", "9")]
)
def test_options_of_captures_need_a_capture(tmp_path: Path, option: tuple[str, str]) -> None:
    rows, keys = tmp_path / "rows.jsonl", tmp_path / "keys.txt"
    keys.write_text(f"CLIENT_RANDOM {'0' * 64} {'0' * 96}\n")
    given = [str(keys) if part == keys.name else part for part in option]
    assert rmqtool("decode", "pcap", HEALTHY, "-o", rows, "-q").status == 0
    result = rmqtool("diagnose", rows, *given, "-q")
    assert (result.status, result.out) == (2, "")
    assert "is for captures, and the input is already decoded; omit it" in result.err
    assert rmqtool("diagnose", rows, HEALTHY, *given, "-q").status == 0
    assert rmqtool("diagnose", rows, "-q", SSLKEYLOGFILE=str(keys)).status == 0


@pytest.mark.parametrize("arguments", [(KILL,), ("--list",), ("--explain", "disk-full")])
def test_a_file_has_colours_on_request(tmp_path: Path, arguments: tuple[str | Path, ...]) -> None:
    coloured, plain = tmp_path / "coloured.txt", tmp_path / "plain.txt"
    assert rmqtool("diagnose", *arguments, "--color", "always", "-o", coloured).status == 0
    assert rmqtool("diagnose", *arguments, "-o", plain, FORCE_COLOR="1").status == 0
    assert "\x1b[" in coloured.read_text()
    assert "\x1b[" not in plain.read_text()


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rmqtool("decode", "pcap", KILL, "-T", "parquet", "-o", log, "-q")
    part = log / "exchanges" / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    result = rmqtool("diagnose", log, "-q")
    assert (result.status, result.out) == (1, "")
    assert "part-00000.parquet" in result.err
    lines = tmp_path / "rows.jsonl"
    lines.write_bytes(b'{"request_code": 10}\n{"request_co')
    result = rmqtool("diagnose", lines, "-q")
    assert (result.status, result.out) == (1, "")
    assert "rows.jsonl" in result.err


def test_a_damaged_capture_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(KILL.read_bytes()[:-1000])
    assert "broker-gone" in {one["rule"] for one in found_in(path)}
    path.write_bytes(b"no capture at all, but text\n")
    result = rmqtool("diagnose", path, "-q")
    assert (result.status, result.out) == (1, "")
    assert "cut.pcap" in result.err


def test_only_what_is_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap_of(Talk().open().say(0, CLIENT_HELLO).say(1, CLIENT_HELLO).segments))
    result = rmqtool("diagnose", path, "-q")
    assert result.status == 0
    assert "encrypted" in result.out
    assert "no exchanges; 1 connection" in result.out


def test_an_empty_capture(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    result = rmqtool("diagnose", path, "-q")
    assert result.status in (0, 1)
    assert "Traceback" not in result.err
    assert "empty.pcap" in result.out + result.err
    path.write_bytes(b"")
    result = rmqtool("diagnose", path, "-q")
    assert (result.status, result.out) == (1, "")
    assert "empty.pcap, offset 0: the file is empty" in result.err


# -- the verdict elsewhere ------------------------------------------------------------------------


def test_the_summary_begins_with_the_verdict() -> None:
    summary = rmqtool("decode", "pcap", KILL, "--summary", "-q")
    assert "broker-b (127.77.0.12:10921) was gone from" in "\n".join(summary.out.splitlines()[:8])
    lines = rmqtool("decode", "pcap", KILL, "--summary", "-T", "jsonl", "-q")
    (value,) = map(json.loads, lines.out.splitlines())
    assert {one["rule"] for one in value["problems"]} == RULES


def test_a_summary_of_some_exchanges_has_no_verdict() -> None:
    arguments = ("--summary", "-q", "--where", "status == answered")
    summary = rmqtool("decode", "pcap", KILL, *arguments)
    assert "was gone" not in summary.out
    lines = rmqtool("decode", "pcap", KILL, *arguments, "-T", "jsonl")
    (value,) = map(json.loads, lines.out.splitlines())
    assert value["problems"] is None


@pytest.mark.slow
def test_a_program_that_is_installed(tmp_path: Path) -> None:
    assert found_in(capture_in(tmp_path))
    assert process("diagnose", "--list").status == 0
