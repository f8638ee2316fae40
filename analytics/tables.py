"""Report tables as Parquet files whose columns carry their documentation."""

from __future__ import annotations

import io

from .result import TableResult


def parquet_bytes(result: TableResult) -> bytes:
    """Return a table as a Parquet file: numbers 64 bits, times UTC microseconds."""
    import pyarrow.parquet

    described = {column.name: column for column in result.table.columns}
    fields = [
        field.with_metadata(
            {"unit": described[field.name].unit, "meaning": described[field.name].meaning}
        )
        for field in result.data.schema
    ]
    about: dict[bytes | str, bytes | str] = {
        "rmqtool.table": result.table.name,
        "rmqtool.meaning": result.table.meaning,
    }
    schema = pyarrow.schema(fields, metadata=about)
    out = io.BytesIO()
    pyarrow.parquet.write_table(result.data.cast(schema), out, compression="zstd")
    return out.getvalue()
