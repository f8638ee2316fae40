"""The options of `send`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_TARGET, _MESSAGE, _MANY = "Where to", "Message", "Many messages"
_HOW, _RESULT = "How it is sent", "Result"


@dataclass(slots=True)
class SendArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[-|LINES]",
            help="One message per line, from standard input or a file; JSON lines with --input "
            "jsonl, or where the name ends in .jsonl.",
        ),
    ] = None
    namesrv: Annotated[
        str | None,
        typer.Option(
            *named("--namesrv"),
            metavar="HOST:PORT[;...]",
            help="NameServers; else those of NAMESRV_ADDR.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    topic: Annotated[
        str | None,
        typer.Option(
            *named("--topic"), metavar="TOPIC", help="Topic to send to.", rich_help_panel=_TARGET
        ),
    ] = None
    broker: Annotated[
        str | None,
        typer.Option(
            *named("--broker"),
            metavar="NAME",
            help="Send only to this broker; then there is one attempt.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    queue: Annotated[
        int | None,
        typer.Option(
            "--queue",
            min=0,
            metavar="N",
            help="Send only to this queue of --broker.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    group: Annotated[
        str,
        typer.Option(
            *named("--group"), metavar="GROUP", help="Producer group.", rich_help_panel=_TARGET
        ),
    ] = "rmqtool"
    acl: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|env",
            help="Sign: a file with accessKey=… and secretKey=…, or `env`: ROCKETMQ_ACCESS_KEY and "
            "ROCKETMQ_SECRET_KEY.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    yes: Annotated[bool, options.yes(_TARGET)] = False
    allow: Annotated[list[str] | None, options.allow(_TARGET)] = None
    tls: Annotated[str | None, options.tls_from(_TARGET)] = None
    tls_name: Annotated[str | None, options.tls_name(_TARGET)] = None
    tls_any_name: Annotated[bool, options.tls_any_name(_TARGET)] = False
    tls_cert: Annotated[str | None, options.tls_cert(_TARGET)] = None
    tls_key: Annotated[str | None, options.tls_key(_TARGET)] = None
    body: Annotated[
        str | None,
        typer.Option(
            "--body", metavar="TEXT", help="Message body, as text.", rich_help_panel=_MESSAGE
        ),
    ] = None
    file: Annotated[
        str | None,
        typer.Option(
            "--file", metavar="FILE", help="Read the body from a file.", rich_help_panel=_MESSAGE
        ),
    ] = None
    tags: Annotated[
        str | None,
        typer.Option("--tags", metavar="TAG", help="Message tag.", rich_help_panel=_MESSAGE),
    ] = None
    keys: Annotated[
        str | None,
        typer.Option(
            *named("--keys"),
            metavar="KEYS",
            help="Message keys, separated by blanks.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME=VALUE",
            help="User property; repeatable.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    delay_level: Annotated[
        int | None,
        typer.Option(
            min=1, max=18, metavar="1-18", help="Deliver 1s … 2h later.", rich_help_panel=_MESSAGE
        ),
    ] = None
    deliver_at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|+DURATION",
            help="Deliver at this time: 2026-11-20T10:00:00 (UTC) or +90s; brokers since 5.0.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    order_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Messages of a key go to one queue, in order.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    transaction: Annotated[
        str | None,
        typer.Option(
            metavar="commit|rollback|unknown",
            help="Send a half message, then end it so; `unknown` leaves it to the broker's check.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    compress: Annotated[
        str | None,
        typer.Option(
            metavar="zlib|lz4|zstd|off",
            help="Bodies of 4 KiB and more; default: zlib.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    count: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Send the same message N times.", rich_help_panel=_MANY
        ),
    ] = 1
    rate: Annotated[str | None, options.rate(_MANY)] = None
    in_flight: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="N",
            help="Most sends in flight; default: 1 with --mode sync, else 64.",
            rich_help_panel=_MANY,
        ),
    ] = None
    batch: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="N messages per request.", rich_help_panel=_MANY),
    ] = 1
    input: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="lines|jsonl",
            help="What a line is: a body, or an object with body or body_base64, and perhaps "
            "topic, tags, keys, properties, delay_level, deliver_at, order_key, broker, queue.",
            rich_help_panel=_MANY,
        ),
    ] = None
    mode: Annotated[
        str,
        typer.Option(
            *named("--mode"), metavar="sync|async|oneway", help="How to send.", rich_help_panel=_HOW
        ),
    ] = "sync"
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Time of a send with its retries.", rich_help_panel=_HOW),
    ] = "3s"
    retries: Annotated[int, options.retries(_HOW)] = 2
    fault_strategy: Annotated[
        str,
        typer.Option(
            "--fault-strategy",
            metavar="off|4.7|4.8|5.1",
            help="Avoid brokers that failed or were slow, as a Java client of that generation.",
            rich_help_panel=_HOW,
        ),
    ] = "off"
    client: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="Java client whose rules are followed, such as 4.9.8.",
            rich_help_panel=_HOW,
        ),
    ] = "5.3.3"
    header: Annotated[
        str,
        typer.Option(
            "--header",
            metavar="json|rocketmq",
            help="Serialization of headers.",
            rich_help_panel=_HOW,
        ),
    ] = "json"
    namespace: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Namespace that wraps topic and group.", rich_help_panel=_HOW
        ),
    ] = ""
    vip: Annotated[
        bool | None,
        typer.Option(
            "--vip/--no-vip",
            help="Send to the brokers' second port, the VIP channel (default: as --client: on"
            " below 4.5.1).",
            rich_help_panel=_HOW,
        ),
    ] = None
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="Write message traces to the trace topic.", rich_help_panel=_HOW
        ),
    ] = False
    format: Annotated[
        str, typer.Option(*named("--format"), metavar="table|jsonl", rich_help_panel=_RESULT)
    ] = "table"
    verbose: Annotated[
        bool,
        typer.Option(
            *named("--verbose"),
            help="Every attempt of every message, also where there are many.",
            rich_help_panel=_RESULT,
        ),
    ] = False
    log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Every attempt as a row of a decoded log: .jsonl or .parquet.",
            rich_help_panel=_RESULT,
        ),
    ] = None
    capture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What is sent and received, as a new pcapng; TLS is not in it, signatures are.",
            rich_help_panel=_RESULT,
        ),
    ] = None
    colour: options.Color = When.auto
    quiet: options.Quiet = False
