"""`rmqtool decode hex` and `decode stream`: their help; their options are in `options`."""

from __future__ import annotations

from dataclasses import replace

from ..decode.options import View
from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import HexRequest


def _hex(request: HexRequest) -> ExitStatus:
    """Decode one frame from pasted hex, base64, or a hex dump.

    Accepts plain hex, base64, and dumps of xxd, hexdump -C, Wireshark, or Netty.

    Examples:
      rmqtool decode hex 0000006e 00000064 7b22636f6465...
      grep -om1 'frame=[0-9a-f]*' broker.log | cut -c7- | rmqtool decode hex -
      xxd frame.bin | rmqtool decode hex -T jsonl
    """
    from .run import run_hex

    return run_hex(replace(request, view=View.commands if request.commands else View.tree))


def _stream(request: HexRequest) -> ExitStatus:
    """Decode a raw byte stream: one line per command, with its offset.

    The stream may start anywhere. Bytes outside frames are reported by offset.
    Reads Wireshark's "Follow TCP Stream" hex dumps, both directions.

    Examples:
      rmqtool decode stream stream.bin
      rmqtool decode stream -V follow.txt
      nc -l 10911 | rmqtool decode stream --input raw -
    """
    from .run import run_hex

    return run_hex(replace(request, view=View.tree if request.verbose else View.commands))


decode_hex = command_with(HexRequest, _hex, ("verbose",))
decode_stream = command_with(HexRequest, _stream, ("commands",))
