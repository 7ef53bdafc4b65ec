"""The security settings of a listener: TLS and SASL, as a client of brokers and as a server.

As in Kafka, a key with the prefix ``listener.name.LISTENER.`` has precedence over the same key without it.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kframe.plugin import ConfigError
from kframe.plugin.settings import LoginModule, parse_login_modules, read_login_modules
from kframe_kafka_wire.listeners.identity import security_protocol
from kframe_kafka_wire.listeners.keystores import KeyStore, TrustStore, key_store, load_key, load_trust, trust_store
from kframe_kafka_wire.listeners.tls_contexts import AlertingContext, ReloadingContext

#: Supported SASL mechanisms, and the login module of each.
MECHANISMS: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
#: The name under which a client has its security settings.
_CLIENT: Final = "CLIENT"
_JAAS_FILE: Final = "java.security.auth.login.config"


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings of a listener: TLS 1.2 or later. Each call creates a new context, with the present files."""

    listener: str
    keys: KeyStore | None
    trust: TrustStore | None
    """None means the system's authorities."""
    check_names: bool
    """Whether a server's certificate must match its host name."""
    client_auth: ssl.VerifyMode

    @property
    def truststore_setting(self) -> str:
        """The truststore setting. Used in error messages."""
        if self.trust is None:
            return "the system (ssl.truststore.location is not set)"
        return f"ssl.truststore.location={self.trust.path}" if self.trust.path else "ssl.truststore.certificates"

    @property
    def keystore_setting(self) -> str:
        """The keystore setting, for error messages."""
        if self.keys is None:
            return "none (ssl.keystore.location is not set)"
        return f"ssl.keystore.location={self.keys.path}" if self.keys.path else "ssl.keystore.certificate.chain"

    def client(self) -> ssl.SSLContext:
        """A context for outgoing connections. Raises ConfigError if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.check_names
        return self._load_stores(context)

    def server(self) -> ssl.SSLContext:
        """A context for incoming connections. Raises ConfigError if a file cannot be used or there is no key."""
        if self.keys is None:
            raise ConfigError("config key ssl.keystore.location", "nothing", f"a key store for {self.listener}")
        context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = self.client_auth
        return self._load_stores(context)

    def reloading_server(self) -> ReloadingContext:
        """A context for incoming connections that follows changes of the files. Raises as ``server``."""
        stores = (store for store in (self.keys, self.trust) if store is not None)
        return ReloadingContext(self.server, [store.path for store in stores if store.path is not None])

    def _load_stores(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.trust is None:
            context.load_default_certs()
        else:
            load_trust(context, self.trust)
        if self.keys is not None:
            load_key(context, self.keys)
        return context


@dataclass(frozen=True, slots=True)
class Credentials:
    """The controller's own SASL credentials."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """The security settings of a listener by Kafka's keys."""

    listener: str
    protocol: str
    """One of ``identity.PROTOCOLS``."""
    tls: Tls | None
    sasl: bool
    config: Mapping[str, str] = field(repr=False)
    """All settings. The ``sasl.*`` keys are read on demand."""

    def credentials(self) -> Credentials | None:
        """The credentials for ``sasl.mechanism.inter.broker.protocol``. None without SASL. Raises ConfigError."""
        if not self.sasl:
            return None
        key = "sasl.mechanism.inter.broker.protocol"
        mechanism = _value(self.config, self.listener, key) or "GSSAPI"
        _check_mechanism(f"config key {key}", mechanism)
        options = self.login(mechanism).options
        if missing := {"username", "password"} - options.keys():
            raise ConfigError(f"login of listener {self.listener} for {mechanism}", f"no {min(missing)}", "both")
        return Credentials(mechanism, options["username"], options["password"])

    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms for clients (``sasl.enabled.mechanisms``); empty without SASL. Raises ConfigError."""
        if not self.sasl:
            return ()
        key = "sasl.enabled.mechanisms"
        enabled = tuple(
            mechanism.strip() for mechanism in (_value(self.config, self.listener, key) or "GSSAPI").split(",")
        )
        for mechanism in enabled:
            _check_mechanism(f"config key {key}", mechanism)
        return enabled

    def login(self, mechanism: str) -> LoginModule:
        """The login module for a mechanism of this listener. Raises ConfigError.

        It comes from ``listener.name.X.MECHANISM.sasl.jaas.config``. The fallback is section ``x.KafkaServer`` or
        ``KafkaServer`` of the JVM's JAAS file.
        """
        listener, module = self.listener.lower(), MECHANISMS[mechanism]
        key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
        if text := self.config.get(key):
            where, logins = f"config key {key}", parse_login_modules(f"config key {key}", text)
            if len(logins) != 1:  # As in Kafka, the value has exactly one login module.
                raise ConfigError(where, f"{len(logins)} login modules", "one")
        elif path := self.config.get(_JAAS_FILE):
            where = f"JAAS file {path}"
            logins = read_login_modules(Path(path), f"{listener}.KafkaServer", "KafkaServer") or []
        else:
            raise ConfigError(f"config key {key}", "nothing", f"a login, here or in a file named by {_JAAS_FILE}")
        for login in logins:
            if login.name == module:
                return login
        names = ", ".join(login.name for login in logins) or "no login"
        raise ConfigError(where, names, f"{module} for {mechanism}")


