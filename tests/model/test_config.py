"""Configuration by Kafka's keys: parsed values, and errors of invalid values."""

from __future__ import annotations

import pytest

from kframe.errors import ConfigError
from kframe.model.config import KEYS, NEVER_REPLICAS, ControllerConfig
from kframe.model.protocol import LATEST, InterBrokerProtocol

UNCLEAN = "unclean.leader.election.enable"
INTERVAL = "leader.imbalance.check.interval.seconds"
PERCENTAGE = "leader.imbalance.per.broker.percentage"
PROTOCOL = "inter.broker.protocol.version"
LISTENER = "inter.broker.listener.name"


def test_defaults_are_those_of_kafka_3_9() -> None:
    """controller 5: defaults."""
    config = ControllerConfig()
    assert {name: config[name] for name in KEYS} == {
        "auto.leader.rebalance.enable": True,
        "default.replication.factor": 1,
        "delete.topic.enable": True,
        LISTENER: "PLAINTEXT",
        PROTOCOL: LATEST,
        INTERVAL: 300,
        "kframe.alter.partition.check.epochs": True,
        "kframe.alter.partition.strict": False,
        "kframe.failover.check.epochs": False,
        "kframe.last.replica.hold": False,
        "kframe.never.replicas": frozenset(),
        "kframe.reassignment.strict": False,
        "kframe.topic.id.restore": True,
        PERCENTAGE: 10,
        "min.insync.replicas": 1,
        "num.partitions": 1,
        "reassignment.protocol": "3.9",
        "remote.log.storage.system.enable": False,
        "request.timeout.ms": 30_000,
        UNCLEAN: False,
    }
    assert (config.unclean_by_default, config.protocol) == (False, LATEST)


def test_every_key_has_doc() -> None:
    assert [name for name, key in KEYS.items() if key.name != name or not key.doc.endswith(".")] == []


@pytest.mark.parametrize(
    "key, value, expected",
    [
        (UNCLEAN, True, True),
        (UNCLEAN, " TRUE ", True),
        (UNCLEAN, "false", False),
        (INTERVAL, 1, 1),
        (INTERVAL, " 60 ", 60),
        (INTERVAL, 2**31 - 1, 2**31 - 1),
        (PERCENTAGE, "0", 0),
        (NEVER_REPLICAS, "", frozenset()),
        (NEVER_REPLICAS, "1000, 1001,1000", frozenset({1000, 1001})),
        (LISTENER, " INTERNAL ", "INTERNAL"),
        (PROTOCOL, "3.2-IV0", InterBrokerProtocol.parse("3.2-IV0")),
        (PROTOCOL, 3.9, LATEST),
    ],
)
def test_values(key: str, value: object, expected: object) -> None:
    assert ControllerConfig({key: value})[key] == expected


@pytest.mark.parametrize(
    "key, value, expected",
    [
        (UNCLEAN, "yes", "true or false"),
        (UNCLEAN, 1, "true or false"),
        (UNCLEAN, None, "true or false"),
        (INTERVAL, 0, "from 1 to 2147483647"),
        (INTERVAL, -1, "from 1 to"),
        (INTERVAL, 2**31, "from 1 to"),
        (INTERVAL, "99999999999999999999", "from 1 to"),
        (INTERVAL, "", "whole number"),
        (INTERVAL, "-", "whole number"),
        (INTERVAL, "1.5", "whole number"),
        (INTERVAL, 1.0, "whole number"),
        (INTERVAL, float("nan"), "whole number"),
        (INTERVAL, True, "whole number"),
        (INTERVAL, "--1", "whole number"),
        (INTERVAL, "\u0663", "whole number"),
        (INTERVAL, "\u00b2", "whole number"),
        (PERCENTAGE, -1, "from 0 to"),
        (NEVER_REPLICAS, "1000;1001", "whole number"),
        (NEVER_REPLICAS, "-1", "from 0 to"),
        (NEVER_REPLICAS, 1000, "with commas"),
        (LISTENER, "", "not empty"),
        (LISTENER, "  ", "not empty"),
        (LISTENER, 5, "not empty"),
        (PROTOCOL, "4", "a version from"),
        (PROTOCOL, None, "a version from"),
        (PROTOCOL, "newest", "a version from"),
    ],
)
def test_invalid_values_raise(key: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ControllerConfig({key: value}, source="server.properties")
    assert key in caught.value.where
    assert expected in caught.value.expected


@pytest.mark.parametrize(
    "key, hint",
    [("unclean.leader.elections.enable", repr(UNCLEAN)), ("frobnicate", "one of auto.leader.rebalance.enable")],
)
def test_unknown_key_raises_with_nearest_key(key: str, hint: str) -> None:
    with pytest.raises(ConfigError, match="unknown key") as caught:
        ControllerConfig({key: 1})
    assert hint in caught.value.expected


# -- inter-broker protocol


def test_protocol_versions_are_ordered_by_age() -> None:
    texts = ["0.8.2", "0.9.0", "0.10.0-IV0", "0.10.0-IV1", "0.10.2", "1.0-IV0", "2.7-IV2", "2.8", "3.2-IV0", "3.9"]
    parsed = [InterBrokerProtocol.parse(text) for text in texts]
    assert parsed == sorted(parsed)
    assert [state.recovery_state for state in parsed] == [False] * 8 + [True] * 2
