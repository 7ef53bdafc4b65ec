"""``/config/KIND/NAME`` and notifications of changes (``docs/reference/controller/zookeeper.md`` section 3.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kframe.plugin import ZnodeError
from kframe.plugin.settings import short_repr
from kframe.plugin.znodes import CONFIG_DECODER, ConfigZnode, SchemaVersion
from kframe_zookeeper.znodes.ordering import properties_order
from kframe_zookeeper.znodes.paths import CONFIG_KINDS
from kframe_zookeeper.znodes.strict import decode_znode, encode_znode

CONFIG_VERSION: Final = 1
#: Written by Kafka 0.10.1 and later.
CHANGE_VERSION: Final = 2


class _ChangeZnode(msgspec.Struct, omit_defaults=True):
    version: SchemaVersion
    entity_path: str | UnsetType = UNSET
    entity_type: str | UnsetType = UNSET
    entity_name: str | UnsetType = UNSET


_CHANGE: Final = msgspec.json.Decoder(_ChangeZnode)


@dataclass(frozen=True, slots=True)
class ConfigNotification:
    """A notification: the kind of the entity (one of ``CONFIG_KINDS``) and its name (``U/clients/C`` for a user's
    client)."""

    kind: str
    name: str


def decode_config(raw: bytes | None, path: str) -> dict[str, str]:
    """Settings by name. Without data there are no settings. Raises ZnodeError."""
    if not raw:
        return {}
    record, _ = decode_znode(CONFIG_DECODER, raw, path)
    return record.config


def encode_config(config: Mapping[str, str]) -> bytes:
    """Settings as Kafka writes them."""
    ordered = {name: config[name] for name in properties_order(config)}
    return encode_znode(ConfigZnode(version=CONFIG_VERSION, config=ordered))


def decode_config_change(raw: bytes | None, path: str) -> ConfigNotification:
    """The changed entity that a notification names. Both schemas are supported. Raises ZnodeError."""
    record, _ = decode_znode(_CHANGE, raw, path)
    if record.entity_path is not UNSET:
        kind, _, name = record.entity_path.partition("/")
    elif record.entity_type is not UNSET and record.entity_name is not UNSET:
        kind, name = record.entity_type, record.entity_name
    else:
        raise ZnodeError(path, "no field entity_path", "one, or entity_type and entity_name")
    if kind not in CONFIG_KINDS or not name:
        raise ZnodeError(path, short_repr(f"{kind}/{name}"), f"a name behind one of {', '.join(CONFIG_KINDS)}")
    return ConfigNotification(kind, name)


def encode_config_change(change: ConfigNotification) -> bytes:
    """The record of a notification."""
    return encode_znode(_ChangeZnode(CHANGE_VERSION, entity_path=f"{change.kind}/{change.name}"))
