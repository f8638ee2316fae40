"""The options of `send`: each is declared once, as a field with its type, help and default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..ui import common_options as options
from ..ui.console import When
from ..ui.letters import named

_TARGET, _MESSAGE, _MANY = "Target", "Message", "Load"
_HOW, _RESULT = "Sending", "Results"


@dataclass(slots=True)
class SendArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[-|LINES]",
            help="File with one message per line, or - for stdin; JSON lines with --input "
            "jsonl or a .jsonl name.",
        ),
    ] = None
    namesrv: Annotated[
        str | None,
        typer.Option(
            *named("--namesrv"),
            metavar="HOST:PORT[;...]",
            help="NameServer addresses (default: $NAMESRV_ADDR).",
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
            help="Send only to this broker, without retries on others.",
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
            help="Sign requests with accessKey=… and secretKey=… from FILE, or from "
            "$ROCKETMQ_ACCESS_KEY and $ROCKETMQ_SECRET_KEY (env).",
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
            "--body", metavar="TEXT", help="Message body as text.", rich_help_panel=_MESSAGE
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
            help="Message keys, separated by spaces.",
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
            min=1,
            max=18,
            metavar="1-18",
            help="Delay level: 1 (1s) to 18 (2h).",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    deliver_at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|+DURATION",
            help="Deliver at a time (2026-11-20T10:00:00, UTC) or after a delay (+90s); "
            "needs broker 5.0 or later.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    order_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Send messages with the same key to one queue, in order.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    transaction: Annotated[
        str | None,
        typer.Option(
            metavar="commit|rollback|unknown",
            help="Send a half message, then commit or roll back; `unknown` waits for the "
            "broker's check.",
            rich_help_panel=_MESSAGE,
        ),
    ] = None
    compress: Annotated[
        str | None,
        typer.Option(
            metavar="zlib|lz4|zstd|off",
            help="Compression of bodies of 4 KiB and more (default: zlib).",
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
            help="Maximum sends in flight (default: 1 with --mode sync, otherwise 64).",
            rich_help_panel=_MANY,
        ),
    ] = None
    batch: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Messages per request.", rich_help_panel=_MANY),
    ] = 1
    input: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="lines|jsonl",
            help="Line format: a body, or a JSON object with body or body_base64 and "
            "optional topic, tags, keys, properties, delay_level, deliver_at, "
            "order_key, broker, queue.",
            rich_help_panel=_MANY,
        ),
    ] = None
    mode: Annotated[
        str,
        typer.Option(
            *named("--mode"), metavar="sync|async|oneway", help="Send mode.", rich_help_panel=_HOW
        ),
    ] = "sync"
    timeout: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Timeout of a send including retries.", rich_help_panel=_HOW
        ),
    ] = "3s"
    retries: Annotated[int, options.retries(_HOW)] = 2
    fault_strategy: Annotated[
        str,
        typer.Option(
            "--fault-strategy",
            metavar="off|4.7|4.8|5.1",
            help="Avoid failed or slow brokers like a Java client of that generation.",
            rich_help_panel=_HOW,
        ),
    ] = "off"
    client: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="Behave like this Java client release, such as 4.9.8.",
            rich_help_panel=_HOW,
        ),
    ] = "5.3.3"
    header: Annotated[
        str,
        typer.Option(
            "--header",
            metavar="json|rocketmq",
            help="Header serialization.",
            rich_help_panel=_HOW,
        ),
    ] = "json"
    namespace: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Namespace added to topic and group.", rich_help_panel=_HOW
        ),
    ] = ""
    vip: Annotated[
        bool | None,
        typer.Option(
            "--vip/--no-vip",
            help="Send to the brokers' VIP port (default: by --client; on before 4.5.1).",
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
        str,
        typer.Option(
            *named("--format"),
            metavar="table|json|jsonl",
            help="How results are written; json: one array.",
            rich_help_panel=_RESULT,
        ),
    ] = "table"
    verbose: Annotated[
        bool,
        typer.Option(
            *named("--verbose"),
            help="Show every attempt of every message.",
            rich_help_panel=_RESULT,
        ),
    ] = False
    log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Log every attempt as a decoded row (.jsonl or .parquet).",
            rich_help_panel=_RESULT,
        ),
    ] = None
    capture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Save the traffic as pcapng, without TLS. Signatures are included.",
            rich_help_panel=_RESULT,
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Overwrite existing files of --log and --capture.",
            rich_help_panel=_RESULT,
        ),
    ] = False
    colour: options.Color = When.auto
    quiet: options.Quiet = False
