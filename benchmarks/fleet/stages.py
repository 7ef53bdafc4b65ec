"""Time each stage of a fleet from exec to exit: ``python -m benchmarks.fleet.stages``.

Generates 50 clusters of 200,000 partitions, and runs every stage with ``--out``: as users do without options
(``default``), and by Spark on local[1], local[2] and a standalone cluster of two workers with one core each. ``engine``
is the time of the same functions in one process on one core without Spark, with the same files written. ``start`` is
the time of a process that starts a session on that master and stops it; ``default`` is compared with that of the first
master. A stage should stay within 1.2 times ``engine`` plus ``start``. Sides are measured in turn; seconds are elapsed
times, the fastest of ``--rounds`` counts.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyarrow import dataset

from benchmarks.clusters import generated
from benchmarks.fleet.commands import BROKERS, RACKS
from benchmarks.records import LATEST, ROOT, command_of, table, write_record
from benchmarks.report.ratios import Ratio, to_record
from benchmarks.timing import run_kframe, timed
from kframe.spark.fleet import records
from kframe.spark.ingest import ingest_source
from kframe.spark.inputs import ClusterInput
from kframe.spark.marks import Mark, part_of
from kframe.spark.plans import PlanningStage
from kframe.spark.play import BROKER_COUNTS, CONDITIONS, FAILOVER, IMPACTS, REQUESTED, ScenarioStage
from kframe.spark.scenarios import scenario_rows
from kframe.spark.sources import find_sources
from kframe.spark.stages import Output, Stage, Unit, play_units
from kframe.spark.sweeping import SweepStage
from kframe.spark.tasks import DRIVER_PARTITIONS
from kframe.spark.validation import ValidateStage
from tests.spark.processes import standalone_cluster

FAILED: Final = 7
STANDALONE: Final = "standalone"
#: Without options of Spark: the command decides whether a session starts.
DEFAULT: Final = "default"
TIMES_MAX: Final = 1.2
#: The first word of ratios, by master.
_RATIOS: Final = {DEFAULT: "fleet", "local[2]": "spark"}
HEADINGS: Final = ("stage", "master", "engine s", "start s", "spark s", "times")
LEGEND: Final = (
    f"Fastest of each. engine: one process on one core, without Spark. times: spark by engine plus start, at most "
    f"{TIMES_MAX}."
)
_START: Final = "import sys; from kframe.spark.sessions import session; session(sys.argv[1]).stop()"


@dataclass(frozen=True)
class Folders:
    """Folders: the snapshots of clusters, their fleet, what ``failover`` wrote, and what a stage writes."""

    sources: Path
    fleet: Path
    played: Path
    out: Path


@dataclass(frozen=True)
class StageBench:
    """One stage: without Spark, and the arguments of its command."""

    alone: Callable[[Folders], None]
    arguments: Callable[[Folders], Sequence[object]]
    by_default: bool = True
    by_spark: bool = True


def _ingest(folders: Folders) -> None:
    for source in find_sources([str(folders.sources)]):
        ingest_source(source, folders.out)


def _inputs(folders: Folders) -> Iterator[ClusterInput]:
    return (ClusterInput.of_record(folders.fleet, record) for record in records(folders.fleet))


def _alone(stage: Stage, folders: Folders) -> None:
    """Do a stage for every cluster, and write the results to ``folders.out``."""
    _play(stage, folders, folders.out)


def _play(stage: Stage, folders: Folders, out: Path) -> None:
    (scenario,) = scenario_rows("fail", brokers=[FAILED]).to_pylist()
    is_played = isinstance(stage, ScenarioStage)
    units = [
        Unit(cluster, ({**scenario, "cluster": cluster.cluster} if is_played else None,))
        for cluster in _inputs(folders)
    ]
    name = "fail" if is_played else None
    marks = {part_of(unit.cluster.cluster, name): Mark("") for unit in units}
    for _ in play_units(units, stage, Output(str(out), str(out / "_staged"), marks)):
        pass


def _report(folders: Folders) -> None:
    """What ``report --by cluster`` shows, by Arrow."""
    impacts, broker_counts, conditions = (
        dataset.dataset(folders.played / table.name, partitioning="hive").to_table()
        for table in (IMPACTS, BROKER_COUNTS, CONDITIONS)
    )
    loads = [(f"leaders_{when}", each) for when in ("before", "after") for each in ("max", "mean")]
    skews = broker_counts.group_by("cluster").aggregate(loads)
    last = (
        conditions.sort_by("step")
        .group_by("cluster", use_threads=False)
        .aggregate([("offline", "last"), ("partitions", "last")])
    )
    impacts.join(skews, "cluster").join(last, "cluster").sort_by([("offline_last", "descending")])


#: ``failover`` and ``requests`` play the failure of one broker in every cluster.
STAGES: Final[Mapping[str, StageBench]] = {
    "ingest": StageBench(_ingest, lambda folders: ("ingest", folders.sources, "--out", folders.out), by_default=False),
    "validate": StageBench(
        partial(_alone, ValidateStage()), lambda folders: ("validate", folders.fleet, "--out", folders.out)
    ),
    "failover": StageBench(
        partial(_alone, ScenarioStage(FAILOVER)),
        lambda folders: ("failover", folders.fleet, "--brokers", FAILED, "--out", folders.out),
    ),
    "requests": StageBench(
        partial(_alone, ScenarioStage(REQUESTED)),
        lambda folders: ("requests", folders.fleet, "--brokers", FAILED, "--out", folders.out),
    ),
    "sweep": StageBench(partial(_alone, SweepStage()), lambda folders: ("sweep", folders.fleet, "--out", folders.out)),
    "plan": StageBench(
        partial(_alone, PlanningStage({"remove_brokers": (FAILED,)})),
        lambda folders: ("plan", folders.fleet, "--remove-brokers", FAILED, "--out", folders.out),
    ),
    "report": StageBench(_report, lambda folders: ("report", folders.played, "-o", "json"), by_spark=False),
}


def measure(folders: Folders, names: Sequence[str], masters: Mapping[str, str], rounds: int) -> list[dict[str, Any]]:
    """Seconds of each stage: ``engine``, and by master ``start`` and ``spark``."""
    options = {master: ("--master", address, "--conf", f"{DRIVER_PARTITIONS}=0") for master, address in masters.items()}
    ways = {name: [*_ways(STAGES[name], masters)] for name in names}
    start: dict[str, list[float]] = {name: [] for name in masters}
    engine: dict[str, list[float]] = {name: [] for name in names}
    spark: dict[tuple[str, str], list[float]] = {(name, way): [] for name in names for way in ways[name]}
    for _ in range(rounds):
        for master, address in masters.items():
            start[master].append(timed(partial(_start, address))[0])
        for name in names:
            print(name, file=sys.stderr, flush=True)
            engine[name].append(_emptied(folders, partial(STAGES[name].alone, folders)))
            for way in ways[name]:
                command = ("spark", *STAGES[name].arguments(folders), *options.get(way, ()))
                spark[name, way].append(_emptied(folders, partial(run_kframe, *command)))
    starts = start | {DEFAULT: next(iter(start.values()))}
    return [
        {
            "stage": name,
            "engine": engine[name],
            "masters": [
                {
                    "master": way,
                    "start": starts[way],
                    "spark": spark[name, way],
                    "times": min(spark[name, way]) / (min(engine[name]) + min(starts[way])),
                }
                for way in ways[name]
            ],
        }
        for name in names
    ]


def _ways(stage: StageBench, masters: Iterable[str]) -> Iterator[str]:
    """DEFAULT and the masters, as far as a stage runs so."""
    if stage.by_default:
        yield DEFAULT
    if stage.by_spark:
        yield from masters


def _start(address: str) -> None:
    subprocess.run([sys.executable, "-c", _START, address], check=True, cwd=ROOT, capture_output=True)


def _emptied(folders: Folders, work: Callable[[], object]) -> float:
    """Seconds of work that writes to an empty folder."""
    shutil.rmtree(folders.out, ignore_errors=True)
    return round(timed(work)[0], 3)


def ratios(stages: Sequence[Mapping[str, Any]], partitions: int) -> list[Ratio]:
    """The times of each stage without options, or on local[2]."""
    return [
        Ratio(f"{way} {stage['stage']}/{partitions} beside engine", row["times"], less=True)
        for stage in stages
        for row in stage["masters"]
        if (way := _RATIOS.get(row["master"]))
    ]


def lines(stages: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The stages as cells under HEADINGS."""
    return [
        (
            stage["stage"],
            row["master"],
            f"{min(stage['engine']):.1f}",
            f"{min(row['start']):.1f}",
            f"{min(row['spark']):.1f}",
            f"{row['times']:.2f}",
        )
        for stage in stages
        for row in stage["masters"]
    ]


