"""Read the settings of topics and brokers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import UNSET, TopicSettings
from kframe_zookeeper.bulk.nodes import ReadNode, Results
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.configs import decode_config

UNCLEAN: Final = "unclean.leader.election.enable"
MIN_INSYNC: Final = "min.insync.replicas"
#: Topic settings in the first request: few topics have any, and those are short.
SETTINGS_FIRST: Final = 256
_TRUTH: Final = {"true": 1, "false": 0}
_INT32_MAX: Final = 2**31 - 1


def begin_settings(connection: Connection, names: Sequence[str]) -> Iterator[tuple[int, Results]]:
    """Request the settings of topics. The first requests are sent at once."""
    return connection.results([paths.config_path("topics", name) for name in names], SETTINGS_FIRST)


def settings_in(
    memory: Memory, names: Sequence[str], responses: Iterator[tuple[int, Results]], known: Container[str]
) -> Iterator[tuple[str, TopicSettings]]:
    """Names of the ``known`` topics that have settings. Their values are the settings that a controller uses."""
    for first, results in responses:
        for i in range(len(results.code)):
            name = names[first + i]
            if results.exists(i) and name in known:
                yield name, _settings(config_of(memory, paths.config_path("topics", name), results.node(i)))


def config_of(memory: Memory, path: str, node: ReadNode | None) -> dict[str, str]:
    """Settings in a node. Empty if it is missing or malformed."""
    if node is None:
        return {}
    try:
        config = decode_config(node.data, path)
    except ZnodeError as error:
        memory.quarantine(path, error)
        return {}
    memory.repair(path)
    return config


def _settings(config: Mapping[str, str]) -> TopicSettings:
    minimum = config.get(MIN_INSYNC, "")
    known = minimum.isdecimal() and minimum.isascii() and int(minimum) <= _INT32_MAX
    return TopicSettings(_TRUTH.get(config.get(UNCLEAN, "").lower(), UNSET), int(minimum) if known else UNSET)
