"""Java for Spark: an archive of classes belongs to the jars that it was made of."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from analytics.inputs.inputs import QUICK_ROWS, SMALL_ROWS, Input, InputKind, is_quick, is_small
from analytics.spark.java import ClassArchive, Java, options_of

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


def test_the_optimising_compiler_is_for_inputs_of_many_minutes() -> None:
    first_only = "-XX:TieredStopAtLevel=1"
    assert first_only in options_of(small=True, quick=True)
    assert first_only in options_of(small=False, quick=True)
    assert first_only not in options_of(small=False, quick=False)


@pytest.mark.parametrize(
    ("rows", "small", "quick"),
    [
        ([SMALL_ROWS], True, True),
        ([SMALL_ROWS, 1], False, True),
        ([QUICK_ROWS], False, True),
        ([QUICK_ROWS, 1], False, False),
    ],
)
def test_how_large_inputs_are_together(rows: list[int], small: bool, quick: bool) -> None:
    inputs = [Input("log", InputKind.log, (), rows=one) for one in rows]
    assert is_small(inputs) is small
    assert is_quick(inputs) is quick


def test_an_input_of_unknown_size_may_be_large() -> None:
    assert not is_quick([Input("hdfs:///log", InputKind.remote, ())])
