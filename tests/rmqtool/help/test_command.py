"""`rmqtool help`, and what is said where an optional library is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from rmqtool.cli import app
from rmqtool.help.documents import (
    chosen_sections,
    document,
    sections,
    sections_with,
    topics,
)
from rmqtool.ui.status import ExitStatus

from ..command import ROOT, rmqtool

TEXT = """# One

intro

## Two words

```
# no heading
```

### Deeper words

## Last
"""


def commands() -> Iterator[tuple[str, ...]]:
    """Every command, as the words that name it."""

    def walk(command: object, way: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield way
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*way, name))

    return walk(typer.main.get_command(app), ())


def test_topics_are_the_documents() -> None:
    assert set(topics()) == {path.stem for path in (ROOT / "docs").glob("*.md")}
    listed = rmqtool("help").out
    assert all(f"  {topic} " in listed for topic in topics())


def test_topics_are_in_order() -> None:
    shown = [line.split()[0] for line in rmqtool("help").out.splitlines() if line[:2] == "  "]
    assert len(shown) > 10
    assert shown == sorted(shown)


def test_a_document_is_shown_whole_or_by_section() -> None:
    whole = rmqtool("help", "sandbox").out
    assert whole.startswith("# Sandbox")
    part = rmqtool("help", "sandbox", "faults").out
    assert part.startswith("## Faults")
    assert part in whole


def test_documents_name_the_command_that_shows_other_documents() -> None:
    for topic, path in topics().items():
        assert "docs/" not in document(path).replace("readthedocs/", ""), topic


def test_sections_contain_those_below_them_and_fences_have_no_headings() -> None:
    assert [section.title for section in sections(TEXT)] == [
        "One",
        "Two words",
        "Deeper words",
        "Last",
    ]
    (section,) = chosen_sections(TEXT, "WORDS")
    assert "### Deeper words" in section.lines
    assert "## Last" not in section.lines


def test_an_unknown_section_or_topic_says_what_there_is() -> None:
    result = rmqtool("help", "sandbox", "nowhere")
    assert result.status == ExitStatus.FAILURE
    assert "Faults" in result.err
    result = rmqtool("help", "wireshrak")
    assert result.status == ExitStatus.USAGE
    assert "did you mean wireshark?" in result.err
    result = rmqtool("help", "NOSUCH")
    assert result.err.splitlines() == [
        "rmqtool: no topic 'NOSUCH'",
        "  `rmqtool help` lists the topics",
    ]
    assert rmqtool("help", "decode", "pcp").status == ExitStatus.USAGE


def test_a_heading_alone_names_the_topics_that_have_it() -> None:
    result = rmqtool("help", "Filters")
    assert result.status == ExitStatus.USAGE
    first, second, *_ = result.err.splitlines()
    assert first == "rmqtool: no topic 'Filters'; did you mean:"
    assert second == "  rmqtool help decoded-log Filters"
    assert rmqtool("help", "decoded-log", "Filters").status == ExitStatus.OK
    assert "rmqtool help decoded-log renamed columns" in rmqtool("help", "renamed", "columns").err


def test_help_of_a_command_is_its_own_help() -> None:
    assert rmqtool("help", "decode", "pcap").out == rmqtool("decode", "pcap", "--help").out


@pytest.mark.parametrize("command", list(commands()), ids=lambda way: " ".join(way) or "rmqtool")
def test_help_names_only_documents_that_are_installed(command: tuple[str, ...]) -> None:
    text = " ".join(rmqtool(*command, "--help", COLUMNS="1000").out.split())
    assert ".md" not in text
    for topic, section in re.findall(r"rmqtool help ([a-z-]+)(?: ([a-z]+))?[.`]", text):
        assert topic in topics()
        assert not section or chosen_sections(document(topics()[topic]), section)


@pytest.mark.slow
def test_help_shows_every_word_that_was_written() -> None:
    """Square brackets are not markup."""
    for way in commands():
        command: object = typer.main.get_command(app)
        for name in way:
            command = getattr(command, "commands")[name]  # noqa: B009
        shown = "".join(rmqtool(*way, "--help-all", COLUMNS="2000").out.split())
        for parameter in getattr(command, "params", ()):
            written = str(getattr(parameter, "help", None) or "")
            assert "".join(written.split()) in shown, (way, parameter)


CORE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "pandas", "pyarrow", "scapy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from rmqtool.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["report", "{capture}"], "report"),
        (["report", "latency", "{capture}", "-o", "x.html"], "report"),
        (["report", "--list"], "report"),
        (["report", "{capture}", "--engine", "spark"], "spark"),
        (["decode", "pcap", "{capture}", "-o", "x.parquet"], "parquet"),
        (["decode", "live", "-D"], "live"),
    ],
)
def test_a_core_install_names_the_extra(arguments: list[str], extra: str, tmp_path: Path) -> None:
    capture = str(ROOT / "samples" / "cut-short-5x.pcap")
    done = subprocess.run(
        [sys.executable, "-c", CORE, *(part.format(capture=capture) for part in arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == ExitStatus.FAILURE
    assert f"pip install 'rmqtool[{extra}]'" in done.stderr
    assert "should not have happened" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert not list(tmp_path.iterdir())


def test_the_extras_are_those_of_the_project() -> None:
    import tomllib

    from rmqtool.ui.extras import EXTRA_OF, REPORT_LIBRARIES, SPARK_LIBRARIES

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name: {text.split(">")[0] for text in texts}
        for name, texts in project["optional-dependencies"].items()
    }
    called = {
        "grpc": "grpcio",
        "grpc_status": "grpcio-status",
        "prometheus_client": "prometheus-client",
        "opentelemetry": "opentelemetry-sdk",
    }
    for library, extra in EXTRA_OF.items():
        assert called.get(library, library) in extras[extra]
    assert set(REPORT_LIBRARIES) == extras["report"]
    assert set(SPARK_LIBRARIES) == extras["spark"]


def test_topics_are_sorted() -> None:
    from rmqtool.help.documents import topics

    found = list(topics())
    assert found == sorted(found)
    assert found.index("reports") < found.index("reports-retries-isolation")


def test_a_search_lists_the_sections_with_a_word() -> None:
    found = rmqtool("help", "--search", "namesrv_addr").out
    assert "environment environment variables" in found
    missing = rmqtool("help", "--search", "no such word at all")
    assert missing.status == 1
    assert "no section contains" in missing.err


def test_excerpts_of_a_search_are_plain_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr("rmqtool.help.documents.topics", lambda: {"page": page})

    def excerpt_of(line: str) -> str:
        page.write_text(f"# Title\n\n{line}\n")
        ((place, excerpt),) = sections_with("WORD")
        assert place == "page title"
        return excerpt

    assert excerpt_of("- a **strong**, (*plain*) `a*b*` word *last*") == (
        "a strong, (plain) a*b* word last"
    )
    assert excerpt_of(r"| `--word a\|b`, `-w` | one \| *two* | |") == "--word a|b, -w: one | two"
    assert (
        excerpt_of("--word *.pcap count(*) x(*) __word__") == "--word *.pcap count(*) x(*) __word__"
    )
    assert excerpt_of("word " * 20) == ("word " * 20).strip()
    assert excerpt_of("words " * 17) == "words " * 16 + "…"
    assert excerpt_of("word" * 26) == "word" * 25 + " …"
    assert excerpt_of("word" * 25) == "word" * 25
