"""What `make docs` changes in pages before it renders them (`hooks` of mkdocs.yml)."""

from __future__ import annotations

import re

_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
_RULES = re.compile(r"\bRules?:\s+`[a-z0-9-]+`(?:,\s+`[a-z0-9-]+`)*")
RULE = re.compile(r"`([a-z0-9-]+)`")


def on_page_markdown(markdown: str, **context: object) -> str:
    """Link the rules of the troubleshooting page, and remove the backslash from `\\|` in tables.

    GitHub needs that backslash in code, Python-Markdown would show it. `rmqtool help` shows rules
    without links, so the page has none.
    """
    source = getattr(context.get("page"), "file", None)
    if getattr(source, "src_uri", "") == "troubleshooting.md":
        markdown = rules_linked(markdown)
    return _ROW.sub(
        lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown
    )


def rules_linked(markdown: str) -> str:
    """Return the page with each rule after `Rule:` or `Rules:` linked to its section."""
    return _RULES.sub(
        lambda rules: RULE.sub(r"[`\1`](diagnosis.md#\1)", rules[0]),
        markdown,
    )
