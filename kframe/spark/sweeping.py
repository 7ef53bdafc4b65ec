"""Every failure of one broker, of two and of a rack, in every cluster of a fleet."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kframe.errors import ConfigError, InputError, SnapshotError
from kframe.ports.progress import ignore_progress
from kframe.snapshot import Snapshot
from kframe.spark.modes import MODES
from kframe.spark.schema import INT, INTS, LONG, TEXT, FleetTable, with_columns_of
from kframe.spark.stages import Result, Scenario, Stage
from kframe.whatif.engines.choice import applicable_config, check_config
from kframe.whatif.engines.kraft.sweep import CountedFailures, count_failures
from kframe.whatif.results.sweep import KINDS, METRICS, SortBy, Sweep
from kframe.whatif.sweep import sweep

#: A row a failure, as ``kframe whatif sweep --out`` writes it, with its rank.
FAILURES: Final = FleetTable(
    "failures",
    pa.schema(
        [
            ("cluster", TEXT),
            ("rank", LONG),
            ("rank_of_kind", LONG),
            ("kind", TEXT),
            ("brokers", INTS),
            ("rack", TEXT),
            ("directory", TEXT),
            *((name, INT) for name in METRICS),
            ("leaders_max", INT),
            ("leaders_mean", pa.float64()),
            ("leader_skew", pa.float64()),
            ("may_lose_data", INT),
            ("rules", TEXT),
            ("problem", TEXT),
        ]
    ),
    ("cluster", "rank", "problem"),
)
#: The counts in a part of the partitions of a KRaft cluster: a pickled ``CountedFailures``.
COUNTS: Final = FleetTable("failure_counts", pa.schema([("counts", pa.binary())]))


@dataclass(frozen=True)
class SweepStage(Stage):
    """Fails each registered broker of a cluster, each two if ``depth`` is 2, and each rack; in a KRaft cluster each log
    directory too. The numbers and the order are those of ``kframe.whatif.sweep`` and its ``ranked``.

    Several tasks may count the failures of a KRaft cluster, each in a part of its partitions.
    """

    config: Mapping[str, object] = field(default_factory=dict)
    depth: int = 2
    racks: bool = True
    by: SortBy = SortBy.OFFLINE
    number: int = 0
    """The part of the partitions that is counted, one of ``parts``."""
    parts: int = 1
    tables: tuple[FleetTable, ...] = (FAILURES,)

    def settings(self) -> Any:
        """See ``Stage``."""
        return {name: value for name, value in asdict(self).items() if name not in ("tables", "number", "parts")}

    def parts_max(self, mode: str) -> int:
        """See ``Stage``."""
        return MODES[mode].sweep_parts

    def part(self, number: int, count: int) -> SweepStage:
        """See ``Stage``."""
        return replace(self, number=number, parts=count, tables=(COUNTS,))

    def joined(self, cluster: str, parts: Sequence[pa.Table]) -> Result:
        """See ``Stage``."""
        counted: list[CountedFailures] = [pickle.loads(part["counts"][0].as_py()) for part in parts]
        return {FAILURES: _ranked(cluster, CountedFailures.sum(counted).sweep(), self.by)}

    def results(
        self, cluster: str, content: Snapshot, scenarios: Sequence[Scenario], tables: Collection[FleetTable]
    ) -> Iterator[Result]:
        """See ``Stage``. Raises ConfigError for a setting."""
        check_config(self.config)
        if content.partitions.leader is None or content.partitions.isr is None:
            yield str(
                SnapshotError(
                    f"cluster {cluster}", "nothing about who leads", "partitions whose leaders and ISRs are known"
                )
            )
            return
        config = applicable_config(self.config, content)
        try:
            if self.parts == 1:
                swept = sweep(content, config, depth=self.depth, racks=self.racks)
                yield {FAILURES: _ranked(cluster, swept, self.by)}
                return
            counted = count_failures(
                content,
                config,
                depth=self.depth,
                racks=self.racks,
                elr=None,
                progress=ignore_progress,
                part=self.number,
                parts=self.parts,
            )
            yield {COUNTS: pa.table([[pickle.dumps(counted)]], COUNTS.schema)}
        except ConfigError:
            raise
        except InputError as problem:
            yield str(problem)


def _ranked(cluster: str, swept: Sweep, by: SortBy) -> pa.Table:
    """Rows of FAILURES, the worst first."""
    order = swept.ranked(by)
    rank_of_kind = np.empty(len(order), np.int64)
    for kind in range(len(KINDS)):
        of_kind = swept.kind[order] == kind
        rank_of_kind[of_kind] = np.arange(1, np.count_nonzero(of_kind) + 1)
    table = swept.table(order)
    columns = {
        "cluster": pa.repeat(pa.scalar(cluster, TEXT), len(order)),
        "rules": pa.repeat(pa.scalar(swept.rules, TEXT), len(order)),
        "rank": pa.array(np.arange(1, len(order) + 1)),
        "rank_of_kind": pa.array(rank_of_kind),
    }
    return with_columns_of(
        FAILURES.schema, pa.table(columns | dict(zip(table.column_names, table.columns, strict=True)))
    )
