"""Play scenarios on shards of clusters.

Every result adds up over the shards of a cluster: lists of changed partitions are concatenated, counts are summed, and
``announced`` merges batches of requests.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kframe.engines.results.changes import ELR_LISTS
from kframe.engines.results.health import CONDITIONS as CONDITION_NAMES
from kframe.engines.results.outcome import ControllerResponse, FailOn
from kframe.errors import ErrorCode, InputError, PluginError
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.model.requests import BatchCause, ControlRequests
from kframe.registry.registry import Registry, build_registry
from kframe.snapshot import Snapshot
from kframe.spark.announced import packed
from kframe.spark.kraft import config_for, without_features
from kframe.spark.part import SHARD_WITH_FACTS, parts_of
from kframe.spark.scenarios import needs_whole, play_scenario
from kframe.spark.schema import FLAG, INT, INTS, LONG, SCENARIOS, TEXT, FleetTable, with_columns_of
from kframe.whatif import Outcome, WhatIf

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
        [*SHARED, ("topic", TEXT), ("partition", INT), ("leader_before", INT), ("leader_after", INT),
         ("isr_before", INTS), ("isr_after", INTS), ("replicas_before", INTS), ("replicas_after", INTS),
         ("leader_epoch_before", INT), ("leader_epoch_after", INT), ("partition_epoch_before", INT),
         ("partition_epoch_after", INT), ("went_offline", FLAG), ("came_online", FLAG), ("unclean", FLAG),
         *((name, INTS) for name in ELR_LISTS)]
    ),
    ("cluster", "scenario", "topic", "partition"),
)  # fmt: skip
#: The replicas and leaders of each broker before and after.
BROKER_COUNTS: Final = FleetTable(
    "broker_counts",
    pa.schema(
        [*SHARED, ("broker_id", INT), ("rack", TEXT), ("registered_before", FLAG), ("registered_after", FLAG),
         *((name, LONG) for name in LOADS)]
    ),
    ("cluster", "scenario", "broker_id"),
)  # fmt: skip
#: The number of partitions in each condition after each step; step 0 is before the first. ``not_done`` counts the
#: partitions (or topics, for verbs on topics) that the controller answered with an error; 0 without a response.
CONDITIONS: Final = FleetTable(
    "conditions",
    pa.schema(
        [*SHARED, ("step", INT), ("name", TEXT), ("partitions", LONG), *((name, LONG) for name in CONDITION_NAMES),
         ("not_done", LONG)]
    ),
    ("cluster", "scenario", "step"),
)  # fmt: skip
#: The outcome in numbers of partitions, as ``kframe.whatif.Impact`` has them, but for what is in CONDITIONS and in
#: requests; ``found_...`` as ``Outcome.count_of``.
IMPACT_COUNTS: Final = (
    "leaders_moved", "newly_offline", "back_online", "newly_under_min_isr", "newly_at_min_isr",
    "newly_under_replicated", "unclean_elections", "needs_unclean_election", "states_changed",
    "partition_states_written",
)  # fmt: skip
FINDINGS: Final = ("found_offline", "found_under_min_isr", "found_data_loss", "found_possible_data_loss")
#: The records that the controller of a KRaft cluster writes, and the bytes of their values. Null in ZooKeeper mode.
RECORD_COUNTS: Final = ("records", "record_bytes")
#: ``rules`` are those that decided.
IMPACTS: Final = FleetTable(
    "impacts",
    pa.schema(
        [*SHARED, *((name, LONG) for name in (*IMPACT_COUNTS, *FINDINGS, *RECORD_COUNTS)), ("rules", TEXT)]
    ),
    ("cluster", "scenario"),
)  # fmt: skip
#: A packed batch of requests of one shard. If ``sent`` is false, the controller would not send this batch at all.
ANNOUNCED: Final = FleetTable(
    "announced",
    pa.schema([*SHARED, ("step", INT), ("cause", INT), ("round", INT), ("sent", FLAG), ("data", pa.binary())]),
)
#: The results that can be requested. The columns of PLAYED are lists of their rows without cluster and scenario.
PARTS: Final = {table.name: table for table in (CHANGES, BROKER_COUNTS, CONDITIONS, IMPACTS, ANNOUNCED)}


def _listed(table: FleetTable) -> pa.DataType:
    return pa.list_(pa.struct(list(_own(table))))


def _own(table: FleetTable) -> pa.Schema:
    """The columns of a part without cluster and scenario."""
    return pa.schema(list(table.schema)[len(SHARED) :])


#: A row for each shard and scenario. Where ``problem`` is not null it says why nothing was played.
PLAYED: Final = FleetTable(
    "played",
    pa.schema([*SHARED, ("problem", TEXT), *((name, _listed(table)) for name, table in PARTS.items())]),
)
#: A shard, the facts of its cluster that every shard needs, and the scenarios to play.
TO_PLAY: Final = FleetTable(
    "to play",
    pa.schema(
        [*SHARD_WITH_FACTS, ("scenarios", pa.list_(pa.struct(list(SCENARIOS.schema)[1:])))]
    ),
)  # fmt: skip


@dataclass(frozen=True)
class EngineSettings:
    """How scenarios are played, as plain data that can be sent to executors.

    It has Kafka's configuration keys, the names of leader selectors with their options, and the names of the PARTS to
    return. Plugin directories and excluded plugins are those of ``build_registry``.
    """

    config: Mapping[str, object] = field(default_factory=dict)
    selectors: tuple[str, ...] = ()
    selector_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    plugins_dir: str | None = None
    disabled: tuple[str, ...] = ()
    parts: tuple[str, ...] = tuple(PARTS)

    def needs_whole_clusters(self) -> bool:
        """Whether a selector may read several partitions of an election, by ``SelectorSpec.row_by_row``.

        True if a plugin is not installed here: the executors may have it.
        """
        if not self.selectors:
            return False
        try:
            known = self._registry().selectors
        except (PluginError, InputError):
            return True
        return not all(name in known and known[name].row_by_row for name in self.selectors)

    def _registry(self) -> Registry:
        return build_registry(self.disabled, None if self.plugins_dir is None else Path(self.plugins_dir))

    def selector_maker(self) -> Callable[[], dict[ElectionKind, LeaderSelector]]:
        """Create the leader selectors, new ones each time, from the plugins of this machine.

        Raises PluginError, which names the machine, for a selector that is not installed here or fails to build.
        """
        if not self.selectors:
            return dict
        try:
            make = partial(self._registry().selectors_for, self.selectors, self.selector_options)
            make()
        except (PluginError, InputError) as problem:
            raise PluginError(f"on {platform.node()}, where a part of the fleet is played: {problem}") from problem
        return make


def play(batches: Iterable[pa.RecordBatch], engine: EngineSettings, *, whole: bool = False) -> Iterator[pa.RecordBatch]:
    """Rows of TO_PLAY as rows of PLAYED, in batches of one row. ``whole``: each row has all of its cluster;
    that of a KRaft cluster always has.

    An error of a shard or a scenario becomes a row with a ``problem``. Raises PluginError for a selector that is
    not installed here, ConfigError for a setting.
    """
    ControllerConfig(without_features(engine.config))
    selectors = engine.selector_maker()
    for row, part in parts_of(batches):
        names = Counter(scenario["scenario"] for scenario in row["scenarios"] or ())
        if row["brokers"] is None:
            assert isinstance(part, str)
            yield from (_row(row["cluster"], name, part) for name in names or (None,))
            continue
        for name, count in names.items():
            if count > 1:
                problem = InputError("table scenarios", f"scenario {name} {count} times", "each name once in a cluster")
                yield _row(row["cluster"], name, str(problem))
        scenarios = [scenario for scenario in row["scenarios"] or () if names[scenario["scenario"]] == 1]
        is_whole = whole or (isinstance(part, Snapshot) and part.is_kraft)
        for scenario, tables in zip(scenarios, play_part(scenarios, part, engine, selectors, is_whole), strict=False):
            yield _row(row["cluster"], scenario["scenario"], tables)


def play_part(
    scenarios: Iterable[Mapping[str, Any]], part: Snapshot | str, engine: EngineSettings,
    selectors: Callable[[], dict[ElectionKind, LeaderSelector]], whole: bool,
) -> Iterator[dict[str, pa.RecordBatch] | str]:  # fmt: skip
    """The results of each row of SCENARIOS, by the names of PARTS, or why it was not played."""
    if isinstance(part, str):
        yield from repeat(part)
        return
    for scenario in scenarios:
        if needs_whole(scenario) and not whole:
            yield f"{scenario['verb']} on a part of the cluster: it needs the whole (whole=True)"
            continue
        recorder = BatchRecorder("announced" in engine.parts)
        try:
            whatif = WhatIf(part, config_for(engine.config, part), selectors(), batches=recorder.batch)
            whatif.step_completed = recorder.end_step
            outcome = play_scenario(whatif, scenario)
        except InputError as problem:
            yield str(problem)
            continue
        yield {name: _MAKERS[name](outcome, recorder) for name in engine.parts}


class BatchRecorder:
    """Records the batches of a what-if, step by step."""

    def __init__(self, enabled: bool = True) -> None:
        """Record batches only if ``enabled``."""
        self._enabled = enabled
        self._step = 1
        self._recorded: list[tuple[int, BatchCause, int, bytes]] = []

    def batch(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Record a batch that is sent."""
        if self._enabled:
            key = (self._step, requests.cause)
            sequence = sum(1 for step, cause, _, _ in self._recorded if (step, cause) == key)
            self._recorded.append((*key, sequence, packed(cluster, requests)))

    def end_step(self, done: int) -> None:
        """End a step. Also record that the shard has no LIVE_BROKERS batch, because the merged batch is sent only if
        all shards have one."""
        if not any((step, cause) == (done, BatchCause.LIVE_BROKERS) for step, cause, _, _ in self._recorded):
            self._recorded.append((done, BatchCause.LIVE_BROKERS, 0, b""))
        self._step = done + 1

    def rows(self) -> pa.RecordBatch:
        """Rows of ANNOUNCED."""
        steps, causes, rounds, data = zip(*self._recorded, strict=True)
        columns = [
            steps,
            [int(cause_) for cause_ in causes],
            rounds,
            [bool(cause_) for cause_ in data],
            data,
        ]
        return _batch(ANNOUNCED, columns)


