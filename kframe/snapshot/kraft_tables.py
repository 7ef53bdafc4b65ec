"""Read the KRaft parts of a snapshot directory: registrations, records, features. All are validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from kframe.errors import SnapshotError
from kframe.model.brokers import SECURITY_PROTOCOLS
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.records import RECORD_TYPES, BrokerEndpoint, MetadataRecord
from kframe.model.texts import counted, short_repr
from kframe.snapshot.facts import BrokerFacts, KraftFacts
from kframe.snapshot.manifest import KraftManifest
from kframe.snapshot.parquet import TableFile

#: Columns of the broker table that KRaft adds, and the fields of a registration.
_COLUMNS: Final[Mapping[str, str]] = {
    "fenced": "fenced",
    "in_controlled_shutdown": "in_controlled_shutdown",
    "incarnation_id": "incarnation_id",
    "log_dirs": "directories",
    "cordoned_log_dirs": "cordoned",
    "features": "features",
    "is_migrating_zk_broker": "is_migrating_zk_broker",
    "offset": "offset",
}


def kraft_manifest(facts: KraftFacts) -> KraftManifest:
    """The part of a manifest that holds these facts."""
    features = None if facts.features is None else dict(sorted(facts.features.items()))
    return KraftManifest(features, facts.directory_ids, facts.offset, facts.records is not None, facts.voters)


def kraft_facts(manifest: KraftManifest, file: TableFile) -> KraftFacts:
    """The facts in a manifest and the table of records. Raises SnapshotError."""
    records = read_records(zip(file.rows("type"), file.rows("record"), strict=True), str(file.path))
    if records and not manifest.has_records:
        raise SnapshotError(str(file.path), counted(len(records), "record"), "none, as the manifest says")
    return KraftFacts(
        manifest.features,
        records if manifest.has_records else None,
        manifest.directory_ids,
        manifest.offset,
        manifest.voters,
    )


def read_records(rows: Iterable[tuple[int | None, str | None]], where: str) -> tuple[MetadataRecord, ...]:
    """The records of these types and JSON texts. Raises SnapshotError, which names the row."""
    return tuple(_record(kind, text, f"{where} row {row}") for row, (kind, text) in enumerate(rows))


def _record(kind: int | None, text: str | None, where: str) -> MetadataRecord:
    record_type = RECORD_TYPES.get(-1 if kind is None else kind)
    if record_type is None or text is None:
        raise SnapshotError(where, f"record type {kind}", "the type of a metadata record, and its JSON")
    try:
        return msgspec.json.decode(text, type=record_type)
    except (msgspec.MsgspecError, RecursionError, ValueError) as problem:
        raise SnapshotError(
            where, f"{short_repr(text)} ({problem})", f"the JSON of a {record_type.__name__}"
        ) from problem


def read_registrations(file: TableFile, brokers: tuple[BrokerFacts, ...]) -> tuple[BrokerFacts, ...]:
    """The brokers with their registrations. Raises SnapshotError."""
    columns = {column: file.rows(column) for column in _COLUMNS}
    return tuple(
        with_registration(facts, {column: values[row] for column, values in columns.items()}, f"{file.path} row {row}")
        for row, facts in enumerate(brokers)
    )


def with_registration(facts: BrokerFacts, row: Mapping[str, Any], where: str) -> BrokerFacts:
    """A broker with the registration in a row of ``kraft_schemas()["brokers"]``, if that has one.

    Raises SnapshotError for a part of a registration.
    """
    fields = {field: row[column] for column, field in _COLUMNS.items()}
    if facts.registered is not True or fields["incarnation_id"] is None:
        if any(value is not None for value in fields.values()):
            raise SnapshotError(where, "a part of a registration", "a registered broker, or nulls")
        return facts
    end_points = [
        BrokerEndpoint(
            name=point.listener,
            host=point.host,
            port=point.port,
            security_protocol=SECURITY_PROTOCOLS.get(point.security_protocol, 0),
        )
        for point in facts.endpoints or ()
    ]
    known = {name: value for name, value in fields.items() if value is not None or name == "cordoned"}
    named = {"broker_id": facts.broker_id, "broker_epoch": facts.broker_epoch or 0, "rack": facts.rack}
    try:
        registration = msgspec.convert({**named, **known}, BrokerRegistration)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise SnapshotError(where, f"a malformed registration ({problem})", "the columns of one") from problem
    return replace(facts, registration=msgspec.structs.replace(registration, end_points=tuple(end_points)))
