"""Jobs: results for pages, progress, cancellation, and bounds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kframe_console.jobs.computations import Overloaded
from kframe_console.jobs.jobs import Cancelled, Job, Jobs, Unfinished
from kframe_console.pages import whatif

from kframe.plugin import InputError
from kframe.plugin.live import Progress
from kframe.plugin.snapshot import Snapshot
from kframe.plugin.whatif import WhatIf
from verification.console.client import console_of


class Steps:
    """A computation that goes on when the test says so."""

    def __init__(self) -> None:
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()
        self.was_cancelled = False

    def __call__(self, progress: Progress) -> str:
        progress(1, 4)
        self.has_begun.set()
        assert self.may_go_on.wait(60)
        try:
            progress(2, 4)
        except Cancelled:
            self.was_cancelled = True
            raise
        return "result"


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    opened = Jobs(2, 100)
    yield opened
    opened.close()


def unfinished(jobs: Jobs, key: str, compute: Callable[[Progress], Any]) -> Job:
    with pytest.raises(Unfinished) as raised:
        jobs.result(key, f"job {key}", compute, len)
    return raised.value.job


def finished(jobs: Jobs, key: str, compute: Callable[[Progress], Any], size: int = 1) -> Any:
    while True:
        try:
            return jobs.result(key, f"job {key}", compute, lambda _: size)
        except Unfinished as too_early:
            too_early.job.wait(60)


def test_readers_of_a_key_share_a_job_and_its_result(jobs: Jobs) -> None:
    steps = Steps()
    job = unfinished(jobs, "a", steps)
    assert steps.has_begun.wait(60)
    assert (job.state, job.done, job.total) == ("running", 1, 4)
    assert unfinished(jobs, "a", lambda progress: "other") is job
    assert jobs.find(job.id) is job
    steps.may_go_on.set()
    assert job.wait(60)
    assert finished(jobs, "a", lambda progress: "other") == "result"


def test_cancelled_job_stops_at_its_next_step_and_starts_again_on_request(jobs: Jobs) -> None:
    steps = Steps()
    job = unfinished(jobs, "a", steps)
    waiting = unfinished(jobs, "b", lambda progress: "never")
    assert steps.has_begun.wait(60)
    assert waiting.state == "waiting"
    jobs.cancel(waiting)
    jobs.cancel(job)
    assert (job.state, waiting.state) == ("cancelled", "cancelled")
    steps.may_go_on.set()
    again = finished(jobs, "b", lambda progress: "again")
    assert (again, steps.was_cancelled, waiting.result) == ("again", True, None)


def test_more_jobs_than_may_wait_are_refused(jobs: Jobs) -> None:
    steps = Steps()
    for key in "abc":
        unfinished(jobs, key, steps)
    with pytest.raises(Overloaded, match="found 3 jobs"):
        jobs.result("d", "job d", steps, len)
    steps.may_go_on.set()


def test_failure_is_raised_once_and_then_tried_again(jobs: Jobs) -> None:
    def fail(progress: Progress) -> str:
        raise InputError("brokers", "none", "one")

    with pytest.raises(InputError, match="brokers: found none"):
        finished(jobs, "a", fail)
    assert finished(jobs, "a", lambda progress: "result") == "result"


def test_results_beyond_the_bound_are_dropped_but_not_the_last(jobs: Jobs) -> None:
    computed: list[str] = []

    def get(key: str, size: int) -> None:
        def compute(progress: Progress) -> str:
            computed.append(key)
            return key

        assert finished(jobs, key, compute, size) == key

    for key, size in [("a", 60), ("b", 40), ("a", 60), ("c", 60), ("a", 60), ("large", 500), ("large", 500), ("c", 60)]:
        get(key, size)
    assert computed == ["a", "b", "c", "a", "large", "c"]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Makes every what-if wait for the test."""
    steps = Steps()

    class SlowWhatIf(WhatIf):
        def play(self, script: Any) -> Any:
            steps(self.step_progress)
            return super().play(script)

    monkeypatch.setattr(whatif, "WhatIf", SlowWhatIf)
    return steps


def test_page_of_a_long_whatif_shows_progress_and_then_the_result(kraft_snapshot: Snapshot, slow: Steps) -> None:
    with console_of(kraft_snapshot) as console:
        client = console.client
        response = client.get("/whatif?operation=fail&brokers=1")
        assert response.status_code == 202
        path = response.text.partition('hx-get="')[2].partition('"')[0]
        assert slow.has_begun.wait(60)
        content = client.get(path).json()
        assert content.pop("id")
        expected = {"title": "Fail: what-if", "state": "running", "done": 1, "total": 4}
        assert content == {"schema": "kframe.console-job/v1", **expected}
        part = client.get(path, headers={"hx-request": "true"})
        assert '<progress aria-label="Progress" value="1" max="4">' in part.text
        assert "hx-refresh" not in part.headers
        threading.Timer(0.3, slow.may_go_on.set).start()
        assert console.json("/whatif", operation="fail", brokers="1")["schema"] == "kframe.whatif/v1"
        assert client.get(path, headers={"hx-request": "true"}).headers["hx-refresh"] == "true"
        assert client.get("/whatif?operation=fail&brokers=1").status_code == 200


def test_cancelled_whatif_tells_those_who_wait(kraft_snapshot: Snapshot, slow: Steps) -> None:
    with console_of(kraft_snapshot) as console:
        client, token = console.client, console.token()
        path = client.get("/whatif?operation=fail&brokers=1").text.partition('hx-get="')[2].partition('"')[0]
        assert client.post(path).status_code == 403
        threading.Timer(0.3, lambda: client.post(path, headers={"x-csrf-token": token})).start()
        console.refuses("/whatif", "Fail: what-if: cancelled", 409, operation="fail", brokers="1")
        assert "Start again" in client.get(path, headers={"hx-request": "true"}).text
        slow.may_go_on.set()
        assert client.get("/jobs/unknown").status_code == 404