def _changes(outcome: Outcome, _recorder: BatchRecorder) -> pa.RecordBatch:
    table = with_columns_of(_own(CHANGES), outcome.to_arrow())
    return _batch(CHANGES, [column.combine_chunks() for column in table.columns])


def _broker_counts(outcome: Outcome, _recorder: BatchRecorder) -> pa.RecordBatch:
    before, after = outcome.before, outcome.after
    columns: list[Any] = [outcome.broker_ids, list(outcome.racks), before.registered != 0, after.registered != 0]
    for count in ("leaders", "preferred", "replicas", "in_sync"):  # Attributes of ClusterHealth.
        columns += [getattr(before, count).astype(np.int64), getattr(after, count).astype(np.int64)]
    return _batch(BROKER_COUNTS, columns)


def _conditions(outcome: Outcome, _recorder: BatchRecorder) -> pa.RecordBatch:
    stages = [("before", outcome.before.counts()), *((step.name, step.counts) for step in outcome.steps)]
    columns: list[Any] = [
        list(range(len(stages))),
        [name for name, _ in stages],
        [int(np.count_nonzero(outcome.before.counted))] * len(stages),
    ]
    columns += [[counts[condition] for _, counts in stages] for condition in CONDITION_NAMES]
    columns.append([0, *(not_done(step.response) for step in outcome.steps)])
    return _batch(CONDITIONS, columns)


