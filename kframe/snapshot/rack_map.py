"""The racks of brokers from a file, for snapshots of tools that do not print racks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace as replace_fields

from kframe.errors import InputError
from kframe.model.texts import AS_STATED, counted, short_repr
from kframe.snapshot.content import brokers_text
from kframe.snapshot.facts import BrokerFacts
from kframe.snapshot.files import InputFile, read_document
from kframe.snapshot.snapshot import Snapshot

_CLUSTER: Final = "cluster"
_COLUMNS: Final = ("broker", "rack")
_FLEET_COLUMNS: Final = (_CLUSTER, *_COLUMNS)
#: Kafka limits no rack; a longer one is not a name.
_RACK_LENGTH_MAX: Final = 1_000
_BROKER_ID_MAX: Final = 2**31 - 1
_BYTES_MAX: Final = 64 << 20
_COLUMN: Final = "brokers.rack"


@dataclass(frozen=True, slots=True)
class FleetRackMap:
    """The racks of a fleet, from the file ``name``: rack by broker id, of each cluster by its name.

    ``every`` are the racks of entries without a cluster. They apply to each broker of each cluster that has no rack
    and no entry of its own.
    """

    name: str
    every: Mapping[int, str]
    clusters: Mapping[str, Mapping[int, str]]

    def of(self, cluster: str) -> dict[int, str]:
        """The rack by broker id of a cluster."""
        return {**self.every, **self.clusters.get(cluster, {})}

    def only(self, cluster: str) -> FleetRackMap:
        """The map for this cluster alone."""
        return FleetRackMap(self.name, self.every, {cluster: self.clusters.get(cluster, {})})

    def rack(self, cluster: str, broker_id: int, rack: str | None) -> str | None:
        """The rack of a broker that a cluster shows in ``rack``. Raises InputError if an entry of this cluster
        contradicts it."""
        own = self.clusters.get(cluster, {}).get(broker_id)
        if own is not None and rack not in (None, own):
            where = f"{self.name} cluster {cluster}"
            raise InputError(where, f"broker {broker_id} in {own}", f"{rack}, its rack in the snapshot")
        return own or rack or self.every.get(broker_id)

    def complete(self, snapshot: Snapshot, cluster: str) -> Snapshot:
        """The snapshot of a cluster with its racks. Raises InputError for an entry of this cluster that contradicts
        it."""
        racks = {facts.broker_id: self.rack(cluster, facts.broker_id, facts.rack) for facts in snapshot.brokers}
        known = {broker_id: rack for broker_id, rack in racks.items() if rack is not None}
        return with_racks(snapshot, known, self.name) if known else snapshot


def read_rack_map(source: InputFile | str) -> dict[int, str]:
    """The rack by broker id, ascending, from CSV or JSON.

    CSV has the columns broker and rack. JSON is an object of racks by broker id, or a list of objects with the keys
    broker and rack. Raises InputError for a malformed file, and for a broker that it names twice.
    """
    return dict(sorted(_racks(_entries(source, (_COLUMNS,))).get(None, {}).items()))


def read_fleet_rack_map(source: InputFile | str) -> FleetRackMap:
    """The racks of a fleet, from the forms of ``read_rack_map``, which apply to every cluster, and forms with clusters.

    CSV may have the columns cluster, broker and rack, where an empty cluster means every cluster. JSON may be an object
    of such objects by cluster, and its lists may have the key cluster. Raises InputError as ``read_rack_map`` does.
    """
    racks = _racks(_entries(source, (_COLUMNS, _FLEET_COLUMNS)))
    every = racks.pop(None, {})
    return FleetRackMap(str(source), every, {name: racks[name] for name in racks if name is not None})


def _racks(entries: Iterable[_Entry]) -> dict[str | None, dict[int, str]]:
    """The rack by cluster and broker id."""
    racks: dict[str | None, dict[int, str]] = {}
    for entry in entries:
        broker_id = _broker_id(entry.broker, entry.where)
        rack = entry.rack
        if not isinstance(rack, str) or not rack or len(rack) > _RACK_LENGTH_MAX or not rack.isprintable():
            expected = f"a name of at most {_RACK_LENGTH_MAX} printable characters"
            raise InputError(entry.where, f"rack {short_repr(rack)} of broker {broker_id}", expected)
        if not isinstance(entry.cluster, str | None):
            raise InputError(entry.where, f"cluster {short_repr(entry.cluster)}", "the name of a cluster")
        of_cluster = racks.setdefault(entry.cluster or None, {})
        if broker_id in of_cluster:
            where = f" of cluster {entry.cluster}" if entry.cluster else ""
            raise InputError(entry.where, f"broker {broker_id}{where} twice", "each broker once")
        of_cluster[broker_id] = rack
    return racks


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


class _Entry(NamedTuple):
    """An entry of a map, as the file has it, and its location. ``cluster`` is None for every cluster."""

    where: str
    cluster: object
    broker: object
    rack: object


def _entries(source: InputFile | str, forms: Sequence[tuple[str, ...]]) -> Iterable[_Entry]:
    """The entries of a file with the columns of one of the forms."""
    path = Path(source) if isinstance(source, str) else source
    try:
        text = read_document(path, _BYTES_MAX, "a rack map").decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(str(path), f"broken UTF-8 (byte {problem.object[problem.start]:#04x})", "UTF-8") from problem
    is_json = text.lstrip()[:1] in ("{", "[")
    return _of_json(text, str(path), forms) if is_json else _of_csv(text, str(path), forms)


def _broker_id(value: object, where: str) -> int:
    text = str(value)
    valid = isinstance(value, int | str) and not isinstance(value, bool) and text.isascii() and text.isdecimal()
    if not valid or len(text) > 10 or int(text) > _BROKER_ID_MAX:
        raise InputError(where, f"broker {short_repr(value)}", f"a broker id, 0 to {_BROKER_ID_MAX}")
    return int(text)


def _of_csv(text: str, where: str, forms: Sequence[tuple[str, ...]]) -> Iterator[_Entry]:
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        header = tuple(name.strip() for name in next(rows))
        if header not in forms:
            expected = " or ".join(map(",".join, forms))
            raise InputError(f"{where}:1", short_repr(",".join(header)), f"the header {expected}, or JSON")
        for row in rows:
            if len(row) == len(header):
                fields = dict(zip(header, map(str.strip, row), strict=True))
                yield _entry_of(f"{where}:{rows.line_num}", fields)
            elif any(row):
                raise InputError(f"{where}:{rows.line_num}", counted(len(row), "column"), _listed(header))
    except csv.Error as problem:
        where = f"{where}:{rows.line_num}"
        raise InputError(where, f"malformed CSV ({problem})", f"lines of {','.join(forms[0])}") from problem


def _of_json(text: str, where: str, forms: Sequence[tuple[str, ...]]) -> Iterable[_Entry]:
    try:
        document = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as problem:
        raise InputError(where, f"malformed JSON ({problem})", "a whole JSON document") from problem
    if not isinstance(document, _Object):
        return [_listed_entry(entry, f"{where}[{index}]", forms) for index, entry in enumerate(document)]
    if _FLEET_COLUMNS not in forms or not all(isinstance(racks, _Object) for _, racks in document):
        return [_Entry(where, None, broker, rack) for broker, rack in document]
    return [_Entry(where, cluster, broker, rack) for cluster, racks in document for broker, rack in racks]


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object in order, with repeated names."""


def _listed_entry(entry: Any, where: str, forms: Sequence[tuple[str, ...]]) -> _Entry:
    names = sorted(name for name, _ in entry) if isinstance(entry, _Object) else []
    if names not in map(sorted, forms):
        actual = f"the keys {', '.join(name for name, _ in entry)}" if names else short_repr(entry)
        raise InputError(where, actual, f"an object with the keys {_listed(forms[-1])}")
    return _entry_of(where, dict(entry))


def _entry_of(where: str, fields: Mapping[str, object]) -> _Entry:
    return _Entry(where, fields.get(_CLUSTER), fields["broker"], fields["rack"])


def _listed(columns: Sequence[str]) -> str:
    return f"{', '.join(columns[:-1])} and {columns[-1]}"
