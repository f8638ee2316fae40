"""What `make docs` changes in pages before it renders them (`hooks` of mkdocs.yml)."""

from __future__ import annotations

import re

_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Take the backslash from `\\|` in the code of tables.

    GitHub wants it there, Python-Markdown would show it.
    """
    return _ROW.sub(
        lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown
    )
