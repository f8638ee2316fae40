"""One run of `broker`: addresses, events, and totals at the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from dissectors.printable import printable
from dissectors.quantities import counted
from dissectors.remoting.code_names import request_name, response_name
from replay.sandbox import Injection, Sandbox, run_sandbox

from ..ui.console import Style
from ..ui.figures import count, duration, size
from ..ui.interrupt import first_ends
from ..ui.screen.panels import Labelled
from ..ui.status import ExitStatus
from .event_output import EventOutput
from .options import BrokerRequest, sandbox_of

_MOST_ROWS: Final = 12
"""request codes, and errors, in the totals at the end"""


def run_broker(request: BrokerRequest) -> ExitStatus:
    """Run until Ctrl-C or the time is over; raise SandboxError if it cannot start."""
    options = sandbox_of(request)
    shown = EventOutput(request.format, request.colour, request.log, "the brokers keep running")
    begin = time.monotonic()
    if not request.quiet:
        options = replace(options, on_event=shown.event)

    def started(box: Sandbox) -> None:
        shown.start(_listening_value(box), _listening(box))

    try:
        box = run_sandbox(options, started, shown.tick, first_ends, request.seconds)
        seconds = time.monotonic() - begin
        shown.finish(_summary_value(box, seconds), list(_summary(box, seconds)))
    except BaseException:
        shown.discard()
        raise
    return ExitStatus.OK if shown.is_written else ExitStatus.FAILURE


# -- the beginning ------------------------------------------------------------------------------


def _listening_value(box: Sandbox) -> dict[str, object]:
    return {
        "event": "started",
        "namesrv": box.namesrv,
        "brokers": dict(box.addresses),
        "topics": [topic.name for topic in box.options.topics],
        "faults": [str(fault) for fault in box.options.injections],
        "seed": box.options.seed,
        "store": str(box.options.store) if box.options.store else None,
    }


def _listening(box: Sandbox) -> list[Labelled]:
    options = box.options
    rows = [("namesrv", box.namesrv), *box.addresses.items()]
    if options.topics:
        texts = [f"{topic.name} ({counted(topic.queues, 'queue')})" for topic in options.topics]
        rows.append(("topics", ", ".join(texts)))
    if options.store is not None:
        held = sum(len(broker.state.store) for broker in box.brokers.values())
        rows.append(("store", f"{printable(str(options.store))} ({counted(held, 'message')})"))
    rows += fault_rows(options.injections)
    topic = options.topics[0].name if options.topics else "Test"
    rows.append(("send", f"rmqtool send -n {box.namesrv} -t {topic} --body hello"))
    rows.append(("end", "Ctrl-C"))
    return aligned(rows)


def aligned(rows: Sequence[tuple[str, str]]) -> list[Labelled]:
    """Return names and texts as lines with the texts below each other."""
    indent = max(len(name) for name, _ in rows) + 2
    return [
        Labelled(text, label=name, label_style=Style.BOLD, indent=indent) for name, text in rows
    ]


def fault_rows(injections: Sequence[Injection]) -> list[tuple[str, str]]:
    """Return the faults of a run as labelled lines."""
    return [("fault", f"{fault}{_window(fault.from_ms, fault.until_ms)}") for fault in injections]


def _window(from_ms: int, until_ms: int | None) -> str:
    begin = f" from {duration(from_ms * 1000)}" if from_ms else ""
    return begin + (f" until {duration(until_ms * 1000)}" if until_ms is not None else "")


# -- the end ------------------------------------------------------------------------------------


def _summary_value(box: Sandbox, seconds: float) -> dict[str, object]:
    return {
        "event": "summary",
        "seconds": round(seconds, 3),
        "faults_hit": box.injector.hits,
        "brokers": {
            name: {
                "messages_in": broker.state.messages_in,
                "messages_out": broker.state.messages_out,
                "messages_held": len(broker.state.store),
                "bytes_held": broker.state.store.held_bytes,
                "requests": {str(code): n for code, n in sorted(broker.state.requests.items())},
                "errors": {
                    f"{request}:{response}": n
                    for (request, response), n in sorted(broker.state.responses.items())
                },
            }
            for name, broker in box.brokers.items()
        },
    }


def _summary(box: Sandbox, seconds: float) -> Iterator[Labelled]:
    yield Labelled(f"ended after {duration(round(seconds * 1_000_000))}")
    errors: Counter[tuple[int, int]] = Counter()
    requests: Counter[int] = Counter()
    for name, broker in box.brokers.items():
        state = broker.state
        errors += state.responses
        requests += state.requests
        yield Labelled(
            f"{counted(state.messages_in, 'message')} in, {count(state.messages_out)} out, "
            f"{count(len(state.store))} held ({size(state.store.held_bytes)})",
            label=name,
            indent=len(name) + 2,
        )
    if box.injector.hits:
        yield Labelled(f"faults hit {counted(box.injector.hits, 'request')}")
    for code, number in requests.most_common(_MOST_ROWS):
        yield counted_line(number, request_name(code))
    for (code, response), number in errors.most_common(_MOST_ROWS):
        response_text = f"responded {response} {response_name(response, code)}"
        yield counted_line(number, f"{request_name(code)} {response_text}")


def counted_line(number: int, text: str) -> Labelled:
    """Return the line of a total: the number, then what was counted."""
    return Labelled(text, label=f"{count(number):>12}", indent=14)
