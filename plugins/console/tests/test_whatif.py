"""What-ifs over HTTP: the documents of ``kframe whatif``, the windows of changed partitions, the form, and refusals."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from click.testing import CliRunner
from kframe_console.application import application
from kframe_console.command import example
from kframe_console.pages.whatif import OPERATIONS
from kframe_console.sources.saved import SavedSource
from starlette.testclient import TestClient

from kframe.cli.whatif import group
from kframe.plugin.snapshot import Snapshot

ZOOKEEPER = example().parent / "kafka-3.9.1-six-brokers" / "broker-4-dead.zookeeper.jsonl.gz"

#: The mode and the query of a page, and the command that answers the same.
OPERATION_CASES = [
    ("kraft", "fail&brokers=1", "fail --brokers 1"),
    ("kraft", "fail&racks=rack-a,rack-b", "fail --racks rack-a,rack-b"),
    ("kraft", "fail&brokers=1-2&together=one-by-one", "fail --brokers 1-2 --one-by-one"),
    ("kraft", "shutdown&brokers=3,1", "shutdown --brokers 3,1"),
    ("kraft", "restart&brokers=1&clean=unclean", "restart --brokers 1 --unclean"),
    ("kraft", "fence&brokers=2", "fence --brokers 2"),
    ("kraft", "unfence&brokers=2", "unfence --brokers 2"),
    ("kraft", "unregister&brokers=2", "unregister --brokers 2"),
    (
        "kraft",
        "fail-directories&broker=1&directories=N0YVQy9kmh0-VNO5c9znAg",
        "fail-directories --broker 1 --directory N0YVQy9kmh0-VNO5c9znAg",
    ),
    ("kraft", "elect&election=preferred", "elect --type preferred"),
    ("kraft", "elect&election=unclean", "elect --type unclean"),
    (
        "kraft",
        "elect&election=preferred&partitions=clicks-1,clicks-2",
        "elect --type preferred --partition clicks-1 --partition clicks-2",
    ),
    ("kraft", "create&name=new&partitions=4&seed=3", "create new --partitions 4 --seed 3"),
    ("kraft", "create&name=new&assignments=[[1,2],[2,3]]", "create new --assignments [[1,2],[2,3]]"),
    ("kraft", "create-partitions&name=clicks&partitions=90", "create-partitions clicks --partitions 90"),
    ("kraft", "delete&topics=cli*,scratch", "delete cli* scratch"),
    (
        "kraft",
        "update-features&levels=eligible.leader.replicas.version=0",
        "update-features eligible.leader.replicas.version=0",
    ),
    ("zookeeper", "fail&brokers=1,2", "fail --brokers 1,2"),
    ("zookeeper", "restart&brokers=4", "restart --brokers 4"),
    ("zookeeper", "shutdown&brokers=1", "shutdown --brokers 1"),
    ("zookeeper", "create&name=new&partitions=2&replication_factor=3", "create new --partitions 2 --rf 3"),
]


@pytest.fixture(scope="session")
def clients(kraft_snapshot: Snapshot, zookeeper_snapshot: Snapshot) -> Any:
    sources = {"kraft": (kraft_snapshot, example()), "zookeeper": (zookeeper_snapshot, ZOOKEEPER)}
    opened = {
        mode: TestClient(application(SavedSource.of(snapshot, path.name)), base_url="http://localhost")
        for mode, (snapshot, path) in sources.items()
    }
    for client in opened.values():
        client.__enter__()
    yield opened
    for client in opened.values():
        client.__exit__()


def printed(mode: str, arguments: list[str]) -> dict[str, Any]:
    source: Path = example() if mode == "kraft" else ZOOKEEPER
    result = CliRunner().invoke(group, [arguments[0], str(source), *arguments[1:], "-o", "json"])
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.parametrize("mode, query, command", OPERATION_CASES)
def test_outcome_is_that_of_the_command(clients: Any, mode: str, query: str, command: str) -> None:
    document, query = printed(mode, command.split()), f"operation={query}"
    partitions = document.pop("partitions")
    response = clients[mode].get(f"/whatif?{query}&format=json")
    assert (response.status_code, response.json()) == (200, document)
    page = clients[mode].get(f"/whatif?{query}")
    assert page.status_code == 200
    assert f"<h1>{document['operation']['text']}</h1>" in page.text
    rows = clients[mode].get(f"/whatif/partitions?{query}&format=json&count=1000").json()
    assert (rows["total"], rows["rows"]) == (len(partitions), partitions[:1000])
    parquet = clients[mode].get(f"/whatif/partitions?{query}&format=parquet").content
    assert pyarrow.parquet.read_table(io.BytesIO(parquet)).to_pylist() == partitions


def test_labels_need_no_knowledge_of_the_command_line() -> None:
    labels = {field.name: field.label for form in OPERATIONS.values() for field in form.fields}
    assert (labels["together"], labels["clean"]) == ("together or one by one", "clean or unclean")
    assert (labels["replication_factor"], labels["stale_controllers"]) == ("replication factor", "stale controllers")


def test_every_operation_has_a_case() -> None:
    assert {command.split()[0] for _, _, command in OPERATION_CASES} == set(OPERATIONS)


@pytest.mark.parametrize(
    "query, parameter, message",
    [
        ("operation=explode", "operation", "found 'explode'"),
        ("operation=fail&brokers=99", "brokers", "broker 99"),
        ("operation=fail&brokers=x", "brokers", "found 'x', expected broker ids such as 2,5 or 1-3,7"),
        ("operation=fail&racks=rack-z", "racks", "rack 'rack-z'"),
        ("operation=elect&brokers=1", "brokers", "found '1', expected none: the operation does not have it"),
        ("operation=fail&brokers=1&together=perhaps", "together", "expected one of together, one-by-one"),
        ("operation=create&partitions=0x2", "partitions", "found '0x2', expected a whole number"),
        ("operation=create&name=a&assignments=[1", "assignments", "found '[1', expected replica lists"),
        ("operation=create-partitions&name=clicks", "partitions", "Missing option '--partitions'"),
        ("operation=delete&topics=zz*", "topics", "'zz*'"),
        ("operation=update-features&levels=elr", "levels", "found 'elr', expected KEY=VALUE"),
        ("operation=fail-directories&broker=1,2&directories=x", "broker", "found '1,2'"),
        ("operation=fail-directories&broker=1&directories=x", "directories", "found 'x'"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_operation_is_refused_by_parameter(clients: Any, query: str, parameter: str, message: str) -> None:
    response = clients["kraft"].get(f"/whatif?format=json&{query}")
    assert response.status_code == 400
    assert response.json()["parameter"] == parameter
    assert message in response.json()["error"]


def test_zookeeper_cluster_has_no_operations_of_kraft(clients: Any) -> None:
    text = clients["zookeeper"].get("/whatif").text
    assert "Shut down" in text
    assert "Fence" not in text
    assert clients["zookeeper"].get("/whatif?operation=fence&brokers=1&format=json").status_code == 400


def test_form_without_brokers_asks_for_them_and_computes_nothing(clients: Any) -> None:
    response = clients["kraft"].get("/whatif?operation=fail&brokers=&racks=")
    assert response.status_code == 200
    assert 'data-broker="3"' in response.text
    assert 'data-rack="rack-a"' in response.text
    assert "Impact" not in response.text
    assert clients["kraft"].get("/whatif?operation=fail&format=json").status_code == 400


def test_page_shows_its_state_and_links_to_partitions(clients: Any) -> None:
    client = clients["kraft"]
    client.get("/whatif?operation=fail&brokers=1&format=json")
    text = client.get("/whatif?operation=fail&brokers=1").text
    assert 'name="brokers" value="1"' in text
    assert 'href="/whatif/partitions?operation=fail&amp;brokers=1&amp;went_offline=yes"' in text
    assert "/topics/{topic}/{partition}?fail=1" in text.replace("&#34;", '"')
    rows = client.get("/whatif/partitions?operation=fail&brokers=1&went_offline=yes&format=json").json()
    impact = client.get("/whatif?operation=fail&brokers=1&format=json").json()["impact"]
    assert rows["total"] == impact["newly_offline"] == 7


def test_refusal_of_the_controller_is_shown(clients: Any) -> None:
    query = "operation=create&name=clicks&partitions=1"
    clients["kraft"].get(f"/whatif?{query}&format=json")
    assert "refused by Kafka&#39;s rules (1 TOPIC_ALREADY_EXISTS)" in clients["kraft"].get(f"/whatif?{query}").text
