"""What-ifs, sweeps, plans and validation of DataFrames: DataFrames in, DataFrames out.

A *fleet* is a DataFrame of partitions, or DataFrames by the names of their tables: ``partitions``, ``brokers``,
``topics`` and ``clusters`` (``docs/reference/fleet-tables.md``). Partitions need ``topic``, ``partition`` and
``replicas``, and what-ifs and sweeps ``leader`` and ``isr`` too. All other columns may be missing: they are null, or
unknown. Rows without a column ``cluster`` are of one cluster, called ``cluster``. Brokers and topics are those that
partitions name, if the fleet has no table of them. Columns may be in any order; integers may be of any width.

Each function needs all partitions of a cluster, and each is lazy. Executors need kframe installed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kframe.errors import InputError, ParameterError
from kframe.model.texts import short_repr
from kframe.snapshot.content import Mode
from kframe.spark.frames import conform
from kframe.spark.grouping import evaluate
from kframe.spark.plans import PLAN_MOVES, PLANS, PlanningStage
from kframe.spark.play import BROKER_COUNTS, CHANGES, CONDITIONS, IMPACTS, REQUESTS, EngineSettings, ScenarioStage
from kframe.spark.rules import VIOLATIONS
from kframe.spark.scenarios import scenario_rows
from kframe.spark.schema import CLUSTER_TABLES, PARTITIONS, SCENARIOS, FleetTable
from kframe.spark.sweeping import FAILURES, SweepStage
from kframe.spark.validation import ValidateStage
from kframe.whatif.engines.choice import check_config
from kframe.whatif.results.outcome import Verb
from kframe.whatif.results.sweep import SortBy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Partitions, or tables by name.
Fleet: TypeAlias = "DataFrame | Mapping[str, DataFrame]"
_LEADERS: Final = ("leader", "isr")
_OUTCOMES: Final = {table.name: table for table in (IMPACTS, CHANGES, BROKER_COUNTS, CONDITIONS, REQUESTS)}
_PLANS: Final = {table.name: table for table in (PLANS, PLAN_MOVES)}


def whatif(
    fleet: Fleet,
    *,
    brokers: Sequence[int] = (),
    racks: Sequence[str] = (),
    verb: str = Verb.FAIL,
    together: bool = True,
    election: str | None = None,
    scenarios: DataFrame | None = None,
    table: str = IMPACTS.name,
    config: Mapping[str, object] | None = None,
    selectors: Sequence[str] = (),
    mode: Mode | None = None,
) -> DataFrame:
    """The outcome of a scenario in every cluster, or of each of the ``scenarios``.

    ``brokers`` and ``racks`` fail, or are subject to another ``verb``, all ``together`` or one after another.
    ``election`` is the type of the verb ``elect``. ``scenarios`` has rows of the table ``scenarios`` instead; only
    ``scenario`` is required. ``table`` is the result: ``impacts`` (a row a cluster and scenario), ``changes``,
    ``broker_counts``, ``conditions`` or ``requests``. A column ``problem`` says why a cluster or scenario has no
    result; these rows are null otherwise. ``config`` has Kafka's configuration keys, ``selectors`` names of leader
    selectors. ``mode`` is that of clusters which no table ``clusters`` describes; by default a cluster with ELRs runs
    KRaft, another one ZooKeeper mode.

    Raises InputError for a missing column or one of another type, which the error names, and for a request that is
    incomplete; ConfigError for a setting; PluginError for a selector.
    """
    result = _table_of(table, _OUTCOMES)
    check_config(config or {})
    engine = EngineSettings(dict(config or {}), tuple(selectors))
    if scenarios is not None:
        if brokers or racks:
            raise ParameterError("scenarios", "brokers or racks too", "scenarios alone")
        rows: Any = conform(scenarios, SCENARIOS)
    elif not brokers and not racks and verb != Verb.ELECT:
        raise InputError("whatif", "no scenario", "brokers, racks or scenarios")
    else:
        name = "-".join([verb, *map(str, brokers), *racks])
        rows = scenario_rows(name, verb, brokers=brokers, racks=racks, together=together, election=election).to_pylist()
    return evaluate(ScenarioStage((result,), engine), result, _conformed(fleet, _LEADERS), rows, mode)


def sweep(
    fleet: Fleet,
    *,
    depth: int = 2,
    racks: bool = True,
    by: SortBy | str = SortBy.OFFLINE,
    config: Mapping[str, object] | None = None,
    mode: Mode | None = None,
) -> DataFrame:
    """Every failure of a broker, of two if ``depth`` is 2, and of a rack, in every cluster: rows of ``failures``.

    The numbers and the order, worst first by ``by``, are those of ``kframe.whatif.sweep``. ``problem`` says why a
    cluster could not be swept. ``config`` and ``mode`` as in ``whatif``. Raises InputError and ConfigError as
    ``whatif``.
    """
    if by not in [*SortBy]:
        raise ParameterError("by", short_repr(by), f"one of {', '.join(SortBy)}")
    if depth not in (1, 2):
        raise ParameterError("depth", short_repr(depth), "1 or 2")
    check_config(config or {})
    stage = SweepStage(dict(config or {}), depth, racks, SortBy(by))
    return evaluate(stage, FAILURES, _conformed(fleet, _LEADERS), [None], mode)


def plan(
    fleet: Fleet,
    *,
    table: str = PLANS.name,
    goal: str | None = None,
    cost_terms: Sequence[str] = (),
    mode: Mode | None = None,
    **goals: Any,
) -> DataFrame:
    """A reassignment plan of every cluster, as ``kframe.plan`` makes it.

    ``goals`` are fields of ``kframe.PlanRequest``, such as ``rebalance=True`` or ``remove_brokers=(4,)``; ``goal`` and
    ``cost_terms`` are names of plugins. ``table`` is the result: ``plans`` (a row a cluster) or ``plan_moves`` (a row a
    partition that the plan changes). ``problem`` says why a cluster has no plan. Raises InputError for goals that are
    incomplete or contradict each other, and as ``whatif``; PluginError for a plugin.
    """
    result = _table_of(table, _PLANS)
    stage = PlanningStage(goals, goal=goal, cost_terms=tuple(cost_terms))
    stage.request()
    return evaluate(stage, result, _conformed(fleet), [None], mode)


def validate(fleet: Mapping[str, DataFrame]) -> DataFrame:
    """The violations of ``kframe.spark.rules.RULES`` in all clusters: rows of ``violations``.

    ``fleet`` has all four tables. A cluster without one valid row in ``clusters`` has a violation of ``cluster_row``
    only. Raises InputError as ``whatif``.
    """
    missing = [table.name for table in CLUSTER_TABLES if table.name not in fleet]
    if missing:
        raise InputError("validate", f"no table {missing[0]}", "partitions, brokers, topics and clusters")
    return evaluate(ValidateStage(), VIOLATIONS, _conformed(fleet), [None]).select(*VIOLATIONS.schema.names)


def _table_of(name: str, tables: Mapping[str, FleetTable]) -> FleetTable:
    if name not in tables:
        raise InputError("table", short_repr(name), f"one of {', '.join(tables)}")
    return tables[name]


def _conformed(fleet: Fleet, required: Collection[str] = ()) -> dict[str, DataFrame]:
    """The tables of a fleet in their columns. Partitions have the ``required`` columns too."""
    frames = fleet if isinstance(fleet, Mapping) else {PARTITIONS.name: fleet}
    known = {table.name: table for table in CLUSTER_TABLES}
    for name in frames:
        _table_of(name, known)
    if PARTITIONS.name not in frames:
        raise InputError("table partitions", "no such table", "a DataFrame of partitions")
    return {
        name: conform(frame, known[name], required if name == PARTITIONS.name else ()) for name, frame in frames.items()
    }
