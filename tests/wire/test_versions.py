"""Control request versions by inter.broker.protocol.version: the whole table, and invalid versions."""

from __future__ import annotations

import pytest

from kframe.errors import ConfigError
from kframe.model.protocol import RELEASES, InterBrokerProtocol
from kframe.wire import ControlVersions

pytestmark = pytest.mark.kernel

#: (equivalent versions, LeaderAndIsr, UpdateMetadata, StopReplica, recovery state), each block from its first version.
TABLE = [
    ("3.4-IV0 3.4 3.4.1 3.5-IV0 3.5 3.6 3.7-IV4 3.7 3.8 3.9-IV0 3.9 3.9.1", 7, 8, 4, True),
    ("3.2-IV0 3.2 3.2.3 3.3-IV0 3.3-IV3 3.3", 6, 7, 3, True),
    ("2.8-IV1 2.8 2.8.2 3.0-IV0 3.0 3.1-IV0 3.1", 5, 7, 3, False),
    ("2.6-IV0 2.6 2.7-IV0 2.7-IV2 2.7 2.8-IV0", 4, 6, 3, False),
    ("2.4-IV1 2.4 2.4.0 2.5-IV0 2.5", 4, 6, 2, False),
    ("2.4-IV0", 3, 5, 1, False),
    ("2.2-IV0 2.2-IV1 2.2 2.3-IV0 2.3", 2, 5, 1, False),
    ("1.0-IV0 1.0 1.0.2 1.1 2.0-IV0 2.0 2.1-IV2 2.1", 1, 4, 0, False),
    ("0.10.2-IV0 0.10.2 0.10.2.1 0.11.0-IV0 0.11.0-IV2 0.11.0", 0, 3, 0, False),
    ("0.10.0-IV1 0.10.0 0.10.0.1 0.10.1-IV0 0.10.1", 0, 2, 0, False),
    ("0.9.0 0.9.0.1 0.10.0-IV0", 0, 1, 0, False),
    ("0.8.0 0.8.1 0.8.2 0.8.2.2", 0, 0, 0, False),
]
ROWS = [(protocol, *row[1:]) for row in TABLE for protocol in row[0].split()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_versions(row: tuple[str, int, int, int, bool]) -> None:
    protocol = InterBrokerProtocol.parse(row[0])
    assert (ControlVersions.of(protocol), protocol.recovery_state) == (ControlVersions(*row[1:4]), row[4])


def test_every_release_is_in_the_table() -> None:
    assert set(RELEASES) <= {row[0] for row in ROWS}


@pytest.mark.parametrize(
    "protocol",
    [
        "", " 3.9", "3.9 ", "3", "3.", ".9", "3.10", "4.0", "4.0-IV0", "2.9", "0.8", "0.9", "0.10", "0.12.0", "0.7.0",
        "3.9-IV1", "3.9-iv0", "3.9-IV", "3.9-IV-1", "2.4-IV2", "0.9.0-IV0", "0.10.0-IV2", "2.4.0-IV0", "3.9.x",
        "-3.9", "3,9", "03.9", "٣.٩", "3.9\n", "latest",
    ],
)  # fmt: skip
def test_invalid_version_raises_config_error(protocol: str) -> None:
    with pytest.raises(ConfigError) as caught:
        InterBrokerProtocol.parse(protocol, "server.properties:7")
    assert caught.value.where == "server.properties:7"
    assert caught.value.actual == repr(protocol)
    assert "0.8.0 to 3.9" in caught.value.expected


def test_version_error_names_config_key() -> None:
    with pytest.raises(ConfigError, match=r"config key inter\.broker\.protocol\.version: found '5\.0'"):
        InterBrokerProtocol.parse("5.0")
