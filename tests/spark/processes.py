"""Spark servers as separate processes on loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from tests.snapshot.samples import ROOT
from tests.spark import jvm

BIN: Final = Path(pyspark.__file__).parent / "bin"
#: Address of a driver, and settings of the driver and its executors.
LOCAL: Final = jvm.SETTINGS | {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
#: An option by which a command uses Spark for a small fleet.
IN_SPARK: Final = ("--conf", "spark.kframe.driver.partitions=0")
_CLASSES: Final = "org.apache.spark.deploy"


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, memory: str = "600m") -> Iterator[str]:
    """Run a master and workers of one core each; yield its address. Workers have ``folder/work-1`` and so on."""
    options = ["--host", "127.0.0.1", "--webui-port", 0]
    with ExitStack() as stack:
        command = [BIN / "spark-class", f"{_CLASSES}.master.Master", *options, "--port", 0]
        address = stack.enter_context(server(command, r"Starting Spark master at (spark://\S+)"))
        for number in range(1, workers + 1):
            command = [
                BIN / "spark-class",
                f"{_CLASSES}.worker.Worker",
                *options,
                "--cores",
                1,
                "--memory",
                memory,
                "--work-dir",
                folder / f"work-{number}",
                address,
            ]
            stack.enter_context(server(command, r"(Successfully registered) with master"))
        yield address


def environment() -> dict[str, str]:
    """Return an environment in which Python workers can import kframe."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    daemons = {"SPARK_DAEMON_JAVA_OPTS": jvm.OPTIONS, "SPARK_LAUNCHER_OPTS": jvm.OPTIONS}
    return {**os.environ, **daemons, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}


def settings(values: dict[str, object]) -> list[str]:
    """Return options of ``spark-submit``."""
    return [text for name, value in values.items() for text in ("--conf", f"{name}={value}")]


@contextmanager
def server(command: list[object], started: str) -> Iterator[str]:
    """Run a server; yield the group of the pattern ``started`` in its log.

    The server ends with all its children. After the start, ``cat`` drains the pipe of its log.
    """
    process = subprocess.Popen(
        [*map(str, command)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        log: list[str] = []
        match_ = None
        while match_ is None and (line := process.stderr.readline()):
            log.append(line)
            match_ = re.search(started, line)
        assert match_ is not None, "".join(log[-40:])
        with subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL):
            try:
                yield match_[1]
            finally:
                os.killpg(process.pid, signal.SIGTERM)
    finally:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stderr is not None
        process.stderr.close()
