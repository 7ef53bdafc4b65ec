"""Responses of brokers to DescribeLogDirs."""

from __future__ import annotations

from typing import Any

import pytest
from kframe_kafka_wire.admin.broker_requests import logs_of

from kframe.plugin import StoreError
from kframe.plugin.admin import LogDirReplica


def directory(name: str, *partitions: tuple[int, int, bool], error_code: int = 0) -> dict[str, Any]:
    """A log directory with partitions of topic ``t``: number, size, and whether it is a future replica."""
    keys = ("partition_index", "partition_size", "is_future_key")
    rows = [dict(zip(keys, partition, strict=True)) for partition in partitions]
    topics = [{"name": "t", "partitions": rows}] if rows else []
    return {"log_dir": name, "error_code": error_code, "topics": topics}


def test_future_replicas_and_failed_directories_have_no_log() -> None:
    response = {
        "results": [
            directory("/a", (0, 7, False), (1, 3, True)),
            directory("/b", (1, 9, False)),
            directory("/failed", error_code=56),
        ]
    }
    assert logs_of(response) == {("t", 0): LogDirReplica(7, "/a"), ("t", 1): LogDirReplica(9, "/b")}


@pytest.mark.parametrize("response", [{"results": []}, {"results": [], "error_code": 31}])
def test_a_refusal_in_any_version_is_an_error(response: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="CLUSTER_AUTHORIZATION_FAILED"):
        logs_of(response)
