"""The options of `anonymize`, each declared once."""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.anonymize import KINDS, NAME_KINDS

from ..ui import common_options as common
from ..ui.declared import argument, declared, named_options, option
from ..ui.option_values import usage_error


def _kept(name: str, texts: list[str] | None) -> frozenset[str]:
    kinds = [kind for text in texts or [] for kind in text.split(",") if kind]
    known = ", ".join((*KINDS, *NAME_KINDS))
    if texts and not kinds:
        raise usage_error(name, f"names no kind; the kinds are: {known}")
    for kind in kinds:
        if kind not in (*KINDS, *NAME_KINDS):
            raise usage_error(name, f"unknown kind: {kind!r}; the kinds are: {known}")
    return frozenset(kinds)


@declared
class AnonymizeRequest:
    """The options of `anonymize`."""

    source: str = argument(
        "FILE|FOLDER|-", "Capture, rows (JSON lines, Parquet), or decoded log.", "", required=True
    )
    output: str = option(
        "Output file, or folder for a decoded log.", "Output", "-", metavar="FILE|FOLDER|-"
    )
    force: bool = common.FORCE
    quiet: bool = common.QUIET
    secret: str | None = option(
        "File with the secret for pseudonyms (default: a new random one).",
        "Pseudonyms",
        metavar="FILE",
    )
    keep: frozenset[str] = option(
        "Keep values of this kind, such as topics or bodies; repeatable.",
        "Pseudonyms",
        metavar="KIND[,..]",
        value=frozenset(),
        typed=list[str] | None,
        read=_kept,
    )
    decode_as: frozenset[int] = common.DECODE_AS
    max_ratio: int = common.MAX_RATIO
    named_options: Mapping[str, str] = named_options()
