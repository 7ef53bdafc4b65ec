"""The JSON Schemas: shipped files equal the types, and what commands print and read is valid."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from kframe.cli.documents.registry import DOCUMENTS, FOLDER, file_name, schema_text
from tests.architecture.source import ROOT
from tests.cli.running import CLUSTER, HEALTHY, PLAN, kframe
from tests.schemas import documents, problems, validator

KRAFT_SCENARIOS: Final = sorted((ROOT / "tests" / "golden-kraft" / "scenarios").glob("*.yaml"))
SCENARIO: Final = ROOT / "examples" / "scenarios" / "rolling-restart.yaml"
DEGRADED: Final = CLUSTER / "broker-4-dead.zookeeper.jsonl.gz"
#: Commands that print each document, and other paths through their code.
PRINTED: Final[Mapping[str, tuple[tuple[object, ...], ...]]] = {
    "kframe.bench/v1": (("bench", "broker-failure", "--partitions", "1000", "--brokers", "6", "--runs", "1"),),
    "kframe.explanation/v1": (
        ("explain", HEALTHY, "__consumer_offsets-0"),
        ("explain", HEALTHY, "__consumer_offsets-0", "--fail", "1,2,3"),
    ),
    "kframe.plan/v1": (("plan", "show", HEALTHY, PLAN),),
    "kframe.plan-check/v1": (("plan", "check", PLAN), ("plan", "check", HEALTHY, PLAN)),
    "kframe.plan-diff/v1": (("plan", "diff", HEALTHY, PLAN),),
    "kframe.plan-stages/v1": (("plan", "stage", HEALTHY, PLAN, "--max-moves", "1"),),
    "kframe.plan-generated/v1": (
        ("plan", "generate", HEALTHY, "--rebalance"),
        ("plan", "generate", DEGRADED, "--remove-brokers", "4", "--fix-racks"),
    ),
    "kframe.restart-plan/v1": (
        ("plan", "restarts", HEALTHY, "--allow-unavoidable"),
        ("plan", "restarts", DEGRADED, "--allow-unavoidable", "--conflicts"),
    ),
    "kframe.plugin/v2": (("plugins", "show", "rack-spread"), ("plugins", "show", "simulator")),
    "kframe.plugins/v2": (("plugins", "list"),),
    "kframe.plugins.check/v1": (("plugins", "check", "rack-spread"),),
    "kframe.scenario-check/v1": (("scenario", "check", SCENARIO),),
    "kframe.schemas/v1": (("schema",),),
    "kframe.sim/v1": (("sim", "run", "--seeds", "1..1"),),
    "kframe.sim-run/v1": (("sim", "replay", "1"),),
    "kframe.sim-seeds/v1": (("sim", "run", "--seeds", "1..1", "--each"),),
    "kframe.snapshot-brokers/v1": (("snapshot", "show", HEALTHY, "--list", "brokers"),),
    "kframe.snapshot-partitions/v1": (("snapshot", "show", HEALTHY, "--list", "partitions"),),
    "kframe.snapshot-summary/v1": (("snapshot", "show", HEALTHY), ("snapshot", "show", DEGRADED)),
    "kframe.snapshot-topics/v1": (("snapshot", "show", HEALTHY, "--list", "topics"),),
    "kframe.states/v1": (("states",),),
    "kframe.sweep/v1": (("whatif", "sweep", HEALTHY),),
    "kframe.trace-kraft/v1": (("scenario", "run", ROOT / "tests/golden-kraft/scenarios/users.yaml"),),
    "kframe.trace/v1": (("scenario", "run", SCENARIO),),
    "kframe.whatif/v1": (
        ("whatif", "create", HEALTHY, "new", "--rf", "2"),
        ("whatif", "delete", HEALTHY, "__consumer_offsets"),
        ("whatif", "elect", HEALTHY, "--type", "preferred"),
        ("whatif", "fail", HEALTHY, "--brokers", "2,3", "--one-by-one"),
        ("whatif", "reassign", HEALTHY, PLAN),
        ("whatif", "restart", DEGRADED, "--brokers", "4"),
        ("whatif", "shutdown", HEALTHY, "--racks", "rack-0"),
    ),
}
#: Snapshots in formats that lack some facts.
FORMATS: Final = ("healthy.topics-describe.txt.gz", "healthy.kcat.json.gz")
#: Documents of commands that need a live cluster, a log or Spark, and the test that validates real ones.
TESTED_BY: Final = {
    "kframe.controller-resignation/v1": "tests/cli/test_live_documents.py",
    "kframe.controller-status/v1": "tests/cli/test_live_documents.py",
    "kframe.kraft-compare/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.kraft-recovery/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-brokers/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-cluster/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-diff/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-diff-broker/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-diff-rack/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-diff-topic/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-records/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-why/v1": "tests/cli/test_kraft_log_documents.py",
    "kframe.log-shadow/v1": "tests/cli/test_live_documents.py",
    "kframe.partition-codes/v1": "tests/cli/test_live_documents.py",
    "kframe.plan-execution/v1": "tests/cli/test_live_documents.py",
    "kframe.reassignments/v1": "tests/cli/test_live_documents.py",
    "kframe.sweep-elr/v1": "tests/cli/test_sweep_kraft_command.py",
    "kframe.shadow/v1": "tests/cli/test_live_documents.py",
    "kframe.snapshot-capture/v1": "tests/cli/test_live_documents.py",
    "kframe.spark-impacts/v1": "tests/spark/test_kraft_commands.py",
    "kframe.spark-ingest/v1": "tests/spark/test_commands.py",
    "kframe.spark-plans/v1": "tests/spark/test_plans.py",
    "kframe.spark-report-broker/v1": "tests/spark/test_report_commands.py",
    "kframe.spark-report-cluster/v1": "tests/spark/test_report_commands.py",
    "kframe.spark-report-rack/v1": "tests/spark/test_report_commands.py",
    "kframe.spark-report-topic/v1": "tests/spark/test_report_commands.py",
    "kframe.spark-requests/v2": "tests/spark/test_kraft_commands.py",
    "kframe.spark-sweep/v1": "tests/spark/test_kraft_commands.py",
    "kframe.spark-violations/v1": "tests/spark/test_commands.py",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_shipped_schemas_are_generated_from_types(name: str) -> None:
    shipped = (FOLDER / file_name(name)).read_text()
    assert shipped == schema_text(DOCUMENTS[name]), "python -m kframe.cli.documents.registry"
    assert validator(name).schema["title"] == name


def test_no_other_schema_is_shipped() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(map(file_name, DOCUMENTS))


@pytest.mark.parametrize("name", PRINTED)
def test_output_of_commands_is_valid(name: str) -> None:
    for arguments in PRINTED[name]:
        result = kframe(*arguments, "-o", "json")
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert (document["schema"], problems(document, name)) == (name, [])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "arguments",
    [
        ("snapshot", "show"),
        ("whatif", "sweep"),
        ("whatif", "fail", "--brokers", "2"),
        ("snapshot", "show", "--list", "topics"),
        ("snapshot", "show", "--list", "brokers"),
        ("snapshot", "show", "--list", "partitions"),
    ],
    ids=" ".join,
)
def test_output_for_incomplete_snapshots_is_valid(arguments: tuple[str, ...], name: str) -> None:
    result = kframe(*arguments[:2], CLUSTER / name, *arguments[2:], "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert problems(document, document["schema"]) == []


def test_files_that_commands_write_are_valid(tmp_path: Path) -> None:
    kframe("whatif", "fail", HEALTHY, "--brokers", "2", "--out", tmp_path / "out")
    kframe("scenario", "run", SCENARIO, "--trace", tmp_path / "trace.json")
    kframe("sim", "replay", "1", "--write", tmp_path / "run.json")
    kframe("sim", "replay", "1", "--scenario", tmp_path / "run.yaml")
    for path in (tmp_path / "out" / "outcome.json", tmp_path / "trace.json", tmp_path / "run.json"):
        document = json.loads(path.read_text())
        assert problems(document, document["schema"]) == []
    assert problems(yaml.safe_load((tmp_path / "run.yaml").read_text()), "kframe.scenario/v1") == []


@pytest.mark.parametrize("path", KRAFT_SCENARIOS, ids=lambda path: path.stem)
def test_golden_scenarios_of_kraft_are_valid(path: Path) -> None:
    assert problems(yaml.safe_load(path.read_text()), "kframe.scenario-kraft/v1") == []


def test_parts_of_a_simulation_add_up_to_a_valid_document(tmp_path: Path) -> None:
    kframe("sim", "run", "--seeds", "1..1", "--append", tmp_path / "parts")
    document = json.loads(kframe("sim", "total", tmp_path / "parts", "-o", "json").stdout)
    assert problems(document, "kframe.sim-total/v1") == []


def test_every_document_is_validated() -> None:
    """A document is in the output of COMMANDS, in a test below, or in the test that TESTED_BY names."""
    below = {"kframe.plan-file/v1", "kframe.scenario/v1", "kframe.scenario-kraft/v1", "kframe.sim-total/v1"}
    assert documents().keys() == PRINTED.keys() | TESTED_BY.keys() | below
    for path in set(TESTED_BY.values()):
        assert "assert_valid(" in (ROOT / path).read_text(), path


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/scenarios/*.yaml")), ids=lambda path: path.stem)
def test_example_scenarios_are_valid_and_name_their_schema(path: Path) -> None:
    text = path.read_text()
    header = text.splitlines()[0]
    assert header.startswith("# yaml-language-server: $schema=")
    assert (path.parent / header.partition("=")[2]).resolve() == FOLDER / file_name("kframe.scenario/v1")
    assert problems(yaml.safe_load(text), "kframe.scenario/v1") == []


def test_golden_scenarios_are_valid() -> None:
    paths = sorted(ROOT.glob("tests/golden/scenarios/*.yaml"))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    assert paths
    for path in paths:
        assert problems(yaml.load(path.read_text(), loader), "kframe.scenario/v1") == [], path.name


@pytest.mark.parametrize(
    "text, expected",
    [
        ("{}", "$: 'schema' is a required property"),
        ("{schema: kframe.scenario/v1, name: x, steps: [{elect: {}}], broker: []}", "Additional properties"),
        ("{schema: kframe.scenario/v1, name: x, steps: [{advance: 1}]}", "'elect' is a required property"),
        ("{schema: kframe.scenario/v1, name: x, steps: [{elect: {}, advance: 1}]}", "too many properties"),
        ("{schema: kframe.scenario/v1, name: x, steps: [{elect: {}}, {broker_failure: [a]}]}", "type 'integer'"),
        ("{schema: kframe.scenario/v1, name: x, steps: [{elect: {}}, {answer: {broker: 1, error: X}}]}", "not one of"),
    ],
)
def test_schema_refuses_same_scenarios_as_reader(text: str, expected: str) -> None:
    result = problems(yaml.safe_load(text), "kframe.scenario/v1")
    assert any(expected in problem for problem in result), result


def test_plans_are_valid(tmp_path: Path) -> None:
    stamped = json.loads(kframe("plan", "stamp", HEALTHY, PLAN).stdout)
    assert stamped["kframe"]["cluster_id"]
    assert problems(stamped, "kframe.plan-file/v1") == []
    assert problems(json.loads(PLAN.read_text()), "kframe.plan-file/v1") == []
    assert problems({**stamped, "partitons": []}, "kframe.plan-file/v1") != []


@pytest.mark.parametrize("name", ["whatif", "whatif/v1", "kframe.whatif/v1", "sim", "plugins.check"])
def test_schema_is_printed_by_name(name: str) -> None:
    printed = json.loads(kframe("schema", name).stdout)
    assert printed["title"].removeprefix("kframe.").startswith(name.removeprefix("kframe."))


def test_unknown_schema_error_lists_schemas() -> None:
    result = kframe("schema", "whatifs")
    assert (result.exit_code, "NAME: found 'whatifs', expected one of bench, " in result.output) == (2, True)


@pytest.mark.parametrize("by", ["broker", "rack"])
def test_fleet_row_types_match_table_columns(by: str) -> None:
    pytest.importorskip("pyarrow")
    from kframe.spark.report import REPORTS

    fields = DOCUMENTS[f"kframe.spark-report-{by}/v1"].type().__struct_encode_fields__
    assert sorted(fields) == sorted(REPORTS[by].table.schema.names)
