"""`python -m tests.audit`: are there known vulnerabilities in what requirements.txt pins?

Asks by pip-audit, which `make audit` installs. A package that nobody could be asked about was not
checked, and that is said; the exit status is 0 only where all were checked and none is vulnerable.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOUND, NOT_CHECKED = 1, 2
"""exit status: something is vulnerable; something, or all, could not be checked"""


def said_of(dependencies: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """Return what is to be said of pip-audit's answer, and the exit status."""
    lines = [
        f"{one['name']} {one['version']}: {hole['id']}, mended in"
        f" {', '.join(hole['fix_versions']) or 'no release'}"
        for one in dependencies
        for hole in one.get("vulns", ())
    ]
    skipped = [str(one["name"]) for one in dependencies if "skip_reason" in one]
    checked = len(dependencies) - len(skipped)
    if not checked:
        return ["NOT AUDITED: no advisory source is reachable; nothing was checked"], NOT_CHECKED
    if skipped:
        lines.append(f"not checked: {', '.join(skipped)}")
    lines.append(f"{checked} of {len(dependencies)} packages checked")
    vulnerable = any(one.get("vulns") for one in dependencies)
    return lines, FOUND if vulnerable else NOT_CHECKED if skipped else 0


def main() -> int:
    """Return the exit status."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(ROOT / "requirements.txt")]
    command += ["--require-hashes", "--disable-pip", "-f", "json", "--progress-spinner", "off"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        print("\n".join(ran.stderr.splitlines()[-3:]))
        dependencies = []
    lines, status = said_of(dependencies)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
