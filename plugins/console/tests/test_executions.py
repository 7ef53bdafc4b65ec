"""Executions of plans on an embedded cluster: confirmation, progress, pause, abort, rollback, and the audit log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from kframe_console.plans.executions import Executions
from kframe_console.settings import ConsoleSettings
from starlette.testclient import TestClient

from kframe.plugin.plans import ExecutionState, read_journal
from verification.console.client import ConsoleClient, console_of
from verification.console.embedded import URL, CapturedSource, SharedAdmin, executing_application

#: Empties broker 3, which has a replica of t-1 and t-2.
REQUEST = {"remove_brokers": "3"}


class LiveConsole(ConsoleClient):
    """A console that may execute, its cluster, and its files."""

    def __init__(self, client: httpx2.Client, admin: SharedAdmin, folder: Path) -> None:
        super().__init__(client)
        self.admin = admin
        self.folder = folder

    def plan(self) -> str:
        """The id of a generated plan."""
        plan_id: str = self.json("/plans/generate", **REQUEST)["id"]
        return plan_id

    def begin(self, **parameters: str) -> str:
        """Execute the plan. Returns the id of the execution."""
        execution_id: str = self.confirm(f"/plans/{self.plan()}/execute", **parameters)["id"]
        return execution_id

    def until(self, execution_id: str, holds: Callable[[Any], bool]) -> Any:
        """The execution once it is so."""
        for _ in range(3_000):
            content = self.json(f"/executions/{execution_id}")
            if holds(content):
                return content
            time.sleep(0.01)
        raise AssertionError(content)

    def ended(self, execution_id: str) -> Any:
        return self.until(execution_id, lambda content: not content["is_running"])

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "audit.jsonl").read_text().splitlines()]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[LiveConsole]:
    with (
        executing_application(tmp_path) as (app, admin),
        TestClient(app, base_url="http://localhost") as client,
    ):
        yield LiveConsole(client, admin, tmp_path)


def test_preview_is_the_what_if_of_the_plan_on_the_cluster(console: LiveConsole) -> None:
    preview = console.json(f"/plans/{console.plan()}/execute", throttle="1000", concurrency="1")
    execution = preview["execution"]
    assert (execution["executed"], execution["partitions"], execution["throttle"]) == (False, 2, 1000)
    assert (execution["concurrency"], execution["bytes"], execution["expected_seconds"]) == (1, 2000, 2.0)
    assert execution["effect"]["reassignment"]["replicas_copied"] == 2
    assert execution["effect"]["impact"]["offline_peak"] == 0
    assert (preview["problems"], preview["known"], console.admin.reassignments()) == ([], None, {})
    assert sorted(path.name for path in console.folder.iterdir()) == ["audit.jsonl"]


def test_confirmed_plan_is_executed_in_its_stages_and_reverted(console: LiveConsole) -> None:
    before = {name: console.admin.replicas(*name) for name in (("t", 0), ("t", 1), ("t", 2))}
    console.admin.copies.set()
    execution_id = console.begin(moves="1")
    ended = console.ended(execution_id)
    assert (ended["execution"]["result"], ended["execution"]["settled"]) == ("completed", 2)
    assert [stage["partitions"] for stage in ended["execution"]["stages"]] == [1, 1]
    assert not any(3 in console.admin.replicas(*name) for name in before)
    (row,) = console.json("/executions")["executions"]
    assert (row["id"], row["is_running"]) == (execution_id, False)
    assert console.json(f"/plans/{console.plan()}/execute")["known"] is None, "the plan of the cluster is another now"

    assert console.confirm(f"/executions/{execution_id}/rollback")["execution"]["rolls_back"]
    assert console.ended(execution_id)["execution"]["result"] == "rolled back"
    assert {name: console.admin.replicas(*name) for name in before} == before
    events = [(line["event"], line["action"]) for line in console.audit()]
    assert events == [
        ("begin", "plan-execution-begin"),
        ("done", "plan-execution-begin"),
        ("begin", "execution-goal-change"),
        ("done", "execution-goal-change"),
    ]
    assert console.audit()[0]["what_if"]["execution"]["effect"]["reassignment"]["replicas_copied"] == 2
    assert console.audit()[2]["what_if"]["effect"]["reassignment"]["partitions"] == 2


def test_progress_is_shown_while_replicas_are_copied_and_a_pause_waits_for_them(console: LiveConsole) -> None:
    execution_id = console.begin(concurrency="1")
    running = console.until(execution_id, lambda content: (content["progress"] or {}).get("in_flight") == 1)
    assert running["is_running"]
    assert running["progress"]["total"] == 2
    page = console.client.get(f"/executions/{execution_id}").text
    assert 'hx-select="#live"' in page
    assert "1 in flight" in page

    refused = console.client.get(f"/plans/{console.plan()}/execute", params={"format": "json"})
    assert refused.status_code == 200
    assert console.json(f"/executions/{execution_id}/pause")["effect"]["reassignment"]["partitions"] == 1
    console.confirm(f"/executions/{execution_id}/pause")
    console.until(execution_id, lambda content: content["execution"]["goal"] == "pause")
    console.admin.copies.set()
    paused = console.ended(execution_id)
    assert (paused["execution"]["result"], paused["execution"]["settled"]) == ("paused", 1)

    assert console.json(f"/executions/{execution_id}/resume")["effect"]["reassignment"]["partitions"] == 1
    console.confirm(f"/executions/{execution_id}/resume")
    assert console.ended(execution_id)["execution"]["result"] == "completed"


def test_abort_cancels_what_is_in_flight(console: LiveConsole) -> None:
    execution_id = console.begin()
    console.until(execution_id, lambda content: (content["progress"] or {}).get("in_flight") == 2)
    assert console.json(f"/executions/{execution_id}/abort")["effect"]["reassignment"]["partitions"] == 2
    console.confirm(f"/executions/{execution_id}/abort")
    aborted = console.ended(execution_id)
    assert (aborted["execution"]["result"], console.admin.reassignments()) == ("aborted", {})
    assert [console.admin.replicas("t", number) for number in (1, 2)] == [(2, 3), (3, 1)]


def test_one_execution_runs_at_a_time(console: LiveConsole) -> None:
    first = console.begin(concurrency="1")
    console.until(first, lambda content: content["progress"] is not None)
    path = f"/plans/{console.json('/plans/generate', leaders_only='true', seed='3')['id']}/execute"
    console.refused(console.write(path, {"digest": console.json(path)["digest"]}), 400, first)
    assert console.audit()[-1]["event"] == "failed"


def test_cluster_that_cannot_be_reached_ends_the_run_and_the_execution_continues_later(console: LiveConsole) -> None:
    execution_id = console.begin(concurrency="1")
    console.until(execution_id, lambda content: (content["progress"] or {}).get("in_flight") == 1)
    console.admin.reachable = False
    stopped = console.ended(execution_id)
    assert stopped["problem"] == "no controller can be reached"
    assert console.client.get(f"/executions/{execution_id}/resume", params={"format": "json"}).status_code == 502
    console.admin.reachable = True
    console.admin.copies.set()
    console.confirm(f"/executions/{execution_id}/resume")
    ended = console.ended(execution_id)
    assert (ended["execution"]["result"], ended["problem"]) == ("completed", None)


def test_console_that_ends_leaves_an_execution_to_its_journal(tmp_path: Path) -> None:
    admin = SharedAdmin()

    @contextmanager
    def started() -> Iterator[LiveConsole]:
        executions = Executions(URL, lambda: admin, tmp_path, interval_s=0.01)
        settings = ConsoleSettings(allow_execute=True)
        with console_of(CapturedSource(admin), settings, executions=executions) as console:
            yield LiveConsole(console.client, admin, tmp_path)

    with started() as console:
        execution_id = console.begin()
        console.until(execution_id, lambda content: (content["progress"] or {}).get("in_flight") == 2)
    state = ExecutionState(read_journal(tmp_path / f"{execution_id}.journal"))
    assert (state.result, len(state.started)) == (None, 2)
    admin.copies.set()
    with started() as console:
        console.confirm(f"/executions/{execution_id}/resume")
        assert console.ended(execution_id)["execution"]["result"] == "completed"
    admin.end()


@pytest.mark.parametrize(
    "changes, status, message",
    [
        ({"csrf_token": "x"}, 403, "no valid token"),
        ({"digest": "x"}, 400, "digest: found 'x', expected that of the plan"),
        ({"concurrency": "0"}, 400, "concurrency: found '0', expected a whole number from 1"),
        ({"moves": "1"}, 400, "digest"),
    ],
)
def test_writes_that_no_page_has_confirmed_are_refused(
    console: LiveConsole, changes: dict[str, str], status: int, message: str
) -> None:
    path = f"/plans/{console.plan()}/execute"
    console.refused(console.write(path, {"digest": console.json(path)["digest"], **changes}), status, message)
    assert console.admin.reassignments() == {}
    assert console.json("/executions")["executions"] == []


def test_stale_plan_is_refused(console: LiveConsole) -> None:
    from kframe.model.tables import Targets

    plan_id = console.plan()
    console.admin.reassign(Targets.of([(("t", 1), (2, 1))]))
    console.admin.catch_up(("t", 1))
    console.refuses(f"/plans/{plan_id}/execute", "assigned anew since")


def test_console_without_permission_says_so_and_writes_nothing(tmp_path: Path) -> None:
    admin = SharedAdmin()
    executions = Executions(URL, lambda: admin, tmp_path)
    with console_of(CapturedSource(admin), executions=executions) as console:
        path = f"/plans/{console.json('/plans/generate', **REQUEST)['id']}/execute"
        preview = console.json(path)
        assert "must be started with --allow-execute" in preview["problems"][0]
        assert 'method="post"' not in console.client.get(path).text
        assert console.write(path, {"digest": preview["digest"]}).status_code == 403
        console.refuses("/executions/0123456789abcdef", "a console that changes no cluster")
    assert list(tmp_path.iterdir()) == []
    admin.end()


@pytest.mark.parametrize("execution", ["0123456789abcdef", "x", "..%2Faudit", "0" * 300])
def test_unknown_executions_are_not_found(console: LiveConsole, execution: str) -> None:
    for path in (f"/executions/{execution}", f"/executions/{execution}/pause"):
        assert console.client.get(path).status_code == 404
