"""One run of `watch`: record, decode, and judge packets; report problems.

Rules: one thread reads, records, decodes, and judges; anything that may block (webhooks, syslog,
scrapes, pushes, the packets of an incident) has a separate thread or process and a limit. Failures
are counted and reported, and the watch continues.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from analytics.diagnosis.engine import Engine
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.foreign import natural_of
from dissectors.live.interface import LiveCapture
from dissectors.live.packet_ring import RingPacket
from dissectors.quantities import counted
from dissectors.rows.record import ExchangeRecord
from dissectors.times import SECOND

from ..api.judged import engine_of
from ..live.keeping import opened_capture
from ..live.options import LiveRequest
from ..summary.verdict import LABELS
from ..summary.watch import ProblemChange, ProblemEvent
from ..ui.console import styled, terminal_of
from ..ui.errors import reason_of
from ..ui.figures import count, size
from ..ui.interrupt import first_ends
from ..ui.json_array import ArrayText
from ..ui.json_text import json_line
from ..ui.status import CommandError, ExitStatus, Terminated
from . import metrics as of
from .deliveries import Courier, syslog, webhook
from .exporters import MetricsServer, OtlpPusher
from .feeds import LiveFeed, PacketFeed, StoredFeed
from .incidents import IncidentKeeper, KeptIncident, KnownConnections
from .local_ends import EndsHelper, LocalEnds
from .metrics import Given, TrafficMetrics
from .notices import NoticeKind, WatchEvent, notice, problem_events
from .options import WatchFormat, WatchRequest
from .packet_files import PacketFiles
from .windows import WindowedDiagnosis

LOOK: float = 2.0
"""seconds between checks for dropped packets"""
STUCK: float = 60.0
"""seconds without a check after which the watch is unhealthy"""
CALM: float = 60.0
"""seconds without a loss after which the next loss is reported"""


def run_watch(request: WatchRequest) -> ExitStatus:
    """Watch until the capture ends or a signal comes."""
    return _Watching(request).run()


class _Watching:
    """A running watch."""

    def __init__(self, request: WatchRequest) -> None:
        self.request = request
        self._begin = time.monotonic()
        self._couriers: list[Courier] = []
        self._ring: PacketFiles | None = None
        self._decode: Decode | None = None
        self._stopped = False
        self._exchanges = 0
        self._event_counts: Counter[str] = Counter()
        """kind of event -> how many"""
        self._lost_lines = 0
        self._array = ArrayText() if request.format is WatchFormat.json else None
        self._has_colour = terminal_of(sys.stdout, request.colour).colour
        self._connections = KnownConnections()
        # Forked before any thread starts, and before `_opened` gives up the rights that it needs.
        self._local_ends = EndsHelper() if request.processes else LocalEnds()
        self._keeper: IncidentKeeper | None = None
        self._metrics: TrafficMetrics | None = None
        self._server: MetricsServer | None = None
        self._pusher: OtlpPusher | None = None
        self._ticked = time.monotonic()
        self._diagnosis = WindowedDiagnosis(self._new_engine, request.window, self._now)
        self._feed = self._opened()
        self._dropped, self._dropped_at = 0, 0.0
        self._next_look = 0.0
        self._next_status = time.monotonic() + request.status / SECOND

    def run(self) -> ExitStatus:
        """Watch until the end; always leave a readable ring and report the end."""
        request, why = self.request, "the capture ended"
        try:
            if request.webhook:
                self._couriers.append(webhook(request.webhook))
            if request.syslog:
                self._couriers.append(syslog(request.syslog))
            self._open_files()
            self._open_metrics()
            self._say(
                NoticeKind.WATCHING,
                f"watching {self._feed.name}",
                source=self._feed.name,
                filter=request.filter,
            )
            with first_ends(self._stop, (signal.SIGINT, signal.SIGTERM)):
                self._watch()
            why = "stopped" if self._stopped else self._feed.problem or why
        except Terminated:
            why = "terminated"
        except KeyboardInterrupt:
            why = "interrupted"
        except Exception as error:
            why = f"failed: {error}"
            raise
        finally:
            self._end(why)
        return ExitStatus.OK

    # -- what goes on -----------------------------------------------------------------------------

    def _watch(self) -> None:
        shift = 0
        while True:
            # Time passes in a file, too, by its packets: what waits for lost ones is released.
            from_file = isinstance(self._feed, StoredFeed) and self._feed.is_file
            options = DecodeOptions(
                decode_as=self.request.decode_as,
                tls_keylog=self.request.tls_keylog,
                follow=from_file or isinstance(self._feed, LiveFeed),
                conversations=True,
            )
            steady = self._now if from_file else time.monotonic_ns
            decode = self._decode = Decode([self._feed], options, steady)
            self._diagnosis.begin(decode, shift)
            self._connections.forget()
            for rows in decode.records():
                self._exchanges += len(rows)
                self._add(decode, rows)
                if self._metrics is not None:
                    self._metrics.add(rows)
                if self._feed.jumped or self._stopped:
                    continue  # requests cut off by a clock jump are not judged
                if isinstance(self._feed, StoredFeed) and self._feed.is_at_end:
                    continue  # the last look follows, when connections that end are known, too
                self._report_problems(self._diagnosis.look())
                self._check_periodically()
            shift = self._feed.jumped
            if self._stopped or not shift:
                break
            self._say(
                NoticeKind.CLOCK_JUMPED,
                f"the clock jumped by {shift / SECOND:+.1f} s: decoding starts again, and"
                " requests in flight are not checked",
                seconds=shift / SECOND,
            )
        if not self._stopped and isinstance(self._feed, StoredFeed):
            self._add(decode, ())  # connections whose rows came after the last exchange
            self._report_problems(self._diagnosis.watch.last_look())

    def _add(self, decode: Decode, rows: Sequence[ExchangeRecord]) -> None:
        """Pass on rows, and what else was decoded since the last call."""
        ended = decode.take_conversations()
        found = [*decode.take_findings(), *self._feed.take_findings()]
        self._diagnosis.add(rows, ended, found)
        self._connections.note(rows, ended)

    def _report_problems(self, events: Sequence[ProblemEvent]) -> None:
        if self._metrics is not None:
            started = [item.problem for item in events if item.kind is ProblemChange.STARTED]
            self._metrics.note(self._now(), started, self._diagnosis.watch.open_problems())
        if not events:
            return
        ends = {}
        if isinstance(self._feed, LiveFeed):
            for number, item in enumerate(events):
                if item.kind is ProblemChange.STARTED:
                    local = self._local_ends.of(self._connections.of(item.problem))
                    if local:
                        ends[number] = local
        for event in problem_events(events, ends):
            self._emit(event)
        if self._keeper is not None:
            self._keeper.take(events, self._diagnosis.engine.context)

    def _check_periodically(self) -> None:
        """Do periodic checks: incidents, dropped packets, status."""
        now = self._ticked = time.monotonic()
        if self._keeper is not None:
            self._report_incident(self._keeper.look(self._now()))
        if now < self._next_look:
            return
        self._next_look = now + LOOK
        self._check_losses(now)
        if self.request.status and now >= self._next_status:
            self._next_status = now + self.request.status / SECOND
            facts = self.facts()
            self._say(NoticeKind.STATUS, _state(facts), **facts)

    def _check_losses(self, now: float) -> None:
        if not isinstance(self._feed, LiveFeed):
            return
        received, dropped = self._feed.count()
        if dropped > self._dropped and now - self._dropped_at > CALM:
            self._say(
                NoticeKind.PACKETS_DROPPED,
                f"{count(dropped)} of {counted(received, 'packet')} dropped so far: exchanges"
                " are missing; capture less (-f) or use a larger --buffer",
                received=received,
                dropped=dropped,
            )
        if dropped > self._dropped:
            self._dropped, self._dropped_at = dropped, now

    def facts(self) -> dict[str, Any]:
        """Return counters and resource use of the watch."""
        feed = self._feed
        received, dropped = feed.count() if isinstance(feed, LiveFeed) else (feed.packets, 0)
        facts: dict[str, Any] = {
            "seconds": round(time.monotonic() - self._begin, 1),
            "packets": received,
            "dropped": dropped,
            "unread": max(received - dropped - feed.packets, 0),
            "exchanges": self._exchanges,
            "open_problems": len(self._diagnosis.watch.open_problems()),
            "windows": self._diagnosis.turns + 1,
            "memory_bytes": memory(),
            "cpu_seconds": round(time.process_time(), 2),
            "events": dict(self._event_counts),
            "lines_lost": self._lost_lines,
        }
        if self._ring is not None:
            facts |= {"ring_bytes": self._ring.size, "ring_packets_lost": self._ring.lost}
        if self._keeper is not None:
            facts |= {"incidents": self._keeper.kept, "incidents_failed": self._keeper.failed}
        if self._pusher is not None:
            facts["otlp"] = {"pushed": self._pusher.pushed, "failed": self._pusher.failed}
        for courier in self._couriers:
            facts[courier.name] = {
                "delivered": courier.delivered,
                "retries": courier.retries,
                "lost": courier.lost,
                "waiting": courier.waiting,
            }
        return facts

    # -- who is told ------------------------------------------------------------------------------

    def _say(self, kind: NoticeKind, text: str, **facts: object) -> None:
        """Emit an event of the watch itself."""
        self._emit(notice(kind, time.time_ns(), text, **facts))

    def _emit(self, event: WatchEvent) -> None:
        kind = str(event.value["event"])
        self._event_counts[kind] += 1
        is_problem = kind in set(ProblemChange)
        if is_problem and event.severity < self.request.severity:
            return
        for courier in self._couriers:
            courier.put(event)
        if self.request.quiet and not is_problem:
            return
        if self.request.format is WatchFormat.lines:
            self._write(_text(event, self._has_colour))
            return
        line = json_line(dict(event.value))
        self._write(line if self._array is None else self._array.rows(line))

    def _write(self, data: bytes) -> None:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError:  # full disk: continue the watch
            self._lost_lines += 1

    def _report_ring(self, reason: str) -> None:
        if reason:
            text = f"packets cannot be kept: {self.request.ring_folder}: {reason}"
            self._say(NoticeKind.RING_FAILED, text, reason=reason)
            return
        lost = self._ring.lost if self._ring is not None else 0
        text = f"packets are kept again; {counted(lost, 'packet')} lost so far"
        self._say(NoticeKind.RING_RESUMED, text, lost=lost)

    def _report_incident(self, kept: KeptIncident | None) -> None:
        if kept is None:
            return
        if kept.error:
            text = f"an incident cannot be kept: {kept.error}"
            self._say(NoticeKind.INCIDENT_FAILED, text, reason=kept.error)
            return
        text = f"{counted(kept.packets, 'packet')} around a problem → {kept.path}"
        if not kept.diagnosed:
            text += ", not diagnosed: it took too long"
        self._say(NoticeKind.INCIDENT_KEPT, text, **msgspec.to_builtins(kept))

    def _report_interface(self, interface: str, reason: str) -> None:
        kind = NoticeKind.INTERFACE_DOWN if reason else NoticeKind.INTERFACE_UP
        text = f"{interface}: {reason}; waiting for it" if reason else f"{interface} is back"
        self._say(kind, text, interface=interface)

    # -- begin and end ----------------------------------------------------------------------------

    def _open_files(self) -> None:
        request = self.request
        if request.ring_folder is None:
            return
        ring = self._ring = PacketFiles(
            request.ring_folder, request.ring, self._feed.name, request.filter, self._report_ring
        )
        if request.incidents is None:
            return
        try:
            self._keeper = IncidentKeeper(
                request.incidents,
                request.keep_severity,
                request.before,
                request.after,
                request.most_incidents,
                request.incidents_size,
                ring.between,
                self._connections,
                request.decode_as,
                request.tls_keylog,
            )
        except OSError as error:
            reason = reason_of(error)
            raise CommandError(f"--incidents: {request.incidents}: {reason}") from error

    def _open_metrics(self) -> None:
        request = self.request
        if request.metrics is None and not request.otlp:
            return
        metrics = self._metrics = TrafficMetrics(self._figures)
        if request.metrics is not None:
            self._server = MetricsServer(request.metrics, metrics.families, self._health)
        if request.otlp:
            interval = request.otlp_interval / SECOND
            self._pusher = OtlpPusher(request.otlp, metrics.families, interval)

    def _figures(self) -> list[Given]:
        """Return the metric values from outside `TrafficMetrics`."""
        feed = self._feed
        received = feed.received if isinstance(feed, LiveFeed) else feed.packets
        values: list[Given] = [
            (of.PACKETS, (), received),
            (of.DROPPED, (), feed.dropped if isinstance(feed, LiveFeed) else 0),
            (of.MEMORY, (), memory()),
            (of.CPU, (), time.process_time()),
        ]
        if isinstance(feed, LiveFeed):
            for name, state in feed.states.items():
                values.append((of.INTERFACE_UP, (name,), int(state == "up")))
        if self._ring is not None:
            values.append((of.RING_SIZE, (), self._ring.size))
            values.append((of.RING_LOST, (), self._ring.lost))
        if self._keeper is not None:
            values.append((of.INCIDENTS, (), self._keeper.kept))
            values.append((of.INCIDENTS_FAILED, (), self._keeper.failed))
        for courier in self._couriers:
            values.append((of.DELIVERED, (courier.name,), courier.delivered))
            values.append((of.DELIVERY_RETRIES, (courier.name,), courier.retries))
            values.append((of.DELIVERIES_LOST, (courier.name,), courier.lost))
        return values

    def _health(self) -> tuple[bool, dict[str, object]]:
        """Return whether the watch is healthy, and its facts."""
        behind = time.monotonic() - self._ticked
        facts: dict[str, object] = {"seconds_since_look": round(behind, 1)}
        if isinstance(self._feed, LiveFeed):
            facts["interfaces"] = self._feed.states
        return self._feed.is_open and behind < STUCK, facts

    def _opened(self) -> PacketFeed:
        request = self.request
        if request.source:
            return StoredFeed(request.source, self._keep)
        captures: list[LiveCapture] = []
        try:
            for number, name in enumerate(request.interfaces):
                live = LiveRequest(
                    interface=name,
                    filter=request.filter,
                    promiscuous=request.promiscuous,
                    buffer=request.buffer,
                    user=request.user,
                )
                # The last one is open before the rights to open interfaces are given up.
                is_last = number == len(request.interfaces) - 1
                captures.append(opened_capture(live, request.quiet, keep_rights=not is_last))
            return LiveFeed(captures, self._keep, self._report_interface, request.duration)
        except BaseException:
            for capture in captures:
                capture.close()
            raise

    def _keep(self, packets: Sequence[RingPacket]) -> None:
        if self._ring is not None:
            self._ring.linktype = self._feed.linktype or 1
            self._ring.write(packets)

    def _now(self) -> int:
        return self._decode.now if self._decode is not None else 0

    def _new_engine(self) -> Engine:
        return engine_of(self.request.rules)

    def _stop(self) -> None:
        self._stopped = True
        if self._decode is not None:
            self._decode.stop()
        if not self._feed.packets and isinstance(self._feed, StoredFeed):
            raise Terminated  # may wait for the first packet for ever

    def _end(self, why: str) -> None:
        """Close everything and report the end."""
        if self._keeper is not None:
            # Before the ring is unlocked: another watch could then remove the files that it reads.
            for kept in self._keeper.finish():
                with suppress(BrokenPipeError):
                    self._report_incident(kept)
        if self._ring is not None:
            self._ring.close()
        self._feed.end()
        if self._event_counts[NoticeKind.WATCHING]:  # otherwise it never started
            facts = self.facts()
            with suppress(BrokenPipeError):
                text = f"stopped watching {self._feed.name}: {why}; {_state(facts)}"
                self._say(NoticeKind.STOPPED, text, reason=why, **facts)
        if self._array is not None:
            with suppress(BrokenPipeError):
                self._write(self._array.end())
        for courier in self._couriers:  # after the last event
            courier.close()
        if isinstance(self._local_ends, EndsHelper):
            self._local_ends.close()
        if self._pusher is not None:
            self._pusher.close()
        if self._server is not None:
            self._server.close()


def _text(event: WatchEvent, colour: bool) -> bytes:
    lines = list(event.lines)
    if colour and lines:  # the first line of a problem begins with time, state, and severity
        word, style = LABELS[event.severity]
        lines[0] = lines[0].replace(word, styled(word, style), 1)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _state(facts: dict[str, Any]) -> str:
    missed = [f"{count(facts[word])} {word}" for word in ("dropped", "unread") if facts[word]]
    lost = f" ({', '.join(missed)})" if missed else ""
    ring = f", ring {size(facts['ring_bytes'])}" if "ring_bytes" in facts else ""
    return (
        f"{counted(facts['packets'], 'packet')}{lost}, {counted(facts['exchanges'], 'exchange')},"
        f" {counted(facts['open_problems'], 'open problem')},"
        f" memory {size(facts['memory_bytes'])}{ring}"
    )


def memory() -> int:
    """Return the memory of this process in bytes, or its peak if that is unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = natural_of(file.read().split()[1].decode()) or 0  # resident ones
            return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
