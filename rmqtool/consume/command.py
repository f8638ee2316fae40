"""`rmqtool consume` and `rmqtool topic`: their help; the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import ConsumeCommand, TopicCommand


def _consume(request: ConsumeCommand) -> ExitStatus:
    """Read a topic without joining a group or committing offsets.

    Examples:
      rmqtool consume -n 127.0.0.1:9876 Orders
      rmqtool consume Orders --start 2026-11-20T10:00:00 -c 100 -T jsonl
      rmqtool consume Orders --start end --follow --tags paid
      rmqtool consume Orders --key order-17 -T body
      rmqtool consume Orders -T body | rmqtool send -t Copies -

    Ends at the newest message unless --follow is given. Asks before
    connecting to non-loopback brokers listed by the NameServer.
    """
    from .run import run_consume

    return run_consume(request)


def _topic(request: TopicCommand) -> ExitStatus:
    """Show the route, offsets, and consumer lag of a topic.

    Examples:
      rmqtool topic -n 127.0.0.1:9876 Orders
      rmqtool topic Orders --group billing
      rmqtool topic Orders -T json | jq '.groups[] | {group, lag}'

    Asks before connecting to non-loopback brokers listed by the NameServer.
    """
    from .run import run_topic

    return run_topic(request)


consume = command_with(ConsumeCommand, _consume)
topic = command_with(TopicCommand, _topic)
