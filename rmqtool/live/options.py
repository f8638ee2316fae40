"""What a user asked `decode live` for, checked: texts of the command line become values."""

from __future__ import annotations

from ..decode.options import (
    DecodeRequest,
    conditions_of,
    format_of,
    ports_of,
    size_option,
    time_option,
    view_of,
    zone_option,
)
from ..ui.status import CommandError, ExitStatus
from .arguments import LiveArguments
from .run import LiveRequest, refuse_stdout, seconds_of

NO_INTERFACE = "which interface? give -i NAME"


def live_request_of(given: LiveArguments) -> LiveRequest:
    """Return where packets come from; raise CommandError where it makes no sense."""
    if not given.interface:
        raise CommandError(NO_INTERFACE, "rmqtool decode live -D shows them", ExitStatus.USAGE)
    refuse_stdout(given.keep)
    return LiveRequest(
        given.interface,
        given.filter,
        given.keep,
        seconds_of("--duration", given.duration),
        not given.no_promiscuous,
        size_option("--buffer", given.buffer) or 0,
    )


def decode_request_of(given: LiveArguments) -> DecodeRequest:
    """Return how what is captured is decoded; raise CommandError where it makes no sense."""
    zone = zone_option(given.tz)
    view = view_of(given.commands, given.verbose, given.summary)
    return DecodeRequest(
        sources=[given.interface or ""],
        view=view,
        format=format_of(given.format, given.output, view),
        output=given.output,
        force=given.force,
        where=given.where,
        since=time_option("--since", given.since, zone),
        until=time_option("--until", given.until, zone),
        zone=zone,
        limit=given.limit,
        body_limit=size_option("--body-limit", given.body_limit),
        decode_as=ports_of(given.decode_as or []),
        follow=True,
        check=given.check,
        fail_on=conditions_of(given.fail_on or [], view),
        quiet=given.quiet,
        colour=given.colour,
    )
