"""Errors name options of the command line, never fields of the libraries."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import typer

from replay.config import ProducerConfig, TlsSettings
from replay.errors import ClientError, ConfigError, InvalidMessageError
from replay.message import Message
from replay.sandbox import SandboxError, SandboxOptions
from replay.sandbox.options import check_options
from replay.validators import why_not_message
from rmqtool.cli import app
from rmqtool.ui.option_names import MESSAGE, PRODUCER, SANDBOX, in_options
from tests.rmqtool.command import ROOT, rmqtool

CAPTURE = str(ROOT / "samples" / "async-refused-5x.pcap")
SEND = ("send", "-n", "127.0.0.1:1", "-t", "T")
REPLAY = ("replay", CAPTURE)
SANDBOX_TARGET = ("--target", "sandbox")
REMOTE_TARGET = ("-n", "127.0.0.1:1")
NOT_PEM = str(ROOT / "README.md")

BOTH: dict[str, list[tuple[str, ...]]] = {
    "--namesrv": [("127.0.0.1",), (";",), ("a:99999",), ("a b",)],
    "--group": [("bad!group",), ("",), ("g" * 121,), ("DEFAULT_PRODUCER",)],
    "--acl": [("/nowhere",)],
    "--allow": [("x y",), ("10.0.0.0/99",)],
    "--tls": [("nowhere.pem",), (NOT_PEM,)],
    "--tls-name": [(".x", "--tls", "system"), ("x",)],
    "--tls-cert": [("x",), ("nowhere.pem", "--tls", "insecure"), (NOT_PEM, "--tls", "insecure")],
    "--tls-key": [("x",)],
    "--mode": [("later",)],
    "--timeout": [("0",), ("1us",), ("-1",), ("soon",), ("",)],
    "--retries": [("-1",), ("x",)],
    "--rate": [("0",), ("fast",), ("1..0/1s",), ("100..5000",)],
    "--in-flight": [("0",), ("65536",), ("x",)],
    "--format": [("xml",)],
    "--color": [("red",)],
}
SENDS: dict[str, list[tuple[str, ...]]] = {
    **BOTH,
    "--topic": [("bad topic",), ("",), ("t" * 128,), ("SCHEDULE_TOPIC_XXXX",)],
    "--queue": [("-1",), ("1",)],
    "--body": [("",)],
    "--file": [("/nowhere",), ("/dev/null",)],
    "--tags": [("a\x01b",)],
    "--keys": [("a\x02b",)],
    "--property": [("a",), ("KEYS=1",), ("a=\x02",), (" =1",)],
    "--delay-level": [("0",), ("19",)],
    "--deliver-at": [("soon",), ("+x",)],
    "--transaction": [("maybe",)],
    "--compress": [("rar",)],
    "--count": [("0",)],
    "--batch": [("0",)],
    "--input": [("xml",)],
    "--fault-strategy": [("9",)],
    "--client": [("9.9.9",)],
    "--header": [("xml",)],
    "--namespace": [("bad!",), ("n" * 120,)],
    "--log": [("log.csv",), ("/nowhere/log.jsonl",)],
    "--capture": [("/nowhere/x.pcapng",)],
}
REPLAYS: dict[str, list[tuple[str, ...]]] = {
    **BOTH,
    "--live": [()],
    "--jobs": [("0",), ("65",)],
    "--interface": [("eth0",)],
    "--filter": [("tcp",)],
    "--write": [("a.pcapng",)],
    "--target": [("moon",), ("sandbox", "-n", "127.0.0.1:1")],
    "--faults": [("/nowhere",), (NOT_PEM,)],
    "--speed": [("0",), ("fast",)],
    "--top-speed": [("--speed", "2x")],
    "--max-gap": [("x",)],
    "--loop": [("0",)],
    "--duration": [("x",)],
    "--limit": [("-1",)],
    "--where": [("topic ==",), ("latency > 1parsec",)],
    "--since": [("soon",)],
    "--until": [("soon",)],
    "--sample": [("0",), ("200%",)],
    "--sample-by": [("colour",)],
    "--include": [("all",)],
    "--rewrite": [("nowhere.toml",), ("x",)],
    "--decode-as": [("0",)],
    "--max-output": [("x",)],
    "--max-ratio": [("0",)],
    "--codes": [("NO_SUCH_CODE", "--mode", "raw"), ("10",)],
    "--queues": [("x",)],
    "--order": [("x",)],
    "--ids": [("x",)],
    "--batches": [("x",)],
    "--requests": [("x",)],
    "--journal": [("/proc/nowhere",), (str(ROOT),)],
    "--resume": [("/nowhere",)],
    "--fsync": [("x",)],
    "--fail-on": [("x",), ("p99",)],
}
ANYTHING = {
    *("--broker", "--order-key", "--tls-any-name", "--yes", "--vip", "--trace", "--verbose"),
    *("--quiet", "--mark", "--dry-run", "--force", "--help"),
}
"""options with no value, or with one that may be any text"""
BROKERS: dict[str, list[tuple[str, ...]]] = {
    "--brokers": [("0",), ("65",)],
    "--port": [("65536",), ("2", "--vip"), ("65530", "--brokers", "3")],
    "--namesrv-port": [("-1",)],
    "--listen": [("x",), ("8.8.8.8",)],
    "--topic": [("a b",), ("A:0",), ("A:9999",)],
    "--store": [("/nowhere/x",)],
    "--store-limit": [("x",)],
    "--server-version": [("x",)],
    "--serialize": [("xml",)],
    "--delay-levels": [("x",), ("",)],
    "--fault": [("x",), ("latency=x",)],
    "--faults": [("/nowhere",)],
    "--seed": [("x",)],
    "--format": [("xml",)],
    "--duration": [("x",)],
    "--color": [("red",)],
}


def _fields() -> set[str]:
    """Names of fields that no user can take for anything else."""
    kinds: tuple[Any, ...] = (ProducerConfig, TlsSettings, Message, SandboxOptions)
    names = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    return {name for name in names if "_" in name} | {"namesrv "}


def _cases(table: dict[str, list[tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    return [(option, values) for option, found in table.items() for values in found]


def _assert_named(option: str, arguments: tuple[str, ...]) -> None:
    result = rmqtool(*arguments, NAMESRV_ADDR="")
    assert result.status in (1, 2), result.out
    assert option in result.err
    assert "should not have happened" not in result.err
    assert not [name for name in _fields() if name in result.err], result.err


@pytest.mark.parametrize(("option", "values"), _cases(SENDS))
def test_an_error_of_send_names_the_option(option: str, values: tuple[str, ...]) -> None:
    body = () if option in ("--body", "--file", "--input") else ("--body", "x")
    lines = ("lines.txt",) if option == "--input" else ()
    _assert_named(option, (*SEND, *body, *lines, option, *values))


@pytest.mark.parametrize(("option", "values"), _cases(REPLAYS))
def test_an_error_of_replay_names_the_option(
    option: str, values: tuple[str, ...], tmp_path: Path
) -> None:
    target = SANDBOX_TARGET if option == "--faults" else REMOTE_TARGET
    if option in ("--target", "--namesrv"):
        target = ()
    journal = () if option in ("--journal", "--resume") else ("--journal", str(tmp_path / "j"))
    _assert_named(option, (*REPLAY, *target, *journal, option, *values))


@pytest.mark.parametrize(("option", "values"), _cases(BROKERS))
def test_an_error_of_broker_names_the_option(option: str, values: tuple[str, ...]) -> None:
    ports = () if option == "--port" else ("--port", "0")
    duration = () if option == "--duration" else ("--duration", "1")
    _assert_named(option, ("broker", *ports, *duration, option, *values))


def _options_of(command: str) -> set[str]:
    made = typer.main.get_command(app)
    found = made.commands[command]  # type: ignore[attr-defined]
    return {one.opts[0] for one in found.params if one.opts[0].startswith("--")}


@pytest.mark.parametrize(("command", "table"), [("send", SENDS), ("replay", REPLAYS)])
def test_every_option_has_its_invalid_values(
    command: str, table: dict[str, list[tuple[str, ...]]]
) -> None:
    names = {"--output": "--journal"}
    options = {names.get(name, name) for name in _options_of(command)}
    assert options - ANYTHING == set(table)


def test_options_that_stand_for_fields_are_there() -> None:
    both = _options_of("send") | _options_of("replay")
    assert set(PRODUCER.values()) | set(MESSAGE.values()) <= both
    assert set(SANDBOX.values()) <= _options_of("broker")
    names = {field.name for kind in (ProducerConfig, TlsSettings) for field in _of(kind)}
    assert set(PRODUCER) <= names
    assert set(MESSAGE) <= {field.name for field in _of(Message)}
    assert set(SANDBOX) <= {field.name for field in _of(SandboxOptions)}


def _of(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)


@pytest.mark.parametrize(
    ("settings", "text", "shown"),
    [
        ({"send_timeout_ms": 0}, "send_timeout_ms: must be positive, not 0", "--timeout: must be"),
        ({"retries": -1}, "retries: must be 0 or more, not -1", "--retries: must be 0"),
        ({"group": "a b"}, "group: group 'a b'", "--group: group 'a b'"),
        ({"namespace": "a b"}, "namespace: group 'a b%g'", "--namespace: group"),
        ({"compress_type": "rar"}, "compress_type: must be one of", "--compress: must be one"),
        ({"serialize_type": "xml"}, "serialize_type: must be one of", "--header: must be one"),
    ],
)
def test_a_program_reads_the_field_and_a_user_the_option(
    settings: dict[str, Any], text: str, shown: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerConfig(**{"group": "g", **settings})
    assert str(caught.value).startswith(text)
    assert in_options(caught.value)[0].startswith(shown)


def test_hints_name_options_too() -> None:
    error = ClientError("wrong name", "say which name it has (server_name), or do not check")
    assert in_options(error)[1] == "say which name it has (--tls-name), or do not check"
    with pytest.raises(SandboxError) as caught:
        check_options(SandboxOptions(host="8.8.8.8"))
    assert "(allow_remote)" in caught.value.hint
    assert "(--allow-remote)" in in_options(caught.value)[1]


def test_a_part_of_a_message_is_an_option() -> None:
    problem = why_not_message(Message("a b", b"x"), 10)
    assert problem is not None
    error = InvalidMessageError(problem.reason, problem.hint, part=problem.part)
    assert in_options(error)[0].startswith("--topic: topic 'a b'")
