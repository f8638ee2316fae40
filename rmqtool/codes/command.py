"""`rmqtool codes`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import CodesRequest


def _run(request: CodesRequest) -> ExitStatus:
    """Look up codes, headers, bodies, properties, and versions.

    Examples:
      rmqtool codes 310
      rmqtool codes 3442                  a code truncated to 16 bits
      rmqtool codes response 17
      rmqtool codes PopMessageRequestHeader
      rmqtool codes UNIQ_KEY
      rmqtool codes --kind response --format json

    Codes and fields of all headers: rmqtool codes.
    """

    from .run import run_codes

    return run_codes(request)


codes = command_with(CodesRequest, _run)
