"""Compare ``kframe spark failover`` with a loop of ``kframe whatif fail``, from exec to exit.

``python -m benchmarks.fleet.commands --clusters 6 30`` generates and ingests that many clusters. It times the failure
of one broker in every cluster, by one process per cluster and by one Spark command on ``local[2]``, with and without
``--out``. Seconds are elapsed times of all runs; a ratio is that of the fastest runs. With ``--mode kraft`` all are
KRaft clusters. ``jobs``, ``stages``, ``tasks`` and ``largest_event_bytes`` come from Spark's event log of one more run;
large events would reveal plans written as text.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.clusters import generated
from benchmarks.records import LATEST, command_of, table, write_record
from benchmarks.timing import run_kframe, timed

BROKERS: Final = 50
RACKS: Final = 3
FAILED: Final = 7
#: At most so many times the seconds of the loop, by number of clusters of 100,000 partitions.
TARGETS: Final = {6: 2.0, 30: 1.2}
HEADINGS: Final = ("clusters", "written", "loop s", "spark s", "ratio", "at most")
LEGEND: Final = "Fastest of each, from exec to exit, measured in turn; the same failure of a broker in every cluster."


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, nargs="+", default=[6, 30])
    parser.add_argument("--partitions", type=int, default=100_000, help="of each cluster")
    parser.add_argument("--mode", choices=("zookeeper", "kraft"), default="zookeeper")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--clusters-folder", type=Path, help="the generated clusters; a later run reads them again")
    parser.add_argument("--out", type=Path, default=LATEST / "fleet-commands.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kframe-bench-") as scratch:
        folder = options.clusters_folder or Path(scratch)
        fleets = [_measured(folder, count, options) for count in options.clusters]
    write_record(options.out, command_of("benchmarks.fleet.commands"), {"fleets": fleets})
    table([HEADINGS, *(line for fleet in fleets for line in lines(fleet))], LEGEND)


def lines(fleet: dict[str, Any]) -> list[tuple[str, ...]]:
    """The runs of one fleet as cells under HEADINGS."""
    target = TARGETS.get(fleet["clusters"])
    return [
        (
            str(fleet["clusters"]),
            "yes" if run["written"] else "no",
            f"{min(run['loop']):.1f}",
            f"{min(run['spark']):.1f}",
            f"{run['ratio']:.2f}",
            "-" if target is None else f"{target:.1f}",
        )
        for run in fleet["runs"]
    ]


def _measured(folder: Path, clusters: int, options: argparse.Namespace) -> dict[str, Any]:
    sources = [folder / f"{options.mode}-{options.partitions}" / f"cluster-{number:03d}" for number in range(clusters)]
    fleet = folder / f"fleet-{options.mode}-{options.partitions}-{clusters}"
    for number, source in enumerate(sources):
        generated(source, options.partitions, BROKERS, options.mode, racks=RACKS, seed=number)
    ingest = _seconds(lambda: run_kframe("spark", "ingest", *sources, "--out", fleet, "--master", options.master))
    failover = ("spark", "failover", fleet, "--brokers", FAILED, "--master", options.master)
    runs = [_alternate(folder / "results", sources, failover, options.rounds, written) for written in (False, True)]
    return {
        "mode": options.mode,
        "clusters": clusters,
        "partitions": clusters * options.partitions,
        "ingest": ingest,
        "runs": runs,
        **_counted(folder / "events", failover),
    }


def _alternate(
    results: Path, sources: Sequence[Path], failover: Sequence[object], rounds: int, written: bool
) -> dict[str, Any]:
    def loop() -> None:
        for source in sources:
            run_kframe(
                "whatif", "fail", source, "--brokers", FAILED, *(("--out", results / source.name) if written else ())
            )

    def spark() -> None:
        run_kframe(*failover, *(("--out", results / "fleet") if written else ()))

    seconds: dict[str, list[float]] = {"loop": [], "spark": []}
    for _ in range(rounds):
        for name, work in (("loop", loop), ("spark", spark)):
            shutil.rmtree(results, ignore_errors=True)
            results.mkdir(parents=True)
            seconds[name].append(_seconds(work))
    shutil.rmtree(results)
    return {"written": written, **seconds, "ratio": round(min(seconds["spark"]) / min(seconds["loop"]), 2)}


def _counted(events: Path, failover: Sequence[object]) -> dict[str, int]:
    """Jobs, stages and tasks of one run that writes. Spark's event log has them."""
    shutil.rmtree(events, ignore_errors=True)
    (events / "log").mkdir(parents=True)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events / "log"),
        "spark.eventLog.compress": "false",
    }
    pairs = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
    run_kframe(*failover, *pairs, "--out", events / "out")
    lines = [line for file in (events / "log").rglob("*") if file.is_file() for line in file.read_bytes().splitlines()]
    kinds = [json.loads(line).get("Event", "") for line in lines if line.startswith(b"{")]
    shutil.rmtree(events)
    return {
        "jobs": kinds.count("SparkListenerJobStart"),
        "stages": kinds.count("SparkListenerStageCompleted"),
        "tasks": kinds.count("SparkListenerTaskEnd"),
        "largest_event_bytes": max(map(len, lines), default=0),
    }


def _seconds(work: Callable[[], object]) -> float:
    return round(timed(work)[0], 2)


if __name__ == "__main__":
    main()
