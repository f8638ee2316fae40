"""Anonymized samples have none of the names; that they tell the same: `tests.rmqtool.anonymize`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dissectors.anonymize.capture import Anonymized, CaptureAnonymizer
from dissectors.anonymize.pseudonyms import Pseudonyms
from dissectors.anonymize.vocabulary import ENUMS, NAME_WORDS, REMARK_WORDS
from dissectors.decode.pipeline import Decode, DecodeOptions
from tests.expected import SAMPLES

pytestmark = pytest.mark.slow
SECRET = b"a secret of 16 b"
_UNREAD = re.compile(r"tls|grpc-go-keys|grpc-wrong-port|foreign|cut-short|snaplen")
"""samples with what is dropped: TLS, other protocols, frames that the capture cuts off"""
CAPTURES = sorted(path for path in SAMPLES.glob("*.pcap*") if "expected" not in path.name)
READ = [path for path in CAPTURES if not _UNREAD.search(path.name)]
"""samples of which everything that matters is rewritten"""
_LEAST = 4
_RUN = re.compile(r"[0-9A-Za-z]+")


class _Words(frozenset[str]):
    """Words, and what is none of a name: numbers, and ids, of which times and counters stay."""

    def __contains__(self, run: object) -> bool:
        text = str(run)
        is_number = text.isdigit() or re.fullmatch(r"[0-9A-F]{16,}", text) is not None
        return is_number or super().__contains__(run)


_ITS_OWN = _Words(NAME_WORDS | ENUMS | {"body"})
"""words of names that RocketMQ makes itself, and of the names of its fields"""
_KEPT = _Words(_ITS_OWN | REMARK_WORDS | {"python", "late"})
"""words of RocketMQ; `python` is in the user agent of its client, `late` in words such as `related`
"""
_NAMES = ("topic", "group", "broker_name", "unique_key", "keys", "tags", "offset_msg_id")


def anonymized(capture: Path, folder: Path) -> tuple[Path, Pseudonyms, Anonymized]:
    names = Pseudonyms(SECRET)
    path = folder / "shared.pcapng"
    with path.open("wb") as file:
        done = CaptureAnonymizer(names).write(str(capture), file)
    return path, names, done


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_no_name_and_no_body_remains(capture: Path, tmp_path: Path) -> None:
    path, _, _ = anonymized(capture, tmp_path)
    data = path.read_bytes()
    decode = Decode([str(capture)], DecodeOptions(messages=True, body_limit=1 << 20))
    looked_for: set[str] = set()
    for batch in decode.records():
        for row in batch:
            looked_for.update(text for name in _NAMES if (text := getattr(row, name)) is not None)
        for carried in decode.take_messages():
            for message in carried.messages:
                looked_for.update(filter(None, (message.body, message.client_id)))
    for text in looked_for:
        if len(text) >= _LEAST and not all(run in _ITS_OWN for run in _RUN.findall(text)):
            assert text.encode() not in data, text
        for run in _RUN.findall(text):
            if len(run) >= _LEAST and run not in _KEPT:
                assert run.encode() not in data, run


@pytest.mark.parametrize("capture", [one for one in CAPTURES if "tls" in one.name][::6],
                         ids=lambda path: path.name)  # fmt: skip
def test_what_is_not_understood_is_dropped_and_counted(capture: Path, tmp_path: Path) -> None:
    path, _, done = anonymized(capture, tmp_path)
    assert sum(done.dropped.values()) > 0
    assert list(Decode([str(path)]).records())
