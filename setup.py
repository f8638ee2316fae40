"""Compiles the modules of the decode path with mypyc, where that is asked for.

`RMQTOOL_COMPILE=1 pip install .` and `make compile` do; without it the same modules run as they
are. One list of modules, one source.
"""

from __future__ import annotations

import os

from setuptools import setup

COMPILED_MODULES = [
    "dissectors/tcp/capture.py",
    "dissectors/tcp/pcap.py",
    "dissectors/tcp/pcapng.py",
    "dissectors/tcp/fragments.py",
    "dissectors/tcp/segment.py",
    "dissectors/tcp/reassembly.py",
    "dissectors/remoting/counting.py",
    "dissectors/remoting/header_codec.py",
    "dissectors/remoting/frame_layout.py",
    "dissectors/remoting/frame_search.py",
    "dissectors/remoting/frame.py",
    "dissectors/recognition.py",
    "dissectors/conversation.py",
    "dissectors/exchange.py",
    "dissectors/table.py",
    "dissectors/stages.py",
    "dissectors/row.py",
    "dissectors/timed_rows.py",
]


def _extensions() -> list[object]:
    if os.environ.get("RMQTOOL_COMPILE") != "1":
        return []
    from mypyc.build import mypycify

    return list(
        mypycify(COMPILED_MODULES, opt_level="3", debug_level="0", group_name="dissectors.compiled")
    )


setup(ext_modules=_extensions())
