"""The values of Kafka's keys in a configuration."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.plugin.kraft_controller import BROKER_CONFIG_KEYS


def value_of(config: Mapping[str, str], key: str) -> str:
    """The value of a key, or Kafka's default. Empty for a key that has neither."""
    return config.get(key, BROKER_CONFIG_KEYS[key].default or "")
