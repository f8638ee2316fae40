"""A broker cannot make the next file of its commit log."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...need import Need
from ...problem import ProblemSeverity
from ...refusals import refused_with
from ...rule import COVERED, DiagnosisRule
from .refusing_broker import RefusingBroker

MARKS: Final = (
    "create mapped file failed",
    "Create mapped file failed",
    "create maped file failed",
    "CREATE_MAPPED_FILE_FAILED",
)
"""SendMessageProcessor, EndTransactionProcessor, AbstractSendMessageProcessor (sent back)."""


class _Fold(RefusingBroker):
    because = "it cannot make the next file of its commit log"


RULE = DiagnosisRule(
    id="mapped-file-failed",
    severity=ProblemSeverity.ERROR,
    title="The broker cannot create the next file of its commit log",
    searched=("create mapped file failed, server is busy or broken.", "CREATE_MAPPED_FILE_FAILED"),
    proof="A send is answered with code 1 and the remark `create mapped file failed`.",
    explanation=(
        "The commit log is a row of files of 1 GB. When one is full the broker makes the next one,"
        " ahead of time if it can. That failed or took more than five seconds. Nothing was stored."
    ),
    advice=(
        "Look in the broker's store.log. Mostly the disk is full, too slow, or read-only, or the"
        " limits of mapped memory (vm.max_map_count) or of open files are reached."
        " warmMapedFileEnable (default false) makes a new file slow to get."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SYSTEM_ERROR,)),
    needs=frozenset((Need.SENDS,)),
)
