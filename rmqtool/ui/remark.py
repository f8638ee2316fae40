"""Remarks of responses for people: the cause first, without boilerplate.

RocketMQ: FAQUrl.suggestTodo, RemotingHelper.exceptionSimpleDesc, SendMessageProcessor (disk full).
"""

from __future__ import annotations

import re

from .console import one_line

LONGEST = 2_000
"""Characters of a remark that are read; a captured remark may have millions."""
_BLANKS = re.compile(" {2,}")
# Repetitions are bounded: a hostile remark must not take quadratic time.
_NAMES = r"(?:[\w$]{1,200}\.){1,20}[\w$]{1,200}"
_BOILERPLATE: tuple[tuple[re.Pattern[str], str], ...] = (
    # exception class and position in Java
    (re.compile(rf"^(?:{_NAMES}(?:Exception|Error): *){{1,3}}", re.ASCII), ""),
    (re.compile(rf", {_NAMES}\([\w$]{{1,200}}\.java:\d+\)", re.ASCII), ""),
    # links to further reading
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
"""patterns and replacements, in order"""


def cause_of(remark: str | None) -> str:
    """Return a remark as one printable line; empty if absent.

    Boilerplate is removed: class names, positions in Java sources, web addresses. A remark of
    nothing else is returned unchanged.
    """
    if remark is None:
        return ""
    text = remark[:LONGEST]
    for pattern, replacement in _BOILERPLATE:
        text = pattern.sub(replacement, text)
    text = _BLANKS.sub(" ", text).strip() or remark[:LONGEST]
    return one_line(text) + ("…" if len(remark) > LONGEST else "")
