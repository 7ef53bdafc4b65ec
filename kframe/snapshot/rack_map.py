"""The racks of brokers from a file, for snapshots of tools that do not print racks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace as replace_fields

from kframe.errors import InputError
from kframe.model.texts import AS_STATED, counted
from kframe.snapshot.content import brokers_text
from kframe.snapshot.decode import short_repr
from kframe.snapshot.facts import BrokerFacts
from kframe.snapshot.files import InputFile, read_document
from kframe.snapshot.snapshot import Snapshot

_COLUMNS: Final = ["broker", "rack"]
#: Kafka limits no rack; a longer one is not a name.
_RACK_LENGTH_MAX: Final = 1_000
_BROKER_ID_MAX: Final = 2**31 - 1
_BYTES_MAX: Final = 64 << 20
_COLUMN: Final = "brokers.rack"


def read_rack_map(source: InputFile | str) -> dict[int, str]:
    """The rack by broker id, ascending, from CSV or JSON.

    CSV has the columns broker and rack. JSON is an object of racks by broker id, or a list of objects with the keys
    broker and rack. Raises InputError for a malformed file, and for a broker that it names twice.
    """
    path = Path(source) if isinstance(source, str) else source
    try:
        text = read_document(path, _BYTES_MAX).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(str(path), f"broken UTF-8 (byte {problem.object[problem.start]:#04x})", "UTF-8") from problem
    entries = _of_json(text, str(path)) if text.lstrip()[:1] in ("{", "[") else _of_csv(text, str(path))
    racks: dict[int, str] = {}
    for where, broker, rack in entries:
        broker_id = _broker_id(broker, where)
        if not isinstance(rack, str) or not rack or len(rack) > _RACK_LENGTH_MAX:
            raise InputError(where, f"rack {short_repr(rack)} of broker {broker_id}", "a name")
        if broker_id in racks:
            raise InputError(where, f"broker {broker_id} twice", "each broker once")
        racks[broker_id] = rack
    return dict(sorted(racks.items()))


def with_racks(snapshot: Snapshot, racks: Mapping[int, str], where: str) -> Snapshot:
    """The snapshot with the racks of a map, whose name is ``where``. Brokers that the map lacks keep theirs.

    Raises InputError for a rack that contradicts the snapshot, and for a map of no broker of the snapshot. The map may
    have brokers that the snapshot lacks, such as those that a plan is to add.
    """
    if racks.keys().isdisjoint(facts.broker_id for facts in snapshot.brokers):
        ids = brokers_text(facts.broker_id for facts in snapshot.brokers)
        raise InputError(
            where, f"no broker of the snapshot in {counted(len(racks), 'entry', 'entries')}", f"the rack of {ids}"
        )
    brokers = tuple(_with_rack(facts, racks.get(facts.broker_id), where) for facts in snapshot.brokers)
    provenance = {column: note for column, note in snapshot.provenance.items() if column != _COLUMN}
    missing = [facts.broker_id for facts in brokers if facts.rack is None]
    provenance[_COLUMN] = f"from {where}" + (f", which does not have {brokers_text(missing)}" if missing else AS_STATED)
    return replace(snapshot, brokers=brokers, provenance=provenance)


def _with_rack(facts: BrokerFacts, rack: str | None, where: str) -> BrokerFacts:
    if rack is None or rack == facts.rack:
        return facts
    if facts.rack is not None:
        raise InputError(where, f"broker {facts.broker_id} in {rack}", f"{facts.rack}, its rack in the snapshot")
    registration = facts.registration
    if registration is not None:
        registration = replace_fields(registration, rack=rack)
    return replace(facts, rack=rack, registration=registration)


def _broker_id(value: object, where: str) -> int:
    text = str(value)
    valid = isinstance(value, int | str) and not isinstance(value, bool) and text.isascii() and text.isdecimal()
    if not valid or len(text) > 10 or int(text) > _BROKER_ID_MAX:
        raise InputError(where, f"broker {short_repr(value)}", f"a broker id, 0 to {_BROKER_ID_MAX}")
    return int(text)


def _of_csv(text: str, where: str) -> Iterator[tuple[str, object, object]]:
    rows = csv.reader(io.StringIO(text))
    try:
        header = [name.strip() for name in next(rows)]
        if header != _COLUMNS:
            raise InputError(f"{where}:1", short_repr(",".join(header)), "the header broker,rack, or JSON")
        for row in rows:
            if len(row) == 2:
                yield f"{where}:{rows.line_num}", row[0].strip(), row[1].strip()
            elif any(row):
                raise InputError(f"{where}:{rows.line_num}", f"{len(row)} columns", "broker and rack")
    except csv.Error as problem:
        raise InputError(f"{where}:{rows.line_num}", str(problem), "CSV with broker and rack") from problem


def _of_json(text: str, where: str) -> Iterable[tuple[str, object, object]]:
    try:
        document = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as problem:
        raise InputError(where, f"malformed JSON ({problem})", "a whole JSON document") from problem
    if text.lstrip().startswith("{"):
        return [(where, broker, rack) for broker, rack in document]
    return [_entry(entry, f"{where}[{index}]") for index, entry in enumerate(document)]


def _entry(entry: Any, where: str) -> tuple[str, object, object]:
    pairs = entry if isinstance(entry, list) and all(isinstance(pair, tuple) for pair in entry) else []
    if sorted(name for name, _ in pairs) != _COLUMNS:
        raise InputError(where, short_repr(entry), 'an object with the keys "broker" and "rack"')
    fields = dict(pairs)
    return where, fields["broker"], fields["rack"]
