"""The logins of a controller's listeners: SCRAM credentials and tokens in the metadata, and the keys of both."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kframe_kafka_wire.listeners.security import security_of
from kframe_kafka_wire.records.credentials import (
    ScramCredential,
    ScramLookup,
    TokenLookup,
    no_tokens,
    token_credential,
)
from kframe_kafka_wire.records.principals import Principal, parse_principal

from kframe.plugin import ConfigError
from kframe.plugin.cluster import Endpoint
from kframe.plugin.kraft import ClusterMetadata
from kframe.plugin.kraft_controller import tokens
from kframe.plugin.server import token_hmac
from kframe.plugin.settings import INT64_MAX, whole
from kframe_kraft.apis.token_apis import now_ms
from kframe_kraft.controller import PeriodicTask
from kframe_kraft.server.key_values import value_of

TOKEN_SECRET: Final = "delegation.token.secret.key"
_TOKEN_NUMBERS: Final = (
    "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.expiry.check.interval.ms",
)
_SALT_BYTES: Final = 16
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
#: The codes in records (Kafka ``ScramMechanism``).
_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


def scram_credentials(metadata: ClusterMetadata) -> ScramLookup:
    """The credentials in the metadata, which another thread may change."""

    def find(mechanism: str, user: str) -> ScramCredential | None:
        record = metadata.scram.get((user, _MECHANISMS[mechanism]))
        if record is None:
            return None
        return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)

    return find


def token_credentials(metadata: ClusterMetadata, settings: tokens.TokenSettings) -> TokenLookup:
    """The owners and credentials of the tokens in the metadata, which another thread may change."""
    salt = secrets.token_bytes(_SALT_BYTES)

    def find(mechanism: str, token_id: str) -> tuple[Principal, ScramCredential | None]:
        token = metadata.tokens.get(token_id)
        if token is None or not settings.secret or tokens.is_expired(token, now_ms()):
            return no_tokens(mechanism, token_id)
        owner = replace(parse_principal(token.owner), by_token=True)
        return owner, token_credential(mechanism, token_hmac(settings.secret, token_id), salt)

    return find


def token_settings(config: Mapping[str, str]) -> tokens.TokenSettings:
    """The settings of delegation tokens by Kafka's keys. Raises ConfigError."""
    lifetime, expiry, check = (
        whole(1, INT64_MAX)(f"config key {key}", value_of(config, key)) for key in _TOKEN_NUMBERS
    )
    return tokens.TokenSettings(config.get(TOKEN_SECRET, "").encode(), lifetime, expiry, check)


def token_tasks(settings: tokens.TokenSettings) -> list[PeriodicTask]:
    """The task that removes expired tokens, if there are tokens."""
    if not settings.secret:
        return []
    return [
        PeriodicTask(
            "remove expired delegation tokens",
            settings.check_ms,
            lambda context: tokens.remove_expired(context, now_ms()),
        )
    ]


def check_controller_mechanism(config: Mapping[str, str], bound: Sequence[Endpoint]) -> None:
    """Raises ConfigError if nodes would log in by a mechanism that the controller's listeners do not offer.

    kframe opens no connection to controllers, but brokers with the same key do.
    """
    mechanism = config.get(CONTROLLER_MECHANISM, "").strip()
    for endpoint in bound:
        offered = security_of(config, endpoint.listener).mechanisms()
        if mechanism and offered and mechanism not in offered:
            raise ConfigError(f"config key {CONTROLLER_MECHANISM}", mechanism, f"one of {', '.join(offered)}")
