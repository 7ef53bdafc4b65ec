"""The settings that the controller describes: values, sources, synonyms, secrets and what cannot be described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from kframe.core.kraft.configuration.broker_keys import BROKER_CONFIG_KEYS, ConfigType, printed, type_problem
from kframe.core.kraft.configuration.descriptions import BROKER_LOGGER, DescribedConfig, describe_configs
from kframe.core.kraft.configuration.group_configs import GROUP_CONFIG_KEYS
from kframe.core.kraft.configuration.topic_configs import TOPIC_CONFIG_KEYS
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.model.kraft.metadata import Resource
from tests.whatif.kraft_samples import new_engine, partition

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
OF_TOPIC, OF_NODE, OF_ALL, STATIC, DEFAULT, OF_METRICS, OF_GROUP = 1, 2, 3, 4, 5, 7, 8
Stored = Mapping[Resource, Mapping[str, str]]


def context(stored: Stored, static: Mapping[str, str]) -> KraftContext:
    """Node 9 is the active controller, and topic t has a partition."""
    made = new_engine([partition(0, (1, 2), (1, 2))]).context
    made.settings = replace(made.settings, node_id=9, static_configs=static)
    made.metadata.configs |= {resource: dict(values) for resource, values in stored.items()}
    return made


def described(resource: Resource, stored: Stored, static: Mapping[str, str]) -> dict[str, DescribedConfig]:
    return {config.name: config for config in describe_configs(context(stored, static), resource)}


SynonymCase = tuple[Resource, Stored, dict[str, str], str, str | None, list[tuple[str, str | None, int]]]
#: A resource, stored settings, those of the file, a setting, its value and its synonyms with their sources.
SYNONYMS: Final[dict[str, SynonymCase]] = {
    "a default of a topic": (
        (TOPIC, "t"),
        {},
        {},
        "preallocate",
        "false",
        [("log.preallocate", "false", DEFAULT)],
    ),
    "a topic": (
        (TOPIC, "t"),
        {(TOPIC, "t"): {"retention.ms": " +5 "}, (BROKER, ""): {"log.retention.ms": "6"}},
        {"log.retention.ms": "7", "log.retention.hours": "8"},
        "retention.ms",
        "5",
        [
            ("retention.ms", "5", OF_TOPIC),
            ("log.retention.ms", "6", OF_ALL),
            ("log.retention.ms", "7", STATIC),
            ("log.retention.hours", "8", STATIC),
            ("log.retention.hours", "168", DEFAULT),
        ],
    ),
    "hours precede the default": ((TOPIC, "t"), {}, {"log.retention.hours": "8"}, "retention.ms", "28800000", []),
    "a list": (
        (TOPIC, "t"),
        {(TOPIC, "t"): {"cleanup.policy": "compact ,delete"}},
        {},
        "cleanup.policy",
        "compact,delete",
        [("cleanup.policy", "compact,delete", OF_TOPIC), ("log.cleanup.policy", "delete", DEFAULT)],
    ),
    "a setting without synonyms": ((TOPIC, "t"), {}, {}, "remote.storage.enable", "false", []),
    "an internal setting": (
        (TOPIC, "t"),
        {(TOPIC, "t"): {"internal.segment.bytes": "9"}},
        {},
        "internal.segment.bytes",
        "9",
        [("internal.segment.bytes", "9", OF_TOPIC)],
    ),
    "the node": (
        (BROKER, "9"),
        {(BROKER, "9"): {"log.cleaner.threads": "3"}, (BROKER, ""): {"log.cleaner.threads": "2"}},
        {},
        "log.cleaner.threads",
        "3",
        [
            ("log.cleaner.threads", "3", OF_NODE),
            ("log.cleaner.threads", "2", OF_ALL),
            ("log.cleaner.threads", "1", DEFAULT),
        ],
    ),
    "the file": (
        (BROKER, "9"),
        {},
        {"num.io.threads": "4"},
        "num.io.threads",
        "4",
        [("num.io.threads", "4", STATIC), ("num.io.threads", "8", DEFAULT)],
    ),
    "a setting without default": ((BROKER, "9"), {}, {}, "log.retention.ms", None, []),
    "a secret": (
        (BROKER, "9"),
        {},
        {"ssl.keystore.password": "hidden"},
        "ssl.keystore.password",
        None,
        [("ssl.keystore.password", None, STATIC)],
    ),
    "an unknown setting": (
        (BROKER, "9"),
        {},
        {"kframe.x": "hidden"},
        "kframe.x",
        None,
        [("kframe.x", None, STATIC)],
    ),
    "a setting of a listener": (
        (BROKER, "9"),
        {},
        {"listener.name.x.ssl.client.auth": "required", "ssl.client.auth": "none"},
        "listener.name.x.ssl.client.auth",
        "required",
        [
            ("listener.name.x.ssl.client.auth", "required", STATIC),
            ("ssl.client.auth", "none", STATIC),
            ("ssl.client.auth", "none", DEFAULT),
        ],
    ),
    "all brokers": (
        (BROKER, ""),
        {(BROKER, ""): {"log.cleaner.threads": "2"}, (BROKER, "9"): {"log.cleaner.threads": "3"}},
        {"log.cleaner.threads": "4"},
        "log.cleaner.threads",
        "2",
        [("log.cleaner.threads", "2", OF_ALL)],
    ),
    "client metrics": (
        (METRICS, "m"),
        {(METRICS, "m"): {"match": "client_id=a, client_id=b"}},
        {},
        "match",
        "client_id=a,client_id=b",
        [("match", "client_id=a,client_id=b", OF_METRICS)],
    ),
    "a default of client metrics": ((METRICS, "m"), {}, {}, "interval.ms", "300000", []),
    "a group": (
        (GROUP, "g"),
        {(GROUP, "g"): {"share.session.timeout.ms": "50000"}},
        {"group.share.session.timeout.ms": "46000"},
        "share.session.timeout.ms",
        "50000",
        [
            ("share.session.timeout.ms", "50000", OF_GROUP),
            ("group.share.session.timeout.ms", "46000", STATIC),
            ("group.share.session.timeout.ms", "45000", DEFAULT),
        ],
    ),
    "a group without settings": (
        (GROUP, "g"),
        {},
        {"group.share.session.timeout.ms": "46000"},
        "share.session.timeout.ms",
        "46000",
        [("group.share.session.timeout.ms", "46000", STATIC), ("group.share.session.timeout.ms", "45000", DEFAULT)],
    ),
    "a setting of groups alone": (
        (GROUP, "g"),
        {},
        {},
        "share.auto.offset.reset",
        "latest",
        [("share.auto.offset.reset", "latest", DEFAULT)],
    ),
}


@pytest.mark.parametrize("case", SYNONYMS.values(), ids=SYNONYMS)
def test_synonyms(case: SynonymCase) -> None:
    resource, stored, static, name, value, synonyms = case
    config = described(resource, stored, static)[name]
    assert (config.value, [tuple(synonym) for synonym in config.synonyms]) == (value, synonyms)
    assert config.source == (synonyms[0][2] if synonyms else DEFAULT)


#: A resource, and the names of its settings without any that are set.
NAMES: Final[dict[str, tuple[Resource, set[str]]]] = {
    "a topic": ((TOPIC, "t"), TOPIC_CONFIG_KEYS.keys() - {"internal.segment.bytes"}),
    "the node": ((BROKER, "9"), {name for name, key in BROKER_CONFIG_KEYS.items() if not key.is_internal}),
    "all brokers": ((BROKER, ""), set()),
    "loggers": ((BROKER_LOGGER, "9"), set()),
    "client metrics": ((METRICS, "any"), {"interval.ms", "match", "metrics"}),
    "a group": ((GROUP, "any"), {name for name, key in GROUP_CONFIG_KEYS.items() if not key.is_internal}),
}


@pytest.mark.parametrize("case", NAMES.values(), ids=NAMES)
def test_settings_without_values(case: tuple[Resource, set[str]]) -> None:
    resource, names = case
    assert described(resource, {}, {}).keys() == names


@pytest.mark.parametrize(
    ("name", "is_read_only", "is_sensitive"),
    [
        ("log.cleaner.threads", False, False),
        ("num.partitions", True, False),
        ("ssl.keystore.password", False, True),
        ("kframe.x", True, True),
        ("listener.name.x.ssl.client.auth", True, False),
    ],
)
def test_kinds_of_settings(name: str, is_read_only: bool, is_sensitive: bool) -> None:
    static = {"kframe.x": "1", "listener.name.x.ssl.client.auth": "none"}
    config = described((BROKER, "9"), {}, static)[name]
    assert (config.is_read_only, config.is_sensitive) == (is_read_only, is_sensitive)


#: A resource, the error, and a part of the message.
REFUSED: Final[dict[str, tuple[Resource, str, str]]] = {
    "an unknown topic": ((TOPIC, "x"), "UNKNOWN_TOPIC_OR_PARTITION", ""),
    "an invalid topic": ((TOPIC, "a/b"), "INVALID_TOPIC_EXCEPTION", "name is invalid"),
    "another node": ((BROKER, "8"), "INVALID_REQUEST", "expected 9 or empty string, but received 8"),
    "no node": ((BROKER, "x"), "INVALID_REQUEST", "Broker id must be an integer, but it is: x"),
    "loggers of another node": ((BROKER_LOGGER, "8"), "INVALID_REQUEST", "expected 9 but received 8"),
    "loggers of no node": ((BROKER_LOGGER, ""), "INVALID_REQUEST", "Broker id must not be empty"),
    "no subscription": ((METRICS, ""), "INVALID_REQUEST", "subscription name must not be empty"),
    "no group": ((GROUP, ""), "INVALID_REQUEST", "Group name must not be empty"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused_descriptions(case: tuple[Resource, str, str]) -> None:
    resource, error, part = case
    with pytest.raises(RequestRefused) as refusal:
        describe_configs(context({}, {}), resource)
    assert refusal.value.error.name == error
    assert part in refusal.value.message


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (ConfigType.BOOLEAN, " TRUE", "true"),
        (ConfigType.BOOLEAN, "yes", "yes"),
        (ConfigType.INT, "+07", "7"),
        (ConfigType.LONG, "-1", "-1"),
        (ConfigType.SHORT, "40000", "40000"),
        (ConfigType.DOUBLE, "0.50", "0.5"),
        (ConfigType.LIST, " a , b", "a,b"),
        (ConfigType.STRING, " a ", "a"),
    ],
)
def test_printed_values(kind: ConfigType, text: str, expected: str) -> None:
    assert printed(kind, text) == expected


@pytest.mark.parametrize("name", [name for name, key in BROKER_CONFIG_KEYS.items() if key.default is not None])
def test_defaults_of_brokers_have_their_type(name: str) -> None:
    key = BROKER_CONFIG_KEYS[name]
    assert key.default is not None
    assert type_problem(key.type, name, key.default) is None
    assert printed(key.type, key.default) == key.default
