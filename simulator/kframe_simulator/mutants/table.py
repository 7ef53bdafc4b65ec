"""Reads the mutation catalogue and the table of past defects."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
HERE: Final = Path(__file__).resolve().parent
#: Mutants of these files run on the reference kernels, so that no kernel has to be compiled. Other tests compare them
#: with the compiled kernels.
REFERENCE: Final = "verification/reference/"
#: Test files that start servers, brokers or Java, or wait for seconds.
_REAL: Final = tuple(
    f"plugins/{name}"
    for name in (
        "zookeeper/tests/test_killed", "zookeeper/tests/test_handover", "zookeeper/tests/test_controller",
        "zookeeper/tests/test_claims", "zookeeper/tests/test_server_faults", "zookeeper/tests/test_uncertain_session",
        "zookeeper/tests/test_lost", "zookeeper/tests/test_sessions", "zookeeper/tests/test_login",
        "zookeeper/tests/test_loading", "zookeeper/tests/test_watches", "zookeeper/tests/test_connect",
        "zookeeper/tests/test_secured", "zookeeper/tests/test_golden",
        "zookeeper/tests/test_capture",
        "kafka_wire/tests/test_replication", "kafka_wire/tests/test_clients", "kafka_wire/tests/test_plans",
        "kafka_wire/tests/test_run", "kafka_wire/tests/test_secure",
        "kafka_wire/tests/test_history",
    )
)  # fmt: skip


#: Groups of rules of KRaft mode, by the number that mutants have.
KRAFT_RULES: Final = {
    "K1": "completion of reassignments",
    "K2": "ELRs and `min.insync.replicas`",
    "K3": "the choice of leaders",
    "K4": "leader epochs and partition epochs",
    "K5": "fields, versions and numbers of records",
    "K6": "fencing, unfencing, shutdown and return of brokers",
    "K7": "log directories",
    "K8": "heartbeats and sessions",
    "K9": "AlterPartition",
    "K10": "start and cancellation of reassignments",
    "K11": "creation, placement and deletion of topics",
    "K12": "elections by request and by timers",
    "K13": "registration of brokers",
    "K14": "configurations and feature levels",
}
#: By path prefix: what the simulator uses in place of this code. Mutants of this code are not simulated.
REPLACED: Final = {
    **dict.fromkeys(
        ("kframe/core/kraft/", "kframe/model/kraft/", f"{REFERENCE}kraft_partitions.py"),
        "nothing: it simulates ZooKeeper mode",
    ),
    "plugins/": "simulated ensemble, network and brokers in place of plugins, sockets and servers",
    "kframe/wire/": "messages are objects: no bytes are decoded",
    "kframe/embedded/brokers.py": "simulation.brokers in place of brokers that respond as a scenario says",
    "kframe/embedded/describe.py": "replication.control_requests in place of recorded requests",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One protection removed from kframe: in ``file``, ``new`` replaces the only occurrence of ``old``.

    ``removes`` describes the protection. ``rules`` are its defects (R, X), invariants (I, L) and KRAFT_RULES (K). At
    least one of ``tests``, pytest node ids, must fail.
    """

    id: str
    file: str
    old: str
    new: str
    removes: str
    rules: tuple[str, ...]
    tests: tuple[str, ...]
    equivalent: str = ""
    """Why no history of the simulator can detect the mutant. Empty if one could."""
    survives: str = ""
    """Why the recorded seeds miss it, although other histories could detect it. Empty if unknown."""
    elsewhere: str = ""
    """What the simulator uses in place of the mutated code. Empty if it runs that code."""

    @property
    def naive(self) -> bool:
        """Whether it is in a reference kernel."""
        return self.file.startswith(REFERENCE)

    @property
    def simulated(self) -> bool:
        """Whether the simulator runs the mutated code. Other mutants do not count as simulated."""
        return not self.replaced

    @property
    def replaced(self) -> str:
        """What the simulator uses in place of the mutated code; empty if it runs that code."""
        return self.elsewhere or next(
            (replacement for path, replacement in REPLACED.items() if self.file.startswith(path)), ""
        )

    def apply(self, root: Path) -> None:
        """Change the file below ``root``. Raises ValueError unless it contains ``old`` exactly once."""
        path = root / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.id}: its text occurs {text.count(self.old)} times in {self.file}")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True, slots=True)
class Defect:
    """A past defect, ``number`` R01 to R64 or X1 to X11.

    It has Kafka's issues, the required behaviour, its tests, and the part that they leave open. ``needs`` is U (unit),
    D (deterministic simulation), K (kill -9) or B (real brokers).
    """

    number: str
    issues: str
    holds: str
    needs: str
    tests: tuple[str, ...]
    open: str


def mutants() -> tuple[Mutant, ...]:
    """All mutants of the catalogue, file by file."""
    result = []
    for path in sorted((HERE / "catalogue").glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            result.append(Mutant(**entry | {"rules": tuple(entry["rules"]), "tests": tuple(entry["tests"])}))
    return tuple(result)


def defects() -> tuple[Defect, ...]:
    """All past defects, by number."""
    entries = tomllib.loads((HERE / "defects.toml").read_text())["defect"]
    return tuple(Defect(**{"open": ""} | entry | {"tests": tuple(entry["tests"])}) for entry in entries)


def is_real(node: str) -> bool:
    """Whether a test needs real servers."""
    return node.startswith(_REAL)