def security_of(config: Mapping[str, str], listener: str) -> ListenerSecurity:
    """The security settings of a listener. Raises ConfigError for unsupported keys or values."""
    protocol = security_protocol(config, listener)
    tls = _tls(config, listener) if protocol.endswith("SSL") else None
    return ListenerSecurity(listener, protocol, tls, protocol.startswith("SASL"), dict(config))


def client_security(config: Mapping[str, str]) -> ListenerSecurity:
    """Security settings by the keys of Kafka's clients. Raises ConfigError.

    The keys are ``security.protocol``, ``ssl.*``, ``sasl.mechanism`` and ``sasl.jaas.config``.
    """
    protocol, mechanism = config.get("security.protocol", "PLAINTEXT").strip(), config.get("sasl.mechanism", "").strip()
    settings = {key: value for key, value in config.items() if key.startswith("ssl.")}
    settings["listener.security.protocol.map"] = f"{_CLIENT}:{protocol}"
    settings["sasl.mechanism.inter.broker.protocol"] = mechanism
    if "sasl.jaas.config" in config:
        settings[f"listener.name.{_CLIENT.lower()}.{mechanism.lower()}.sasl.jaas.config"] = config["sasl.jaas.config"]
    return security_of(settings, _CLIENT)


def _tls(config: Mapping[str, str], listener: str) -> Tls:
    values = {key: config[key] for key in config if key.startswith("ssl.")}
    prefix = f"listener.name.{listener.lower()}."
    values |= {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(f"{prefix}ssl.")}
    algorithm = values.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("", "https"):
        raise ConfigError("config key ssl.endpoint.identification.algorithm", repr(algorithm), "https, or nothing")
    client_auth = values.get("ssl.client.auth", "none").strip().lower()
    if client_auth not in _CLIENT_AUTH:
        raise ConfigError("config key ssl.client.auth", repr(client_auth), " or ".join(_CLIENT_AUTH))
    return Tls(listener, key_store(values), trust_store(values), algorithm == "https", _CLIENT_AUTH[client_auth])


def _value(config: Mapping[str, str], listener: str, key: str) -> str:
    return config.get(f"listener.name.{listener.lower()}.{key}", config.get(key, "")).strip()


def _check_mechanism(where: str, mechanism: str) -> None:
    if mechanism not in MECHANISMS:
        raise ConfigError(where, mechanism, f"one of {', '.join(MECHANISMS)}: others are not on offer")
