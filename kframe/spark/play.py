"""Scenarios played on clusters, and the tables of their outcomes."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from kframe.errors import ErrorCode, InputError, PluginError
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.registry.registry import Registry, build_registry
from kframe.snapshot import Snapshot
from kframe.spark.row_types import ImpactRow, RequestsRow
from kframe.spark.scenarios import play_scenario
from kframe.spark.schema import FLAG, INT, INTS, LONG, TEXT, FleetTable, columns_of, with_columns_of
from kframe.spark.stages import Result, Scenario, Stage
from kframe.whatif import Outcome, WhatIf
from kframe.whatif.engines.choice import applicable_config, check_config
from kframe.whatif.results.changes import ELR_LISTS
from kframe.whatif.results.findings import FailOn
from kframe.whatif.results.health import CONDITIONS as CONDITION_NAMES
from kframe.whatif.results.outcome import ControllerResponse
from kframe.whatif.results.traffic import SentBatch

SHARED: Final = [pa.field("cluster", TEXT), pa.field("scenario", TEXT)]
#: Partitions of a broker, before and after.
LOADS: Final = tuple(
    f"{what}_{when}"
    for what in ("leaders", "preferred_leaders", "replicas", "in_sync_replicas")
    for when in ("before", "after")
)
#: The changed partitions, as ``kframe whatif fail --out`` writes them. Only those of KRaft clusters have ELRs.
CHANGES: Final = FleetTable(
    "changes",
    pa.schema(
        [
            *SHARED,
            ("topic", TEXT),
            ("partition", INT),
            ("leader_before", INT),
            ("leader_after", INT),
            ("isr_before", INTS),
            ("isr_after", INTS),
            ("replicas_before", INTS),
            ("replicas_after", INTS),
            ("leader_epoch_before", INT),
            ("leader_epoch_after", INT),
            ("partition_epoch_before", INT),
            ("partition_epoch_after", INT),
            ("went_offline", FLAG),
            ("came_online", FLAG),
            ("unclean", FLAG),
            *((name, INTS) for name in ELR_LISTS),
        ]
    ),
    ("cluster", "scenario", "topic", "partition"),
)
#: The replicas and leaders of each broker before and after.
BROKER_COUNTS: Final = FleetTable(
    "broker_counts",
    pa.schema(
        [
            *SHARED,
            ("broker_id", INT),
            ("rack", TEXT),
            ("registered_before", FLAG),
            ("registered_after", FLAG),
            *((name, LONG) for name in LOADS),
        ]
    ),
    ("cluster", "scenario", "broker_id"),
)
#: The number of partitions in each condition after each step; step 0 is before the first.
CONDITIONS: Final = FleetTable(
    "conditions",
    pa.schema(
        [
            *SHARED,
            ("step", INT),
            ("name", TEXT),
            ("partitions", LONG),
            *((name, LONG) for name in CONDITION_NAMES),
            ("not_done", LONG),
        ]
    ),
    ("cluster", "scenario", "step"),
)
#: The outcome in numbers of partitions, as ``kframe.whatif.Impact`` has them, but for what is in CONDITIONS and in
#: requests; ``found_...`` as ``Outcome.count_of``.
IMPACT_COUNTS: Final = (
    "leaders_moved",
    "newly_offline",
    "back_online",
    "newly_under_min_isr",
    "newly_at_min_isr",
    "newly_under_replicated",
    "unclean_elections",
    "needs_unclean_election",
    "states_changed",
    "partition_states_written",
)
FINDINGS: Final = ("found_offline", "found_under_min_isr", "found_data_loss", "found_possible_data_loss")
#: The records that the controller of a KRaft cluster writes, and the bytes of their values. Null in ZooKeeper mode.
RECORD_COUNTS: Final = ("records", "record_bytes")
IMPACTS: Final = FleetTable("impacts", columns_of(ImpactRow), ("cluster", "scenario"))
#: The requests of one API to one broker in one batch.
REQUESTS: Final = FleetTable(
    "requests",
    columns_of(RequestsRow, step=INT, batch=INT, broker_id=INT, encoded=pa.list_(pa.binary())),
    ("cluster", "scenario", "step", "batch", "broker_id", "api"),
)
#: What ``kframe spark failover`` and ``requests`` make; the summary is first.
FAILOVER: Final = (IMPACTS, CHANGES, BROKER_COUNTS, CONDITIONS)
REQUESTED: Final = (REQUESTS,)


@functools.cache
def installed(disabled: tuple[str, ...], plugins_dir: str | None) -> Registry:
    """The registry of this process, without the ``disabled`` plugins. Raises PluginError."""
    return build_registry(disabled, None if plugins_dir is None else Path(plugins_dir))


@dataclass(frozen=True)
class EngineSettings:
    """How scenarios are played, as plain data that can be sent to executors.

    It has Kafka's configuration keys, and the names of leader selectors with their options. Plugin directories and
    excluded plugins are those of ``build_registry``.
    """

    config: Mapping[str, object] = field(default_factory=dict)
    selectors: tuple[str, ...] = ()
    selector_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    plugins_dir: str | None = None
    disabled: tuple[str, ...] = ()

    def selector_maker(self) -> Callable[[], dict[ElectionKind, LeaderSelector]]:
        """Create the leader selectors, new ones each time, from the plugins of this machine.

        Raises PluginError, which names the machine, for a selector that is not installed here or fails to build.
        """
        if not self.selectors:
            return dict
        try:
            registry = installed(self.disabled, self.plugins_dir)
            make = functools.partial(registry.selectors_for, self.selectors, self.selector_options)
            make()
        except (PluginError, InputError) as problem:
            raise PluginError(f"on {platform.node()}, where a part of the fleet is played: {problem}") from problem
        return make


@dataclass(frozen=True)
class ScenarioStage(Stage):
    """Plays scenarios. ``tables`` are of FAILOVER and REQUESTED; ``bodies``: requests have their encoded bodies."""

    tables: tuple[FleetTable, ...]
    engine: EngineSettings = field(default_factory=EngineSettings)
    bodies: bool = False

    def settings(self) -> Any:
        """See ``Stage``."""
        return [asdict(self.engine), self.bodies]

    def results(
        self, cluster: str, content: Snapshot, scenarios: Sequence[Scenario], tables: Collection[FleetTable]
    ) -> Iterator[Result]:
        """See ``Stage``. Raises PluginError for a selector that is not installed here, ConfigError for a setting."""
        check_config(self.engine.config)
        selectors = self.engine.selector_maker()
        config = applicable_config(self.engine.config, content)
        for scenario in scenarios:
            assert scenario is not None
            try:
                whatif = WhatIf(content, config, selectors())
                if REQUESTS in tables:
                    whatif.engine.record_batches(bodies=self.bodies)
                outcome = play_scenario(whatif, scenario)
            except InputError as problem:
                yield str(problem)
                continue
            yield {table: _with_key(_ROWS[table.name](outcome), table, cluster, scenario) for table in tables}


def _with_key(rows: pa.Table, table: FleetTable, cluster: str, scenario: Mapping[str, Any]) -> pa.Table:
    """Rows with their cluster and scenario, as rows of a table."""
    names = {"cluster": cluster, "scenario": scenario["scenario"]}
    columns = {name: pa.repeat(pa.scalar(value, TEXT), rows.num_rows) for name, value in names.items()}
    columns |= dict(zip(rows.column_names, rows.columns, strict=True))
    return with_columns_of(table.schema, pa.table(columns))


def _broker_counts(outcome: Outcome) -> pa.Table:
    before, after = outcome.before, outcome.after
    columns: dict[str, Any] = {
        "broker_id": outcome.broker_ids,
        "rack": pa.array(outcome.racks, TEXT),
        "registered_before": before.registered != 0,
        "registered_after": after.registered != 0,
    }
    counts = ("leaders", "preferred", "replicas", "in_sync")  # Attributes of ClusterHealth.
    loads = [getattr(health, count) for count in counts for health in (before, after)]
    return pa.table(columns | dict(zip(LOADS, loads, strict=True)))


def _conditions(outcome: Outcome) -> pa.Table:
    states: list[tuple[str, Mapping[str, int | None], ControllerResponse | None]] = [
        ("before", outcome.before.counts(), None),
        *((step.name, step.counts, step.response) for step in outcome.steps),
    ]
    partitions = int(np.count_nonzero(outcome.before.counted))
    rows = [
        {"step": number, "name": name, "partitions": partitions, **counts, "not_done": not_done(response)}
        for number, (name, counts, response) in enumerate(states)
    ]
    return pa.Table.from_pylist(rows, pa.schema(list(CONDITIONS.schema)[len(SHARED) :]))


def not_done(response: ControllerResponse | None) -> int:
    """How many partitions or topics were answered with an error, or are still led by a broker that shuts down."""
    if response is None:
        return 0
    if response.codes is None:
        return len(response.rows)
    not_errors = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    return int(np.count_nonzero(~np.isin(response.codes, not_errors)))


def _impacts(outcome: Outcome) -> pa.Table:
    impact = msgspec.structs.asdict(outcome.impact)
    row = {name: impact[name] for name in IMPACT_COUNTS}
    row |= dict(zip(FINDINGS, map(outcome.count_of, FailOn), strict=True))
    row |= {"records": impact["records"], "record_bytes": None if impact["records"] is None else impact["bytes"]}
    return pa.Table.from_pylist([row | {"rules": outcome.rules}], pa.schema(list(IMPACTS.schema)[len(SHARED) :]))


def request_rows(outcome: Outcome) -> pa.Table:
    """The requests in the recorded batches of an outcome, without cluster and scenario."""
    ids = outcome.broker_ids.tolist()
    rows = [
        {"step": step_number, "batch": batch_number, **row, "broker_id": ids[row["broker_id"]]}
        for step_number, step in enumerate(outcome.steps, 1)
        for batch_number, batch in enumerate(step.batches, 1)
        for row in _batch_rows(batch)
    ]
    return pa.Table.from_pylist(rows, pa.schema(list(REQUESTS.schema)[2:]))


def _batch_rows(batch: SentBatch) -> Iterator[dict[str, Any]]:
    """``broker_id`` is the index of the broker."""
    for api, sent in batch.traffic.items():
        for broker in np.flatnonzero((sent.requests > 0) | (sent.entries > 0)).tolist():
            yield {
                "broker_id": broker,
                "api": api.value,
                "requests": int(sent.requests[broker]),
                "entries": int(sent.entries[broker]),
                "bytes": sent.bytes_of(broker),
                "unknown": batch.bytes_unknown,
                "encoded": batch.bodies.get((api, broker)),
            }


#: Makes the rows of each table, without cluster and scenario.
_ROWS: Final[Mapping[str, Callable[[Outcome], pa.Table]]] = {
    CHANGES.name: Outcome.to_arrow,
    BROKER_COUNTS.name: _broker_counts,
    CONDITIONS.name: _conditions,
    IMPACTS.name: _impacts,
    REQUESTS.name: request_rows,
}
