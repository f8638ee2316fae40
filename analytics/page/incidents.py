"""Incidents as cards: each problem with its sentence, its proof, why, and what to do.

Rules as for the charts: every text is escaped, no style and no address of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..report import Row
from .charts import Show, escaped

MOST_CARDS: Final = 100
"""problems that have a card; the table has all"""
_SEVERITIES: Final = frozenset(("error", "warning", "info"))


def incident_cards(rows: Sequence[Row], shown_time: Show) -> str:
    """Return the problems, those of one incident together; empty where there is none."""
    incidents: dict[object, list[Row]] = {}
    for row in rows[:MOST_CARDS]:
        incidents.setdefault(row["incident"], []).append(row)
    cards = "".join(
        f'<li class="incident">{"".join(_problem(row, shown_time) for row in incident)}</li>'
        for incident in incidents.values()
    )
    if not cards:
        return ""
    more = len(rows) - MOST_CARDS
    rest = f'<p class="dim">{more} further problems are in the table below.</p>' if more > 0 else ""
    return f'<ol class="incidents">{cards}</ol>{rest}'


def _problem(row: Row, shown_time: Show) -> str:
    severity = str(row["severity"])
    kind = severity if severity in _SEVERITIES else "info"
    follows = " follows" if row["consequence_of"] is not None else ""
    first, last = shown_time(row["first_time"]), shown_time(row["last_time"])
    when = first if first == last else f"{first} to {last}"
    often = f", {row['count']} times" if row["count"] != 1 else ""
    reason = f" ({row['reason']})" if row["reason"] else ""
    facts = f"{when}{often}; {row['confidence']}{reason}; rule {row['rule']}"
    return (
        f'<article class="problem {kind}{follows}"><p><span class="severity">{escaped(kind)}</span>'
        f" <strong>{escaped(row['title'])}</strong></p>"
        f'<p class="dim">{escaped(facts)}</p>'
        f"<p>{escaped(row['advice'])}</p>"
        f"<details><summary>Proof and explanation</summary>"
        f"{_list('', row['details'])}<p>{escaped(row['explanation'])}</p>"
        f"{_list('Proof', row['evidence'])}"
        f"<p>Wireshark: <code>{escaped(row['filter'])}</code></p>"
        f"{_list('See', row['references'])}</details></article>"
    )


def _list(heading: str, values: object) -> str:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        return ""
    items = "".join(f"<li>{escaped(value)}</li>" for value in values)
    title = f"<p>{escaped(heading)}</p>" if heading else ""
    return f"{title}<ul>{items}</ul>"
