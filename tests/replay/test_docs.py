"""The examples of docs/producer.md run, against the sandbox."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replay.sandbox import SandboxOptions, sandbox_thread

PAGE = Path(__file__).resolve().parents[2] / "docs" / "producer.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with sandbox_thread(SandboxOptions()) as box:
        monkeypatch.setenv("NAMESRV_ADDR", box.namesrv)
        exec(compile(EXAMPLES[number], f"{PAGE.name}, example {number + 1}", "exec"), {})


def test_every_setting_and_class_that_the_page_names_is_there() -> None:
    import replay
    from replay import config, errors

    text = PAGE.read_text()
    for name in re.findall(r"`([A-Z][A-Za-z]+Error|SendFailed)`", text):
        assert hasattr(errors, name), name
    settings = {
        *config.ProducerConfig.__dataclass_fields__,
        *config.TlsSettings.__dataclass_fields__,
    }
    for name in re.findall(r"`([a-z_]+)=", text):
        known = settings | {"ca_file", "verify", "detector", "mode", "timeout_ms", "check_hostname"}
        assert name in known, name
    assert all(hasattr(replay, name) for name in replay.__all__)
