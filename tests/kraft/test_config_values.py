"""The values of configurations that the controller refuses, with Kafka's errors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.kraft import controller_apis
from kframe.core.kraft.configuration.broker_keys import BROKER_CONFIG_KEYS
from kframe.core.kraft.configuration.configs import KraftConfigChange, KraftConfigOperation
from kframe.core.kraft.configuration.descriptions import describe_configs
from kframe.core.kraft.configuration.group_configs import GROUP_CONFIG_KEYS
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.model.kraft.ids import ResourceType
from kframe.model.topic_configs import KRAFT_TOPIC_CONFIGS
from tests.whatif.kraft_samples import new_engine, partition

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NONE, REQUEST, CONFIG = "NONE", "INVALID_REQUEST", "INVALID_CONFIG"
NAME, UNKNOWN = "INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION"
TIERED: Final = {"remote.storage.enable": "true"}


def context(static: Mapping[str, str] | None = None, stored: Mapping[str, str] | None = None) -> KraftContext:
    """Topic t has a partition, on brokers 1 and 2."""
    made = new_engine([partition(0, (1, 2), (1, 2))]).context
    made.settings = replace(made.settings, validates_configs=True, static_configs=static or {})
    made.metadata.configs[TOPIC, "t"] = dict(stored or {})
    return made


def alter(cluster: KraftContext, kind: int, name: str, values: Mapping[str, str | None]) -> tuple[str, str]:
    """The error and the message of a request that sets these values."""
    operations = {key: (KraftConfigOperation.SET, value) for key, value in values.items()}
    result = controller_apis.alter_configs(cluster, [KraftConfigChange((kind, name), operations)])
    (response,) = result.response
    assert (len(result.parts) == 0) == (response.error.name != NONE or not values)
    return response.error.name, response.message or ""


#: Type and name of a resource, its values, the error, and a part of the message.
VALUES: Final[dict[str, tuple[int, str, dict[str, str | None], str, str]]] = {
    "a topic": (TOPIC, "t", {"retention.ms": "-1", "cleanup.policy": "compact,delete"}, NONE, ""),
    "no topic": (TOPIC, "", {"retention.ms": "5"}, REQUEST, "Default topic resources are not allowed."),
    "an unknown topic": (TOPIC, "x", {"retention.ms": "5"}, UNKNOWN, "does not exist"),
    "an invalid topic": (TOPIC, "a/b", {"retention.ms": "5"}, NAME, "name is invalid"),
    "an unknown setting": (TOPIC, "t", {"retention": "5"}, CONFIG, "Unknown topic config name: retention"),
    "no number": (TOPIC, "t", {"retention.ms": "many"}, CONFIG, "Not a number of type LONG"),
    "too small": (TOPIC, "t", {"min.insync.replicas": "0"}, CONFIG, "Value must be at least 1"),
    "small segments": (TOPIC, "t", {"segment.bytes": "1000"}, CONFIG, "Value must be at least 1048576"),
    "too long": (TOPIC, "t", {"cleanup.policy": "x" * 32_768}, CONFIG, "at most 32,767 fit"),
    "compaction lags": (
        TOPIC,
        "t",
        {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
        CONFIG,
        "min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
    ),
    "no tiered storage": (TOPIC, "t", {**TIERED}, CONFIG, "Tiered Storage functionality is disabled"),
    "null": (TOPIC, "t", {"retention.ms": None}, NONE, ""),
    "a broker": (BROKER, "1", {"log.cleaner.threads": "no number"}, NONE, ""),
    "all brokers": (BROKER, "", {"log.cleaner.threads": "2"}, NONE, ""),
    "an unknown broker": (BROKER, "7", {"log.cleaner.threads": "2"}, "BROKER_ID_NOT_REGISTERED", ""),
    "a negative broker": (BROKER, "-1", {"log.cleaner.threads": "2"}, REQUEST, "Invalid negative broker ID."),
    "a named broker": (BROKER, "one", {"log.cleaner.threads": "2"}, REQUEST, "Unable to parse broker name"),
    "a broker above 31 bits": (BROKER, str(2**31), {"log.cleaner.threads": "2"}, REQUEST, "Unable to parse"),
    "client metrics": (METRICS, "m", {"interval.ms": "100", "match": "client_id=a.*, client_source_port=1"}, NONE, ""),
    "no subscription": (METRICS, "", {"interval.ms": "100"}, REQUEST, "Subscription name can't be empty"),
    "a fast subscription": (METRICS, "m", {"interval.ms": "99"}, REQUEST, "between 100 and 3600000 (1 hour)"),
    "an interval in words": (METRICS, "m", {"interval.ms": "often"}, CONFIG, "Not a number of type INT"),
    "unknown client metrics": (METRICS, "m", {"interval": "1"}, REQUEST, "Unknown client metrics configuration"),
    "metrics twice": (METRICS, "m", {"metrics": "a,b, a"}, CONFIG, "values must not be duplicated"),
    "an unknown match": (METRICS, "m", {"match": "host=a"}, CONFIG, "Illegal client matching pattern: host=a"),
    "a match without value": (METRICS, "m", {"match": "client_id"}, CONFIG, "Illegal client matching pattern"),
    "a match of two values": (METRICS, "m", {"match": "client_id=a=b"}, CONFIG, "Illegal client matching pattern"),
    "a group": (
        GROUP,
        "g",
        {"consumer.session.timeout.ms": "50000", "share.isolation.level": "read_committed"},
        NONE,
        "",
    ),
    "no group": (GROUP, "", {"consumer.session.timeout.ms": "50000"}, REQUEST, "Default group resources"),
    "an unknown setting of a group": (GROUP, "g", {"session": "1"}, CONFIG, "Unknown group config name: session"),
    "a short session": (
        GROUP,
        "g",
        {"consumer.session.timeout.ms": "44999"},
        CONFIG,
        "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
    ),
    "many standby replicas": (
        GROUP,
        "g",
        {"streams.num.standby.replicas": "3"},
        CONFIG,
        "streams.num.standby.replicas must be less than or equal to 2",
    ),
    "a short interval of offsets": (
        GROUP,
        "g",
        {"streams.task.offset.interval.ms": "14999"},
        CONFIG,
        "must be greater than or equal to 15000",
    ),
    "an offset reset": (GROUP, "g", {"share.auto.offset.reset": "by_duration:PT1H30M"}, NONE, ""),
    "an offset reset to come": (GROUP, "g", {"share.auto.offset.reset": "by_duration:PT-1H"}, CONFIG, "share.auto"),
    "an offset reset without duration": (
        GROUP,
        "g",
        {"share.auto.offset.reset": "by_duration:P"},
        CONFIG,
        "share.auto",
    ),
    "an unknown assignor": (GROUP, "g", {"streams.assignor.name": "x"}, CONFIG, "Registered assignors are: [sticky]."),
    "an internal dead letter topic": (
        GROUP,
        "g",
        {"errors.deadletterqueue.topic.name": "__d"},
        CONFIG,
        "must not start with '__'",
    ),
    "tags twice": (GROUP, "g", {"streams.rack.aware.assignment.tags": "a,b,a"}, CONFIG, "duplicate tag keys"),
    "a logger": (LOGGER, "1", {"root": "DEBUG"}, REQUEST, "Unknown resource type 8"),
    "an unknown type": (9, "1", {"a": "b"}, "UNSUPPORTED_VERSION", "Unknown resource type 9."),
}


@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
def test_values(case: tuple[int, str, dict[str, str | None], str, str]) -> None:
    kind, name, values, error, part = case
    cluster = context(stored={"retention.ms": "7"} if values == {"retention.ms": None} else None)
    code, message = alter(cluster, kind, name, values)
    assert code == error
    assert part in message


#: Settings of the controller, those that the topic has, new ones, and a part of the message; "" if they are accepted.
CONTRADICTIONS: Final[dict[str, tuple[dict[str, str], dict[str, str], dict[str, str | None], str]]] = {
    "the lag of all topics": ({"log.cleaner.max.compaction.lag.ms": "5"}, {}, {"min.compaction.lag.ms": "6"}, "(6) >"),
    "tiered": ({}, {}, {}, ""),
    "a compacted topic": ({}, {}, {"cleanup.policy": "compact"}, "only supports topics with cleanup.policy=delete"),
    "a compacted and deleted topic": ({}, {}, {"cleanup.policy": "delete,compact"}, "only supports topics"),
    "a topic without clean-up": ({}, {}, {"cleanup.policy": ""}, ""),
    "all topics compacted": ({"log.cleanup.policy": "compact"}, {}, {}, "only supports topics"),
    "local retention without limit": ({}, {}, {"local.retention.ms": "-1"}, "Value must not be -1"),
    "more local retention": ({}, {"retention.ms": "5"}, {"local.retention.ms": "6"}, "Value must not be more than"),
    "more local retention of all topics": (
        {"log.retention.hours": "1"},
        {},
        {"local.retention.ms": "3600001"},
        "Value must not be more than retention.ms property value: 3600000",
    ),
    "more local bytes": ({}, {}, {"retention.bytes": "5", "local.retention.bytes": "6"}, "local.retention.bytes"),
    "a copy after the deletion": (
        {},
        {"local.retention.ms": "5"},
        {"remote.copy.lag.ms": "6"},
        "Value must not exceed local.retention.ms (effective value: 5)",
    ),
    "a copy after the whole retention": ({}, {"retention.bytes": "5"}, {"remote.copy.lag.bytes": "6"}, "value: 5)"),
    "no copies": ({}, {"local.retention.ms": "5"}, {"remote.log.copy.disable": "true"}, "the identical value"),
    "no copies of the whole": ({}, {}, {"remote.log.copy.disable": "true"}, ""),
    "an end that keeps the data": ({}, TIERED, {"remote.storage.enable": "false"}, "without deleting remote data"),
    "an end": ({}, TIERED, {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}, ""),
}


@pytest.mark.parametrize("case", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradictions(case: tuple[dict[str, str], dict[str, str], dict[str, str | None], str]) -> None:
    static, stored, values, part = case
    cluster = context({"remote.log.storage.system.enable": "true", **static}, stored)
    code, message = alter(cluster, TOPIC, "t", {**TIERED, **values})
    assert (code, bool(message)) == ((CONFIG, True) if part else (NONE, False))
    assert part in message


def test_limits_of_groups_are_those_of_the_controller() -> None:
    cluster = context({"group.consumer.min.session.timeout.ms": "10", "group.streams.assignors": "a.b.Assignor"})
    assert alter(cluster, GROUP, "g", {"consumer.session.timeout.ms": "5001"})[0] == NONE
    assert alter(cluster, GROUP, "g", {"consumer.session.timeout.ms": "9"})[1].endswith("range 10 to 60000 inclusive.")
    message = "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    assert alter(cluster, GROUP, "g", {"consumer.session.timeout.ms": "5000"}) == (CONFIG, message)
    assert alter(cluster, GROUP, "g", {"streams.assignor.name": "any"})[0] == NONE


@pytest.mark.parametrize("name", [name for name, key in GROUP_CONFIG_KEYS.items() if key.default])
def test_defaults_of_groups_are_valid(name: str) -> None:
    default = GROUP_CONFIG_KEYS[name].default
    assert alter(context(), GROUP, "g", {name: default}) == (NONE, "")


@pytest.mark.parametrize("kind", [TOPIC, METRICS, GROUP])
def test_settings_of_earlier_releases_are_left_out(kind: int) -> None:
    """The log may have settings that Kafka has removed since. They do not stop changes of others."""
    values = {TOPIC: "retention.ms", METRICS: "interval.ms", GROUP: "consumer.session.timeout.ms"}
    cluster = context()
    cluster.metadata.configs[kind, "t"] = {"message.format.version": "3.0"}
    assert alter(cluster, kind, "t", {values[kind]: "50000"}) == (NONE, "")
    assert alter(cluster, kind, "t", {"message.format.version": "3.1"})[0] != NONE


#: Names and values that are nearly right.
TEXTS: Final = st.one_of(
    st.sampled_from(
        ["", "-1", "+-5", "9" * 5_000, "1e400", "0x1", "٣", "null", "*", "=", ",", "by_duration:P1D", "1_0"]
    ),
    st.text(max_size=8),
)
KEYS: Final = st.sampled_from([*KRAFT_TOPIC_CONFIGS, *GROUP_CONFIG_KEYS, *BROKER_CONFIG_KEYS, "match", "interval.ms"])


@given(kind=st.sampled_from([*ResourceType, LOGGER, 0]), name=TEXTS | st.just("t"), values=st.dictionaries(KEYS, TEXTS))
def test_any_request_is_answered(kind: int, name: str, values: dict[str, str]) -> None:
    """An exception in a decision would end the role of the controller."""
    cluster = context()
    for operation in KraftConfigOperation:
        change = KraftConfigChange((kind, name), {key: (operation, value) for key, value in values.items()})
        assert len(controller_apis.alter_configs(cluster, [change]).response) == 1
    cluster.metadata.configs[kind, name] = values
    with suppress(RequestRefused):
        describe_configs(cluster, (kind, name))


def test_cordoned_directories_need_a_broker() -> None:
    """Only the broker knows its directories. Without it, a change may remove some."""
    cluster = context()
    cluster.metadata.features["metadata.version"] = 30
    cluster.metadata.configs[BROKER, "1"] = {"cordoned.log.dirs": "/a,/b"}
    errors = []
    for value, forwarded in (("/c", True), ("/c", False), ("/b", False), ("", False)):
        change = KraftConfigChange((BROKER, "1"), {"cordoned.log.dirs": (KraftConfigOperation.SET, value)})
        (result,) = controller_apis.alter_configs(cluster, [change], forwarded=forwarded).response
        errors.append(result.error.name)
    assert errors == [NONE, CONFIG, NONE, NONE]
