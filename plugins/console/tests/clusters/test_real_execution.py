"""``kframe console --allow-execute`` on three real Kafka 3.9.1 brokers: a plan is executed and rolled back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kframe.testing.waiting import until
from verification.console.client import client_of
from verification.console.running import running_console
from verification.zookeeper.handover import ClusterFixture, running_fixture
from verification.zookeeper.servers import ServerHandle, ServerOptions, missing, running


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[ClusterFixture]:
    if lacking := missing():
        pytest.skip(lacking)
    with (
        running(ServerHandle(tmp_path / "zookeeper", ServerOptions())) as zookeeper,
        running_fixture(f"{zookeeper.address}/kafka", tmp_path / "kafka", {}) as fixture,
    ):
        yield fixture


@pytest.mark.extended
def test_plan_is_executed_and_rolled_back(kafka: ClusterFixture, tmp_path: Path) -> None:
    kafka.clients.request("create", topic="moved", replicas=[[1, 2], [2, 3], [3, 1], [1, 3]])
    audit, url = tmp_path / "audit.jsonl", f"kafka://{kafka.cluster.address}"
    options = ("--allow-execute", "--audit-log", str(audit), "--refresh", "0.2")
    with running_console(url, *options) as console, client_of(console.url) as client:

        def replicas() -> list[list[int]]:
            rows = client.json("/partitions", topic="=moved", count="10")["rows"]
            return [row["replicas"] for row in rows]

        def result(execution_id: str) -> Any:
            execution = client.json(f"/executions/{execution_id}")
            return None if execution["is_running"] else execution["execution"]

        before = replicas()
        plan_id = client.json("/plans/generate", remove_brokers="3", topics="moved")["id"]
        execution_id = client.confirm(f"/plans/{plan_id}/execute", moves="2", throttle="10MB/s")["id"]
        assert until(lambda: result(execution_id))
        ended = result(execution_id)
        assert (ended["result"], ended["settled"], ended["not_restored"]) == ("completed", 3, [])
        assert until(lambda: not any(3 in partition for partition in replicas()))
        client.confirm(f"/executions/{execution_id}/rollback")
        assert until(lambda: (result(execution_id) or {}).get("result") == "rolled back")
        assert until(lambda: replicas() == before)
        assert console.stop() == 0
    events = [json.loads(line)["event"] for line in audit.read_text().splitlines()]
    assert events == ["begin", "done", "begin", "done"]
