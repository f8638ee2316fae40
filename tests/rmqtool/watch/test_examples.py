"""Examples of services: valid, with the least privileges, and options that the command has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rmqtool.ui.declared import options_of
from rmqtool.watch.options import WatchRequest
from tests.tools import find

from ..command import ROOT

pytestmark = pytest.mark.slow
FOLDER = ROOT / "examples" / "watch"
UNIT = FOLDER / "rmqtool-watch.service"
RELEASE = "1.33"
"""of Kubernetes"""


def options() -> set[str]:
    return {
        name
        for field, one in options_of(WatchRequest).items()
        if one.parameter is not None
        for name in one.spelled(field)
    }


def test_the_unit_is_valid(tmp_path: Path) -> None:
    program = find("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text())
    done = subprocess.run(
        [program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    about = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, about) == (0, []), done.stderr


def test_the_unit_exposes_little(tmp_path: Path) -> None:
    program = find("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text())
    done = subprocess.run(
        [program, "security", "--offline=yes", "--threshold=40", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "Unknown" in done.stderr or "unrecognized" in done.stderr:
        pytest.skip("this systemd-analyze has no --offline")
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


@pytest.mark.parametrize("name", [one.name for one in sorted(FOLDER.iterdir())])
def test_options_of_examples_exist(name: str) -> None:
    text = "\n".join(
        line for line in (FOLDER / name).read_text().splitlines() if not line.startswith("#")
    )
    asked = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)(?=[ =\n])", text))
    assert asked <= options(), asked - options()


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def pod_with_ephemeral_container() -> dict[str, Any]:
    (patch,) = documents("ephemeral-container.yaml")
    container = {"name": "broker", "image": "broker"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "broker-0"},
        "spec": {"containers": [container], **patch["spec"]},
    }


def test_manifests_are_valid_by_the_schema_of_kubernetes() -> None:
    (daemons,) = documents("daemonset.yaml")
    for document in (daemons, pod_with_ephemeral_container()):
        kubernetes_validate.validate(document, RELEASE, strict=True)
    daemons["spec"]["template"]["spec"]["containers"][0]["securityContext"]["runAsUser"] = "root"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(daemons, RELEASE, strict=True)


def test_containers_have_only_the_rights_to_capture_and_to_give_up_rights() -> None:
    (daemons,) = documents("daemonset.yaml")
    containers = [
        *daemons["spec"]["template"]["spec"]["containers"],
        *pod_with_ephemeral_container()["spec"]["ephemeralContainers"],
    ]
    for one in containers:
        rights = one["securityContext"]
        assert rights["capabilities"] == {"drop": ["ALL"], "add": ["NET_RAW", "SETPCAP"]}
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["allowPrivilegeEscalation"] is False


def test_these_rights_are_enough() -> None:
    """As root with the capabilities of the manifests, and as a user with that of the unit."""
    from tests.dissectors.live.test_interface import missing_right

    from ..command import PROGRAM

    program = find("setpriv")
    if program is None or missing_right():
        pytest.skip("setpriv, or the right to capture, is not here")
    watch = [*PROGRAM, "watch", "-i", "lo", "--duration", "1s"]
    everything = "-all,+net_raw"
    ways = (
        [
            "--bounding-set",
            f"{everything},+setpcap",
            "--inh-caps",
            "-all",
            "--ambient-caps",
            "-all",
        ],
        [
            *("--reuid", "65534", "--regid", "65534", "--clear-groups"),
            *("--inh-caps", everything, "--ambient-caps", everything),
            *("--bounding-set", everything),
        ],
    )
    for way in ways:
        done = subprocess.run(
            [program, "--no-new-privs", *way, *watch],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, (way, done.stderr)
        assert "stopped watching lo" in done.stdout
