"""`--commands` by several processes: the same lines as by one."""

from __future__ import annotations

import pytest

from tests.rmqtool.command import ROOT, rmqtool

SAMPLES = [
    ROOT / "samples" / f"{name}.pcap" for name in ("foreign-5x", "midstream-5x", "grpc-send-5x")
]


@pytest.mark.parametrize("options", [(), ("--body-limit", "10")])
@pytest.mark.slow
def test_the_same_lines_as_of_one_process(options: tuple[str, ...]) -> None:
    told = ("decode", "pcap", *SAMPLES, "--commands", "-T", "jsonl", *options)
    alone = rmqtool(*told, "-j", "1")
    assert alone.status == 0
    assert alone.out.count("\n") > 100
    for jobs in ("2", "3"):
        assert rmqtool(*told, "-j", jobs) == alone


@pytest.mark.slow
def test_what_needs_each_command_takes_one_process() -> None:
    told = ("decode", "pcap", *SAMPLES, "--commands", "-T", "jsonl", "-Y", "kind == response")
    alone = rmqtool(*told)
    assert alone.status == 0
    assert alone.out
    assert rmqtool(*told, "-j", "2") == alone
