"""The options of ``kframe console``: their checks, and the objects that are made from them."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kframe.plugin import ConfigError
from kframe.plugin.admin import LogDirectory
from kframe.plugin.commands import PluginSettings, client_properties, is_url
from kframe.plugin.settings import parse_whole, short_repr
from kframe_console.plans.executions import Executions
from kframe_console.security.identities import StoredCredentials
from kframe_console.security.login import LoginPolicy
from kframe_console.security.oidc import OidcLogin, oidc_settings
from kframe_console.serving import TlsFiles
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.listed_bytes import ListDirectories

_KAFKA: Final = "kafka://"


class ListenAddress(NamedTuple):
    """An address to listen on."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The options of ``kframe console``."""

    listen: str
    users: Path | None = None
    tokens: Path | None = None
    oidc: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    plain_http: bool = False
    audit_log: Path | None = None
    allow_execute: bool = False
    execute_by: str | None = None
    metrics: tuple[str, ...] = ()
    demo: str | None = None
    partitions: int = 0
    brokers: int = 0
    browser: bool = False
    config: Path | None = None
    command_config: Path | None = None
    refresh: float = 0.0
    weights: Any = None
    state_change_log: Path | None = None

    @property
    def tls(self) -> TlsFiles | None:
        """The files of TLS."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        return TlsFiles(self.tls_cert, self.tls_key, self.client_ca)

    @property
    def has_login(self) -> bool:
        """Whether users log in."""
        return any((self.users, self.tokens, self.oidc, self.client_ca))


def checked_options(options: LaunchOptions) -> ListenAddress:
    """The address to listen on. Raises ConfigError for options that would let anyone use the console."""
    host, _, port = options.listen.strip().rpartition(":")
    number = parse_whole(port, 2**16 - 1)
    if number is None:
        raise ConfigError("--listen", short_repr(options.listen), "HOST:PORT, or PORT on this machine alone")
    address = ListenAddress(host.removeprefix("[").removesuffix("]") or "127.0.0.1", number)
    if (options.tls_cert is None) != (options.tls_key is None):
        raise ConfigError("--tls-cert, --tls-key", "one of them", "both")
    if options.client_ca is not None and options.tls is None:
        raise ConfigError("--client-ca", "no --tls-cert", "--tls-cert and --tls-key")
    if options.allow_execute and options.audit_log is None:
        raise ConfigError("--allow-execute", "no --audit-log", "--audit-log FILE")
    if not address.is_loopback and not options.has_login:
        expected = "--users, --tokens, --oidc or --client-ca for an address that other machines reach"
        raise ConfigError("--listen", f"{address.host} without a login", expected)
    if not address.is_loopback and options.tls is None and not options.plain_http:
        expected = "--tls-cert and --tls-key, or --plain-http behind a proxy that encrypts"
        raise ConfigError("--listen", f"{address.host} without TLS", expected)
    return address


def login_of(options: LaunchOptions) -> tuple[LoginPolicy, OidcLogin | None]:
    """How users log in. Raises ConfigError and InputError for unusable files."""
    credentials = StoredCredentials.read(options.users, options.tokens) if options.users or options.tokens else None
    oidc = None if options.oidc is None else oidc_settings(options.oidc)
    is_secure = options.tls is not None or (oidc is not None and oidc["public.url"].startswith("https://"))
    policy = LoginPolicy(
        credentials, certificates=options.client_ca is not None, oidc=oidc is not None, secure=is_secure
    )
    return policy, None if oidc is None else OidcLogin(oidc, policy)


def settings_of(options: LaunchOptions, address: ListenAddress) -> ConsoleSettings:
    """The settings of the console. With a login every host is allowed: no other site has its credentials."""
    hosts = () if options.has_login else (*ConsoleSettings().allowed_hosts, address.host)
    return ConsoleSettings(allowed_hosts=hosts, allow_execute=options.allow_execute)


def executions_of(options: LaunchOptions, source: object, plugins: PluginSettings) -> Executions | None:
    """Executes plans on the brokers of a URL or of the source. None without ``--allow-execute``, and for a
    source that is not live. Raises ConfigError without brokers."""
    if not options.allow_execute or options.audit_log is None or not is_url(source):
        return None
    url = options.execute_by or str(source)
    if not url.startswith(_KAFKA):
        actual = f"{source} without --execute-by" if options.execute_by is None else short_repr(url)
        raise ConfigError("--allow-execute", actual, f"brokers of the cluster, {_KAFKA}HOST:PORT[,HOST:PORT]...")
    registry, properties = plugins.registry(), client_properties(options.command_config)
    return Executions(url, lambda: registry.open_admin(url, properties), options.audit_log.parent)


def directories_of(options: LaunchOptions, source: object, plugins: PluginSettings) -> ListDirectories | None:
    """Lists the log directories of the brokers of a source; None with ``--weights``, and without brokers."""
    if options.weights is not None or not is_url(source) or not str(source).startswith(_KAFKA):
        return None
    registry, properties = plugins.registry(), client_properties(options.command_config)

    def list_directories(broker_ids: Collection[int]) -> Mapping[int, Sequence[LogDirectory]]:
        with closing(registry.open_admin(str(source), properties)) as admin:
            return admin.log_directories(broker_ids)

    return list_directories


def url_of(options: LaunchOptions, host: str, port: int) -> str:
    """The address of the console in a browser."""
    scheme = "http" if options.tls is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"
