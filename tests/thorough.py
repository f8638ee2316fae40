"""Which tests `make test` leaves out and `make test-all` and CI run.

Rule: a test is left out where it shows with another release or sample, or with more load, what
tests that stay show.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

THOROUGH: Final = (
    # other releases than the newest
    "tests/cluster/*[[]4.*",
    # each sample, held against tshark and sent to a broker; what is made by tests stays
    "tests/dissectors/wireshark/test_samples.py::*",
    "tests/dissectors/tcp/test_tshark.py::*.pcap*",
    "tests/cluster/test_replay_samples.py::*",
    # the same tables by every way into Spark, and by clusters
    "tests/analytics/inputs/test_source.py::test_several_captures*",
    "tests/analytics/inputs/test_source.py::test_rotated_captures*",
    "tests/analytics/test_kept.py::test_a_small_input_gives*",
    "tests/analytics/spark/test_standalone_cluster.py::*",
    # thousands of messages, failures, connections, damaged bytes
    "tests/cluster/test_producer_faults.py::*[[]async*",
    "tests/replay/transport/test_transport.py::test_a_thousand_failures*",
    "tests/dissectors/decode/test_damaged_samples.py::test_new_connections_while*",
    "tests/dissectors/decode/test_damaged_samples.py::test_many_conversations*",
    "tests/dissectors/wireshark/test_damage.py::*",
    "tests/dissectors/wireshark/test_growth.py::*",
)
"""node ids, as patterns"""


def is_thorough(node_id: str) -> bool:
    """Return whether a test is one of THOROUGH."""
    return any(fnmatchcase(node_id, one) for one in THOROUGH)
