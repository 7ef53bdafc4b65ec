"""The configuration of a controller as an operator gives it: options, environment, a ``server.properties``, defaults.

Keys are Kafka's, wherever they stand; what stands further left in that list wins. A value knows where it comes from, so
that an error names option, variable, or file and line. Values are never logged: some are passwords.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.api.properties import read_properties
from kframe.errors import ConfigError
from kframe.model.config import KEYS, ControllerConfig
from kframe.model.kafka_keys import KAFKA_KEYS

_log = logging.getLogger("kframe.config")

#: Keys of the JVM, which Kafka gets on its command line.
JVM_KEYS: Final = ("java.security.auth.login.config", "zookeeper.sasl.client", "zookeeper.sasl.clientconfig")
#: Keys that Kafka's own table lacks: those of its authorizer, and of our server and store.
SERVER_KEYS: Final = ("super.users", "allow.everyone.if.no.acl.found", "kframe.register", "kframe.create.chroot")
KNOWN: Final = frozenset({*KEYS, *KAFKA_KEYS, *JVM_KEYS, *SERVER_KEYS})
#: Keys under these are named by what they configure: listeners, plugins of Kafka.
_OPEN_ENDED: Final = ("listener.name.", "config.providers.", "kafka.metrics.", "metrics.")
#: Values of keys with one of these words stand in no message.
_SECRET: Final = re.compile(r"password|secret|jaas|credential|token", re.IGNORECASE)
ENVIRONMENT_PREFIX: Final = "KFRAME_"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and the place where it stands."""

    value: str
    origin: str


def environment_name(key: str) -> str:
    """The environment variable that sets a key: ``KFRAME_LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS``."""
    return ENVIRONMENT_PREFIX + re.sub(r"[^A-Z0-9]", "_", key.removeprefix("kframe.").upper())


#: Known keys by the variable that sets them.
_BY_VARIABLE: Final = {environment_name(key): key for key in sorted(KNOWN)}


class Settings:
    """Everything that was set, by Kafka's key."""

    def __init__(self, settings: Mapping[str, Setting]) -> None:
        self._settings = dict(settings)

    @staticmethod
    def gather(options: Mapping[str, Setting], environment: Mapping[str, str], file: Path | None = None) -> Settings:
        """``options`` win over ``environment``, that wins over ``file``. Keys that nobody knows are warned of, with the
        nearest that is known, and left out. Raises ConfigError."""
        found = {} if file is None else _of_file(file)
        return Settings({**found, **_of_environment(environment), **options})

    def __contains__(self, key: object) -> bool:
        return key in self._settings

    def get(self, key: str) -> str | None:
        """The value of a key, None where it is not set."""
        setting = self._settings.get(key)
        return None if setting is None else setting.value

    def origin(self, key: str) -> str:
        """Where a key is set."""
        return self._settings[key].origin if key in self._settings else "config"

    @property
    def values(self) -> dict[str, str]:
        """All values by key."""
        return {key: setting.value for key, setting in self._settings.items()}

    def controller_config(self) -> ControllerConfig:
        """What a controller reads of it. Raises ConfigError, naming the place."""
        with self.located():
            return ControllerConfig({key: value for key, value in self.values.items() if key in KEYS})

    @contextmanager
    def located(self) -> Iterator[None]:
        """A ConfigError about one of our keys comes out naming the place where that stands; secrets are not shown."""
        try:
            yield
        except ConfigError as error:
            key = error.where.rpartition("key ")[2].strip("'\"")
            if key not in self._settings:
                raise
            found = "a value that is not shown" if _SECRET.search(key) else error.found
            raise ConfigError(f"{self.origin(key)} key {key}", found, error.expected) from None


def _of_file(path: Path) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for one in read_properties(path):
        origin = f"{path}:{one.line}"
        if one.key in found:
            _log.warning("%s: key %s again; this one counts, not %s", origin, one.key, found[one.key].origin)
        if one.key in KNOWN or one.key.startswith(_OPEN_ENDED):
            found[one.key] = Setting(one.value, origin)
        else:
            _log.warning("%s: unknown key %r is passed over%s", origin, one.key, _perhaps(one.key, KNOWN))
    return found


def _of_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Variables that look like nothing that we know are somebody else's."""
    found = {}
    for name, value in sorted(environment.items()):
        if name in _BY_VARIABLE:
            found[_BY_VARIABLE[name]] = Setting(value, f"environment variable {name}")
        elif name.startswith(ENVIRONMENT_PREFIX) and (near := _perhaps(name, _BY_VARIABLE, least=0.85)):
            _log.warning("unknown environment variable %s is passed over%s", name, near)
    return found


def _perhaps(name: str, known: Iterable[str], least: float = 0.7) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=least)
    return f"; {near[0]!r} perhaps" if near else ""
