"""Start, load and kill a controller on one directory, and check the directory after each kill."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from kframe_kafka_wire.connections.node import CONNECTION_ERRORS
from kframe_kraft.disk import read_quorum_state
from kframe_kraft.live.calls import describe_quorum
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.kraft.kills import process
from verification.kraft.kills.load import Acknowledged, Broker, Load
from verification.kraft.kills.log_check import complete_batches, contradictions, prefixes, rewritten
from verification.kraft.kills.process import AFTER, BEFORE
from verification.kraft.scripted_quorum import connect
from verification.zookeeper.commands import invoke
from verification.zookeeper.process import Process
from verification.zookeeper.servers import HOST, free_ports

CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
#: Snapshots, new segments and the removal of old ones happen within a few starts.
SETTINGS: Final = {
    "metadata.log.max.record.bytes.between.snapshots": "60000",
    "metadata.log.segment.ms": "1500",
    "metadata.max.retention.bytes": "200000",
    "metadata.max.idle.interval.ms": "100",
}
AT_A_TIME: Final = "at a time"
BEFORE_IT_SERVED: Final = "before it served"
#: Longest time under load before most kills at a random time, and before one of ten, which sees snapshots.
_LOAD_S, _LONG_LOAD_S = 0.8, 8.0
_LONG: Final = 0.1
#: Most operations on the disk before a kill at one of them.
_OPERATIONS_MAX: Final = 600


@dataclass(slots=True)
class KillReport:
    """What a campaign has seen."""

    kills: Counter[str] = field(default_factory=Counter)
    """Kills at a random time, before and after an operation on the disk, and starts that ended before they served."""
    acknowledged: int = 0
    open: int = 0
    """Requests without a response."""
    snapshots: int = 0
    removed_segments: int = 0
    violations: list[str] = field(default_factory=list)


class KilledController(Process):
    """``kframe controller run`` on a formatted directory."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        (port,) = free_ports(1)
        self.address = (HOST, port)
        keys = {
            "process.roles": "controller",
            "node.id": "9",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{HOST}:{port}",
            "log.dirs": str(self.directory),
            **SETTINGS,
        }
        self._config = folder / "server.properties"
        self._config.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        formatted = invoke("kraft", "format", "--standalone", "-t", CLUSTER_ID, "-c", self._config)
        assert formatted.returncode == 0, formatted.stderr

    @property
    def directory(self) -> Path:
        """``metadata.log.dir``."""
        return self.folder / "data"

    def start(self, count: int, when: str) -> None:
        """Start it. It kills itself ``when`` operation ``count`` on the disk comes; 0 is never."""
        self._launch(
            [sys.executable, process.__file__, str(count), when, "controller", "run", "--config", str(self._config)],
            self.folder,
        )

    def serves(self) -> bool:
        """Return true when it leads, and false if it ends before."""
        wait_until(lambda: self.pid is None or self._leads())
        return self.pid is not None

    def _leads(self) -> bool:
        try:
            with closing(connect(self.address)) as client:
                return describe_quorum(client).leader_id == 9
        except CONNECTION_ERRORS:
            return False


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a controller ends: at operation ``count`` on the disk, or after ``seconds`` under load if that is 0."""

    kind: str
    count: int
    seconds: float

    @staticmethod
    def drawn(random: Random) -> Kill:
        """A kill at a random time, or at a random operation."""
        kind = random.choice((AT_A_TIME, BEFORE, AFTER))
        count = 0 if kind == AT_A_TIME else random.randint(1, _OPERATIONS_MAX)
        longest = _LONG_LOAD_S if random.random() < _LONG else _LOAD_S
        return Kill(kind, count, random.uniform(0, longest))

    def __str__(self) -> str:
        return f"after {self.seconds:.3f} s" if self.kind == AT_A_TIME else f"{self.kind} operation {self.count}"


class Campaign:
    """Kills of one controller. ``kill`` plays one, ``report`` has the result, ``close`` ends it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.report = KillReport()
        self._random = Random(seed)
        self._controller = KilledController(folder)
        self._broker = Broker(CLUSTER_ID)
        self._acknowledged, self._names = Acknowledged(), topic_names()
        self._before: dict[str, tuple[int, str]] = {}
        self._epoch = 0
        self._snapshots: set[str] = set()

    def kill(self) -> None:
        """Start the controller, load it, kill it, and check its directory."""
        planned, controller, report = Kill.drawn(self._random), self._controller, self.report
        controller.start(planned.count, BEFORE if planned.kind == BEFORE else AFTER)
        served = controller.serves() and contacted(self._broker, controller)
        if served:
            self._load(planned)
        controller.kill()
        report.kills[planned.kind if served else BEFORE_IT_SERVED] += 1
        report.violations += [f"kill {report.kills.total()}, {planned}: {text}" for text in self._check(served)]
        report.acknowledged, report.open = self._acknowledged.count, len(self._acknowledged.open)

    def close(self) -> None:
        """End the controller, after a failure."""
        self._controller.kill()

    def _load(self, planned: Kill) -> None:
        controller = self._controller
        load = Load(controller.address, self._acknowledged, self._names, self._random.randrange(2**32))
        load.start()
        deadline = time.monotonic() + (PATIENCE_S if planned.count else planned.seconds)
        while controller.pid is not None and time.monotonic() < deadline:
            time.sleep(0.002)
        controller.kill()
        load.join()

    def _check(self, served: bool) -> Iterator[str]:
        """What is wrong in the directory."""
        log = self._controller.directory / LOG_DIRECTORY
        segments, state = complete_batches(log), read_quorum_state(log)
        yield from rewritten(self._before, segments)
        yield from contradictions(self._controller.directory, self._acknowledged)
        epoch = 0 if state is None else state.leader_epoch
        if epoch < self._epoch or (served and epoch == self._epoch):
            yield f"epoch {epoch} after {self._epoch}"
        self.report.removed_segments += len(self._before.keys() - segments.keys())
        self._snapshots.update(path.name for path in log.glob("*.checkpoint"))
        self.report.snapshots = len(self._snapshots)
        self._before, self._epoch = prefixes(segments), epoch


def contacted(broker: Broker, controller: KilledController) -> bool:
    """Let the broker register or send heartbeats. Return false if the controller ends before."""
    try:
        broker.contact(controller.address)
    except CONNECTION_ERRORS:
        return False
    return True


def topic_names() -> Iterator[str]:
    """Names that no topic has had."""
    number = 0
    while True:
        yield f"topic-{number}"
        number += 1
