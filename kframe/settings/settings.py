"""The configuration of a controller by Kafka's keys: from options, the environment, or a ``server.properties``.

Options take precedence over the environment, and that over the file. Each value has its origin, so that errors name the
option, the variable, or file and line. Values are never logged, because some are passwords.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kframe.errors import ConfigError
from kframe.model.config import KEYS, ControllerConfig
from kframe.model.kafka_keys import KAFKA_KEYS
from kframe.settings.properties import read_properties

_log = logging.getLogger("kframe.config")

#: System properties of Kafka's JVM.
JVM_KEYS: Final = ("java.security.auth.login.config", "zookeeper.sasl.client", "zookeeper.sasl.clientconfig")
#: The leader selectors of the controller, and the start of the keys of their options: ``….NAME.OPTION``.
SELECTORS: Final = "kframe.leader.selectors"
SELECTOR_PREFIX: Final = f"{SELECTORS}."
#: Keys of Kafka's authorizer, and of kframe's servers and store.
SERVER_KEYS: Final = (
    "super.users",
    "allow.everyone.if.no.acl.found",
    "kframe.register",
    "kframe.create.chroot",
    "kframe.unauthenticated.connection.rate",
    "kframe.controlled.shutdown.ends.session",
    "kframe.elr.strict",
)
KNOWN: Final = frozenset({*KEYS, *KAFKA_KEYS, *JVM_KEYS, *SERVER_KEYS, SELECTORS})
#: Prefixes of keys with names of listeners or plugins of Kafka.
_OPEN_ENDED: Final = ("listener.name.", "config.providers.", "kafka.metrics.", "metrics.", SELECTOR_PREFIX)
#: Keys whose values are shown in no message.
_SECRET: Final = re.compile(r"password|secret|jaas|credential|token", re.IGNORECASE)
ENVIRONMENT_PREFIX: Final = "KFRAME_"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its origin."""

    value: str = field(repr=False)
    origin: str


def environment_name(key: str) -> str:
    """The environment variable that sets a key: ``KFRAME_LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS``."""
    return ENVIRONMENT_PREFIX + re.sub(r"[^A-Z0-9]", "_", key.removeprefix("kframe.").upper())


#: Known keys by environment variable.
_BY_VARIABLE: Final = {environment_name(key): key for key in sorted(KNOWN)}


class Settings:
    """All configured values, by Kafka's key."""

    def __init__(self, settings: Mapping[str, Setting]) -> None:
        self._settings = dict(settings)

    @staticmethod
    def gather(options: Mapping[str, Setting], environment: Mapping[str, str], file: Path | None = None) -> Settings:
        """Merge ``options`` over ``environment`` over ``file``. Unknown keys are logged with the closest known key, and
        ignored. Raises ConfigError."""
        settings = {} if file is None else _of_file(file)
        return Settings({**settings, **_of_environment(environment), **options})

    def __contains__(self, key: object) -> bool:
        return key in self._settings

    def get(self, key: str) -> str | None:
        """The value of a key, None if it is not set."""
        setting = self._settings.get(key)
        return None if setting is None else setting.value

    def origin(self, key: str) -> str:
        """The origin of a key."""
        return self._settings[key].origin if key in self._settings else "config"

    @property
    def values(self) -> dict[str, str]:
        """All values by key."""
        return {key: setting.value for key, setting in self._settings.items()}

    def controller_config(self) -> ControllerConfig:
        """The configuration of the controller. Raises ConfigError with the origin of the value."""
        with self.located():
            return ControllerConfig({key: value for key, value in self.values.items() if key in KEYS})

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the origin of the key to a ConfigError. Hide secrets."""
        try:
            yield
        except ConfigError as error:
            key = error.where.rpartition("key ")[2].strip("'\"")
            if key not in self._settings:
                raise
            value = "a value that is not shown" if _SECRET.search(key) else error.actual
            raise ConfigError(f"{self.origin(key)} key {key}", value, error.expected) from None


def _of_file(path: Path) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for entry in read_properties(path):
        key, origin = entry.key, f"{path}:{entry.line}"
        if key in settings:
            _log.warning("%s: duplicate key %s replaces the value of %s", origin, key, settings[key].origin)
        if key in KNOWN or key.startswith(_OPEN_ENDED):
            settings[key] = Setting(entry.value, origin)
        else:
            _log.warning("%s: unknown key %r is ignored%s", origin, key, _suggestion(key, KNOWN))
    return settings


def _of_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Variables with the prefix that resemble no known key belong to other programs."""
    settings = {}
    for name, value in sorted(environment.items()):
        if name in _BY_VARIABLE:
            settings[_BY_VARIABLE[name]] = Setting(value, f"environment variable {name}")
        elif name.startswith(ENVIRONMENT_PREFIX) and (
            suggestion := _suggestion(name, _BY_VARIABLE, similarity_min=0.85)
        ):
            _log.warning("unknown environment variable %s is ignored%s", name, suggestion)
    return settings


def _suggestion(name: str, known: Iterable[str], similarity_min: float = 0.7) -> str:
    suggestion = difflib.get_close_matches(name, list(known), n=1, cutoff=similarity_min)
    return f"; {suggestion[0]!r} perhaps" if suggestion else ""
