"""A table expression as Spark SQL text over named inputs; an engine executes it.

Rules: a relation has its columns and its text, never its rows. Expressions are Spark SQL that
`analytics.sql.dialect` translates for DuckDB; both engines give the same rows. The text has only
the columns that are read: with all of them, planning took a third of the CPU of all reports of a
small capture.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from .expressions import quoted

if TYPE_CHECKING:
    import pyarrow

_NAMED: Final = re.compile(r"(?s).+\sas\s+`?(\w+)`?\s*")
_COLUMN: Final = re.compile(r"(?:`?(\w+)`?\.)?`?(\w+)`?")
_ALIAS: Final = re.compile(r"\sas\s+`?\w+`?\s*$")
_WORD: Final = re.compile(r"\w+")
_ROWS: Final = re.compile(r"\bexplode\(")
"""An expression that makes rows: they are there even if its values are not read."""
EVERY: Final = "*"
"""All columns, in `Relation.select`."""


class SelectList(dict[str, str]):
    """Column -> SQL with its name, in a select that may omit columns."""

    def read_for(self, needed: set[str]) -> SelectList:
        """Return the columns that readers need, at least one."""
        kept = {
            name: sql
            for name, sql in self.items()
            if name in needed or _ROWS.search(sql) is not None
        }
        # SQL has no select of nothing; count(*) of a relation reads no column.
        return SelectList(kept or dict([next(iter(self.items()))]))

    def words(self) -> set[str]:
        """Return the words of its expressions; the columns that they read are among them."""
        return {word for sql in self.values() for word in _WORD.findall(_ALIAS.sub("", sql))}

    def __str__(self) -> str:
        return ", ".join(self.values())


class Relation:
    """A table expression: its columns, and the SQL text that produces it."""

    __slots__ = ("columns", "handle", "is_here", "is_large", "parts", "rows")

    def __init__(
        self,
        columns: Sequence[str],
        parts: Sequence[str | SelectList | Relation] = (),
        handle: object = None,
        rows: pyarrow.Table | None = None,
        is_large: bool = False,
    ) -> None:
        """Initialize; `parts` are its text, with relations for their names; empty: an input.

        A `SelectList` among them is text, too; it has all columns.
        """
        self.columns = tuple(columns)
        """column names, in order"""
        self.parts = tuple(parts)
        """text, and the relations that it reads; empty: an engine has its rows"""
        self.handle = handle
        """the engine's handle for the rows of an input"""
        self.rows = rows
        """rows of an input held by this process"""
        reads = [part for part in self.parts if isinstance(part, Relation)]
        self.is_here: bool = all(part.is_here for part in reads) if reads else rows is not None
        """whether this process has all rows that it is made of"""
        self.is_large: bool = is_large or any(part.is_large for part in reads)
        """whether it is made of more rows than should be broadcast to all tasks"""
        assert len({*self.columns}) == len(self.columns), f"repeated columns: {self.columns}"

    def select(self, *expressions: str) -> Relation:
        """Return columns and expressions: ``name``, ``expression as name``, ``*``."""
        chosen = _selected(self, expressions)
        return Relation([*chosen], ["select ", chosen, " from ", self])

    def select_distinct(self, *expressions: str) -> Relation:
        """Return the distinct rows of `select`."""
        chosen = _selected(self, expressions)
        # Text, not a `SelectList`: a column less would make different rows equal.
        return Relation([*chosen], [f"select distinct {chosen} from ", self])

    def where(self, condition: str) -> Relation:
        """Return the rows that match a condition."""
        return Relation(self.columns, ["select ", self._all, " from ", self, f" where {condition}"])

    def adding(self, columns: Mapping[str, str]) -> Relation:
        """Return the relation with added or replaced columns: name -> expression."""
        kept = [name for name in self.columns if name not in columns]
        return self.select(*kept, *(f"{sql} as `{name}`" for name, sql in columns.items()))

    def without(self, *names: str) -> Relation:
        """Return the relation without some columns."""
        return self.select(*(name for name in self.columns if name not in names))

    def renamed(self, names: Mapping[str, str]) -> Relation:
        """Return the relation with renamed columns: old -> new."""
        return self.select(*(f"`{name}` as `{names.get(name, name)}`" for name in self.columns))

    def grouped(self, keys: Sequence[str], columns: Mapping[str, str]) -> Relation:
        """Return one row per group of `keys` (none: one row): name -> SQL aggregate."""
        chosen = SelectList({key: f"`{key}`" for key in keys})
        chosen |= {name: f"{sql} as `{name}`" for name, sql in columns.items()}
        parts: list[str | SelectList | Relation] = ["select ", chosen, " from ", self]
        if keys:
            parts.append(f" group by {quoted(keys)}")
        return Relation([*keys, *columns], parts)

    def distinct(self) -> Relation:
        """Return the distinct rows."""
        return self.select_distinct(EVERY)

    def ordered(self, order: Sequence[str], limit: int) -> Relation:
        """Return the first rows by some expressions; nulls are first, or last with ``desc``."""
        return Relation(
            self.columns,
            [
                *("select ", self._all, " from ", self),
                f" order by {', '.join(order)} limit {int(limit)}",
            ],
        )

    def limited(self, limit: int) -> Relation:
        """Return at most `limit` rows."""
        return Relation(
            self.columns, ["select ", self._all, " from ", self, f" limit {int(limit)}"]
        )

    def sorted_by(self, order: Sequence[str]) -> Relation:
        """Return all rows sorted by some expressions."""
        return Relation(
            self.columns,
            ["select ", self._all, " from ", self, f" order by {', '.join(order)}"],
        )

    def union(self, other: Relation) -> Relation:
        """Return the rows of both; columns are matched by name."""
        assert set(self.columns) == set(other.columns), (self.columns, other.columns)
        names = self._all
        return Relation(
            self.columns,
            ["select ", names, " from ", self, " union all select ", names, " from ", other],
        )

    def join(
        self,
        other: Relation,
        on: Sequence[str] | str,
        how: str = "inner",
        small: bool = False,
        names: tuple[str, str] = ("one", "other"),
        select: Sequence[str] = (),
    ) -> Relation:
        """Return the rows of two relations that belong together.

        Args:
            on: columns that both have and that are equal; or a condition
            how: ``inner``, ``left``, ``full``, ``left semi`` or ``left anti``
            small: the other has few rows, which go to all tasks unless it is known to be large
            names: what a condition calls the two
            select: what is taken of both; none: all columns of both
        """
        step, two = names
        keys = () if isinstance(on, str) else tuple(on)
        only = how in ("left semi", "left anti")
        chosen = [*select]
        if not select:
            mine = [n for n in self.columns if n not in keys or how != "full"]
            theirs = [] if only else [name for name in other.columns if name not in keys]
            shared = [f"`{name}`" for name in keys if how == "full"]
            chosen = [*shared, *(f"{step}.`{n}`" for n in mine), *(f"{two}.`{n}`" for n in theirs)]
        listed = _listed(chosen)
        equal = " and ".join(f"{step}.`{key}` = {two}.`{key}`" for key in keys)
        met = f"using ({quoted(keys)})" if how == "full" else f"on {equal if keys else on}"
        hint = f"/*+ broadcast({two}) */ " if small and not other.is_large else ""
        return Relation(
            [*listed],
            [
                *(f"select {hint}", listed, " from "),
                *(self, f" as {step} {how} join ", other, f" as {two} {met}"),
            ],
        )

    @property
    def _all(self) -> SelectList:
        return SelectList({name: f"`{name}`" for name in self.columns})


