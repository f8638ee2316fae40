"""Temporary names: new ones, and none left at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.temporary import (
    PRIVATE,
    create_like,
    create_new,
    forget,
    mode_of,
    remove,
    remove_all,
    temporary_beside,
)


def test_what_is_left_is_removed_and_what_was_renamed_stays(tmp_path: Path) -> None:
    target = tmp_path / "out"
    file, folder, renamed, removed, never = (temporary_beside(target) for _ in range(5))
    assert len({file, folder, renamed, removed, never}) == 5
    assert {path.parent for path in (file, folder)} == {tmp_path}
    for path in (file, renamed, removed):
        path.write_text("half")
    folder.mkdir()
    (folder / "inner").write_text("half")
    renamed.rename(target)
    forget(renamed)
    renamed.write_text("somebody else's by now")
    remove(removed)
    remove_all()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([renamed.name, "out"])


def test_a_new_file_is_made_through_no_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    link.symlink_to(victim)
    for there in (link, tmp_path):
        with pytest.raises(FileExistsError):
            create_new(there)
    assert not victim.exists()
    create_new(tmp_path / "own", PRIVATE).close()
    assert mode_of(tmp_path / "own") == PRIVATE


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_what_replaces_a_file_has_its_mode(tmp_path: Path, mode: int) -> None:
    (tmp_path / "former").touch()
    (tmp_path / "former").chmod(mode)
    create_like(tmp_path / "new", tmp_path / "former").close()
    assert mode_of(tmp_path / "new") == mode
