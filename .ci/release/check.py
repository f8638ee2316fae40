"""Installs a wheel into a fresh environment and works with it from another directory.

What a user would type: the version, a decode, messages sent to a sandbox, a replay, a report, the
report by Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from .interpreters import ROOT
from .tools import environment_at, install, run

SAMPLE = "send-sync-5x.pcap"


def check_wheel(work: Path, python: Path, wheel: Path, resolution: str) -> list[str]:
    """Return what was tried and held.

    Args:
        work: emptied before; the environment and what the commands write.
        python: makes the environment.
        wheel: what is installed, with all extras.
        resolution: `highest`, or `lowest-direct` for the lower bounds of pyproject.toml.

    Raises:
        Failed: a command ended with an error.
        AssertionError: it said something else than it should.
    """
    shutil.rmtree(work, ignore_errors=True)
    elsewhere = work / "elsewhere"
    elsewhere.mkdir(parents=True)
    installed = environment_at(work / "environment", python)
    # what has no wheel for this Python would ask its user for a compiler; pyspark has none at all
    wheels = ("--only-binary", ":all:", "--no-binary", "pyspark")
    install(installed, "--resolution", resolution, *wheels, f"rmqtool[all] @ {wheel.as_uri()}")
    samples = elsewhere / "captures"  # the tree is out of reach
    samples.mkdir()
    shutil.copy(ROOT / "samples" / SAMPLE, samples)
    compiled = "none-any" not in wheel.name
    return [
        _modules(installed, elsewhere, compiled=compiled),
        *try_command(installed.with_name("rmqtool"), elsewhere, samples / SAMPLE),
    ]


def try_command(command: Path, elsewhere: Path, sample: Path) -> list[str]:
    """Return what was tried and held of an installed command."""
    return [
        _version(command, elsewhere),
        _decode(command, elsewhere, sample),
        _send(command, elsewhere),
        _replay(command, elsewhere, sample),
        _report(command, elsewhere, sample),
    ]


def environment_of(elsewhere: Path) -> dict[str, str]:
    """Return the environment of a user who has nothing of ours."""
    kept = ("PATH", "JAVA_HOME", "LANG")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "HOME": str(elsewhere),
    }


def network_of() -> dict[str, str]:
    """Return what of the environment says how a package index is reached."""
    prefixes = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_", "HTTP_", "HTTPS_", "NO_PROXY")
    return {name: text for name, text in os.environ.items() if name.upper().startswith(prefixes)}


def _modules(python: Path, elsewhere: Path, *, compiled: bool) -> str:
    script = (
        "import sys, rmqtool, dissectors.tcp.capture as it\n"
        "print(rmqtool.__file__); print(it.__file__)"
    )
    ours, module = run(python, "-c", script, cwd=elsewhere).splitlines()
    assert Path(ours).is_relative_to(python.parents[1]), ours
    assert module.endswith(".so") == compiled, module
    return "compiled" if compiled else "pure"


def _version(command: Path, elsewhere: Path) -> str:
    said = run(command, "--version", cwd=elsewhere, env=environment_of(elsewhere))
    assert said.startswith("rmqtool "), said
    pages = command.resolve().parents[1] / "share" / "man" / "man1"
    assert (pages / "rmqtool.1").exists(), pages
    return "version, man pages"


def _decode(command: Path, elsewhere: Path, sample: Path) -> str:
    said = run(
        *(command, "decode", "pcap", sample, "--format", "jsonl"),
        cwd=elsewhere,
        env=environment_of(elsewhere),
    )
    names = [json.loads(row)["request_name"] for row in said.splitlines()]
    assert "SEND_MESSAGE_V2" in names, names
    log = elsewhere / "log"
    run(
        *(command, "decode", "pcap", sample, "--format", "parquet", "-o", log),
        cwd=elsewhere,
        env=environment_of(elsewhere),
    )
    assert list(log.rglob("*.parquet"))
    return f"decode ({len(names)} rows, Parquet)"


def _send(command: Path, elsewhere: Path) -> str:
    broker = subprocess.Popen(
        [str(command), "broker", "--port", "0", "--namesrv-port", "0", "--duration", "120s"],
        cwd=elsewhere,
        env={**environment_of(elsewhere), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert broker.stdout is not None
        name, address = broker.stdout.readline().split()
        assert name == "namesrv", name
        said = run(
            *(command, "send", "-n", address, "-t", "Installed", "--body", "hello"),
            *("--count", "5", "--format", "jsonl"),
            cwd=elsewhere,
            env=environment_of(elsewhere),
        )
    finally:
        broker.terminate()
        broker.communicate()
    assert len(said.splitlines()) >= 5, said
    return "send"


def _replay(command: Path, elsewhere: Path, sample: Path) -> str:
    run(
        *(command, "replay", sample, "--target", "sandbox", "--speed", "10x"),
        *("-o", elsewhere / "replayed"),
        cwd=elsewhere,
        env=environment_of(elsewhere),
    )
    assert (elsewhere / "replayed").exists()
    return "replay"


def _report(command: Path, elsewhere: Path, sample: Path) -> str:
    run(command, "diagnose", sample, cwd=elsewhere, env=environment_of(elsewhere))
    if shutil.which("java") is None:
        return "diagnose (no Java: no report)"
    page = elsewhere / "report.html"
    run(command, "report", sample, "-o", page, cwd=elsewhere, env=environment_of(elsewhere))
    assert "<html" in page.read_text()
    return "diagnose, report"