@contextmanager
def addresses(masters: Sequence[str], folder: Path) -> Iterator[dict[str, str]]:
    """The address of each master. Runs a standalone cluster if it is among them."""
    if STANDALONE not in masters:
        yield {master: master for master in masters}
        return
    with standalone_cluster(folder, memory="2g") as address:
        yield {master: address if master == STANDALONE else master for master in masters}


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=200_000, help="of each cluster")
    parser.add_argument("--mode", choices=("zookeeper", "kraft"), default="zookeeper")
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]", STANDALONE])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=LATEST / "fleet-stages.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kframe-bench-") as scratch:
        folders = Folders(*(Path(scratch) / name for name in ("sources", "fleet", "played", "out")))
        folders.sources.mkdir()
        for number in range(options.clusters):
            cluster = folders.sources / f"cluster-{number:03d}"
            generated(cluster, options.partitions, BROKERS, options.mode, racks=RACKS, seed=number)
        for source in find_sources([str(folders.sources)]):
            ingest_source(source, folders.fleet)
        _play(ScenarioStage(FAILOVER), folders, folders.played)
        with addresses(options.masters, Path(scratch)) as masters:
            stages = measure(folders, options.stages, masters, options.rounds)
    total = options.clusters * options.partitions
    figures = {
        "ratios": to_record(ratios(stages, total)),
        "mode": options.mode,
        "clusters": options.clusters,
        "partitions": total,
        "fleet_stages": stages,
    }
    write_record(options.out, command_of("benchmarks.fleet.stages"), figures)
    table([HEADINGS, *lines(stages)], LEGEND)


if __name__ == "__main__":
    main()
