"""The clusters that the benchmark opens, and the memory of processes that hold them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kframe.snapshot.directory import write_snapshot
from kframe.snapshot.generate import Health, generate

#: Share of partitions with a follower out of the ISR, in the first and the second state of the cluster.
_UNDER_REPLICATED: Final = (0.01, 0.011)
_IMBALANCE: Final = 0.05
_RACKS: Final = 3
#: A plugin with a live cluster that is in the other state each time it is read.
_PLUGIN: Final = """
from itertools import cycle
from pathlib import Path

from kframe.plugin import ClusterSpec, hookimpl
from kframe.plugin.snapshot import read_snapshot


class AlternatingCluster:
    def __init__(self, url, config):
        self._states = cycle({paths!r})

    def capture(self, progress=None):
        return read_snapshot(Path(next(self._states)))


@hookimpl
def kframe_clusters():
    return [ClusterSpec("alternating", AlternatingCluster, "A cluster that changes.")]
"""
_ENGINE: Final = """
import sys
from pathlib import Path

import kframe

snapshot = kframe.read_snapshot(sys.argv[1])
print(Path("/proc/self/status").read_text())
"""
#: The allocator of the command ``kframe``; Python programs have Arrow's.
COMMAND_ALLOCATOR: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
_FIELD: Final = re.compile(r"^(VmHWM|VmRSS):\s+(\d+) kB$", re.MULTILINE)
_NAMES: Final = {"VmHWM": "peak_bytes", "VmRSS": "resident_bytes"}


@dataclass(frozen=True, slots=True)
class Clusters:
    """Two states of the same cluster as snapshot directories, and a folder with the plugin that alternates."""

    first: Path
    second: Path
    plugins: Path

    @property
    def live_arguments(self) -> list[object]:
        """The arguments of a console of the changing cluster."""
        return ["alternating://here", "--plugins-dir", self.plugins]


def write_clusters(folder: Path, partitions: int, brokers: int, seed: int) -> Clusters:
    """Write a generated cluster in two states."""
    paths = [folder / "first", folder / "second"]
    for path, share in zip(paths, _UNDER_REPLICATED, strict=True):
        health = Health(under_replicated=share, preferred_replica_imbalance=_IMBALANCE, min_insync=2)
        write_snapshot(generate(partitions, brokers, racks=_RACKS, seed=seed, health=health), path)
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "plugin.py").write_text(_PLUGIN.format(paths=[*map(str, paths)]))
    return Clusters(paths[0], paths[1], plugins)


def memory_of(pid: int) -> dict[str, int]:
    """The memory of a running process, now and at most."""
    return _memory(Path(f"/proc/{pid}/status").read_text())


def engine_memory(snapshot: Path, allocator: Mapping[str, str] | None = None) -> dict[str, int]:
    """The memory of a process that has read a snapshot by ``kframe.read_snapshot``. ``allocator`` has settings of its
    environment."""
    command, environment = [sys.executable, "-c", _ENGINE, str(snapshot)], {**os.environ, **(allocator or {})}
    return _memory(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def memory_ratios(console: Mapping[str, int], engine: Mapping[str, int]) -> dict[str, Any]:
    """The memory of both, and the console's in units of the engine's."""
    ratios = {name.replace("bytes", "ratio"): console[name] / engine[name] for name in engine}
    return {"console": dict(console), "engine": dict(engine), **ratios}


def _memory(status: str) -> dict[str, int]:
    return {_NAMES[name]: 1024 * int(kilobytes) for name, kilobytes in _FIELD.findall(status)}
