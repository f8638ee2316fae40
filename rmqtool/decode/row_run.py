"""Rows of one kind on their way from the captures to the output, and what all kinds share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from dissectors.where.fields import FieldSet
from dissectors.where.filter import Test, WhereError, compile_where

from ..ui.console import UNLIMITED, Terminal, When, terminal_of
from ..ui.output import Output
from ..ui.status import CommandError, ExitStatus
from .options import DecodeRequest
from .sinks import Sink

Row = TypeVar("Row")


class RowSource(NamedTuple, Generic[Row]):
    """Rows of one kind: where they come from and what can be asked of them."""

    batches: Callable[[], Iterator[Sequence[Row]]]
    """starts to read"""
    test: Test | None
    """the filter; None: all"""
    time: Callable[[Row], int | None]
    """when a row was, for --since and --until"""
    sink: Callable[[], Sink[Row]]
    """opens the output"""
    noun: str
    """what a row is, in the plural"""


def compiled(request: DecodeRequest, fields: FieldSet) -> Test | None:
    """Return the filter; an error in it becomes a usage error that points at the place."""
    if not request.where.strip():
        return None
    try:
        return compile_where(request.where, fields, request.zone)
    except WhereError as error:
        raise CommandError(f"--where: {error.reason}", error.pointed(), ExitStatus.USAGE) from None


def is_live(request: DecodeRequest) -> bool:
    """Return whether rows come as they happen, so that none should wait for others."""
    return request.follow or "-" in request.sources


def output_terminal(request: DecodeRequest, output: Output) -> Terminal:
    """Return what the output can show; a file shows no colour unless that is asked for."""
    if output.path is None:
        return terminal_of(sys.stdout, request.colour)
    return Terminal(False, UNLIMITED, request.colour is When.always)
