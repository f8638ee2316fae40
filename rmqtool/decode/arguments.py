"""The options of `decode pcap`: each is declared once, with type, help and default."""

from __future__ import annotations

from dataclasses import dataclass

from dissectors.tcp.decompression import MOST_TIMES

from ..ui import common_options as options
from ..ui.console import When


@dataclass(slots=True)
class DecodeArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    captures: options.Captures
    commands: options.Commands = False
    verbose: options.Verbose = False
    summary: options.SummaryOnly = False
    follow_conversation: options.FollowConversation = None
    messages: options.Messages = False
    list_messages: options.ListMessages = False
    where: options.Where = ""
    since: options.Since = None
    until: options.Until = None
    tz: options.TimeZone = "UTC"
    limit: options.Limit = None
    sort: options.Sort = None
    format: options.FormatName = None
    output: options.OutputName = "-"
    force: options.Force = False
    body_limit: options.BodyLimit = None
    max_output: options.MaxOutput = None
    colour: options.Color = When.auto
    pager: options.Pager = False
    quiet: options.Quiet = False
    check: options.Check = False
    fail_on: options.FailOn = None
    decode_as: options.DecodeAs = None
    tls_keylog: options.TlsKeylog = None
    max_ratio: options.MaxRatio = MOST_TIMES
    plugin: options.Plugins = None
    no_message_rows: options.NoMessageRows = False
    follow: options.Follow = False
    jobs: options.Jobs = None
