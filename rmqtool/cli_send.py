"""`rmqtool send`: what can be asked of it, with help; the work is in `send_run`."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .console import When
from .errors import guarded
from .status import ExitStatus

_TARGET, _MESSAGE, _MANY = "Where to", "Message", "Many messages"
_HOW, _RESULT = "How it is sent", "Result"

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="[-|LINES]",
        help="One message a line, from standard input or a file; JSON lines with --input jsonl, "
        "or where the name ends in .jsonl.",
    ),
]
Namesrv = Annotated[
    str | None,
    typer.Option(
        "--namesrv",
        "-n",
        metavar="HOST:PORT[;...]",
        help="NameServers; else those of NAMESRV_ADDR. Nothing else is asked or reached.",
        rich_help_panel=_TARGET,
    ),
]
Topic = Annotated[
    str | None, typer.Option("--topic", "-t", metavar="TOPIC", rich_help_panel=_TARGET)
]
Broker = Annotated[
    str | None,
    typer.Option(
        "--broker",
        "-b",
        metavar="NAME",
        help="Only to this broker; then there is one attempt.",
        rich_help_panel=_TARGET,
    ),
]
Queue = Annotated[
    int | None,
    typer.Option(
        "--queue",
        "-i",
        min=0,
        metavar="N",
        help="Only to this queue of --broker.",
        rich_help_panel=_TARGET,
    ),
]
Group = Annotated[
    str,
    typer.Option("--group", "-g", metavar="GROUP", help="Producer group.", rich_help_panel=_TARGET),
]
Acl = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|env",
        help="Sign: a file with accessKey=… and secretKey=…, or `env`: ROCKETMQ_ACCESS_KEY and "
        "ROCKETMQ_SECRET_KEY.",
        rich_help_panel=_TARGET,
    ),
]
Tls = Annotated[
    str | None,
    typer.Option(
        metavar="CA.pem|system|insecure",
        help="Encrypt; the servers' certificates are checked against these.",
        rich_help_panel=_TARGET,
    ),
]
Body = Annotated[
    str | None,
    typer.Option("--body", "-p", metavar="TEXT", help="Body.", rich_help_panel=_MESSAGE),
]
BodyFile = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Body: what is in a file.", rich_help_panel=_MESSAGE
    ),
]
Tags = Annotated[str | None, typer.Option("--tags", "-c", metavar="TAG", rich_help_panel=_MESSAGE)]
Keys = Annotated[
    str | None,
    typer.Option(
        "--keys", "-k", metavar="KEYS", help="Separated by blanks.", rich_help_panel=_MESSAGE
    ),
]
Property = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="NAME=VALUE", help="Repeatable.", rich_help_panel=_MESSAGE),
]
DelayLevel = Annotated[
    int | None,
    typer.Option(
        min=1, max=18, metavar="1-18", help="Delivered 1s … 2h later.", rich_help_panel=_MESSAGE
    ),
]
DeliverAt = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|+DURATION",
        help="Delivered then: 2026-11-20T10:00:00 (UTC) or +90s; brokers since 5.0.",
        rich_help_panel=_MESSAGE,
    ),
]
OrderKey = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Messages of a key go to one queue, in order.",
        rich_help_panel=_MESSAGE,
    ),
]
Transaction = Annotated[
    str | None,
    typer.Option(
        metavar="commit|rollback|unknown",
        help="As a half message that then ends so; `unknown` is left to the broker's asking.",
        rich_help_panel=_MESSAGE,
    ),
]
Compress = Annotated[
    str | None,
    typer.Option(
        metavar="zlib|lz4|zstd|off",
        help="Bodies of 4 KiB and more; default: zlib.",
        rich_help_panel=_MESSAGE,
    ),
]
Count = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="The same message N times.", rich_help_panel=_MANY),
]
Rate = Annotated[
    str | None,
    typer.Option(metavar="500/s", help="Messages a second.", rich_help_panel=_MANY),
]
InFlight = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        metavar="N",
        help="Sends at once; default: 1 with --mode sync, else 64.",
        rich_help_panel=_MANY,
    ),
]
Batch = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="N messages a request.", rich_help_panel=_MANY),
]
InputName = Annotated[
    str | None,
    typer.Option(
        "--input",
        metavar="lines|jsonl",
        help="What a line is: a body, or an object with body or body_base64, and perhaps topic, "
        "tags, keys, properties, delay_level, deliver_at, order_key, broker, queue.",
        rich_help_panel=_MANY,
    ),
]
ModeName = Annotated[str, typer.Option("--mode", metavar="sync|async|oneway", rich_help_panel=_HOW)]
Timeout = Annotated[
    str,
    typer.Option(metavar="TIME", help="Time of a send with its retries.", rich_help_panel=_HOW),
]
Retries = Annotated[
    int, typer.Option(min=0, metavar="N", help="Further attempts.", rich_help_panel=_HOW)
]
Fault = Annotated[
    str,
    typer.Option(
        "--fault-strategy",
        metavar="off|4.7|4.8|5.1",
        help="Avoid brokers that failed or were slow, as a Java client of that generation.",
        rich_help_panel=_HOW,
    ),
]
Client = Annotated[
    str,
    typer.Option(
        metavar="RELEASE",
        help="Java client whose rules are followed, such as 4.9.8.",
        rich_help_panel=_HOW,
    ),
]
Header = Annotated[str, typer.Option("--header", metavar="json|rocketmq", rich_help_panel=_HOW)]
Namespace = Annotated[str, typer.Option(metavar="NAME", rich_help_panel=_HOW)]
Vip = Annotated[
    bool, typer.Option("--vip", help="To the brokers' second port.", rich_help_panel=_HOW)
]
Trace = Annotated[bool, typer.Option("--trace", help="Tell the trace topic.", rich_help_panel=_HOW)]
FormatName = Annotated[
    str, typer.Option("--format", metavar="table|jsonl", rich_help_panel=_RESULT)
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-V",
        help="Every attempt of every message, also where there are many.",
        rich_help_panel=_RESULT,
    ),
]
Log = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Every attempt as a row of a decoded log: .jsonl or .parquet.",
        rich_help_panel=_RESULT,
    ),
]
Capture = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What is sent and received, as a new pcapng; TLS is not in it, signatures are.",
        rich_help_panel=_RESULT,
    ),
]


def send(
    source: Source = None,
    namesrv: Namesrv = None,
    topic: Topic = None,
    broker: Broker = None,
    queue: Queue = None,
    group: Group = "rmqtool",
    acl: Acl = None,
    tls: Tls = None,
    body: Body = None,
    file: BodyFile = None,
    tags: Tags = None,
    keys: Keys = None,
    property_: Property = None,
    delay_level: DelayLevel = None,
    deliver_at: DeliverAt = None,
    order_key: OrderKey = None,
    transaction: Transaction = None,
    compress: Compress = None,
    count: Count = 1,
    rate: Rate = None,
    in_flight: InFlight = None,
    batch: Batch = 1,
    input_: InputName = None,
    mode: ModeName = "sync",
    timeout: Timeout = "3s",
    retries: Retries = 2,
    fault_strategy: Fault = "off",
    client: Client = "5.3.3",
    header: Header = "json",
    namespace: Namespace = "",
    vip: Vip = False,
    trace: Trace = False,
    format_: FormatName = "table",
    verbose: Verbose = False,
    log: Log = None,
    capture: Capture = None,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
) -> None:
    """Send messages, and show every attempt: which broker, why that one, how long, what came of it.

    Examples:

    \b
      rmqtool send -n 127.0.0.1:9876 -t Orders -p hello -c paid -k order-17
      rmqtool send -n 127.0.0.1:9876 -t Orders -f body.bin -b broker-a -i 2
      rmqtool send -t Orders -p hello --count 100000 --mode async --in-flight 256
      rmqtool send -t Orders -p hello --count 600 --rate 10/s --fault-strategy 5.1 -V
      rmqtool send -t Orders -p hello --transaction rollback
      rmqtool send -t Orders - < lines.txt
      rmqtool send events.jsonl --log attempts.parquet --capture sent.pcapng

    The brokers in the answer of the NameServer are the only ones reached. More: docs/send.md.
    """

    def run() -> ExitStatus:
        from .send_options import Given, command_of
        from .send_run import run_send

        given = Given(
            source=source,
            namesrv=namesrv,
            topic=topic,
            broker=broker,
            queue=queue,
            group=group,
            acl=acl,
            tls=tls,
            body=body,
            file=file,
            tags=tags,
            keys=keys,
            properties=property_ or [],
            delay_level=delay_level,
            deliver_at=deliver_at,
            order_key=order_key,
            transaction=transaction,
            compress=compress,
            count=count,
            rate=rate,
            in_flight=in_flight,
            batch=batch,
            input=input_,
            mode=mode,
            timeout=timeout,
            retries=retries,
            fault_strategy=fault_strategy,
            client=client,
            header=header,
            namespace=namespace,
            vip=vip,
            trace=trace,
            format=format_,
            verbose=verbose,
            log=log,
            capture=capture,
            colour=color,
            quiet=quiet,
        )
        return run_send(command_of(given))

    raise typer.Exit(int(guarded(run)))