def _selected(relation: Relation, expressions: Iterable[str]) -> SelectList:
    """Return the list of a select."""
    every = [f"`{name}`" for name in relation.columns]
    return _listed(one for text in expressions for one in (every if text == EVERY else (text,)))


def _listed(expressions: Iterable[str]) -> SelectList:
    named = [(_name_of(text), text) for text in expressions]
    chosen = SelectList({name: f"`{name}`" if text == name else text for name, text in named})
    assert len(chosen) == len(named), f"repeated columns: {named}"
    return chosen


def _name_of(expression: str) -> str:
    """Return the column name of an expression in a select."""
    plain = _COLUMN.fullmatch(expression)
    if plain is not None:
        return plain[2]
    named = _NAMED.fullmatch(expression)
    assert named is not None, f"an expression without a name: {expression}"
    return named[1]


class RelationText:
    """The complete text of a relation, and the inputs that it reads.

    A step read by several others gets a name; a step read once is inlined.
    """

    def __init__(self, relation: Relation) -> None:
        self.inputs: dict[str, Relation] = {}
        """name in the text -> relation whose rows an engine has"""
        in_order = list(_in_order(relation))
        lists = _lists_of(in_order)
        readers = Counter(
            part for step in in_order for part in step.parts if isinstance(part, Relation)
        )
        texts: dict[Relation, str] = {}
        self.steps: list[tuple[str, str]] = []
        """name -> text, in order"""
        for step in in_order:
            if not step.parts:
                texts[step] = f"input_{len(self.inputs) + 1}"
                self.inputs[texts[step]] = step
                continue
            text = "".join(
                texts[part]
                if isinstance(part, Relation)
                else str(lists[step] if isinstance(part, SelectList) else part)
                for part in step.parts
            )
            if step is relation:
                texts[step] = text
            elif readers[step] > 1:
                texts[step] = f"step_{len(self.steps) + 1}"
                self.steps.append((texts[step], text))
            else:
                texts[step] = f"({text})"
        last = texts[relation]
        self.last = last if relation.parts else f"select {quoted(relation.columns)} from {last}"
        """the final text that reads them"""

    @property
    def text(self) -> str:
        """The text as one statement."""
        return statement_of(self.steps, self.last)


def statement_of(steps: Sequence[tuple[str, str]], last: str) -> str:
    """Return one statement of steps that read each other, and the last one."""
    if not steps:
        return last
    return "with " + ",\n".join(f"{name} as ({text})" for name, text in steps) + f"\n{last}"


def _in_order(relation: Relation) -> Iterator[Relation]:
    """Yield all relations that a relation is made of, dependencies first."""
    done: set[Relation] = set()
    waiting: list[tuple[Relation, bool]] = [(relation, False)]
    while waiting:
        step, is_ready = waiting.pop()
        if is_ready:
            if step not in done:
                done.add(step)
                yield step
        elif step not in done:
            waiting.append((step, True))
            waiting += [
                (part, False) for part in reversed(step.parts) if isinstance(part, Relation)
            ]


def _lists_of(in_order: Sequence[Relation]) -> dict[Relation, SelectList]:
    """Return the list of each relation with the columns that its readers need.

    All words of their texts count, so functions and literals may keep a column that nobody reads.
    """
    needed: dict[Relation, set[str]] = {in_order[-1]: set(in_order[-1].columns)}
    lists: dict[Relation, SelectList] = {}
    for step in reversed(in_order):
        words: set[str] = set()
        for part in step.parts:
            if isinstance(part, str):
                words.update(_WORD.findall(part))
        for part in step.parts:
            if isinstance(part, SelectList):
                # what it is sorted by stays in its list
                lists[step] = part.read_for(needed[step] | words)
                words |= lists[step].words()
        for part in step.parts:
            if isinstance(part, Relation):
                needed.setdefault(part, set()).update(words)
    return lists
