"""Make our modules available to Python workers of Spark.

Rules: workers of a Spark Connect server use the installed modules if their sources are the same,
compiled or not; otherwise the modules are sent, as one archive per session. Third-party
dependencies must be installed there. A classic session passes the folder of the modules to its
workers.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from .connect import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow
    from pyspark.sql import SparkSession

PACKAGES: Final = ("analytics", "dissectors", "replay")
"""Packages imported by tasks."""
SAFE_PATH: Final = {"PYTHONSAFEPATH": "1"}
"""Environment of a Python that imports nothing from its current directory."""
_ARCHIVE: Final = "rmqtool-modules.zip"
_served: WeakSet[SparkSession] = WeakSet()
"""Sessions whose workers have our modules."""


def serve_modules(spark: SparkSession) -> None:
    """Make our modules available to workers; on a server this runs a job, once per session."""
    if not is_connect(spark) or spark in _served:
        return
    root = Path(__file__).resolve().parents[2]
    digest = sources_digest()

    def ask(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        # pickled by value: our modules may be missing there
        from importlib.util import find_spec
        from os.path import dirname

        import pyarrow

        for _ in batches:
            spec = find_spec("analytics")
            places = list(spec.submodule_search_locations or ()) if spec is not None else []
            text = digest(dirname(places[0])) if places else ""
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([text])], names=["digest"])

    seen = spark.range(1).coalesce(1).mapInArrow(ask, "digest string").first()
    # Another release there could compute other numbers than this one.
    if seen is None or seen[0] != digest(str(root)):
        _send(spark, root)
    _served.add(spark)


def _send(spark: SparkSession, root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="rmqtool-modules-") as folder:
        path = Path(folder, _ARCHIVE)
        archive_of(root, path)
        spark.addArtifacts(str(path), pyfile=True)


def archive_of(root: Path, path: Path) -> None:
    """Write the sources of our modules in the folder `root` as a zip archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((root / package).rglob("*.py")):
                archive.write(file, file.relative_to(root))


def sources_digest() -> Callable[[str], str]:
    """Return a digest of a folder's sources; runs without any of our modules."""
    packages = PACKAGES

    def digest(root: str) -> str:
        from hashlib import sha256
        from pathlib import Path

        whole = sha256()
        for package in packages:
            for file in sorted(Path(root, package).rglob("*.py")):
                whole.update(f"{file.relative_to(root)}\0".encode())
                whole.update(sha256(file.read_bytes()).digest())
        return whole.hexdigest()

    return digest
