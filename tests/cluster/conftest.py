"""Fixtures of the cluster's own tests."""

from __future__ import annotations

from .fixtures import java_hosts as java_hosts
from .fixtures import rocketmq as rocketmq
