"""Compiles the modules of the decode path with mypyc, where that is asked for.

`RMQTOOL_COMPILE=1 pip install .` and `make compile` do; without it the same modules run as they
are. One list of modules, one source.
"""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

COMPILED_MODULES = [
    "dissectors/tcp/capture.py",
    "dissectors/tcp/pcap.py",
    "dissectors/tcp/pcapng.py",
    "dissectors/tcp/segment.py",
    "dissectors/tcp/passed_flows.py",
    "dissectors/tcp/segment_reader.py",
    "dissectors/tcp/reassembly.py",
    "dissectors/foreign.py",
    "dissectors/remoting/header_codec.py",
    "dissectors/remoting/framing/search.py",
    "dissectors/remoting/framing/frame.py",
    "dissectors/remoting/framing/frame_decoder.py",
    "dissectors/conversations/recognition.py",
    "dissectors/conversations/header_view.py",
    "dissectors/plain_json.py",
    "dissectors/conversations/header_scan.py",
    "dissectors/conversations/conversation.py",
    "dissectors/conversations/tls_state.py",
    "dissectors/conversations/conversation_states.py",
    "dissectors/conversations/http2_state.py",
    "dissectors/decode/exchange.py",
    "dissectors/conversations/conversation_table.py",
    "dissectors/decode/stages.py",
    "dissectors/decode/exchange_row.py",
    "dissectors/rows/row_sink.py",
    "dissectors/rows/column_bytes.py",
    "dissectors/decode/exchange_forms.py",
    "dissectors/remoting/code_names.py",
    "dissectors/remoting/headers.py",
    "dissectors/remoting/ids/message_ids.py",
    "dissectors/remoting/ids/parts.py",
    "dissectors/remoting/messages/properties.py",
    "dissectors/remoting/messages/record_layout.py",
    "dissectors/remoting/messages/records.py",
    "dissectors/remoting/messages/whole_record.py",
    "dissectors/remoting/topic_names.py",
    "dissectors/remoting/bodies/messages.py",
    "dissectors/remoting/bodies/message_texts.py",
    "dissectors/remoting/bodies/registry.py",
    "dissectors/decode/command_order.py",
    "dissectors/decode/command_row.py",
    "dissectors/remoting/fastjson/codec.py",
    "dissectors/remoting/bodies/json_body.py",
    "dissectors/remoting/bodies/secrets.py",
    "dissectors/remoting/flags.py",
    "dissectors/budget.py",
    "dissectors/message_rows/seen_exchange.py",
    "dissectors/message_rows/record_view.py",
    "dissectors/message_rows/message_writer.py",
    "dissectors/message_rows/stored.py",
    "dissectors/message_rows/sends.py",
    "dissectors/message_rows/message_table.py",
    "rmqtool/decode/tree.py",
    "dissectors/json_bytes.py",
    "dissectors/rows/timed_rows.py",
    "dissectors/processes/merging.py",
]
BUILDS = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}
"""commands that need the modules in C; those that ask for metadata come before and beside them"""


def _extensions() -> list[object]:
    if os.environ.get("RMQTOOL_COMPILE") != "1" or BUILDS.isdisjoint(sys.argv):
        return []
    from mypyc.build import mypycify

    extensions = mypycify(
        COMPILED_MODULES, opt_level="3", debug_level="0", group_name="dissectors.compiled"
    )
    if sys.platform == "linux":  # else functions of a shared library call each other by a table
        for extension in extensions:
            extension.extra_compile_args.append("-fno-semantic-interposition")
    return list(extensions)


class WithDocuments(build_py):
    """Copies docs/ into the package, where `rmqtool help` reads it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib, "rmqtool", "documents")
        folder.mkdir(parents=True, exist_ok=True)
        for document in sorted(Path("docs").glob("*.md")):
            self.copy_file(str(document), str(folder / document.name))


class Reproducible(sdist):
    """Writes the same bytes for the same files, where SOURCE_DATE_EPOCH gives the time of all.

    setuptools heeds it in wheels only.
    """

    def make_archive(
        self,
        base_name: str,
        format: str,
        root_dir: str | None = None,
        base_dir: str | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> str:
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if format != "gztar" or epoch is None or root_dir is not None or base_dir is None:
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime = int(epoch)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() else 0o644
            return member

        name = f"{base_name}.tar.gz"
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=plain)  # in the order of names
        return name


class PlainModes(bdist_wheel):
    """Gives files and folders their usual modes: those of the sources follow somebody's umask."""

    def write_wheelfile(self, wheelfile_base: str, *rest: str) -> None:
        super().write_wheelfile(wheelfile_base, *rest)
        for path in Path(self.bdist_dir).rglob("*"):
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


setup(
    ext_modules=_extensions(),
    cmdclass={"build_py": WithDocuments, "sdist": Reproducible, "bdist_wheel": PlainModes},
)
