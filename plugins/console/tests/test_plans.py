"""Plans over HTTP: the same answers as the commands, links, comparison, stages, and bounds."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from kframe_console.command import example
from kframe_console.jobs.jobs import Jobs
from kframe_console.pages.plans import field_groups
from kframe_console.plans.session import GOALS, LIMITS, PlanLink, Plans, no_sizes
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.saved import SavedSource
from kframe_console.web.assets import STATIC

from kframe.plugin.plans import plan, plan_lines, report_document, resolve_plan
from kframe.plugin.snapshot import Snapshot, read_snapshot
from tests.cli.running import kframe
from verification.console.client import ConsoleClient, console_of

TEMPLATES = STATIC.parent / "templates"
HEALTHY = Path(example().parent, "kafka-3.9.1-six-brokers", "healthy.zookeeper.jsonl.gz")


@pytest.fixture(scope="module")
def healthy() -> Snapshot:
    return read_snapshot(HEALTHY)


@pytest.fixture(scope="module")
def console(healthy: Snapshot) -> Iterator[ConsoleClient]:
    with console_of(healthy) as console:
        yield console


def generate(console: ConsoleClient, **request: str) -> Any:
    return console.json("/plans/generate", **request)


REQUESTS: list[dict[str, str]] = [
    {"remove_brokers": "3"},
    {"rebalance": "true"},
    {"add_brokers": "7:rack-0,8-9"},
    {"replace": "4=6"},
    {"evacuate_racks": "rack-0"},
    {"fix_racks": "true", "remove_brokers": "1,2", "broker_caps": "600,5=700"},
    {"leaders_only": "true", "exclude_brokers": "2"},
    {"one_rack": "fraud.*", "seed": "7"},
    {"replication_factors": "fraud.events.v1=2", "topics": "fraud.*"},
]


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_plan_is_that_of_the_command(console: ConsoleClient, request_: dict[str, str]) -> None:
    content = generate(console, **request_)
    result = kframe("plan", "generate", HEALTHY, *GOALS.arguments(request_), "-o", "json")
    expected = json.loads(result.stdout)
    del expected["schema"]
    assert content["plan"] == expected
    file = console.client.get(f"/plans/{content['id']}/reassignment.json")
    assert file.headers["content-disposition"] == f'attachment; filename="reassignment-{content["id"]}.json"'
    assert file.text == kframe("plan", "generate", HEALTHY, *GOALS.arguments(request_), "--out", "-").stdout


def test_moves_are_those_of_the_file(console: ConsoleClient, healthy: Snapshot) -> None:
    plan_id = generate(console, remove_brokers="3")["id"]
    rows = console.json("/plan-moves", plan=plan_id, count="1000")["rows"]
    planned = console.client.get(f"/plans/{plan_id}/reassignment.json").json()["partitions"]
    assert [(row["topic"], row["partition"], row["target"]) for row in rows] == [
        (row["topic"], row["partition"], row["replicas"]) for row in planned
    ]
    for row in rows:
        assert row["removing"] == [3]
        assert set(row["target"]) == set(row["replicas"]) - {3} | set(row["adding"])
    assert console.json("/plan-moves", plan=plan_id, target="6", sort="-topic")["total"] > 0


def test_link_with_its_request_makes_a_dropped_plan_again(console: ConsoleClient, healthy: Snapshot) -> None:
    content = generate(console, remove_brokers="3", seed="9")
    with console_of(healthy) as restarted:
        restarted.refuses(f"/plans/{content['id']}", "or its request too", 404)
        assert restarted.json(f"/plans/{content['id']}", request=content["request"]) == content
        assert restarted.json(f"/plans/{content['id']}") == content
        (stored,) = restarted.json("/plans")["plans"]
        assert stored["id"] == content["id"]


def test_ids_are_of_the_request_and_the_cluster(console: ConsoleClient, kraft_snapshot: Snapshot) -> None:
    first = generate(console, remove_brokers="3")["id"]
    assert generate(console, remove_brokers=" 3 ", tolerance="1", rebalance="false")["id"] == first
    assert generate(console, remove_brokers="4")["id"] != first
    with console_of(kraft_snapshot) as other:
        assert generate(other, remove_brokers="3")["id"] != first


def test_link_of_another_cluster_is_planned_on_the_present_one(console: ConsoleClient) -> None:
    content = console.json("/plans/ffffffffffffffff", request="remove_brokers=3")
    assert content == generate(console, remove_brokers="3")


@pytest.mark.parametrize(
    "path, message",
    [
        ("/plans/generate?", "plan: found no goal, expected at least one"),
        ("/plans/generate?remove_brokers=x", "remove_brokers: found 'x', expected broker ids"),
        ("/plans/generate?rebalance=perhaps", "rebalance: found 'perhaps', expected true or false"),
        ("/plans/generate?tolerance=101&rebalance=true", "tolerance: found '101', expected a number"),
        ("/plans/generate?leaders_only=true&rebalance=true", "leaders_only: found a goal that moves replicas"),
        ("/plans/generate?rate=5&rebalance=true", "rate: found no sizes of partitions"),
        ("/plans/generate?goal=none", "goal: found 'none', expected"),
        ("/plans/generate?x=1", "x: found an unknown parameter"),
        ("/plans/generate?remove_brokers=99", "99"),
        ("/plans/0?request=x", "request: found 'x'"),
        ("/plans/0?request=x%3D1", "request: found 'x', expected a field of a plan"),
        ("/plans/compare?left=0&right=1", "plan: found '0'"),
        ("/plans/compare?left=0", "right: found no value, expected one"),
        ("/plans/{plan}/stages?moves=0", "moves: found '0', expected a whole number from 1"),
        ("/plans/{plan}/stages?rate=1MB/s", "rate: found no sizes of partitions"),
        ("/plans/{plan}/stages?windows=22", "windows: found '22'"),
        ("/plans/{plan}/stages/2", "stage: found 2, expected a stage from 1 to 1"),
        ("/plans/{plan}/stages/x", "stage: found 'x', expected a whole number"),
        ("/plan-moves", "plan: found no value, expected one"),
    ],
)
def test_bad_requests_name_the_field(console: ConsoleClient, path: str, message: str) -> None:
    plan_id = generate(console, remove_brokers="3")["id"]
    path = path.format(plan=plan_id)
    response = console.client.get(f"{path}&format=json" if "?" in path else f"{path}?format=json")
    assert response.status_code in (400, 404)
    assert message in response.json()["error"]


def test_form_has_every_option(console: ConsoleClient) -> None:
    named = [field.name for fields in field_groups().values() for field in fields]
    assert sorted(named) == sorted(field.name for field in GOALS.fields)
    page = console.client.get("/plans?remove_brokers=3,4&rebalance=true").text
    assert 'name="remove_brokers" value="3,4"' in page
    assert 'name="rebalance" value="true" checked' in page
    for field in GOALS.fields:
        assert f'name="{field.name}"' in page


def test_comparison_has_the_numbers_of_both_reports(console: ConsoleClient) -> None:
    left, right = (generate(console, **request) for request in (REQUESTS[0], REQUESTS[5]))
    content = console.json("/plans/compare", left=left["id"], right=right["id"])
    values = {(value["group"], value["name"]): (value["left"], value["right"]) for value in content["values"]}
    for side, report in enumerate((left["plan"], right["plan"])):
        assert values["moves", "replicas copied"][side] == report["moves"]["replicas"]
        assert values["bound", "lower bound of the cost"][side] == report["moves"]["bound"]
        assert values["racks", "partitions uneven over racks"][side] == report["racks"]["crowded_after"]
        assert values["balance", "most leaders of a broker"][side] == report["skew"]["leaders_after"]["max"]
        for broker, row in zip(report["brokers"], content["brokers"], strict=True):
            assert row["replicas"][1 + side] == broker["replicas_after"]
            assert row["leaders"][0] == broker["leaders_before"]
    files = [
        console.client.get(f"/plans/{plan['id']}/reassignment.json").json()["partitions"] for plan in (left, right)
    ]
    first, second = ({(row["topic"], row["partition"]): row["replicas"] for row in file} for file in files)
    shared = first.keys() & second.keys()
    same = sum(first[name] == second[name] for name in shared)
    assert content["partitions"] == {
        "same": same,
        "different": len(shared) - same,
        "left_only": len(first) - len(shared),
        "right_only": len(second) - len(shared),
    }
    assert content["partitions"]["different"]


def test_equal_plans_compare_as_equal(console: ConsoleClient) -> None:
    plan_id = generate(console, remove_brokers="3")["id"]
    content = console.json("/plans/compare", left=plan_id, right=plan_id)
    assert {value["less"] for value in content["values"]} == {None}
    assert content["partitions"] == {"same": 307, "different": 0, "left_only": 0, "right_only": 0}


def test_stages_are_those_of_the_command(console: ConsoleClient, tmp_path: Path) -> None:
    content = generate(console, remove_brokers="3")
    file = tmp_path / "plan.json"
    file.write_text(console.client.get(f"/plans/{content['id']}/reassignment.json").text)
    limits = {"moves_per_broker": "20"}
    expected = json.loads(kframe("plan", "stage", HEALTHY, file, *LIMITS.arguments(limits), "-o", "json").stdout)
    del expected["schema"]
    stages = console.json(f"/plans/{content['id']}/stages", **limits)["stages"]
    assert stages == expected
    for number in (1, 15):
        stage = console.json(f"/plans/{content['id']}/stages/{number}", **limits)
        assert (stage["stage"], stage["count"]) == (stages["stages"][number - 1], 15)
    page = console.client.get(f"/plans/{content['id']}/stages", params=limits).text
    for number in range(1, 16):
        assert f'href="/plans/{content["id"]}/stages/{number}?moves_per_broker=20"' in page


def test_sizes_are_balanced_and_give_durations(healthy: Snapshot) -> None:
    sizes = np.full(len(healthy), 1_000_000, np.int64)
    with console_of(healthy, sizes=lambda _: sizes) as console:
        content = generate(console, remove_brokers="3", rate="1MB/s")
        expected = report_document(plan(healthy, remove_brokers=(3,), rate=1_000_000, weights=sizes))
        assert content["plan"] == msgspec.to_builtins(expected)
        assert content["plan"]["moves"]["seconds"] is not None
        stages = console.json(f"/plans/{content['id']}/stages", moves="10", rate="1MB/s", windows="22:00-06:00")
        assert stages["stages"]["stages"][0]["window"]["begin"] == "22:00:00"


def test_pages_show_plans_and_their_links(console: ConsoleClient) -> None:
    content = generate(console, remove_brokers="3")
    other = generate(console, remove_brokers="4")
    limits = {"moves": "3"}
    console.json(f"/plans/{content['id']}/stages", **limits)
    console.json(f"/plans/{content['id']}/execute", **limits)
    console.json("/plans/compare", left=content["id"], right=other["id"])
    expected = {
        f"/plans/{content['id']}": [content["plan"]["summary"], content["plan"]["proof"], "Replicas before (grey)"],
        f"/plans/{content['id']}/stages?moves=3": ["60 of", "by replicas copied", "first=60", 'role="group"'],
        f"/plans/{content['id']}/stages?moves=3&first=60": ["stage 61", "Stages 61 to 103 of 103", "first=0"],
        f"/plans/{content['id']}/stages/1?moves=3": ["What if a broker fails?", "stages/2?moves=3"],
        f"/plans/{content['id']}/execute?moves=3": ["must be started with --allow-execute"],
        f"/plans/compare?left={content['id']}&right={other['id']}": [
            "left plan (grey)",
            "changed by the left plan alone",
        ],
    }
    for path, texts in expected.items():
        response = console.client.get(path)
        assert response.status_code == 200, response.text
        for text in texts:
            assert text in html.unescape(response.text), (path, text)


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.stem)
def test_labels_stand_before_their_numbers(path: Path) -> None:
    assert re.findall(r"<li[^>]*>\s*<strong>\{\{ [^}]*\| (?:text|duration) \}\}.*", path.read_text()) == []


def test_retained_plans_have_a_bound(healthy: Snapshot) -> None:
    settings = ConsoleSettings(job_results_bytes_max=300_000)
    with console_of(healthy, settings) as console:
        ids = [generate(console, remove_brokers="3", seed=str(seed))["id"] for seed in range(1, 8)]
        stored = [row["id"] for row in console.json("/plans")["plans"]]
        assert 0 < len(stored) < len(ids)
        assert stored == ids[::-1][: len(stored)]


def test_stated_bytes_of_a_plan_are_those_of_its_parts(healthy: Snapshot) -> None:
    jobs = Jobs(8, 1 << 30)
    plans = Plans(jobs, no_sizes)
    reading = SavedSource.of(healthy).only
    stored = plans.make(reading, "0", {"remove_brokers": "3"}, lambda done, total: None)
    moves = len(stored.plan)
    assert stored.nbytes > 4 * moves * 8
    assert list(stored.lines()) == list(plan_lines(stored.plan, resolve_plan(stored.plan, healthy).stamp()))
    assert plans.find(PlanLink(plan="x", request="remove_brokers=3"), reading)[1] == {"remove_brokers": "3"}
    jobs.close()
