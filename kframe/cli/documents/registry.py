"""The documents of kframe by the name of their schema, and the JSON Schema of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kframe.bench.document import BenchRecord
from kframe.cli.documents import cluster, engine
from kframe.cli.log_shadow import LogShadowDocument
from kframe.cli.shadow import ShadowDocument
from kframe.cli.status import StatusDocument
from kframe.errors import ParameterError
from kframe.plans.check import document as check
from kframe.plans.disks.document import DiskPlanDocument
from kframe.plans.execute.report import ExecutionDocument
from kframe.plans.file.read import PlanFile
from kframe.plans.generate.document import GeneratedPlanDocument
from kframe.plans.restarts.document import RestartPlanDocument
from kframe.plans.stage.manifest import StageManifest
from kframe.registry.specs import DocumentSpec
from kframe.scenario import trace_types as traces
from kframe.scenario.format import ScenarioDocument
from kframe.scenario.kraft.format import KraftScenarioDocument
from kframe.snapshot import row_types
from kframe.spark import row_types as fleets
from kframe.whatif.document import WhatIfDocument
from kframe.whatif.results.explanation import Explanation
from kframe.whatif.sweep_document import ElrSweepDocument, SweepDocument

#: The folder of the generated schemas in the package.
FOLDER: Final = Path(__file__).parent / "schemas"
#: Where editors find the schemas of the repository.
ADDRESS: Final = "https://raw.githubusercontent.com/kframe/kframe/main/kframe/cli/documents/schemas"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Final = "#/$defs/{name}"


def _plain(docstring: str) -> str:
    """A docstring as one line of Markdown."""
    return " ".join(docstring.split()).replace("``", "`")


def _record(name: str, kind: type, *, fields: type | None = None, **flags: bool) -> DocumentSpec:
    return DocumentSpec(name, kind, _plain(kind.__doc__ or ""), fields=fields, **flags)


_rows: Final = partial(_record, rows=True)


DOCUMENTS: Final[Mapping[str, DocumentSpec]] = {
    document.name: document
    for document in (
        _record("kframe.bench/v1", BenchRecord, open_ended=True),
        _record("kframe.controller-resignation/v1", cluster.ResignationRecord),
        _record("kframe.controller-status/v1", StatusDocument),
        _record("kframe.disk-plan/v1", DiskPlanDocument),
        _record("kframe.explanation/v1", Explanation),
        _record("kframe.log-shadow/v1", LogShadowDocument),
        _rows("kframe.partition-codes/v1", cluster.PartitionCode),
        _rows("kframe.plan/v1", check.PlannedPartition),
        _record("kframe.plan-check/v1", check.PlanCheckDocument),
        _rows("kframe.plan-diff/v1", check.PlannedPartition),
        _record("kframe.plan-execution/v1", ExecutionDocument),
        _record("kframe.plan-generated/v1", GeneratedPlanDocument),
        _record("kframe.plan-file/v1", PlanFile, is_file=True),
        _record("kframe.plan-stages/v1", StageManifest),
        _record("kframe.plugin/v2", engine.PluginRecord),
        _rows("kframe.plugins/v2", engine.ListedPlugin),
        _rows("kframe.plugins.check/v1", engine.CheckRow),
        _record("kframe.restart-plan/v1", RestartPlanDocument),
        _rows("kframe.reassignments/v1", cluster.ReassigningPartition),
        _record("kframe.scenario/v1", ScenarioDocument, is_file=True),
        _record("kframe.scenario-kraft/v1", KraftScenarioDocument, is_file=True),
        _rows("kframe.scenario-check/v1", traces.ScenarioCheckRow),
        _rows("kframe.schemas/v1", engine.SchemaRow),
        _record("kframe.shadow/v1", ShadowDocument),
        _rows("kframe.snapshot-brokers/v1", row_types.SnapshotBroker),
        _record("kframe.snapshot-capture/v1", cluster.CaptureRecord),
        _rows("kframe.snapshot-partitions/v1", row_types.SnapshotPartition),
        _record("kframe.snapshot-summary/v1", row_types.SummaryRecord),
        _rows("kframe.snapshot-topics/v1", row_types.SnapshotTopic),
        _rows("kframe.spark-impacts/v1", fleets.ImpactRow, fields=fleets.FleetFields),
        _rows("kframe.spark-ingest/v1", fleets.IngestRow),
        _rows("kframe.spark-plans/v1", fleets.FleetPlanRow, fields=fleets.FleetFields),
        _rows("kframe.spark-report-broker/v1", fleets.BrokerReportRow, fields=fleets.FleetFields),
        _rows("kframe.spark-report-cluster/v1", fleets.ClusterReportRow, fields=fleets.FleetFields),
        _rows("kframe.spark-report-rack/v1", fleets.RackReportRow, fields=fleets.FleetFields),
        _rows("kframe.spark-report-topic/v1", fleets.TopicReportRow, fields=fleets.FleetFields),
        _rows("kframe.spark-requests/v2", fleets.RequestsRow, fields=fleets.FleetFields),
        _rows("kframe.spark-sweep/v1", fleets.FleetSweepRow, fields=fleets.FleetFields),
        _rows("kframe.spark-violations/v1", fleets.ViolationRow, fields=fleets.ValidationFields),
        _rows("kframe.states/v1", engine.TransitionRow),
        _record("kframe.sweep-elr/v1", ElrSweepDocument),
        _record("kframe.sweep/v1", SweepDocument),
        _record("kframe.trace/v1", traces.TraceDocument),
        _record("kframe.trace-kraft/v1", traces.KraftTraceDocument),
        _record("kframe.whatif/v1", WhatIfDocument),
    )
}


def find(name: str, documents: Mapping[str, DocumentSpec]) -> DocumentSpec:
    """The document called ``kframe.NAME/vN``; ``kframe.`` and, if it is unique, ``/vN`` may be missing.

    Raises InputError, which lists the names.
    """
    matches = [
        document
        for document in documents.values()
        if name in {document.name, document.name.removeprefix("kframe."), _unversioned(document.name)}
    ]
    if len(matches) != 1:
        known = ", ".join(_unversioned(document) for document in documents)
        raise ParameterError("name", repr(name), f"one of {known}")
    return matches[0]


def json_schema(document: DocumentSpec) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document. Objects have no fields but those of the schema.

    The document of rows has them in ``rows``; a line of JSON lines is one of these rows with ``schema``.
    """
    types = [document.type(), *([] if document.fields is None else [document.fields])]
    (reference, *others), definitions = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = _plain(definition["description"])
        if "properties" in definition:
            definition["additionalProperties"] = False
            definition["properties"] = _required_first(definition)
    root: dict[str, Any] = definitions[_name(reference)]
    head = {"$schema": _DIALECT, "$id": f"{ADDRESS}/{file_name(document.name)}", "title": document.name}
    if document.is_file:
        return {**head, **reference, "$defs": definitions}
    identity = {"schema": {"const": document.name}}
    if document.rows:
        fields = [_pop(definitions, other) for other in others]
        body = {
            "description": root["description"],
            "type": "object",
            "properties": {
                **identity,
                "rows": {"type": "array", "items": reference},
                **{name: field for each in fields for name, field in each["properties"].items()},
            },
            "required": ["schema", "rows", *(name for each in fields for name in each["required"])],
            "additionalProperties": False,
        }
        return {**head, **body, "$defs": definitions}
    _pop(definitions, reference)
    root.pop("title")
    root["properties"] = {**identity, **root["properties"]}
    root["required"] = ["schema", *root["required"]]
    if document.open_ended:
        del root["additionalProperties"]
    return {**head, **root, "$defs": definitions}


