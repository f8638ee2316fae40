"""One run of `anonymize`: a file in, a file out, and a summary on standard error."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, Final, cast

from dissectors.anonymize.capture import Anonymized, CaptureAnonymizer
from dissectors.anonymize.pseudonyms import Pseudonyms
from dissectors.anonymize.rows import RowsError, rewrite_log, rewrite_rows
from dissectors.decode.decoded_log import KIND, DecodedLogError
from dissectors.decode.pipeline import DecodeOptions
from dissectors.owned_folder import FolderRefused, OwnedFolder
from dissectors.quantities import counted
from dissectors.tcp.source import STDIN, CaptureError

from ..ui.common_options import refuse_capture_options
from ..ui.errors import print_note
from ..ui.figures import size as size_text
from ..ui.output import Output, refuse_inputs
from ..ui.status import CommandError, ExitStatus
from .options import AnonymizeRequest

_LEAST_SECRET = 16
_MOST_SECRET = 1 << 20


def run_anonymize(request: AnonymizeRequest) -> ExitStatus:
    """Run the command; raise CommandError on failure."""
    names = Pseudonyms(_secret_of(request.secret), request.keep)
    if os.path.isdir(request.source):
        refuse_capture_options(request.named_options)
        _rewrite_folder(request, names)
        _report(Anonymized(replaced=names.replaced), request)
        return ExitStatus.OK
    refuse_inputs(request.output, [request.source])
    if request.output == "-" and sys.stdout.isatty():
        raise CommandError(
            "a capture cannot be shown on a terminal", "add -o FILE", ExitStatus.USAGE
        )
    output = Output(request.output, private=True, force=request.force)
    try:
        with output, _file_of(request.source) as path:
            with open(path, "rb") as file:
                head = file.read(4)
            if head[:1] == b"{" or head == b"PAR1":  # rows as JSON lines or Parquet
                refuse_capture_options(request.named_options)
                _rewrite_rows(path, request.source, names, output)
                done = Anonymized(replaced=names.replaced)
            else:
                options = DecodeOptions(decode_as=request.decode_as, max_ratio=request.max_ratio)
                anonymizer = CaptureAnonymizer(names, options)
                done = anonymizer.write(path, cast(BinaryIO, output))
    except CaptureError as error:
        raise CommandError(f"{request.source}: {error.reason}", error.hint) from None
    _report(done, request)
    return ExitStatus.OK


def _report(done: Anonymized, request: AnonymizeRequest) -> None:
    if not request.quiet:
        for line in _summary(done, request):
            print_note(line)


_SINGULAR: Final = {"addresses": "address", "bodies": "body", "names": "name", "remarks": "remark"}


def _summary(done: Anonymized, request: AnonymizeRequest) -> Iterator[str]:
    """Yield notes on replaced and dropped data."""
    if done.packets:
        commands = counted(done.commands, "command")
        yield f"rewrote {commands} in {counted(done.packets, 'packet')}"
    replaced = [
        counted(count, _SINGULAR.get(kind, kind), kind)
        for kind, count in done.replaced.items()
        if count
    ]
    yield f"replaced {', '.join(replaced) or 'nothing'}"
    if request.keep:
        yield f"kept {', '.join(sorted(request.keep))}"
    for what, count in sorted(done.dropped.items()):
        yield f"dropped {size_text(count)}: {what}"
    if done.other_packets:
        yield f"removed the payload of {counted(done.other_packets, 'packet')} that are not TCP"


def _secret_of(name: str | None) -> bytes:
    if name is None:
        return secrets.token_bytes(32)
    try:
        with open(name, "rb") as file:
            # A device such as /dev/urandom has no end.
            secret = file.read(_MOST_SECRET)
    except OSError as error:
        raise CommandError(f"--secret: {name}: {error.strerror}") from None
    if len(secret) < _LEAST_SECRET:
        raise CommandError(
            f"--secret: {name} has {len(secret)} bytes, at least {_LEAST_SECRET} are needed",
            f"make one: head -c 32 /dev/urandom > {name}",
        )
    return secret


@contextmanager
def _file_of(source: str) -> Iterator[str]:
    """Yield the path of the input, which is read twice; copy a stream first."""
    if source != STDIN and not os.path.exists(source):
        raise CommandError(f"{source}: no such file")
    if os.path.isfile(source):
        yield source
        return
    with (
        nullcontext(sys.stdin.buffer) if source == STDIN else open(source, "rb") as stream,
        tempfile.NamedTemporaryFile(prefix="rmqtool-anonymize-") as copy,
    ):
        shutil.copyfileobj(stream, copy)
        copy.flush()
        yield copy.name


def _rewrite_rows(path: str, name: str, names: Pseudonyms, output: Output) -> None:
    try:
        if names.learns:  # names that stay must stay in earlier rows and in texts as well
            with open(os.devnull, "wb") as nowhere:
                rewrite_rows(Path(path), nowhere, names)
            names.start_over()
        rewrite_rows(Path(path), cast(BinaryIO, output), names)
    except RowsError as error:
        raise CommandError(f"{name}: {error}") from None


def _rewrite_folder(request: AnonymizeRequest, names: Pseudonyms) -> None:
    source = Path(request.source)
    if request.output == "-":
        raise CommandError("a decoded log is a folder", "add -o FOLDER", ExitStatus.USAGE)
    output = OwnedFolder(Path(request.output), KIND, request.force, [request.source], True)
    try:
        rewrite_log(source, output.path, names)
        output.finish()
    except (DecodedLogError, FolderRefused, RowsError) as error:
        output.discard()
        raise CommandError(str(error)) from None
    except BaseException:
        output.discard()
        raise
