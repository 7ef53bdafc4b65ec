"""Connection settings from a URL, or from Kafka's own configuration keys.

    zookeeper://HOST:PORT[,HOST:PORT]...[/chroot][?session.timeout.ms=6000&set.acl=true]

A URL may have any key of ``KEYS`` without the prefix ``zookeeper.``. It may not have passwords, because URLs end up in
logs and process lists. Passwords belong in a properties file, or for SASL in a JAAS file like Kafka's.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from kframe.plugin import ConfigError
from kframe.plugin.settings import KAFKA_KEYS, Key, boolean, nearest, read_login_modules, short_repr, text, whole

_log = logging.getLogger("kframe.config")

SCHEME: Final = "zookeeper"
PREFIX: Final = "zookeeper."
DEFAULT_PORT: Final = 2181
#: Bytes of the longest reply that is read. A longer reply closes the connection before memory is allocated for it.
REPLY_BYTES_MAX: Final = 16 * 2**20

_CONNECT: Final = "zookeeper.connect"
_CREATE_CHROOT: Final = "kframe.create.chroot"
_JAAS: Final = "java.security.auth.login.config"
_LOGIN_MODULE: Final = "DigestLoginModule"
_HOST_PORT: Final = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([^\[\]:/?#@\s]+))(?::([0-9]{1,5}))?")


def _any_text(where: str, value: object) -> str:
    """A string, which may be empty."""
    return "" if value == "" else text(where, value)


def _pem(where: str, value: object) -> str:
    """The type of a key store. Only PEM is supported; other types are Java's own."""
    if str(value).upper() not in ("", "PEM"):
        raise ConfigError(where, short_repr(value), "PEM (convert others with keytool and openssl pkcs12)")
    return "PEM"


def _checks_names(where: str, value: object) -> str:
    if str(value).upper() != "HTTPS":
        raise ConfigError(where, short_repr(value), "HTTPS: the server's certificate has to be valid for its host name")
    return "HTTPS"


def _unset(where: str, value: object) -> str:
    """A TLS setting that is not supported. It is refused, because ignoring it would weaken TLS silently."""
    if str(value).lower() not in ("", "false"):
        raise ConfigError(where, short_repr(value), "no such setting: it has no counterpart here")
    return ""


