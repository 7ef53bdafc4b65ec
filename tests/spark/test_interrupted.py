"""A command that is interrupted, or whose Python worker is killed, ends with one sentence. It can be resumed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyarrow import parquet

from kframe.snapshot.generate import generate
from kframe.spark.play import CHANGES
from tests.cli.running import kframe
from tests.spark.fleets import snapshot_directory
from tests.spark.outcomes import reference_rows, scenario
from tests.spark.processes import IN_SPARK, environment

BROKERS, CLUSTERS = 12, 3
SNAPSHOT = generate(3_000, BROKERS, racks=3, seed=3)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("fleet")
    for name in ("east", "north", "west"):
        snapshot_directory(directory / name, SNAPSHOT)
    return directory


def command(fleet: Path, out: Path) -> list[str]:
    return ["spark", "failover", str(fleet), "--each-broker", "--out", str(out), "-o", "csv"]


def marks(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (out / "_done" / "impacts").glob("*/*")}


def descendants(process: int) -> Iterator[int]:
    """Yield the processes below one. Those that end meanwhile are left out."""
    child_pids: list[str] = []
    with suppress(OSError):
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            with suppress(OSError):
                child_pids += children.read_text().split()
    for child in map(int, child_pids):
        yield child
        yield from descendants(child)


def python_workers(process: int) -> list[int]:
    """Return the children of the daemons that fork Python workers. The command line of Java names the daemon, too."""
    workers: list[int] = []
    for pid in descendants(process):
        try:
            if "-m\0kframe.spark.daemon" in Path(f"/proc/{pid}/cmdline").read_text():
                workers += descendants(pid)
        except OSError:
            continue
    return list(dict.fromkeys(workers))


def stopped_in_the_middle(running: subprocess.Popen[str], out: Path) -> list[int]:
    """Stop the Python workers of a command when some of its results are complete and others are not."""
    while not marks(out):
        assert running.poll() is None, running.communicate()
        time.sleep(0.005)
    workers = python_workers(running.pid)
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    assert len(marks(out)) < CLUSTERS * BROKERS
    return workers


def kill_workers(running: subprocess.Popen[str]) -> None:
    """Kill the Python workers until the command ends: the first ones may be idle, and their tasks complete."""
    while running.poll() is None:
        for worker in python_workers(running.pid):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        time.sleep(0.005)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("ends", [pytest.param("a worker is killed", marks=pytest.mark.extended), "SIGINT"])
def test_interrupted_command_resumes_after_written_results(fleet: Path, tmp_path: Path, ends: str) -> None:
    """The command that resumes uses the session of the tests, since another JVM takes long to start."""
    out = tmp_path / "out"
    arguments = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment()}
    process = [sys.executable, "-m", "kframe.cli", *command(fleet, out), "--master", "local[2]", *IN_SPARK]
    with subprocess.Popen(process, **arguments) as running:  # type: ignore[call-overload]
        workers = stopped_in_the_middle(running, out)
        if ends == "SIGINT":
            running.send_signal(signal.SIGINT)
        else:
            kill_workers(running)
        stdout, stderr = running.communicate()
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)
    assert stdout == ""
    assert stderr.count("\n") == 1, stderr
    safe = re.search(
        rf"(\d+) of {CLUSTERS * BROKERS} clusters and scenarios are whole in {re.escape(str(out))}", stderr
    )
    assert safe is not None, stderr
    assert "run the same command again" in stderr
    if ends == "SIGINT":
        assert (running.returncode, stderr.startswith("error: interrupted by SIGINT")) == (130, True)
    else:
        assert (running.returncode, "a Python worker of Spark ended unexpectedly" in stderr) == (1, True), stderr
        log = re.search(r"Spark's log: (\S+)\)", stderr)
        assert log is not None
        Path(log[1]).unlink()
    before = marks(out)
    assert 0 < int(safe[1]) <= len(before) < CLUSTERS * BROKERS
    rerun = kframe(*command(fleet, out))
    assert (rerun.exit_code, rerun.stderr) == (0, "")
    after = marks(out)
    assert len(after) == CLUSTERS * BROKERS
    assert {path: after[path] for path in before} == before
    expected = sum(len(reference_rows(SNAPSHOT, scenario(brokers=[broker]))["changes"]) for broker in range(BROKERS))
    assert parquet.read_table(out / CHANGES.name).num_rows == CLUSTERS * expected
    assert list(out.glob("_staged*")) == []
