"""Faults from options and files, and what is refused with its reason."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import pytest

from replay.sandbox import (
    Injection,
    InjectionKind,
    Latency,
    SandboxError,
    injection_of_text,
    injections_of_file,
)
from replay.sandbox.injection.injection import latency_of


@pytest.mark.parametrize(
    ("text", "injection"),
    [
        ("busy", Injection(InjectionKind.BUSY)),
        ("error=16 remark='not so'", Injection(InjectionKind.ERROR, code=16, remark="not so")),
        ("error code=SYSTEM_BUSY", Injection(InjectionKind.ERROR, code=2)),
        (
            "latency=20ms..200ms broker=broker-b topic=Order* from=5s until=1m",
            Injection(
                InjectionKind.LATENCY,
                "broker-b",
                "Order*",
                from_ms=5000,
                until_ms=60_000,
                latency=Latency("uniform", 20, 200),
            ),
        ),
        (
            "drop p=5% requests=pull,310 times=2 stored=yes",
            Injection(
                InjectionKind.DROP,
                codes=frozenset({11, 361, 200050, 200070, 310}),
                probability=0.05,
                times=2,
                stored=True,
            ),
        ),
        ("silent requests=all", Injection(InjectionKind.SILENT, codes=frozenset())),
        ("slow-read=2KiB/s", Injection(InjectionKind.SLOW_READ, rate=2048)),
        ("slow-read=1.5kib/s", Injection(InjectionKind.SLOW_READ, rate=1536)),
        ("slow-read='1 GB/s'", Injection(InjectionKind.SLOW_READ, rate=10**9)),
        (
            "down requests=all client=a",
            Injection(InjectionKind.DOWN, client="a", codes=frozenset()),
        ),
        ("slow-read rate=512", Injection(InjectionKind.SLOW_READ, rate=512)),
        ("freeze every=30s for=5s", Injection(InjectionKind.FREEZE, every_ms=30_000, for_ms=5000)),
    ],
)
def test_an_injection_of_one_line(text: str, injection: Injection) -> None:
    assert injection_of_text(text) == injection


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("explode", "not a kind of fault"),
        ("busy=3", "takes no value"),
        ("busy p=2", "not a valid probability"),
        ("busy p=x", "not a valid probability"),
        ("busy p=nan", "not a valid probability"),
        ("busy from=5", "not a valid duration"),
        ("busy from=5s until=2s", "before it begins"),
        ("busy every=5s", "must be given together"),
        ("busy every=5s for=6s", "must be given together"),
        ("busy color=red", "not a key"),
        ("busy requests=everything", "is not a request"),
        ("busy p=0.1 p=0.2", "not a new"),
        ("busy remark='open", "quotation"),
        ("latency", "needs a duration"),
        ("latency=fast", "not a valid latency"),
        ("latency=30ms..20ms", "below the first"),
        ("error=none", "not a response code"),
        ("freeze", "has no end"),
        ("slow-read=0", "not a valid rate"),
        ("slow-read=0.5", "not a valid rate"),
        ("slow-read=5s", "not a valid rate"),
        ("latency=20", "not a valid latency"),
        ("busy stored=perhaps", "neither"),
        ("busy times=-1", "not a number"),
        ("error=1 code=2", "code is given twice"),
        ("latency=5ms code=3", "code has no effect on latency"),
        ("latency=5ms stored=true", "stored has no effect on latency"),
        ("busy rate=1KiB", "rate has no effect on busy"),
        ("drop remark=x", "remark has no effect on drop"),
        ("freeze until=5s latency=5ms", "latency has no effect on freeze"),
        ("down p=0.3", "p has no effect on down"),
        ("down topic=T", "topic has no effect on down"),
        ("slow-read=1KiB requests=send", "requests has no effect on slow-read"),
        ("leave-route client=10.0.0.1", "client has no effect on leave-route"),
    ],
)
def test_nonsense_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(SandboxError, match=reason):
        injection_of_text(text)


def test_injections_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(
        """
        seed = 7
        [[fault]]
        kind = "busy"
        p = 0.3
        requests = ["send", "pull"]
        from = "5s"
        [[fault]]
        kind = "error"
        code = 14
        stored = true
        """
    )
    injections, seed = injections_of_file(path)
    assert seed == 7
    assert injections == [
        injection_of_text("busy p=0.3 requests=send,pull from=5s"),
        injection_of_text("error=14 stored=true"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[fault]\n", "faults.toml"),
        ("[[faults]]\nkind='busy'", "unknown key faults"),
        ("fault = 3", "array of tables"),
        ("fault = [3]", "fault 1: not a table"),
        ("seed = 'x'", "seed is not an integer"),
        ("[[fault]]\nkind='busy'\n[[fault]]\nkind='bus'", "fault 2: 'bus' is not a kind"),
        ("[[fault]]\np=0.1", "fault 1: '' is not a kind"),
    ],
)
def test_a_file_that_makes_no_sense(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(text)
    with pytest.raises(SandboxError, match=reason):
        injections_of_file(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"none\.toml: No such file"):
        injections_of_file(tmp_path / "none.toml")


def drawn(text: str) -> list[float]:
    chance = random.Random(1)
    latency = latency_of(text)
    return sorted(latency.draw(chance) * 1000 for _ in range(20_000))


def test_distributions_are_what_they_say() -> None:
    assert set(drawn("20ms")) == {20.0}
    uniform = drawn("20ms..200ms")
    assert 20 <= uniform[0] < 21
    assert 199 < uniform[-1] <= 200
    assert statistics.mean(drawn("exp:50ms")) == pytest.approx(50, rel=0.03)
    normal = drawn("normal:50ms,10ms")
    assert statistics.mean(normal) == pytest.approx(50, rel=0.01)
    assert statistics.stdev(normal) == pytest.approx(10, rel=0.03)
    tailed = drawn("lognormal:20ms,500ms")
    assert tailed[10_000] == pytest.approx(20, rel=0.05)
    assert tailed[19_800] == pytest.approx(500, rel=0.15)


def test_texts_of_latencies_can_be_read_again() -> None:
    for text in ("20ms", "20ms..200ms", "exp:50ms", "normal:50ms,10ms", "lognormal:20ms,500ms"):
        assert str(latency_of(text)) == text
