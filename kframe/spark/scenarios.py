"""Scenarios for the clusters of a fleet. They are rows, made or read from a table, and are played on one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kframe.errors import InputError
from kframe.model.events import ElectionType
from kframe.model.texts import short_repr
from kframe.model.topic_partitions import parse_topic_partition
from kframe.model.whole_numbers import parse_whole
from kframe.plans.file.read import plan_of
from kframe.snapshot.checks import INT32_MAX
from kframe.snapshot.decode import decode
from kframe.spark.schema import SCENARIOS, with_columns_of
from kframe.whatif import Outcome, WhatIf
from kframe.whatif.engines.kraft.settings import directory_id, feature_level
from kframe.whatif.results.outcome import Verb

_PARQUET: Final = ".parquet"
_LISTS: Final = ("brokers", "racks", "names")


def play_scenario(whatif: WhatIf, scenario: Mapping[str, Any]) -> Outcome:
    """Play one row of SCENARIOS.

    Raises InputError for an unknown verb, broker, rack or partition, for a missing column that the verb needs, and for
    a null in a list.
    """
    name, verb = scenario["scenario"], scenario["verb"]
    if name is None:
        raise InputError("table scenarios field scenario", "null", "the name of the scenario")
    for column in _LISTS:
        if None in (scenario[column] or ()):
            raise InputError(f"scenario {name} field {column}", "a null in the list", "a value in each place")
    brokers, racks = tuple(scenario["brokers"] or ()), tuple(scenario["racks"] or ())
    together, names = scenario["together"] is not False, tuple(scenario["names"] or ())
    where = f"scenario {name}"
    match verb:
        case Verb.FAIL:
            return whatif.fail(brokers, racks, together=together)
        case Verb.RESTART:
            return whatif.restart(brokers, racks, together=together, clean=scenario["clean"])
        case Verb.SHUTDOWN:
            return whatif.shutdown(brokers, racks, together=together)
        case Verb.FENCE:
            return whatif.fence(brokers, racks, together=together)
        case Verb.UNFENCE:
            return whatif.unfence(brokers, racks, together=together)
        case Verb.DIRECTORY:
            if len(brokers) != 1:
                raise InputError(f"{where} brokers", f"{len(brokers)} brokers", "the broker of the log directories")
            return whatif.fail_directories(brokers[0], [directory_id(name) for name in names])
        case Verb.FEATURE:
            return whatif.update_features(_levels(where, names))
        case Verb.UNREGISTER:
            return whatif.unregister(brokers, _controllers(where, names))
        case Verb.ELECT:
            partitions = [parse_topic_partition(f"{where} names", name) for name in names]
            return whatif.elect(_election(where, scenario["election"]), partitions or None)
        case Verb.REASSIGN:
            if scenario["plan"] is None:
                raise InputError(f"{where} plan", "none", "a reassignment as Kafka's JSON")
            return whatif.reassign(plan_of(scenario["plan"].encode(), f"{where} plan", name))
        case Verb.CREATE:
            if len(names) != 1:
                raise InputError(f"{where} names", f"{len(names)} names", "that of the new topic")
            counts = (-1 if scenario[name] is None else scenario[name] for name in ("partitions", "replication_factor"))
            return whatif.create(names[0], *counts, seed=scenario["seed"] or 0)
        case Verb.CREATE_PARTITIONS:
            if len(names) != 1:
                raise InputError(f"{where} names", f"{len(names)} names", "that of the topic")
            if scenario["partitions"] is None:
                raise InputError(f"{where} partitions", "none", "the number of partitions that the topic is to have")
            return whatif.create_partitions(names[0], scenario["partitions"], seed=scenario["seed"] or 0)
        case Verb.DELETE:
            return whatif.delete(names)
    raise InputError(where, f"verb {verb!r}", f"one of {', '.join(Verb)}")


def _levels(where: str, texts: Iterable[str]) -> dict[str, int]:
    levels = {}
    for text in texts:
        name, separator, level = text.partition("=")
        if not separator:
            raise InputError(f"{where} names", short_repr(text), "FEATURE=LEVEL")
        levels[name] = feature_level(name, level)
    return levels


def _controllers(where: str, texts: Iterable[str]) -> Iterator[int]:
    for text in texts:
        node_id = parse_whole(text, INT32_MAX)
        if node_id is None:
            raise InputError(f"{where} names", short_repr(text), "the id of a controller")
        yield node_id


def _election(where: str, election: str | None) -> ElectionType:
    for kind in ElectionType:
        if kind.name.lower() == election:
            return kind
    known = " or ".join(kind.name.lower() for kind in ElectionType)
    raise InputError(where, f"election {election!r}", known)


# -- scenario tables


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A row of SCENARIOS in a file of JSON lines."""

    scenario: Annotated[str, msgspec.Meta(min_length=1)]
    verb: Verb = Verb.FAIL
    cluster: str | None = None
    brokers: list[Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)]] = []
    racks: list[str] = []
    together: bool = True
    election: str | None = None
    names: list[str] = []
    plan: dict[str, Any] | str | None = None
    partitions: Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX)] | None = None
    replication_factor: Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)] | None = None
    clean: bool | None = None


