"""The settings of brokers and controllers, with types and defaults (Kafka 4.4 ``AbstractKafkaConfig``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.core.kraft.configuration.broker_keys.config_key import BrokerConfigKey, ConfigType, printed, type_problem
from kframe.core.kraft.configuration.broker_keys.coordinators import COORDINATORS
from kframe.core.kraft.configuration.broker_keys.logs import LOGS
from kframe.core.kraft.configuration.broker_keys.security import SECURITY
from kframe.core.kraft.configuration.broker_keys.server import SERVER

__all__ = ["BROKER_CONFIG_KEYS", "BrokerConfigKey", "ConfigType", "printed", "type_problem"]

#: Every setting by name.
BROKER_CONFIG_KEYS: Final[Mapping[str, BrokerConfigKey]] = {**SERVER, **SECURITY, **LOGS, **COORDINATORS}
