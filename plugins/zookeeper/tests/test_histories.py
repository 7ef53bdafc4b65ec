"""The store and the embedded store give the same results, errors and notifications in seeded histories."""

from __future__ import annotations

import pytest
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.zookeeper_fixture import open_temporary_fixture

from kframe_simulator.differential import play_history


@pytest.mark.parametrize("seed", range(1, 4))
def test_histories(zookeeper: ServerHandle, seed: int) -> None:
    assert play_history(seed, open_temporary_fixture(f"zookeeper://{zookeeper.address}")) is None