def not_done(response: ControllerResponse | None) -> int:
    """How many partitions or topics were answered with an error, or are still led by a broker that shuts down."""
    if response is None:
        return 0
    if response.codes is None:
        return len(response.rows)
    not_errors = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    return int(np.count_nonzero(~np.isin(response.codes, not_errors)))


def _impacts(outcome: Outcome, _recorder: BatchRecorder) -> pa.RecordBatch:
    impact = asdict(outcome.impact)
    counts = [impact[name] for name in IMPACT_COUNTS] + [outcome.count_of(name) for name in FailOn]
    record_bytes = None if impact["records"] is None else impact["bytes"]
    return _batch(IMPACTS, [[value] for value in (*counts, impact["records"], record_bytes, outcome.rules)])


_MAKERS: Final[dict[str, Callable[[Outcome, BatchRecorder], pa.RecordBatch]]] = {
    CHANGES.name: _changes, BROKER_COUNTS.name: _broker_counts, CONDITIONS.name: _conditions, IMPACTS.name: _impacts,
    ANNOUNCED.name: lambda _, recorder: recorder.rows(),
}  # fmt: skip


def _batch(table: FleetTable, columns: list[Any]) -> pa.RecordBatch:
    schema = _own(table)
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(cluster: str, scenario: str | None, result: dict[str, pa.RecordBatch] | str) -> pa.RecordBatch:
    problem, parts = (result, {}) if isinstance(result, str) else (None, result)
    columns = [pa.array([text], TEXT) for text in (cluster, scenario, problem)]
    for name, table in PARTS.items():
        rows = parts.get(name)
        if rows is None:
            columns.append(pa.nulls(1, _listed(table)))
        else:
            columns.append(pa.ListArray.from_arrays(pa.array([0, rows.num_rows], pa.int32()), rows.to_struct_array()))
    return pa.RecordBatch.from_arrays(columns, schema=PLAYED.schema)