#: Every supported key. Names, defaults and meanings are those of Kafka 3.9, and for SASL those of the JVM.
KEYS: Final[Mapping[str, Key]] = {
    key.name: key
    for key in (
        Key(_CONNECT, _any_text, "", "HOST:PORT of each server, and the chroot."),
        Key("zookeeper.session.timeout.ms", whole(1), "18000", "Session timeout."),
        Key("zookeeper.connection.timeout.ms", _any_text, "", "How long the first connection may take."),
        Key("zookeeper.set.acl", boolean, "false", "Let only this principal change what is created."),
        Key("zookeeper.ssl.client.enable", boolean, "false", "Connect over TLS."),
        Key("zookeeper.ssl.keystore.location", _any_text, "", "PEM file of our key and certificate."),
        Key("zookeeper.ssl.keystore.password", _any_text, "", "Password of that key."),
        Key("zookeeper.ssl.keystore.type", _pem, "PEM", "PEM."),
        Key("zookeeper.ssl.truststore.location", _any_text, "", "PEM file of the authorities that we trust."),
        Key("zookeeper.ssl.truststore.password", _any_text, "", "Not needed with PEM."),
        Key("zookeeper.ssl.truststore.type", _pem, "PEM", "PEM."),
        Key("zookeeper.ssl.endpoint.identification.algorithm", _checks_names, "HTTPS", "Host names are checked."),
        Key("zookeeper.ssl.cipher.suites", _unset, "", "Not supported."),
        Key("zookeeper.ssl.crl.enable", _unset, "false", "Not supported."),
        Key("zookeeper.ssl.ocsp.enable", _unset, "false", "Not supported."),
        Key("zookeeper.ssl.protocol", _any_text, "", "Ignored: TLS 1.2 or later is used."),
        Key("zookeeper.ssl.enabled.protocols", _any_text, "", "Ignored: TLS 1.2 or later is used."),
        Key("zookeeper.clientCnxnSocket", _any_text, "", "Ignored: names a Java class."),
        Key("zookeeper.max.in.flight.requests", whole(1), "10", "Ignored: requests are sent in batches."),
        Key("zookeeper.sasl.client", boolean, "true", "Log in by SASL if the JAAS file has a login."),
        Key("zookeeper.sasl.clientconfig", text, "Client", "Section of the JAAS file for ZooKeeper."),
        Key(_JAAS, _any_text, "", "JAAS file with user name and password for SASL DIGEST-MD5."),
        Key(_CREATE_CHROOT, boolean, "false", "Create the chroot of a cluster whose brokers have not started yet."),
    )
}
#: KEYS, and the other ``zookeeper.`` keys of Kafka.
_KNOWN: Final = frozenset({*KEYS, *(name for name in KAFKA_KEYS if name.startswith(PREFIX))})


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """The user name and password of SASL DIGEST-MD5."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS settings. Host names are always checked; TLS 1.2 is the minimum."""

    authorities: Path | None = None
    """PEM file of the trusted authorities. None: the system's authorities."""
    key_and_certificate: Path | None = None
    """PEM file of the client certificate and its key, if any."""
    key_password: str | None = field(default=None, repr=False)

    @property
    def truststore(self) -> str:
        """The truststore setting. Used in error messages."""
        return _named("zookeeper.ssl.truststore.location", self.authorities, "the system")

    @property
    def keystore(self) -> str:
        """The keystore setting, for error messages."""
        return _named("zookeeper.ssl.keystore.location", self.key_and_certificate, "none")


@dataclass(frozen=True, slots=True)
class ConnectSettings:
    """Settings of a connection."""

    hosts: tuple[tuple[str, int], ...]
    chroot: str = ""
    """The chroot, such as "/a/b". Empty for the root."""
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    secure_acl: bool = False
    """Whether only our own principal may change the znodes that we create."""
    tls: TlsSettings | None = None
    sasl: SaslLogin | None = None
    reply_bytes_max: int = REPLY_BYTES_MAX
    create_chroot: bool = False
    """Whether a store may create the chroot. It may then use a chroot without a cluster."""

    @property
    def connect_string(self) -> str:
        """Hosts and chroot as Kafka and kazoo write them."""
        hosts = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return ",".join(hosts) + self.chroot


def settings_of_url(url: str) -> ConnectSettings:
    """Settings from a URL. See above for its form. Raises ConfigError."""
    where = "ZooKeeper URL"
    # Since 2025 releases of Python, urlsplit refuses lists of hosts with an IPv6 address.
    scheme, _, rest = url.partition("://")
    location, _, query = rest.partition("?")
    hosts, slash, path = location.partition("/")
    if scheme != SCHEME or not hosts or "#" in url:
        raise ConfigError(where, short_repr(url), f"{SCHEME}://HOST:PORT[,HOST:PORT]...[/chroot][?KEY=VALUE]")
    if "@" in hosts:
        raise ConfigError(
            where, "a user name or password before @", "a JAAS file, named by java.security.auth.login.config"
        )
    values: dict[str, object] = {_CONNECT: hosts + slash + path}
    for name, value in parse_qsl(query, keep_blank_values=True):
        key = name if name in KEYS else PREFIX + name
        if key.endswith(".password"):
            raise ConfigError(where, f"a password ({name})", "a properties file that has it")
        if key not in KEYS or key in values:
            short = [key.removeprefix(PREFIX) for key in KEYS]
            fault = "twice" if key in values else "of a broker" if key in _KNOWN else "unknown"
            raise ConfigError(where, f"key {name!r} {fault}", nearest(name, short))
        values[key] = value
    return settings_of_config(values, where)


