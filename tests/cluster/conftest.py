"""Fixtures of the cluster's own tests."""

from __future__ import annotations

import pytest

from .fixtures import end_with_lane
from .fixtures import java_hosts as java_hosts
from .fixtures import rocketmq as rocketmq


@pytest.hookimpl(trylast=True)  # fixtures of tests have ended
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    end_with_lane(item, nextitem)
