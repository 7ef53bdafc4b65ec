"""Processor time and memory of whole commands, from exec to exit.

    python -m benchmarks.limits.processes

Each command runs as a child process, in turn with the others. The least user and system time of all runs counts: other
work on the machine only adds to it. The same applies to the peak of resident memory. Elapsed seconds are kept beside
them. A line with an empty interpreter shows what no command can be below. An uncounted run of each command writes the
bytecode of modules to a folder of its own. An installation from a wheel has bytecode, and a clone may have none.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.clusters import MODES, generated_in
from benchmarks.records import command_of, table, write_record
from benchmarks.report.ratios import Ratio, to_record
from benchmarks.timing import execute

#: Commands that print no figures of a cluster, by the name of their line.
WITHOUT_SNAPSHOT: Final = {
    "--help": ("--help",),
    "--version": ("--version",),
    "whatif fail --help": ("whatif", "fail", "--help"),
}
HEADINGS: Final = ("command", "partitions", "processor s", "elapsed s", "peak MB")
LEGEND: Final = "The least of all runs, each from exec to exit. MB are 10^6 bytes."

Result = dict[str, Any]


def measure(partitions: int, brokers: int, runs: int, folder: Path) -> list[Result]:
    """The least figures of each command; clusters are written to ``folder``."""
    kframe = str(Path(sys.executable).with_name("kframe"))
    bytecode = folder / "bytecode"
    commands: dict[tuple[str, int], list[str]] = {("python -c pass", 0): [sys.executable, "-c", "pass"]}
    for name, words in WITHOUT_SNAPSHOT.items():
        commands[name, 0] = [kframe, *words]
    for mode in MODES:
        source = generated_in(folder, partitions, brokers, mode)
        commands[f"whatif fail, {mode}", partitions] = [kframe, "whatif", "fail", str(source), "--brokers", "1"]
        commands[f"whatif sweep, {mode}", partitions] = [kframe, "whatif", "sweep", str(source)]
    results: dict[tuple[str, int], list[Result]] = {key: [] for key in commands}
    for counted in (False, *[True] * runs):
        for key, command in commands.items():
            result = run(command, bytecode)
            if counted:
                results[key].append(result)
    return [
        {
            "command": name,
            "partitions": size,
            "brokers": brokers,
            "runs": runs,
            **{figure: min(result[figure] for result in command_results) for figure in command_results[0]},
        }
        for (name, size), command_results in results.items()
    ]


def run(command: Sequence[str], bytecode: Path | None = None) -> Result:
    """Processor and elapsed seconds of a child process, and its peak of resident bytes. Raises CalledProcessError.

    Bytecode is read from the folder ``bytecode`` if there is one, and written there where it is missing.
    """
    environment = dict(os.environ)
    if bytecode is not None:
        environment |= {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONDONTWRITEBYTECODE": ""}
    process = execute(command, environment=environment)
    if process.code != 0:
        raise subprocess.CalledProcessError(process.code, command, process.output, process.errors)
    return {
        "processor": process.cpu_seconds,
        "elapsed": process.wall_seconds,
        "peak_bytes": process.memory,
    }


def ratios(results: Sequence[Result]) -> list[Ratio]:
    """The figures by name. Those of ``whatif fail`` and of ``--help`` have targets."""
    figures = []
    for result in results:
        size = f"/{result['partitions']}/{result['brokers']}" if result["partitions"] else ""
        name = f"process {result['command']}{size}"
        figures.append(Ratio(f"{name} processor", result["processor"], less=True, absolute=True))
        figures.append(Ratio(f"{name} peak", result["peak_bytes"] / 1e6, less=True, absolute=True))
    return figures


def lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A table with its headings."""
    return [
        HEADINGS,
        *(
            (
                result["command"],
                f"{result['partitions']:,}" if result["partitions"] else "-",
                f"{result['processor']:.3f}",
                f"{result['elapsed']:.3f}",
                f"{result['peak_bytes'] / 1e6:.0f}",
            )
            for result in results
        ),
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits.processes", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--clusters-folder", type=Path, help="the generated clusters; a later run reads them again")
    parser.add_argument(
        "--out", type=Path, help="write all figures as JSON, for example to benchmarks/results/NAME.json"
    )
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="kframe-bench-") as scratch:
        results = measure(chosen.partitions, chosen.brokers, chosen.runs, chosen.clusters_folder or Path(scratch))
    table(lines(results), LEGEND)
    if chosen.out:
        command = command_of("benchmarks.limits.processes", words)
        figures = {"ratios": to_record(ratios(results)), "processes": results}
        write_record(chosen.out, command, figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
