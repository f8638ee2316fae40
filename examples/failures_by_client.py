"""Who gets which errors: python examples/failures_by_client.py CAPTURE..."""

from __future__ import annotations

import sys

import rmqtool


def main(*captures: str) -> None:
    """Count failed responses by client, request, and response, with pandas."""
    frame = rmqtool.read(captures).to_pandas(where="failed = true")
    frame["client"] = frame["client_address"].str.replace(r":\d+$", "", regex=True)
    keys = ["client", "request_name", "response_name"]
    failures = frame.groupby(keys, observed=True)["request_time"].agg(["count", "min", "max"])
    print(failures.sort_values("count", ascending=False).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
