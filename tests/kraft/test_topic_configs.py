"""The settings of topics in effect: which of several values applies, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from kframe.core.kraft.configuration.topic_configs import (
    TOPIC_CONFIG_KEYS,
    ConfigSource,
    EffectiveConfig,
    effective_topic_configs,
)
from kframe.core.kraft.context import KraftContext
from kframe.model.topic_configs import KRAFT_TOPIC_CONFIGS
from tests.whatif.kraft_samples import new_engine, partition

#: Settings of the controller's node, of all brokers, of its file and of the topic, then key, value and source.
VALUES: Final = {
    "the default": ({}, {}, {}, {}, "retention.ms", "604800000", ConfigSource.DEFAULT),
    "the file": ({}, {}, {"log.retention.ms": "5"}, {}, "retention.ms", "5", ConfigSource.STATIC_BROKER),
    "hours": ({}, {}, {"log.retention.hours": " 2"}, {}, "retention.ms", "7200000", ConfigSource.STATIC_BROKER),
    "minutes before hours": (
        {},
        {},
        {"log.retention.hours": "2", "log.retention.minutes": "3"},
        {},
        "retention.ms",
        "180000",
        ConfigSource.STATIC_BROKER,
    ),
    "no retention": ({}, {}, {"log.retention.hours": "-1"}, {}, "retention.ms", "-3600000", ConfigSource.STATIC_BROKER),
    "no number": ({}, {}, {"log.roll.hours": "many"}, {}, "segment.ms", "0", ConfigSource.STATIC_BROKER),
    "all brokers": (
        {},
        {"log.retention.ms": "6"},
        {"log.retention.ms": "5"},
        {},
        "retention.ms",
        "6",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
    ),
    "the node": (
        {"min.insync.replicas": "3"},
        {"min.insync.replicas": "2"},
        {},
        {},
        "min.insync.replicas",
        "3",
        ConfigSource.DYNAMIC_BROKER,
    ),
    "the topic": (
        {"min.insync.replicas": "3"},
        {},
        {},
        {"min.insync.replicas": "1"},
        "min.insync.replicas",
        "1",
        ConfigSource.TOPIC,
    ),
    "an internal setting": (
        {},
        {},
        {},
        {"internal.segment.bytes": "9"},
        "internal.segment.bytes",
        "9",
        ConfigSource.TOPIC,
    ),
    "the flush scheduler": (
        {},
        {},
        {"log.flush.scheduler.interval.ms": "8"},
        {},
        "flush.ms",
        "8",
        ConfigSource.STATIC_BROKER,
    ),
}


def context(
    node: Mapping[str, str], brokers: Mapping[str, str], static: Mapping[str, str], node_id: int = 9
) -> KraftContext:
    made = new_engine([partition(0, (1, 2), (1, 2))]).context
    made.settings = replace(made.settings, node_id=node_id, static_configs=static)
    made.metadata.configs |= {(4, "9"): dict(node), (4, ""): dict(brokers)}
    return made


@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
def test_effective_value(
    case: tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str], Mapping[str, str], str, str, ConfigSource],
) -> None:
    node, brokers, static, topic, name, value, source = case
    effective = {config.name: config for config in effective_topic_configs(context(node, brokers, static), topic)}
    assert effective[name] == EffectiveConfig(name, value, source)


def test_settings_of_another_node_do_not_apply() -> None:
    configs = effective_topic_configs(context({"min.insync.replicas": "3"}, {}, {}, node_id=8), {})
    assert [config.value for config in configs if config.name == "min.insync.replicas"] == ["1"]


def test_every_setting_is_listed_by_name_but_internal_ones() -> None:
    names = [config.name for config in effective_topic_configs(context({}, {}, {}), {})]
    assert names == sorted(KRAFT_TOPIC_CONFIGS.keys() - {"internal.segment.bytes"})
    assert TOPIC_CONFIG_KEYS.keys() == KRAFT_TOPIC_CONFIGS.keys()


@pytest.mark.parametrize("name", [name for name, key in TOPIC_CONFIG_KEYS.items() if key.default is not None])
def test_defaults_are_valid(name: str) -> None:
    default = TOPIC_CONFIG_KEYS[name].default
    assert default is not None
    assert KRAFT_TOPIC_CONFIGS[name](name, default) is None
