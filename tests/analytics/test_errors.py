"""What Spark says about places that it cannot read comes to one line and a way out."""

from __future__ import annotations

import pytest

from analytics.errors import reason_of

NAME_NODE = (
    "java.net.ConnectException: Call From vm/127.0.0.1 to nn.example:8020 failed on connection"
    " exception: java.net.ConnectException: Connection refused; For more details see:  x"
)


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class"
            " org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            "Spark has no connector for s3a://",
            "spark.jars.packages=org.apache.hadoop:hadoop-aws:",
        ),
        (
            'UnsupportedFileSystemException: No FileSystem for scheme "gs"',
            "Spark has no connector for gs://",
            "gcs-connector",
        ),
        (
            'UnsupportedFileSystemException: No FileSystem for scheme "nope"',
            "Spark has no connector for nope://",
            "GROUP:NAME:VERSION",
        ),
        (NAME_NODE, "the NameNode nn.example:8020 does not answer: connection refused", "8020"),
        (
            "java.lang.IllegalArgumentException: java.net.UnknownHostException: nn.invalid",
            "there is no host nn.invalid",
            "name of the input",
        ),
        (
            "[PATH_NOT_FOUND] Path does not exist: s3a://b/x. SQLSTATE: 42K03",
            "s3a://b/x: no such file or folder",
            "",
        ),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b` cannot be found. Verify",
            "there is no table a.b",
            "table:CATALOG.DATABASE.TABLE",
        ),
        (
            "Cannot find catalog plugin class for catalog 'lake': org.apache.iceberg.X",
            "Spark has no class org.apache.iceberg.X of the catalog lake",
            "iceberg-spark-runtime",
        ),
        (
            "java.net.ConnectException: Connection refused",
            "the Spark master cannot be reached",
            "--master",
        ),
    ],
)
def test_what_spark_says_is_told(said: str, message: str, hint: str) -> None:
    reason = reason_of(Exception(said))
    assert reason.message == message
    assert hint.replace("8020", "HOST:PORT") in reason.hint
