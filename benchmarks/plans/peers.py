"""Run each planner in a process of its own, and measure its processor time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.plans.clusters import Case
from benchmarks.records import LATEST
from benchmarks.timing import Process, execute

_HERE: Final = Path(__file__).resolve().parent
_ENVIRONMENT: Final = LATEST / "kafka-tools"
_TOOLS: Final = ("kafka-tools==0.1.9", "kazoo", "six", "JPype1")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a planner. ``result`` (by topic and partition) is None if it failed, for the reason ``error``.

    ``seconds`` is the processor time of the algorithm, ``cpu_seconds`` that of the whole process, ``memory`` its
    largest resident set in bytes. ``bound`` is the lower bound of a plan's cost, where the planner has one.
    """

    tool: str
    result: dict[tuple[str, int], list[int]] | None
    error: str | None
    seconds: float | None
    cpu_seconds: float
    wall_seconds: float
    memory: int
    bound: int | None = None
    exact: bool = False
    reached: bool | None = None


def _failed(tool: str, process: Process) -> Run | None:
    """A run without a result, if the process failed."""
    if process.code == 0:
        return None
    lines = process.errors.strip().splitlines()
    error = lines[-1] if lines else f"no result within its processor time (exit code {process.code})"
    return Run(tool, None, error, None, process.cpu_seconds, process.wall_seconds, process.memory)


def prepare() -> None:
    """Build the class that calls Kafka's method, and an environment with kafka-tools. The first time takes minutes."""
    subprocess.run(["mvn", "-q", "-B", "package"], cwd=_HERE / "kafka", check=True, stdout=sys.stderr)
    if not (_ENVIRONMENT / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", _ENVIRONMENT], check=True, stdout=sys.stderr)
        pip: list[Any] = [_ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", *_TOOLS]
        subprocess.run(pip, check=True, stdout=sys.stderr)


def write_files(case: Case, folder: Path) -> None:
    """brokers.tsv and partitions.tsv, which all peers read, and sizes.csv for kframe."""
    snapshot = case.snapshot
    racks = case.racks.items()
    (folder / "brokers.tsv").write_text("".join(f"{broker}\t{rack or ''}\n" for broker, rack in racks))
    topics, replicas = snapshot.topics, snapshot.partitions.replicas
    rows = zip(topics.topic_of_rows().tolist(), topics.partition_of_rows().tolist(), case.sizes.tolist(), strict=True)
    with (folder / "partitions.tsv").open("w") as file, (folder / "sizes.csv").open("w") as sizes:
        sizes.write("topic,partition,bytes\n")
        for row, (topic, partition, size) in enumerate(rows):
            lists = ",".join(map(str, replicas[row].tolist()))
            file.write(f"{topics.names[topic]}\t{partition}\t{lists}\t{size}\n")
            sizes.write(f"{topics.names[topic]},{partition},{size}\n")


def kafka(case: Case, folder: Path, seconds_max: int) -> Run:
    """``kafka-reassign-partitions --generate`` of Kafka 4.4, for all topics and the brokers that remain."""
    target = _HERE / "kafka" / "target"
    lines = [
        line
        for line in (folder / "brokers.tsv").read_text().splitlines(keepends=True)
        if int(line.split("\t")[0]) not in case.removed
    ]
    chosen = folder / "chosen"
    chosen.mkdir(exist_ok=True)
    (chosen / "brokers.tsv").write_text("".join(lines))
    if not (chosen / "partitions.tsv").exists():
        (chosen / "partitions.tsv").symlink_to(folder / "partitions.tsv")
    command = ["java", "-Xmx6g", "-cp", f"{target}/classes:{target}/lib/*", "plans.KafkaGenerate", chosen]
    return _peer("kafka --generate", command, folder, seconds_max)


def kafka_tools(case: Case, folder: Path, seconds_max: int) -> Run:
    """LinkedIn's kafka-tools: ``remove`` for a broker to remove, else ``balance`` by count or size, then by racks."""
    racks = len(set(case.racks.values())) > 1
    modules = ["size" if case.by_size else "count", "leader", *(["rackaware"] if racks else [])]
    words = ["remove", *case.removed] if case.removed else ["balance", *modules]
    command = [_ENVIRONMENT / "bin" / "python", _HERE / "kafka_tools.py", folder]
    return _peer(f"kafka-tools {words[0]}", command, folder, seconds_max, *words)


def minimal_movement(case: Case, folder: Path, seconds_max: int) -> Run:
    """The algorithm of KAFKA-19048."""
    command = [sys.executable, _HERE / "minimal_movement.py", folder]
    return _peer("KAFKA-19048", command, folder, seconds_max, *case.removed)


def _peer(tool: str, command: Sequence[object], folder: Path, seconds_max: int, *words: object) -> Run:
    out = folder / "result.tsv"
    process = execute([*command, out, *words], seconds_max)
    if failed := _failed(tool, process):
        return failed
    result = {}
    for line in out.read_text().splitlines():
        topic, partition, replicas = line.split("\t")
        result[topic, int(partition)] = list(map(int, replicas.split(",")))
    seconds = float(process.output.split()[-1])
    return Run(tool, result, None, seconds, process.cpu_seconds, process.wall_seconds, process.memory)


def kframe(case: Case, folder: Path, seconds_max: int, *, exact: bool = False) -> Run:
    """``kframe plan generate``, from the snapshot directory ``folder``/snapshot to the plan's file."""
    tool = "kframe --exact" if exact else "kframe"
    options: list[object] = ["--rebalance", *(["--fix-racks"] if any(case.racks.values()) else [])]
    if case.added:
        options += ["--add-brokers", ",".join(f"{broker}:{rack or ''}" for broker, rack in case.added.items())]
    if case.removed:
        options += ["--remove-brokers", ",".join(map(str, case.removed))]
    if case.by_size:
        options += ["--weights", folder / "sizes.csv"]
    out = folder / "plan.json"
    command = [
        sys.executable,
        "-m",
        "kframe.cli",
        "plan",
        "generate",
        folder / "snapshot",
        *options,
        *(["--exact"] if exact else []),
        "--out",
        out,
        "--force",
        "-o",
        "json",
    ]
    process = execute(command, seconds_max)
    if failed := _failed(tool, process):
        return failed
    report: dict[str, Any] = json.loads(process.output)
    plan = json.loads(out.read_text())["partitions"]
    return Run(
        tool,
        {(row["topic"], row["partition"]): row["replicas"] for row in plan},
        None,
        None,
        process.cpu_seconds,
        process.wall_seconds,
        process.memory,
        report["moves"]["bound"],
        report["moves"]["exact"],
        report["targets_met"],
    )
