"""`rmqtool anonymize`: its help; the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import AnonymizeRequest


def _run(request: AnonymizeRequest) -> ExitStatus:
    """Replace names, addresses, and bodies, so that a capture can be shared.

    The result gives the same diagnosis, reports, and traces as the original,
    but with pseudonyms. Data that cannot be decoded is dropped and counted.

    Examples:
      rmqtool anonymize incident.pcapng -o shared.pcapng
      rmqtool anonymize day2.pcap -o day2-shared.pcapng --secret secret.key
      rmqtool anonymize incident.pcap -o shared.pcapng --keep topics,groups
      rmqtool anonymize rows.jsonl -o shared.jsonl --secret secret.key
      rmqtool anonymize log/ -o shared/ --secret secret.key

    Kinds for --keep: addresses, names, remarks, bodies; or only some
    names: topics, groups, brokers, clients, keys, tags.

    A secret file needs at least 16 bytes, and gives every file the same
    pseudonyms. To create one: head -c 32 /dev/urandom > secret.key

    More: rmqtool help anonymize.
    """
    from .run import run_anonymize

    return run_anonymize(request)


anonymize = command_with(AnonymizeRequest, _run)
