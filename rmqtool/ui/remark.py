"""Remarks of responses as people need them: the cause first, without what is always the same.

RocketMQ: FAQUrl.suggestTodo, RemotingHelper.exceptionSimpleDesc, SendMessageProcessor (disk full).
"""

from __future__ import annotations

import re

from .console import one_line

LONGEST = 2_000
"""Characters of a remark that are looked at; a captured one may have millions."""
_BLANKS = re.compile(" {2,}")
_NAMES = r"(?:[\w$]{1,200}\.){1,20}[\w$]{1,200}"
_BOILERPLATE: tuple[tuple[re.Pattern[str], str], ...] = (
    # the class of an exception, and where Java threw it
    (re.compile(rf"^(?:{_NAMES}(?:Exception|Error): *){{1,3}}", re.ASCII), ""),
    (re.compile(rf", {_NAMES}\([\w$]{{1,200}}\.java:\d+\)", re.ASCII), ""),
    # where to read on
    (re.compile(r"\s*See https?://\S+ for further details\.?"), ""),
    (re.compile(r"\s*For more information, please visit the url,? *https?://\S+"), ""),
    # a sentence before the cause
    (
        re.compile(
            r"service not available now\. It may be caused by one of the following reasons: *"
            r"(.*?)(?:, etc)?\.?$",
            re.DOTALL,
        ),
        r"one of: \1",
    ),
)
"""what is replaced, by what; in this order"""


def cause_of(remark: str | None) -> str:
    """Return what a remark says, as one printable line; absent is empty.

    What is left out says nothing of the case: class names, places in Java sources, addresses of
    web pages. A remark that is nothing else is returned as it is.
    """
    if remark is None:
        return ""
    text = remark[:LONGEST]
    for pattern, replacement in _BOILERPLATE:
        text = pattern.sub(replacement, text)
    text = _BLANKS.sub(" ", text).strip() or remark[:LONGEST]
    return one_line(text) + ("…" if len(remark) > LONGEST else "")
