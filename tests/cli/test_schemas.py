"""The JSON Schemas: shipped files equal the types, and what commands print and read is valid."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Final

import pytest
import yaml

from kframe.cli.documents.registry import DOCUMENTS, FOLDER, file_name, schema_text
from kframe.cli.layout import csv_cell
from tests.architecture.source import ROOT
from tests.cli import printing
from tests.cli.printing import LINES, words
from tests.cli.running import HEALTHY, PLAN, kframe
from tests.schemas import problems, validator

KRAFT_SCENARIOS: Final = sorted((ROOT / "tests" / "golden-kraft" / "scenarios").glob("*.yaml"))
SCENARIO: Final = ROOT / "examples" / "scenarios" / "rolling-restart.yaml"
#: Commands whose documents differ from run to run or by format, with the reason.
NO_EQUAL_ROWS: Final = {
    "bench": "measures times",
    "controller shadow": "has no YAML and CSV",
    "plan disks": "rows are some of the fields of the directories",
    "plan restarts": "rows sum up the batches of the document",
    "plan stage": "rows sum up the stages of the document",
    "scenario run": "rows sum up the trace",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_shipped_schemas_are_generated_from_types(name: str) -> None:
    shipped = (FOLDER / file_name(name)).read_text()
    assert shipped == schema_text(DOCUMENTS[name]), "python -m kframe.cli.documents.registry"
    assert validator(name).schema["title"] == name


def test_no_other_schema_is_shipped() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(map(file_name, DOCUMENTS))


@pytest.mark.parametrize("line", LINES)
def test_output_of_commands_is_valid(line: str, files: dict[str, str]) -> None:
    """Live clusters and Spark have their own tests; ``test_table_width.py`` requires a line of each other command."""
    result = kframe(*words(line, files), "-o", "json")
    document = json.loads(result.stdout)
    assert problems(document, document["schema"]) == []


@pytest.mark.parametrize("name", sorted(printing.TABLES.keys() - NO_EQUAL_ROWS.keys()))
def test_every_format_has_the_same_content(name: str, files: dict[str, str]) -> None:
    """JSON has the numbers of tables. JSON lines and CSV have the document, if it is a record, or one of its lists."""
    texts = {}
    for output in ("json", "yaml", "jsonl", "csv", "wide"):
        texts[output] = kframe(*words(f"{name} {printing.TABLES[name][0]}", files), "-o", output).stdout
        shutil.rmtree(files["NEW"], ignore_errors=True)
    document = json.loads(texts["json"])
    assert yaml.safe_load(texts["yaml"]) == document
    rows = [json.loads(line) for line in texts["jsonl"].splitlines()]
    for fields in (document, *rows):
        fields.pop("schema", None)
    assert rows in (*document.values(), [document])
    cells = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert cells == [{column: csv_cell(row.get(column)) for column in cells[0]} for row in rows]
    assert numbers(texts["wide"]) <= numbers(texts["json"]) | {str(len(rows))}


def numbers(text: str) -> set[str]:
    """The numbers in a text, without counts of omitted rows."""
    text = re.sub(r"and [\d,]+ more", "", text.replace("_", " "))
    return set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)))


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
