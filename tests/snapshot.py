"""Write what rmqtool prints for fixed inputs, so that two states of the code can be compared.

`python -m tests.snapshot FOLDER` writes the decodes of all samples (rows, commands, trees and
summary), all report tables of fixed inputs and all help texts. `--tree CHECKOUT` does so for
another checkout with the same samples; `--against FOLDER` lists the files that differ from an
earlier snapshot and exits with 1 when there are any.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples"
VIEWS = {
    "rows.jsonl": ("--format", "jsonl"),
    "rows.csv": ("--format", "csv"),
    "table.txt": (),
    "commands.jsonl": ("--commands", "--format", "jsonl"),
    "trees.txt": ("--verbose",),
    "summary.txt": ("--summary",),
    "summary.json": ("--summary", "--format", "jsonl"),
}
"""name of the file → options of `decode pcap`, by names that earlier states have, too"""
REPORTED = (
    *("fault-kill-4x.pcap", "fault-freeze-5x.pcap", "push-retry-dlq-5x.pcap"),
    "send-sync-5x.pcap",
)
"""samples that reports are made of"""
COMMANDS = (
    *("", "decode", "decode pcap", "decode live", "decode hex", "decode stream", "report"),
    *("replay", "send", "broker", "wireshark", "codes"),
)
"""commands whose help is kept"""
WIDTHS = (80, 120)
"""columns of the terminal for help texts"""


def _run(tree: Path, arguments: list[str], width: int = 120) -> str:
    """Return what a command printed on both streams and its status."""
    environment = dict(os.environ, COLUMNS=str(width), NO_COLOR="1", TERM="dumb", TZ="UTC")
    environment["PYTHONPATH"] = str(tree)
    done = subprocess.run(
        [sys.executable, "-m", "rmqtool", *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.stdout}--- status {done.returncode}\n{done.stderr}"


def _tasks(tree: Path) -> dict[str, tuple[list[str], int]]:
    """Return the name of each file with the arguments and the width it is made with."""
    tasks: dict[str, tuple[list[str], int]] = {}
    for width in WIDTHS:
        for command in COMMANDS:
            name = command.replace(" ", "-") or "rmqtool"
            tasks[f"help/{name}.{width}.txt"] = ([*command.split(), "--help"], width)
    for sample in sorted(path.name for path in SAMPLES.glob("*.pcap*")):
        if "expected" not in sample and (tree / "samples" / sample).exists():
            for name, options in VIEWS.items():
                tasks[f"decode/{sample}.{name}"] = (
                    ["decode", "pcap", f"samples/{sample}", *options],
                    160,
                )
    for sample in REPORTED:
        tasks[f"report/{sample}.json"] = (
            ["report", f"samples/{sample}", "--format", "json", "-q"],
            120,
        )
    return tasks


def write(tree: Path, folder: Path) -> int:
    """Write the snapshot of a checkout into a folder; return the number of files."""
    tasks = _tasks(tree)

    def make(name: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_run(tree, *tasks[name]))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(make, tasks))
    return len(tasks)


def differing(before: Path, after: Path) -> list[str]:
    """Return the names of files that differ or are in one folder only, but for new samples."""
    names = {path.relative_to(before).as_posix() for path in before.rglob("*") if path.is_file()}
    return [
        name
        for name in sorted(names)
        if not (after / name).exists() or not filecmp.cmp(before / name, after / name, False)
    ]


def main() -> int:
    """Write a snapshot and compare it with another one where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tree", type=Path, default=ROOT, help="checkout that is run")
    parser.add_argument("--against", type=Path, help="earlier snapshot to compare with")
    given = parser.parse_args()
    count = write(given.tree.resolve(), given.folder)
    print(f"{count} files in {given.folder}")
    if given.against is None:
        return 0
    names = differing(given.against, given.folder)
    print(*(f"differs: {name}" for name in names), f"{len(names)} of {count} differ", sep="\n")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
