"""Java for Spark: an archive of classes belongs to the jars that it was made of."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from analytics.spark.java import ClassArchive, Java

if TYPE_CHECKING:
    from pathlib import Path


def test_spark_that_is_installed_anew_gets_an_archive_of_its_own(tmp_path: Path) -> None:
    jars = tmp_path / "pyspark" / "jars"
    jars.mkdir(parents=True)

    def archive() -> ClassArchive:
        java = Java("/usr/lib/jvm", "17.0.1")
        return ClassArchive(java, "4.1.1", str(jars.parent), ("-Xshare:auto",), tmp_path / "cache")

    first = archive().path
    assert archive().path == first
    os.utime(jars, ns=(1, 1))
    assert archive().path != first
