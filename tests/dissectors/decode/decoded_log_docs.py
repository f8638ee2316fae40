"""The tables of docs/decoded-log.md, made from the code; run as a module, it writes them.

python -m tests.dissectors.decode.decoded_log_docs
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dissectors.decode.decoded_log import FINDING_COLUMNS, CaptureEntry, Manifest
from dissectors.decode.log_parts import PartEntry
from dissectors.remoting.row_facts.names import FACTS
from dissectors.replication.progress import Replication
from dissectors.rows.column import RENAMED, Column
from dissectors.rows.command_record import COMMAND_COLUMNS
from dissectors.rows.conversation_facts import CONVERSATION_FACTS
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.message_record import EVENTS, MESSAGE_COLUMNS
from dissectors.rows.record import COLUMNS
from dissectors.where.fields import MESSAGE_ALIASES

MEMBERS: tuple[tuple[str, type], ...] = (
    ("", Manifest),
    ("captures.", CaptureEntry),
    ("parts.", PartEntry),
    ("replications.", Replication),
)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "decoded-log.md"


def columns_table() -> str:
    """The columns of an exchange."""
    return _table_of(COLUMNS)


def conversations_table() -> str:
    """The columns of conversations.parquet."""
    return _table_of(CONVERSATION_COLUMNS)


def messages_table() -> str:
    """The columns of the table of messages."""
    return _table_of(MESSAGE_COLUMNS)


def events_table() -> str:
    """The events of messages."""
    rows = [f"| `{name}` | {_cell(meaning)} |" for name, meaning in EVENTS.items()]
    return "\n".join(["| event | means |", "|---|---|", *rows])


def message_names_table() -> str:
    """The names that filters of messages take beside the columns."""
    rows = [f"| `{alias.name}` | {_cell(alias.meaning)} |" for alias in MESSAGE_ALIASES]
    return "\n".join(["| name | is |", "|---|---|", *rows])


def facts_table() -> str:
    """The names in the column `facts` of an exchange."""
    return _facts_of(FACTS)


def conversation_facts_table() -> str:
    """The names in the column `facts` of conversations.parquet."""
    return _facts_of(CONVERSATION_FACTS)


def _facts_of(facts: Iterable[tuple[str, str, str]]) -> str:
    rows = [f"| `{name}` | {_cell(meaning)} | {_cell(source)} |" for name, meaning, source in facts]
    return "\n".join(["| fact | value | source |", "|---|---|---|", *rows])


def _table_of(columns: Sequence[Column]) -> str:
    rows = [
        f"| `{c.name}` | {c.type} | {c.unit} | {_cell(c.meaning)} | {_cell(c.source)} |"
        for c in columns
    ]
    return "\n".join(
        ["| column | type | unit | meaning | source |", "|---|---|---|---|---|", *rows]
    )


def findings_table() -> str:
    """The columns of findings.parquet."""
    rows = [f"| `{c.name}` | {c.type} | {_cell(c.meaning)} |" for c in FINDING_COLUMNS]
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows])


def manifest_table() -> str:
    """The members of manifest.json, nested ones with a dot."""
    rows = []
    for prefix, cls in MEMBERS:
        rows += [f"| `{prefix}{name}` | {_cell(text)} |" for name, text in field_texts(cls)]
    return "\n".join(["| member | meaning |", "|---|---|", *rows])


def commands_table() -> str:
    """The members of a command's JSON."""
    rows = [f"| `{c.name}` | {c.type} | {c.unit} | {_cell(c.meaning)} |" for c in COMMAND_COLUMNS]
    return "\n".join(["| member | type | unit | meaning |", "|---|---|---|---|", *rows])


def renamed_table() -> str:
    """The columns that had another name."""
    rows = [f"| `{old}` | `{new}` |" for old, new in RENAMED.items()]
    return "\n".join(["| before | now |", "|---|---|", *rows])


def field_texts(cls: type) -> list[tuple[str, str]]:
    """The fields of a documented class with the string under each."""
    (body,) = (node for node in ast.parse(inspect.getsource(cls)).body)
    assert isinstance(body, ast.ClassDef)
    found = []
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            found.append((field.target.id, str(text.value.value)))
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


TABLES = {
    "columns": columns_table,
    "facts": facts_table,
    "messages": messages_table,
    "events": events_table,
    "message names": message_names_table,
    "conversations": conversations_table,
    "conversation facts": conversation_facts_table,
    "findings": findings_table,
    "manifest": manifest_table,
    "commands": commands_table,
    "renamed": renamed_table,
}


def page() -> str:
    """The page with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        text, count = pattern.subn(lambda _, m=make, b=begin, e=end: f"{b}\n{m()}\n{e}", text)
        assert count == 1, f"{PAGE.name} has no place for {name}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
