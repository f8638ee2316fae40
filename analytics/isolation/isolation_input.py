"""Attempts in Arrow as input of the fault strategy's replay: by producer, texts as numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

import msgspec
import numpy as np

from dissectors.temporary import remove, temporary_in

from ..errors import reason_here
from ..sends.unavailable import Gone, gone_near, unseen_in
from ..sql.engine import with_codes
from .producer_attempts import Coded, ProducerAttempts, routes_of
from .strategy_replay import EDGE_US

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

WHO = ("client", "process", "group")
"""Columns that identify a producer: address, process digits of its UNIQ_KEYs, group."""
_DISTINGUISHED = (*WHO, "version_name")
"""Another version is another program, even with the same process digits."""
# Spark sorts a hash several times as fast as the texts. Two producers may collide, so they are
# separated here.
NUMBER = f"xxhash64({', '.join(f'`{name}`' for name in _DISTINGUISHED)})"
"""SQL: a number for a producer."""


_ORDER = ("begin", "request_packet", "tie", "capture", "attempt", "broker", "outcome")
"""Attempts of one microsecond have the same order, whatever that of the engine's rows is."""


class Part(NamedTuple):
    """Attempts of one producer, by their begin."""

    table: pyarrow.Table
    """rows as they came, perhaps also those of other producers"""
    places: NDArray[np.int64]
    """place of each attempt in it"""
    attempts: ProducerAttempts
    """for the replay"""
    due: NDArray[np.bool_]
    """attempts whose end is before all attempts of later parts"""
    judged: NDArray[np.bool_]
    """attempts begun more than `EDGE_US` before them"""

    def value(self, name: str, index: int) -> object:
        """Return a column of an attempt."""
        value: object = self.table.column(name)[int(self.places[index])].as_py()
        return value


class OneProducer(NamedTuple):
    """All attempts of one producer."""

    brokers: tuple[str, ...]
    """brokers that it sent to"""
    gone: list[Gone]
    """those that it could not reach at times"""
    parts: Iterable[Part]
    """its attempts by time; those not due or not judged are in the next part again"""


