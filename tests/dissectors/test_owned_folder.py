"""Folders of results: replaced where rmqtool wrote all of it, and nothing else is ever removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dissectors.owned_folder import MARKER, FolderRefused, Marker, OwnedFolder, check_folder

KIND = "report"


def _write(folder: Path, *names: str, replace: bool = False, inputs: tuple[str, ...] = ()) -> None:
    owned = OwnedFolder(folder, KIND, replace, inputs)
    for name in names:
        path = owned.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of {len(names)}")
    owned.finish()


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_it_wrote_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _write(out, "a", "deep/er/b", "deep/c")
    with pytest.raises(FolderRefused, match="--force replaces it"):
        _write(out, "d")
    _write(out, "d", replace=True)
    assert _names(out) == [MARKER, "d"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o777])
def test_a_folder_keeps_the_mode_of_what_it_replaces(tmp_path: Path, mode: int) -> None:
    out = tmp_path / "out"
    for names in ((), ("a",), ("b",)):
        if names:
            _write(out, *names, replace=True)
        else:
            out.mkdir()
            out.chmod(mode)
        assert out.stat().st_mode & 0o777 == mode


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    _write(tmp_path / "out", "a")
    assert _names(tmp_path / "out") == [MARKER, "a"]


def _add_file(out: Path) -> None:
    (out / "deep" / "thesis.txt").write_text("years of work")


def _add_folder(out: Path) -> None:
    (out / "empty").mkdir()


def _add_link(out: Path) -> None:
    (out / "link").symlink_to(out / "a")


def _file_to_link(out: Path) -> None:
    (out / "a").unlink()
    (out / "a").symlink_to(out / "deep" / "b")


def _folder_to_link(out: Path) -> None:
    (out / "deep").rename(out.parent / "elsewhere")
    (out / "deep").symlink_to(out.parent / "elsewhere")


def _file_to_pipe(out: Path) -> None:
    (out / "a").unlink()
    os.mkfifo(out / "a")


def _no_marker(out: Path) -> None:
    (out / MARKER).unlink()


def _linked_marker(out: Path) -> None:
    (out / MARKER).rename(out.parent / "marker")
    (out / MARKER).symlink_to(out.parent / "marker")


def _other_kind(out: Path) -> None:
    _marked(out, Marker("decoded log", ["a", "deep/b"]))


def _deep_marker(out: Path) -> None:
    (out / MARKER).write_text("[" * 100_000)


def _marked(out: Path, marker: Marker) -> None:
    (out / MARKER).write_bytes(msgspec.json.encode(marker))


@pytest.mark.parametrize(
    "change",
    [
        *(_add_file, _add_folder, _add_link, _file_to_link, _folder_to_link, _file_to_pipe),
        *(_no_marker, _linked_marker, _other_kind, _deep_marker),
    ],
)
def test_what_it_did_not_write_keeps_the_folder(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    out = tmp_path / "out"
    _write(out, "a", "deep/b")
    change(out)
    before = _names(tmp_path)
    with pytest.raises(FolderRefused):
        _write(out, "new", replace=True)
    assert _names(tmp_path) == before


@pytest.mark.parametrize(
    "listed", ["../mine", "/etc/hostname", "deep/../../mine", "", ".", "a//b", "a\0b", "./a"]
)
def test_a_marker_from_somebody_else_names_nothing_outside(tmp_path: Path, listed: str) -> None:
    (tmp_path / "mine").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    _marked(out, Marker(KIND, [listed]))
    with pytest.raises(FolderRefused, match="not a report that rmqtool wrote"):
        _write(out, "new", replace=True)
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_input_inside_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    _write(out, "a.pcap", "deep/b")
    (tmp_path / "link").symlink_to(out)
    (tmp_path / "hard.pcap").hardlink_to(out / "a.pcap")
    monkeypatch.chdir(out / "deep")
    for name in (
        *(f"{out}/a.pcap", f"{tmp_path}/link/a.pcap", str(out), "../a.pcap", "b"),
        f"{tmp_path}/hard.pcap",
    ):
        with pytest.raises(FolderRefused, match="is an input"):
            check_folder(out, KIND, True, ["-", name])
    assert check_folder(out, KIND, True, ["-", str(tmp_path / "other")]) is not None


def test_what_comes_while_it_is_written_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _write(out, "a")
    owned = OwnedFolder(out, KIND, True)
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderRefused, match=r"thesis\.txt was not written"):
        owned.finish()
    owned.discard()
    assert _names(tmp_path) == ["out", f"out/{MARKER}", "out/a", "out/thesis.txt"]


def test_what_lies_at_the_name_of_a_temporary_folder_stays(tmp_path: Path) -> None:
    former = tmp_path / f".out.{os.getpid()}.tmp"
    former.mkdir()
    (former / "mine").write_text("mine")
    _write(tmp_path / "out", "a")
    assert (former / "mine").read_text() == "mine"
