"""What a user asked `decode live` for, checked: texts of the command line become values."""

from __future__ import annotations

import sys
from dataclasses import fields, replace

from dissectors.decode.secrets import key_log_named

from ..decode.arguments import DecodeArguments
from ..decode.options import DecodeRequest, View, body_limit_option, request_of
from ..ui.option_values import duration_option, size_option, usage_error
from ..ui.status import CommandError, ExitStatus
from .arguments import LiveArguments
from .keeping import refuse_stdout
from .request import LiveRequest
from .run import seconds_of

NO_INTERFACE = "no interface given; use -i NAME"


def live_request_of(given: LiveArguments) -> LiveRequest:
    """Return where packets come from; raise CommandError where it makes no sense."""
    if not given.interface:
        raise CommandError(
            NO_INTERFACE, "list interfaces: rmqtool decode live -D", ExitStatus.USAGE
        )
    refuse_stdout(given.keep)
    secrets = key_log_named(given.tls_keylog) if given.write_secrets else ""
    if given.write_secrets and not (given.keep and secrets):
        raise usage_error("--write-secrets", "needs -w FILE and --tls-keylog FILE")
    return LiveRequest(
        given.interface,
        given.filter,
        given.keep,
        given.force,
        secrets,
        seconds_of("--duration", given.duration),
        not given.no_promiscuous,
        size_option("--buffer", given.buffer) or 0,
        given.user,
        tuple(given.plugin or ()),
    )


def decode_request_of(given: LiveArguments) -> DecodeRequest:
    """Return how what is captured is decoded, by the options that `decode pcap` has, too."""
    names = {one.name for one in fields(LiveArguments)} - {"plugin"}
    shared = {
        one.name: getattr(given, one.name) for one in fields(DecodeArguments) if one.name in names
    }
    request = request_of(DecodeArguments([given.interface or ""], follow=True, **shared))
    somebody_watches = sys.stderr.isatty() and not request.quiet
    return replace(
        request,
        body_limit=body_limit_option(given.body_limit, given.plugin, request.view),
        watched=request.view is View.exchanges and somebody_watches,
        unanswered_after=_positive("--unanswered-after", given.unanswered_after),
    )


def _positive(option: str, text: str) -> int:
    """Return the nanoseconds that an option names; raise CommandError where it is none."""
    length = duration_option(option, text)
    if not length:
        raise usage_error(option, f"not a valid duration: {text!r}; give 5s or 500ms")
    return int(length)