def producers_of(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[OneProducer]:
    """Yield each producer in rows, which come in any order; texts may be dictionary-encoded.

    Rows that exceed `MOST_ROWS` are sorted in temporary files, so memory does not grow with them.
    """
    held: list[pyarrow.RecordBatch] = []
    count = 0
    runs: list[_Run] = []
    folder = temporary_in(Path(tempfile.gettempdir()), "rmqtool-report-")
    try:
        for batch in batches:
            if batch.num_rows:
                held.append(with_codes(batch))
                count += batch.num_rows
            if count >= MOST_ROWS:
                runs.append(_run_of(_taken(held), folder, len(runs)))
                count = 0
        if not runs:
            yield from _producers_in(_taken(held)) if held else ()
            return
        if held:
            runs.append(_run_of(_taken(held), folder, len(runs)))
        # Runs are read while the caller takes producers; only when it has them all may the files
        # go.
        yield from _merged(runs)
    finally:
        remove(folder)


def _taken(held: list[pyarrow.RecordBatch]) -> pyarrow.Table:
    """Return all rows as a table, and free them."""
    import pyarrow

    # Each batch has a dictionary of its own, in which one code stands for different texts.
    table = pyarrow.Table.from_batches(held).unify_dictionaries()
    held.clear()
    return table


def _producers_in(table: pyarrow.Table) -> Iterator[OneProducer]:
    """Yield each producer of a table, which is sorted once for all of them."""
    order, starts = _sorted(table)
    columns = _Columns.of(table, order)
    has_gone = any(table.column("gone").unique().to_pylist())
    for first, last in pairwise([*starts, table.num_rows]):
        here = slice(first, last)
        own = {name: column.compact() for name, column in columns.coded(here).items()}
        brokers = own["broker"].names
        gone = []
        if has_gone:
            texts = table.column("gone").take(order[here]).unique().to_pylist()
            gone = _gone_of(texts, brokers)
        attempts = _attempts_of(own, columns.begin[here], columns.end[here], unseen_in(gone))
        every = np.ones(len(attempts), dtype=bool)
        yield OneProducer(brokers, gone, [Part(table, order[here], attempts, every, every)])


def _attempts_of(
    texts: Mapping[str, Coded],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    unseen: tuple[tuple[int, int], ...],
    routes: Mapping[str, frozenset[str]] | None = None,
) -> ProducerAttempts:
    return ProducerAttempts(
        topic=texts["topic"],
        broker=texts["broker"],
        last_broker=texts["last_broker"],
        outcome=texts["outcome"],
        cause=texts["cause"],
        begin=begin,
        end=end,
        unseen=unseen,
        known_routes=routes,
    )


def _sorted(table: pyarrow.Table) -> tuple[NDArray[np.int64], list[int]]:
    """Return the order of rows by producer and time, and where each producer begins in it.

    `table` has unified dictionaries. Producers are in the order of their texts, null first.
    """
    who = np.zeros(table.num_rows, dtype=np.int64)
    for name in _DISTINGUISHED:
        column = _coded(table, name)
        if len(column.names) + int(column.codes.min(initial=0) < 0) > 1:
            who = who * (len(column.names) + 1) + _ranks(column) + 1
            who = np.unique(who, return_inverse=True)[1]  # a product of counts may not fit
    order = _order_of(table, _ORDER, who)
    # No producer has the number -1, so the first row starts one, too.
    return order, np.flatnonzero(np.diff(who[order], prepend=-1)).tolist()


def _order_of(
    table: pyarrow.Table, names: Sequence[str], who: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the order of rows by some columns, after `who`."""
    import pyarrow
    import pyarrow.compute

    first = {} if who is None else {"": pyarrow.array(who)}
    keys = {**first, **{name: _ranked(table.column(name)) for name in names}}
    sort_keys: list[tuple[str, Literal["ascending"]]] = [(name, "ascending") for name in keys]
    order: NDArray[np.int64] = pyarrow.compute.sort_indices(
        pyarrow.table(keys), sort_keys=sort_keys
    ).to_numpy()
    return order


class _Columns(NamedTuple):
    """Columns of sorted rows as arrays."""

    texts: dict[str, Coded]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def of(cls, table: pyarrow.Table, order: NDArray[np.int64]) -> _Columns:
        """Return the columns of rows in some order."""
        texts = {name: _coded(table, name).at(order) for name in _CODED}
        return cls(texts, _times(table, "begin")[order], _times(table, "end")[order])

    def coded(self, rows: slice) -> dict[str, Coded]:
        """Return the texts of some rows."""
        return {name: column.at(rows) for name, column in self.texts.items()}


def _ranked(column: pyarrow.ChunkedArray[Any]) -> pyarrow.Array[Any]:
    """Return a column as numbers in the same order."""
    import pyarrow.compute

    one = column.combine_chunks()
    if not isinstance(one, pyarrow.DictionaryArray):
        return one
    ranks = np.empty(len(one.dictionary), dtype=np.int32)
    ranks[pyarrow.compute.sort_indices(one.dictionary).to_numpy()] = np.arange(len(ranks))
    return pyarrow.array(ranks).take(one.indices)


_CODED = ("topic", "broker", "last_broker", "outcome", "cause")


def _coded(table: pyarrow.Table, name: str) -> Coded:
    column = cast("pyarrow.DictionaryArray[Any, Any]", table.column(name).combine_chunks())
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(tuple(map(str, column.dictionary.to_pylist())), codes.astype(np.int32))


def _times(table: pyarrow.Table, name: str) -> NDArray[np.int64]:
    # with nulls the values come as floats, exact for µs until the year 2255
    values = table.column(name).to_numpy()
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _ranks(column: Coded) -> NDArray[np.int64]:
    """Return the codes of a column by the order of its texts; -1: null."""
    ranks = np.full(len(column.names) + 1, -1, dtype=np.int64)
    ranks[sorted(range(len(column.names)), key=column.names.__getitem__)] = np.arange(
        len(column.names)
    )
    return ranks[column.codes]


def _gone_of(texts: Iterable[str | None], brokers: Collection[str]) -> list[Gone]:
    """Return the brokers that a producer sent to and at times could not reach."""
    known = {text for text in texts if text}
    return gone_near(map(_GONE.decode, known), set(brokers)) if known else []


_GONE = msgspec.json.Decoder(list[Gone])


# -- more rows than fit into memory ---------------------------------------------------------------

MOST_ROWS: Final = 1_000_000
"""most rows in memory, about 300 bytes each"""
_BATCH: Final = 8192
"""rows of a batch in a file; one batch of each file is in memory"""
_PART: Final = 32
"""batches of a part; those of several files may overlap"""
_Who = tuple[str | None, ...]


class _OfRun(NamedTuple):
    """What the rows of one producer in a run show."""

    start: int
    stop: int
    routes: dict[str, set[str]]
    """topic -> brokers"""
    gone: pyarrow.ChunkedArray[Any]
    """distinct texts"""


class _Run(NamedTuple):
    """Rows in a file, sorted by producer and time."""

    path: Path
    begins: NDArray[np.int64]
    """`begin` of the first row of each batch"""
    producers: dict[_Who, _OfRun]


def _run_of(table: pyarrow.Table, folder: Path, number: int) -> _Run:
    """Write rows to a file."""
    import pyarrow
    import pyarrow.ipc

    order, starts = _sorted(table)
    table = table.take(order).unify_dictionaries().combine_chunks()
    topics, brokers = _coded(table, "topic"), _coded(table, "broker")
    producers: dict[_Who, _OfRun] = {}
    for first, last in pairwise([*starts, table.num_rows]):
        here = slice(first, last)
        producers[tuple(table.column(name)[first].as_py() for name in _DISTINGUISHED)] = _OfRun(
            first,
            last,
            routes_of(topics.at(here), brokers.at(here)),
            table.column("gone").slice(first, last - first).unique(),
        )
    path = folder / f"{number}.arrow"
    try:
        folder.mkdir(0o700, exist_ok=True)
        with pyarrow.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=_BATCH)
    except OSError as error:
        raise reason_here(error) from error
    # A view of every 8192nd value would keep the whole column in memory.
    return _Run(path, _times(table, "begin")[::_BATCH].copy(), producers)


def _merged(runs: Sequence[_Run]) -> Iterator[OneProducer]:
    """Yield each producer in sorted runs; all parts of one must be taken before the next."""
    readers = {run.path: _Reader(run) for run in runs}
    everyone = {who for run in runs for who in run.producers}
    # In the order of `_sorted`, and so of the rows in each file: every batch is read once.
    for who in sorted(everyone, key=lambda who: [(text is not None, text or "") for text in who]):
        own = [(readers[run.path], run.producers[who]) for run in runs if who in run.producers]
        routes: dict[str, set[str]] = {}
        for _, shown in own:
            for topic, names in shown.routes.items():
                routes.setdefault(topic, set()).update(names)
        known = {topic: frozenset(names) for topic, names in routes.items()}
        brokers = tuple(sorted(frozenset[str]().union(*known.values())))
        gone = _gone_of((text for _, shown in own for text in shown.gone.to_pylist()), brokers)
        cursors = [_Cursor(reader, shown.start, shown.stop) for reader, shown in own]
        yield OneProducer(brokers, gone, _parts(cursors, brokers, known, unseen_in(gone)))


class _Reader:
    """Reads rows of a file; the latest batch stays in memory."""

    def __init__(self, run: _Run) -> None:
        import pyarrow
        import pyarrow.ipc

        self.begins = run.begins
        self._file = pyarrow.ipc.open_file(pyarrow.OSFile(str(run.path), "rb"))
        self._number = -1
        self._batch: pyarrow.RecordBatch | None = None

    def batch(self, number: int) -> pyarrow.RecordBatch:
        """Return a batch of `_BATCH` rows."""
        if self._batch is None or number != self._number:
            self._number, self._batch = number, self._file.get_batch(number)
        return self._batch


class _Cursor:
    """The rows of one producer in a run, taken in order."""

    def __init__(self, reader: _Reader, start: int, stop: int) -> None:
        self._reader = reader
        self._at = start
        self._stop = stop

    @property
    def begins(self) -> NDArray[np.int64]:
        """`begin` of the first row of each batch that starts with this producer."""
        return self._reader.begins[-(-self._at // _BATCH) : -(-self._stop // _BATCH)]

    def take(self, until: int | None) -> Iterator[pyarrow.RecordBatch]:
        """Take the rows that begin until a time, or all."""
        while self._at < self._stop:
            number, place = divmod(self._at, _BATCH)
            batch = self._reader.batch(number).slice(place, self._stop - self._at)
            count = batch.num_rows
            if until is not None:
                begins = batch.column("begin").to_numpy()
                count = int(np.searchsorted(begins, until, side="right"))
            if count:
                self._at += count
                yield batch.slice(0, count)
            if count < batch.num_rows:
                return


def _parts(
    cursors: Sequence[_Cursor],
    brokers: tuple[str, ...],
    routes: Mapping[str, frozenset[str]],
    unseen: tuple[tuple[int, int], ...],
) -> Iterator[Part]:
    """Yield the attempts of a producer in parts."""
    import pyarrow

    topics = tuple(sorted(routes))
    begins = np.sort(np.concatenate([cursor.begins for cursor in cursors]))
    rest: list[pyarrow.RecordBatch] = []
    to_report, to_judge = np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
    for until in (*(begins[_PART::_PART] - 1).tolist(), None):
        taken = [batch for cursor in cursors for batch in cursor.take(until)]
        if not taken and until is not None:
            continue
        table = pyarrow.Table.from_batches([*rest, *taken]).unify_dictionaries()
        order = _order_of(table, _ORDER)
        columns = _Columns.of(table, order)
        texts = columns.texts
        fresh = np.ones(table.num_rows - len(to_report), dtype=bool)
        to_report = np.append(to_report, fresh)[order]
        to_judge = np.append(to_judge, fresh)[order]
        texts["topic"] = texts["topic"].with_names(topics)
        texts["broker"] = texts["broker"].with_names(brokers)
        attempts = _attempts_of(texts, columns.begin, columns.end, unseen, routes)
        due, judged = to_report, to_judge
        if until is not None:
            due = to_report & (columns.end <= until)
            judged = to_judge & (columns.begin <= until - EDGE_US)
        yield Part(table, order, attempts, due, judged)
        again = (to_report & ~due) | (to_judge & ~judged)
        to_report, to_judge = (to_report & ~due)[again], (to_judge & ~judged)[again]
        rest = table.take(order[again]).combine_chunks().to_batches()