_LINE: Final = msgspec.json.Decoder(_Line)


def read_scenarios(path: str) -> pa.Table:
    """Rows of SCENARIOS from a file of JSON lines. Also from a Parquet table whose name ends in ``.parquet``.

    In JSON lines all fields but ``scenario`` may be left out, and ``plan`` is the reassignment itself or its text. In
    Parquet columns may be left out. Raises InputError, which names the file and the place in it.
    """
    try:
        return _from_parquet(path) if path.endswith(_PARQUET) else _from_lines(path)
    except OSError as problem:
        raise InputError(path, problem.strerror or str(problem), "a table of scenarios") from problem


def _from_lines(path: str) -> pa.Table:
    lines = enumerate(Path(path).read_bytes().splitlines(), 1)
    rows = [_row(decode(_LINE, line, f"{path}:{number}")) for number, line in lines if line.strip()]
    if not rows:
        raise InputError(path, "no scenario", "at least one, a line of JSON each")
    return pa.Table.from_pylist(rows, SCENARIOS.schema)


def _row(line: _Line) -> dict[str, Any]:
    plan = msgspec.json.encode(line.plan).decode() if isinstance(line.plan, dict) else line.plan
    return {name: getattr(line, name) for name in SCENARIOS.schema.names} | {"plan": plan}


def _from_parquet(path: str) -> pa.Table:
    try:
        table = parquet.read_table(path)
        if unknown := sorted(set(table.column_names) - set(SCENARIOS.schema.names)):
            raise InputError(path, f"column {short_repr(unknown[0])}", f"columns {', '.join(SCENARIOS.schema.names)}")
        return with_columns_of(SCENARIOS.schema, table)
    except pa.ArrowException as problem:
        raise InputError(path, str(problem).splitlines()[0], "a Parquet table of scenarios") from problem


def scenario_rows(
    name: str,
    verb: str = "fail",
    *,
    brokers: Sequence[int] = (),
    racks: Sequence[str] = (),
    together: bool = True,
    **columns: Any,
) -> pa.Table:
    """One row of SCENARIOS, for every cluster. ``columns`` are other columns by name."""
    row = {"scenario": name, "verb": verb, "brokers": list(brokers), "racks": list(racks), "together": together}
    return pa.Table.from_pylist([row | columns], SCENARIOS.schema)


def scenarios_of_each(kind: Literal["broker", "rack"], brokers: pa.Table, verb: str = "fail") -> pa.Table:
    """For each broker of BROKERS that is up, or each rack with such brokers, the scenario ``broker-7`` or ``rack-NAME``
    of its cluster, as rows of SCENARIOS. A broker is up if it is known to be registered, and is not fenced."""
    up = brokers.filter(pc.and_not(brokers["registered"], brokers["fenced"].fill_null(False)))
    names = up["broker_id" if kind == "broker" else "rack"].to_pylist()
    pairs = dict.fromkeys(pair for pair in zip(up["cluster"].to_pylist(), names, strict=True) if pair[1] is not None)
    shared = {"verb": verb, "together": True}
    rows = [shared | {"cluster": cluster, "scenario": f"{kind}-{name}", f"{kind}s": [name]} for cluster, name in pairs]
    return pa.Table.from_pylist(rows, SCENARIOS.schema)
