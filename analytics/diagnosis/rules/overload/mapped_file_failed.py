"""A broker cannot create the next file of its commit log."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode

from ...context import Need
from ...problem import ProblemSeverity
from ...refusals import RefusingBroker, refused_with
from ...rule import COVERED, DiagnosisRule

MARKS: Final = (
    "create mapped file failed",
    "Create mapped file failed",
    "create maped file failed",
    "CREATE_MAPPED_FILE_FAILED",
)
"""SendMessageProcessor, EndTransactionProcessor, AbstractSendMessageProcessor (returned)"""


class _Fold(RefusingBroker):
    because = "it cannot create the next file of its commit log"


RULE = DiagnosisRule(
    id="mapped-file-failed",
    severity=ProblemSeverity.ERROR,
    title="The broker cannot create the next file of its commit log",
    searched=("create mapped file failed, server is busy or broken.", "CREATE_MAPPED_FILE_FAILED"),
    proof="Response code 1 to a send, with the remark `create mapped file failed`.",
    explanation=(
        "The commit log consists of 1 GB files. When one is full, the broker creates the next one,"
        " ahead of time if possible. That failed or took more than five seconds. Nothing was"
        " stored."
    ),
    advice=(
        "Check the broker's store.log. Usually, the disk is full, too slow, or read-only, or the"
        " limit of mapped memory (vm.max_map_count) or of open files is reached. With"
        " warmMapedFileEnable (default false), creating a file takes longer."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=refused_with(*MARKS, codes=(ResponseCode.SYSTEM_ERROR,)),
    needs={Need.SENDS},
)