def settings_of_config(values: Mapping[str, object], source: str = "config") -> ConnectSettings:
    """Settings from configuration. Other keys of Kafka are ignored, unknown ``zookeeper.`` keys with a warning.

    ``source`` names the origin of the values in errors. Raises ConfigError.
    """
    for name in values:
        if name.startswith(PREFIX) and name not in _KNOWN:
            _log.warning("%s: unknown key %r; %s", source, name, nearest(name, _KNOWN))
    read = {name: key.read(f"{source} key {name}", values.get(name, key.default)) for name, key in KEYS.items()}
    hosts, chroot = _hosts_and_chroot(read[_CONNECT], f"{source} key {_CONNECT}")
    wait = read["zookeeper.connection.timeout.ms"]
    session_timeout_ms: int = read["zookeeper.session.timeout.ms"]
    settings = ConnectSettings(
        hosts,
        chroot,
        session_timeout_ms,
        whole(1)(f"{source} key zookeeper.connection.timeout.ms", wait) if wait else session_timeout_ms,
        read["zookeeper.set.acl"],
        _tls(read),
        _sasl(read),
        create_chroot=read[_CREATE_CHROOT],
    )
    if settings.secure_acl and settings.sasl is None and (settings.tls is None or not settings.tls.key_and_certificate):
        raise ConfigError(
            f"{source} key zookeeper.set.acl",
            "true, but neither a login nor a certificate",
            "a SASL login or a TLS certificate as well",
        )
    return settings


def _hosts_and_chroot(connect: str, where: str) -> tuple[tuple[tuple[str, int], ...], str]:
    addresses, slash, below = connect.partition("/")
    hosts = []
    for address in addresses.split(","):
        match = _HOST_PORT.fullmatch(address.strip())
        port = DEFAULT_PORT if match is None or match[3] is None else int(match[3])
        if match is None or not 0 < port <= 65_535:
            raise ConfigError(where, short_repr(address), "HOST:PORT[,HOST:PORT]...[/chroot]")
        hosts.append((match[1] or match[2], port))
    chroot = (slash + below).rstrip("/")
    if "\0" in chroot or any(part in ("", ".", "..") for part in chroot.split("/")[1:]):
        raise ConfigError(where, short_repr(slash + below), "a chroot of names between slashes")
    return tuple(hosts), chroot


def _tls(read: Mapping[str, Any]) -> TlsSettings | None:
    if not read["zookeeper.ssl.client.enable"]:
        return None
    authorities, identity = read["zookeeper.ssl.truststore.location"], read["zookeeper.ssl.keystore.location"]
    return TlsSettings(
        Path(authorities) if authorities else None,
        Path(identity) if identity else None,
        read["zookeeper.ssl.keystore.password"] or None,
    )


def _named(key: str, path: Path | None, without: str) -> str:
    return f"{without} ({key} is not set)" if path is None else f"{key}={path}"


def _sasl(read: Mapping[str, Any]) -> SaslLogin | None:
    if not read[_JAAS] or not read["zookeeper.sasl.client"]:
        return None
    return read_sasl_login(Path(read[_JAAS]), read["zookeeper.sasl.clientconfig"])


def read_sasl_login(path: Path, section: str) -> SaslLogin:
    """Read the login of a section of a JAAS file. Raises ConfigError, which shows nothing of the file."""
    where = f"JAAS file {path}"
    modules = read_login_modules(path, section)
    if not modules:
        raise ConfigError(where, f"no section {section}", f"{section} {{ ...{_LOGIN_MODULE} required ...; }};")
    if modules[0].name != _LOGIN_MODULE:
        raise ConfigError(f"{where} section {section}", "another login module", _LOGIN_MODULE)
    options = modules[0].options
    if missing := {"username", "password"} - options.keys():
        raise ConfigError(f"{where} section {section}", f"no {min(missing)}", "username and password")
    return SaslLogin(options["username"], options["password"])
