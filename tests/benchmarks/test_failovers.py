"""The record of failovers: its counts, and failures of the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.live import failovers


@dataclass(frozen=True)
class Failover:
    cause: str
    winner: int
    controller_epochs: int
    elected_s: float
    active_s: float


class Cluster:
    """Each kill takes a tenth of a second longer than the previous one. The test provides the epochs."""

    def __init__(self, epochs: list[int]) -> None:
        self._epochs = iter(epochs)
        self._won = [1]
        self._seconds = 0.0

    def kill(self) -> Failover:
        return self._fail("killed")

    def freeze(self) -> Failover:
        return self._fail("frozen")

    def epochs_of_elected_brokers(self) -> list[int]:
        return list(self._won)

    def _fail(self, cause: str) -> Failover:
        epochs = next(self._epochs)
        self._won += [7] * (epochs - 1)
        self._seconds += 0.1
        return Failover(cause, 1000, epochs, self._seconds, self._seconds + 0.05)


@pytest.mark.parametrize(("epochs", "code", "won"), [([1, 1, 1, 2], 0, [7]), ([1, 2, 1, 1], 1, [7])])
def test_failover_with_multiple_controller_epochs_fails_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, epochs: list[int], code: int, won: list[int]
) -> None:
    @contextmanager
    def failover_cluster(_folder: Path) -> Iterator[Cluster]:
        yield Cluster(epochs)

    monkeypatch.setattr(failovers, "failover_cluster", failover_cluster)
    out = tmp_path / "record.json"
    assert failovers.main(["--kills", "3", "--freezes", "1", "--out", str(out)]) == code
    record = json.loads(out.read_text())
    killed, frozen = record["summary"]
    assert record["controller_epochs_won_by_brokers"] == won
    assert (killed["failovers"], frozen["failovers"], len(record["failovers"])) == (3, 1, 4)
    assert killed["elected_s"] == {"least": 0.1, "median": 0.2, "p99": 0.298, "most": 0.3}
    assert "--out" not in record["command"]
