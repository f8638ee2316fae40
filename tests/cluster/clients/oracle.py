"""RocketMQ's own classes as an oracle: frames by RemotingCommand, tables by reflection.

Rules:
- A frame goes in whole, total length included, and comes back as what the Java class made of it; a
  frame that it
  refuses comes back as its error.
- The same program reads what we encoded: that is the reverse check.

RocketMQ: RemotingCommand, RequestCode, ResponseCode, LanguageCode, CommandCustomHeader.
"""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.cluster.servers.artifacts import NEWEST_5, class_path
from tests.cluster.servers.class_archive import with_archive
from tests.cluster.servers.processes import java_command

ORACLE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class JavaCommand:
    """A command as RemotingCommand decoded it."""

    code: int
    """Request or response code."""
    language: str
    """Name of the LanguageCode."""
    version: int
    """MQVersion ordinal."""
    opaque: int
    """Request id, signed."""
    flag: int
    """Bit 0 response, bit 1 one-way."""
    remark: str | None
    """Remark, None where absent."""
    serialize_type: str
    """JSON or ROCKETMQ."""
    ext_fields: dict[str, str] | None
    """Extended fields, None where there are none."""
    body: bytes
    """Body, empty where there is none."""
    header: dict[str, object] | None
    """Fields of the custom header, when its class was named."""
    encoded: bytes
    """The command encoded again by the Java class."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The Java class did not take the frame."""

    error: str
    """Text of what it threw."""


def decode_frames(
    frames: Iterable[bytes | tuple[bytes, str]], version: str = NEWEST_5
) -> list[JavaCommand | Refusal]:
    """What the Java classes of a release make of each frame; a pair names its header class too."""
    pairs = [(frame, "") if isinstance(frame, bytes) else frame for frame in frames]
    text = "".join(f"{frame.hex()} {name}".rstrip() + "\n" for frame, name in pairs)
    output = _run("Oracle", version, text)
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if len(rows) != len(pairs):
        raise RuntimeError(f"{len(rows)} answers for {len(pairs)} frames:\n{output[-2000:]}")
    return [_answer_of(row) for row in rows]


def decode_bodies(
    bodies: Iterable[tuple[str, bytes]], version: str = NEWEST_5
) -> list[str | Refusal | None]:
    """What the Java classes of a release make of bodies, each of a class below its `protocol`.

    The text is the object as the release encodes it again.
    """
    pairs = list(bodies)
    text = "".join(f"{name} {body.hex()}\n" for name, body in pairs)
    output = _run("OracleBodies", version, text)
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if len(rows) != len(pairs):
        raise RuntimeError(f"{len(rows)} answers for {len(pairs)} bodies:\n{output[-2000:]}")
    return [Refusal(row["error"]) if "error" in row else row["text"] for row in rows]


@cache
def reflect(version: str = NEWEST_5) -> dict[str, dict[str, dict[str, object]]]:
    """`tables` (name → constant → value) and `headers` (class → fields, code) of a release."""
    output = _run("Reflect", version, "")
    line = next(line for line in reversed(output.splitlines()) if line.startswith("{"))
    decoded: dict[str, dict[str, dict[str, object]]] = json.loads(line)
    return decoded


def _answer_of(row: dict[str, object]) -> JavaCommand | Refusal:
    if "error" in row:
        return Refusal(str(row["error"]))
    return JavaCommand(
        code=row["code"],  # type: ignore[arg-type]
        language=row["language"],  # type: ignore[arg-type]
        version=row["version"],  # type: ignore[arg-type]
        opaque=row["opaque"],  # type: ignore[arg-type]
        flag=row["flag"],  # type: ignore[arg-type]
        remark=row["remark"],  # type: ignore[arg-type]
        serialize_type=row["serializeType"],  # type: ignore[arg-type]
        ext_fields=row["extFields"],  # type: ignore[arg-type]
        body=base64.b64decode(str(row["body"])),
        header=row.get("header"),  # type: ignore[arg-type]
        encoded=bytes.fromhex(str(row["encoded"])),
    )


def _run(program: str, version: str, text: str, arguments: Sequence[str] = ()) -> str:
    with tempfile.TemporaryDirectory(prefix="rmqtool-oracle-") as work:
        command = java_command(class_path(version), program, arguments, Path(work), heap="128m")
        run = subprocess.run(
            with_archive(command),
            input=text,
            capture_output=True,
            text=True,
            timeout=ORACLE_SECONDS,
        )
    if run.returncode != 0:
        raise RuntimeError(f"{program} of {version}: {run.stderr[-2000:]}")
    return run.stdout
