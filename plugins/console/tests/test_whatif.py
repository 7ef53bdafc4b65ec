"""What-ifs over HTTP: the documents of ``kframe whatif``, the windows of changed partitions, the form, and refusals."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet
import pytest
from click.testing import CliRunner
from kframe_console.command import example
from kframe_console.pages.whatif import OPERATIONS

from kframe.cli.whatif import group
from kframe.plugin.snapshot import Snapshot
from verification.console.client import ConsoleClient, console_of

ZOOKEEPER = example().parent / "kafka-3.9.1-six-brokers" / "broker-4-dead.zookeeper.jsonl.gz"

Consoles: TypeAlias = dict[str, ConsoleClient]
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
def consoles(kraft_snapshot: Snapshot, zookeeper_snapshot: Snapshot) -> Iterator[Consoles]:
    with console_of(kraft_snapshot) as kraft, console_of(zookeeper_snapshot) as zookeeper:
        yield {"kraft": kraft, "zookeeper": zookeeper}


def printed(mode: str, arguments: list[str]) -> dict[str, Any]:
    source: Path = example() if mode == "kraft" else ZOOKEEPER
    result = CliRunner().invoke(group, [arguments[0], str(source), *arguments[1:], "-o", "json"])
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.parametrize("mode, query, command", OPERATION_CASES)
def test_outcome_is_that_of_the_command(consoles: Consoles, mode: str, query: str, command: str) -> None:
    document, query = printed(mode, command.split()), f"operation={query}"
    partitions = document.pop("partitions")
    console = consoles[mode]
    assert console.json(f"/whatif?{query}") == document
    page = console.client.get(f"/whatif?{query}")
    assert page.status_code == 200
    assert f"<h1>{document['operation']['text']}</h1>" in page.text
    rows = console.json(f"/whatif/partitions?{query}", count="1000")
    assert (rows["total"], rows["rows"]) == (len(partitions), partitions[:1000])
    parquet = console.client.get(f"/whatif/partitions?{query}&format=parquet").content
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
def test_bad_operation_is_refused_by_parameter(consoles: Consoles, query: str, parameter: str, message: str) -> None:
    response = consoles["kraft"].client.get(f"/whatif?format=json&{query}")
    consoles["kraft"].refused(response, 400, message)
    assert response.json()["parameter"] == parameter


def test_zookeeper_cluster_has_no_operations_of_kraft(consoles: Consoles) -> None:
    console = consoles["zookeeper"]
    text = console.client.get("/whatif").text
    assert "Shut down" in text
    assert "Fence" not in text
    console.refuses("/whatif", "operation: found 'fence'", operation="fence", brokers="1")


def test_form_without_brokers_asks_for_them_and_computes_nothing(consoles: Consoles) -> None:
    console = consoles["kraft"]
    response = console.client.get("/whatif?operation=fail&brokers=&racks=")
    assert response.status_code == 200
    assert 'data-broker="3"' in response.text
    assert 'data-rack="rack-a"' in response.text
    assert "Impact" not in response.text
    console.refuses("/whatif", "found no parameters, expected those of a question", operation="fail")


def test_page_shows_its_state_and_links_to_partitions(consoles: Consoles) -> None:
    console = consoles["kraft"]
    impact = console.json("/whatif?operation=fail&brokers=1")["impact"]
    text = console.client.get("/whatif?operation=fail&brokers=1").text
    assert 'name="brokers" value="1"' in text
    assert 'href="/whatif/partitions?operation=fail&amp;brokers=1&amp;went_offline=yes"' in text
    assert "/topics/{topic}/{partition}?fail=1" in text.replace("&#34;", '"')
    rows = console.json("/whatif/partitions?operation=fail&brokers=1&went_offline=yes")
    assert rows["total"] == impact["newly_offline"] == 7


def test_refusal_of_the_controller_is_shown(consoles: Consoles) -> None:
    console, path = consoles["kraft"], "/whatif?operation=create&name=clicks&partitions=1"
    console.json(path)
    assert "refused by Kafka&#39;s rules (1 TOPIC_ALREADY_EXISTS)" in console.client.get(path).text
