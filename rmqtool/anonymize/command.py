"""`rmqtool anonymize`: its help; the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import AnonymizeRequest


def _run(request: AnonymizeRequest) -> ExitStatus:
    """Replace names, addresses, and bodies, so that a capture can be shared.

    Diagnosis, reports, and traces of the result are those of the original,
    with pseudonyms. What cannot be decoded is dropped and counted.

    Examples:
      rmqtool anonymize incident.pcapng -o shared.pcapng
      rmqtool anonymize day2.pcap -o day2-shared.pcapng --secret secret.key
      rmqtool anonymize incident.pcap -o shared.pcapng --keep topics,groups
      rmqtool anonymize rows.jsonl -o shared.jsonl --secret secret.key
      rmqtool anonymize log/ -o shared/ --secret secret.key

    Kinds for --keep: addresses, names, remarks, bodies; of names also topics,
    groups, brokers, clients, keys, tags.

    A secret file has at least 16 bytes, and gives the same pseudonyms for every
    file: head -c 32 /dev/urandom > secret.key

    More: rmqtool help anonymize.
    """
    from .run import run_anonymize

    return run_anonymize(request)


anonymize = command_with(AnonymizeRequest, _run)
