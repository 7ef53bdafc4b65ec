"""Reads the mutation catalogue and the table of past defects."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
HERE: Final = Path(__file__).resolve().parent
#: Mutants here run on the reference twins, so that no kernel has to be compiled; other tests compare twins and kernels.
REFERENCE: Final = "kframe/kernels/reference/"
#: Files of tests that start servers, brokers or Java, or wait for seconds.
_REAL: Final = tuple(
    f"plugins/{name}"
    for name in (
        "zookeeper/tests/test_killed", "zookeeper/tests/test_handover", "zookeeper/tests/test_controller",
        "zookeeper/tests/test_claims", "zookeeper/tests/test_server_faults", "zookeeper/tests/test_uncertain_session",
        "zookeeper/tests/test_lost", "zookeeper/tests/test_sessions", "zookeeper/tests/test_login",
        "zookeeper/tests/test_loading", "zookeeper/tests/test_watches", "zookeeper/tests/test_connect",
        "zookeeper/tests/test_secured", "zookeeper/tests/test_lagging", "zookeeper/tests/test_golden",
        "zookeeper/tests/test_capture",
        "kafka_wire/tests/test_replication", "kafka_wire/tests/test_clients", "kafka_wire/tests/test_plans",
        "kafka_wire/tests/test_run", "kafka_wire/tests/test_secure",
        "kafka_wire/tests/test_history",
    )
)  # fmt: skip


#: What the simulator has in place of code, by the path that this begins with. Mutants of this code are not simulated.
REPLACED: Final = {
    "plugins/": "simulated ensemble, network and brokers in place of plugins, sockets and servers",
    "kframe/wire/": "messages are objects: no bytes are decoded",
    "kframe/embedded/brokers.py": "simulation.brokers in place of brokers that answer as a scenario says",
    "kframe/embedded/describe.py": "simulation.control_requests in place of recorded requests",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One protection taken out of the engine: in ``file``, ``old`` (found exactly once) becomes ``new``.

    ``removes`` is the protection in words, ``rules`` the numbers of defects (R, X) and invariants (I, L) that it
    belongs to, ``tests`` the pytest node ids of which at least one must fail.
    """

    id: str
    file: str
    old: str
    new: str
    removes: str
    rules: tuple[str, ...]
    tests: tuple[str, ...]
    equivalent: str = ""
    """Why no history of the simulator can tell it from the engine; empty where one could."""
    survives: str = ""
    """Why the seeds on record miss it, though other histories of the simulator could tell it; empty if unknown."""
    elsewhere: str = ""
    """What the simulator has of its own in place of the code that it changes; empty where it runs that code."""

    @property
    def naive(self) -> bool:
        """Whether it is in the reference twins of the kernels."""
        return self.file.startswith(REFERENCE)

    @property
    def simulated(self) -> bool:
        """Whether the simulator runs the code that it changes. Any other mutant does not count as simulated."""
        return not self.replaced

    @property
    def replaced(self) -> str:
        """What the simulator has in place of the code that it changes; empty where the simulator runs that code."""
        return self.elsewhere or next((what for path, what in REPLACED.items() if self.file.startswith(path)), "")

    def apply(self, root: Path) -> None:
        """Change the file below ``root``. Raises ValueError unless ``old`` stands in it exactly once."""
        path = root / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.id}: its text stands {text.count(self.old)} times in {self.file}")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of history: ``number`` (R01 to R64, X1 to X11), Kafka's issues, what must hold, ``needs`` (U unit,
    D deterministic simulation, K kill -9, B real brokers), the tests that hold it, and what they leave open."""

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
    """All defects of history, by number."""
    entries = tomllib.loads((HERE / "defects.toml").read_text())["defect"]
    return tuple(Defect(**{"open": ""} | entry | {"tests": tuple(entry["tests"])}) for entry in entries)


def is_real(node: str) -> bool:
    """Whether a test needs real servers."""
    return node.startswith(_REAL)
