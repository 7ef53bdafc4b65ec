"""Paths are built and parsed as in Kafka."""

from __future__ import annotations

import pytest
from kframe_zookeeper.znodes import paths


@pytest.mark.parametrize(
    "path, parts",
    [
        (paths.state_path("a.b-c_d", 12), ("a.b-c_d", 12)),
        ("/brokers/topics/t/partitions/0/state", ("t", 0)),
        ("/brokers/topics/t/partitions/01/state", None),
        ("/brokers/topics/t/partitions/-1/state", None),
        ("/brokers/topics/t/partitions/0", None),
        ("/brokers/topics/t/u/partitions/0/state", None),
        ("/brokers/topics/t/partitions/0/state/x", None),
    ],
)
def test_state_paths(path: str, parts: tuple[str, int] | None) -> None:
    assert paths.topic_partition_of(path) == parts


@pytest.mark.parametrize(
    "name, number",
    [
        ("config_change_0000000012", 12),
        ("/isr_change_notification/isr_change_2147483647", 2_147_483_647),
        ("log_dir_event_-2147483648", -2_147_483_648),
        ("config_change_12", None),
        ("config_change_", None),
        ("config_change_00000000x2", None),
    ],
)
def test_numbers_of_sequential_nodes(name: str, number: int | None) -> None:
    assert paths.sequence_of(name) == number


def test_persistent_paths_are_unique() -> None:
    assert len(set(paths.PERSISTENT)) == len(paths.PERSISTENT) == 14
    assert paths.config_path("users", "u") == "/config/users/u"
    assert paths.partition_path("t", 1).startswith(paths.partitions_path("t") + "/")
    assert paths.delete_topic_path("t") == "/admin/delete_topics/t"
    assert paths.broker_path(7) == "/brokers/ids/7"
