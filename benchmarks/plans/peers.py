"""Run each planner in a process of its own, and measure its processor time and memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.plans.clusters import Case
from benchmarks.records import LATEST, ROOT
from benchmarks.timing import Process, execute
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import problem_of
from kframe.plans.generate.propose import propose
from kframe.plans.generate.request import PlanRequest

_HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment of peers: its packages, and the first interpreter of these that the machine has."""

    name: str
    packages: tuple[str, ...]
    interpreters: tuple[str, ...] = (sys.executable,)

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return LATEST / self.name / "bin" / "python"

    def prepare(self) -> None:
        """Make the environment, if the machine has an interpreter for it. The first time takes minutes."""
        interpreter = next(filter(None, map(shutil.which, self.interpreters)), None)
        if interpreter is None or self.python.exists():
            return
        subprocess.run([interpreter, "-m", "venv", LATEST / self.name], check=True, stdout=sys.stderr)
        subprocess.run([self.python, "-m", "pip", "install", "--quiet", *self.packages], check=True, stdout=sys.stderr)


_TOOLS: Final = Environment("kafka-tools", ("--no-deps", "kafka-tools==0.1.9", "kazoo", "six", "JPype1"))
_SOLVERS: Final = Environment("solvers", ("ortools==9.15.6755", "highspy==1.16.0", "scipy"))
_REBALANCER: Final = Environment("rebalancer", ("rebalancer==1.0.4",), ("python3.14", "python3.13", "python3.12"))


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
    """Build the class that calls Kafka's method, and the environments of the other peers."""
    subprocess.run(["mvn", "-q", "-B", "package"], cwd=_HERE / "kafka", check=True, stdout=sys.stderr)
    for environment in (_TOOLS, _SOLVERS, _REBALANCER):
        environment.prepare()


def write_files(case: Case, folder: Path) -> None:
    """brokers.tsv and partitions.tsv, which all peers read, limits.tsv for solvers, and sizes.csv for kframe."""
    snapshot = case.snapshot
    racks = sorted(case.racks.items())
    (folder / "brokers.tsv").write_text("".join(f"{broker}\t{rack or ''}\n" for broker, rack in racks))
    limits = limits_of(case)
    rows = zip(limits.lower.tolist(), limits.upper.tolist(), strict=True)
    (folder / "limits.tsv").write_text("".join(f"{lower}\t{upper}\n" for lower, upper in rows))
    if case.by_size:
        (folder / "by-size").touch()
    topics, replicas = snapshot.topics, snapshot.partitions.replicas
    named = zip(topics.topic_of_rows().tolist(), topics.partition_of_rows().tolist(), case.sizes.tolist(), strict=True)
    with (folder / "partitions.tsv").open("w") as file, (folder / "sizes.csv").open("w") as sizes:
        sizes.write("topic,partition,bytes\n")
        for row, (topic, partition, size) in enumerate(named):
            lists = ",".join(map(str, replicas[row].tolist()))
            file.write(f"{topics.names[topic]}\t{partition}\t{lists}\t{size}\n")
            sizes.write(f"{topics.names[topic]},{partition},{size}\n")


def limits_of(case: Case) -> LoadLimits:
    """The loads that kframe's plan has to reach. Brokers ascend by id."""
    request = PlanRequest(
        rebalance=True,
        fix_racks=any(case.racks.values()),
        add_brokers=tuple(case.added),
        remove_brokers=case.removed,
        racks={broker: rack for broker, rack in case.added.items() if rack is not None},
        weights=case.sizes if case.by_size else None,
    )
    limits = propose(problem_of(case.snapshot, request)).limits
    assert limits is not None
    return limits


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
    command = [_TOOLS.python, _HERE / "kafka_tools.py", folder]
    return _peer(f"kafka-tools {words[0]}", command, folder, seconds_max, *words)


def minimal_movement(case: Case, folder: Path, seconds_max: int) -> Run:
    """The algorithm of KAFKA-19048."""
    command = [sys.executable, _HERE / "minimal_movement.py", folder]
    return _peer("KAFKA-19048", command, folder, seconds_max, *case.removed)


def cp_sat(case: Case, folder: Path, seconds_max: int) -> Run:
    """CP-SAT of OR-Tools, on one core."""
    return _solver("CP-SAT", _SOLVERS, "cp_sat", folder, seconds_max)


def highs(case: Case, folder: Path, seconds_max: int) -> Run:
    """HiGHS, on one core."""
    return _solver("HiGHS", _SOLVERS, "highs", folder, seconds_max)


def rebalancer(case: Case, folder: Path, seconds_max: int) -> Run:
    """The local search of Meta's Rebalancer, on one core. It needs Python 3.12 or newer."""
    return _solver("Rebalancer", _REBALANCER, "local_search", folder, seconds_max)


def _solver(tool: str, environment: Environment, script: str, folder: Path, seconds_max: int) -> Run:
    if not environment.python.exists():
        error = f"none of {', '.join(environment.interpreters)} on this machine"
        return Run(tool, None, error, None, 0.0, 0.0, 0)
    return _peer(
        tool, [environment.python, _HERE / "solvers" / f"{script}.py", folder], folder, seconds_max, seconds_max
    )


def _peer(tool: str, command: Sequence[object], folder: Path, seconds_max: int, *words: object) -> Run:
    out = folder / "result.tsv"
    process = execute([*command, out, *words], seconds_max, {**os.environ, "PYTHONPATH": str(ROOT)})
    if failed := _failed(tool, process):
        return failed
    result = {}
    for line in out.read_text().splitlines():
        topic, partition, replicas = line.split("\t")
        result[topic, int(partition)] = list(map(int, replicas.split(",")))
    *words_printed, seconds = process.output.split()
    bound = int(float(words_printed[-1])) if words_printed and words_printed[-1] != "-" else None
    return Run(tool, result, None, float(seconds), process.cpu_seconds, process.wall_seconds, process.memory, bound)


def kframe(case: Case, folder: Path, seconds_max: int, *, exact: bool = False) -> Run:
    """``kframe plan generate``, from the snapshot directory ``folder``/snapshot to the plan's file."""
    tool = "kframe --exact" if exact else "kframe"
    options: list[object] = ["--rebalance", *(["--fix-racks"] if any(case.racks.values()) else [])]
    if case.added:
        added = (f"{broker}:{rack}" if rack else str(broker) for broker, rack in case.added.items())
        options += ["--add-brokers", ",".join(added)]
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
