"""Temporary names: new ones, and none left at the end."""

from __future__ import annotations

from pathlib import Path

from dissectors.temporary import forget, remove, remove_all, temporary_beside


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
