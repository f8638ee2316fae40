"""Names of files, as they were given and as Hadoop names them."""

from __future__ import annotations

from analytics.spark.places import number_of, numbers_of


def test_files_of_two_buckets_with_one_path_differ() -> None:
    files = ["s3a://b/x.pcap", "s3a://a/x.pcap", "hdfs:///x.pcap", "/y.pcap"]
    numbers = numbers_of(files)
    assert [number_of(numbers, file) for file in files] == [0, 1, 2, 3]
    assert number_of(numbers, "hdfs://namenode:8020/x.pcap") == 2
    assert number_of(numbers, "file:/y.pcap") == 3