def _required_first(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, those that every document has first."""
    required = definition["required"]
    return dict(sorted(definition["properties"].items(), key=lambda field: field[0] not in required))


def _pop(definitions: dict[str, Any], reference: Mapping[str, str]) -> dict[str, Any]:
    """Remove a definition and return it."""
    definition: dict[str, Any] = definitions.pop(_name(reference))
    return definition


def _name(reference: Mapping[str, str]) -> str:
    return reference["$ref"].rpartition("/")[2]


def file_name(name: str) -> str:
    """The file of a schema: ``kframe.whatif/v1`` is in ``whatif.v1.json``."""
    return f"{name.removeprefix('kframe.').replace('/', '.')}.json"


def schema_text(document: DocumentSpec) -> str:
    """The JSON Schema as text, as the files of ``FOLDER`` have it."""
    return f"{json.dumps(json_schema(document), indent=2, ensure_ascii=False)}\n"


def write_schemas(documents: Iterable[DocumentSpec], folder: Path = FOLDER) -> None:
    """Write the schemas into a folder, and delete those of documents that no longer exist."""
    texts = {file_name(document.name): schema_text(document) for document in documents}
    for path in folder.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _unversioned(name: str) -> str:
    return name.removeprefix("kframe.").partition("/")[0]


if __name__ == "__main__":
    write_schemas(DOCUMENTS.values())
