"""DescribeClientQuotas and AlterClientQuotas, from and to ZooKeeper (Kafka 3.9 ``ZkAdminManager``, KIP-546)."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from kframe.plugin import ErrorCode, KframeError
from kframe.plugin.server import AclOperation
from kframe_kafka_wire.apis.calls import Call, RequestError
from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.records.store import (
    DEFAULT_ENTITY,
    Records,
    RecordWriter,
    change_settings,
    desanitized,
    sanitized,
    settings_at,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
#: Match types of a filter component: an exact name, the default entity, or any entity of the type.
_EXACT, _DEFAULT, _ANY = 0, 1, 2
#: Quotas of users and clients, and of IP addresses, with their value types (``QuotaConfigs``).
_USER_QUOTAS: Final[Mapping[str, type]] = {
    "producer_byte_rate": int,
    "consumer_byte_rate": int,
    "request_percentage": float,
    "controller_mutation_rate": float,
}
_IP_QUOTAS: Final[Mapping[str, type]] = {"connection_creation_rate": int}
#: A value this close to a whole number counts as that number.
_EPSILON: Final = 1e-6
_INT32_MAX: Final = 2**31 - 1


class _StoredQuotas(NamedTuple):
    """The quotas of an entity. ``entity`` has names by type; None is the default entity."""

    entity: Mapping[str, str | None]
    quotas: Mapping[str, float]


async def describe_quotas(call: Call) -> Fields:
    """The quotas of all entities that the filter matches."""
    if not call.is_authorized(AclOperation.DESCRIBE_CONFIGS):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    components, strict = _components(call.body["components"]), call.body["strict"]
    stored = await call.context.read(lambda records: list(_stored_quotas(records, components)))
    return {
        "entries": [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in each.entity.items()],
                "values": [{"key": key, "value": value} for key, value in each.quotas.items()],
            }
            for each in stored
            if _selects(components, each.entity, strict)
        ]
    }


def _components(listed: Sequence[Fields]) -> dict[str, Fields]:
    """The components of a filter by entity type. Raises RequestError for contradictory components."""
    for component in listed:
        kind = component["entity_type"]
        if not kind:
            raise RequestError(ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type")
        if kind not in (USER, CLIENT_ID, IP):
            raise RequestError(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if component["match_type"] not in (_EXACT, _DEFAULT, _ANY):
            raise RequestError(ErrorCode.INVALID_REQUEST, f"Unexpected match type: {component['match_type']}")
    for kind, count in Counter(component["entity_type"] for component in listed).items():
        if count > 1:
            label = {CLIENT_ID: "client"}.get(kind, kind)
            raise RequestError(ErrorCode.INVALID_REQUEST, f"Duplicate {label} filter component entity type")
    components = {component["entity_type"]: component for component in listed}
    if IP in components and len(components) > 1:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used with user or clientId"
            " filter component.",
        )
    return components


def _selects(components: Mapping[str, Fields], entity: Mapping[str, str | None], strict: bool) -> bool:
    """Whether a filter matches an entity. A strict filter requires exactly its own entity types."""
    if not components.keys() <= entity.keys() or (strict and entity.keys() != components.keys()):
        return False
    for kind, component in components.items():
        name, match = entity[kind], component["match_type"]
        if (match == _EXACT and name != component["match"]) or (match == _DEFAULT and name is not None):
            return False
    return True


def _stored_quotas(records: Records, components: Mapping[str, Fields]) -> Iterator[_StoredQuotas]:
    """Quotas of users, clients, clients of a user, and IP addresses that the filter may match."""
    if IP not in components:
        for user in _names(records, "users", components.get(USER)):
            yield from _read_quotas(records, f"users/{user}", {USER: desanitized(user)}, _USER_QUOTAS)
            for client in _names(records, f"users/{user}/clients", components.get(CLIENT_ID)):
                entity = {USER: desanitized(user), CLIENT_ID: desanitized(client)}
                yield from _read_quotas(records, f"users/{user}/clients/{client}", entity, _USER_QUOTAS)
        for client in _names(records, "clients", components.get(CLIENT_ID)):
            yield from _read_quotas(records, f"clients/{client}", {CLIENT_ID: desanitized(client)}, _USER_QUOTAS)
    if not {USER, CLIENT_ID} & components.keys():
        for ip in _names(records, "ips", components.get(IP)):
            yield from _read_quotas(records, f"ips/{ip}", {IP: desanitized(ip)}, _IP_QUOTAS)


def _names(records: Records, folder: str, component: Fields | None) -> tuple[str, ...]:
    """The names of entities in a folder that a component may match, as in paths."""
    if component is None or component["match_type"] == _ANY:
        return records.read_record_names(f"/config/{folder}")
    exact = component["match_type"] == _EXACT
    return (sanitized(component["match"] or "") if exact else DEFAULT_ENTITY,)


def _read_quotas(
    records: Records, path: str, entity: Mapping[str, str | None], known: Mapping[str, type]
) -> Iterator[_StoredQuotas]:
    """The quotas in a record, if it has any. Raises RequestError for values that are not numbers."""
    settings = settings_at(records, f"/config/{path}")
    try:
        quotas = {key: float(settings[key]) for key in known if key in settings}
    except ValueError as error:
        message = f"Unexpected client quota configuration value in /config/{path}: {error}"
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None
    if quotas:
        yield _StoredQuotas(entity, quotas)


async def alter_quotas(call: Call) -> Fields:
    """Set and remove quotas. Each entity succeeds or fails separately."""
    if not call.is_authorized(AclOperation.ALTER_CONFIGS):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    entries = []
    for entry in call.body["entries"]:
        code, message = 0, None
        try:
            path, known = _entity_path(entry["entity"])
            changes = _changes(entry["ops"], known)
            if known is _IP_QUOTAS:
                await asyncio.to_thread(_check_address, path)
            if not call.body["validate_only"]:
                await call.context.write(partial(_alter, path=path, changes=changes))
        except RequestError as error:
            code, message = error.code, error.message
        except KframeError as error:
            code, message = int(ErrorCode.UNKNOWN_SERVER_ERROR), str(error)
        entries.append({"entity": entry["entity"], "error_code": code, "error_message": message})
    return {"entries": entries}


def _alter(writer: RecordWriter, path: str, changes: Mapping[str, str | None]) -> None:
    def change(settings: dict[str, str]) -> dict[str, str]:
        merged = {**settings, **{key: value for key, value in changes.items() if value is not None}}
        return {key: value for key, value in merged.items() if changes.get(key, "") is not None}

    change_settings(writer, path, change)


def _entity_path(entity: Sequence[Fields]) -> tuple[str, Mapping[str, type]]:
    """The path of an entity's quotas below ``/config``, and the quotas it may have. Raises RequestError."""
    names: dict[str, str] = {}
    for part in entity:
        kind, name = part["entity_type"], part["entity_name"]
        if kind not in (USER, CLIENT_ID, IP):
            raise RequestError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise RequestError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
        names[kind] = DEFAULT_ENTITY if name is None else sanitized(name)
    if not names:
        raise RequestError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            message = "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        return f"ips/{names[IP]}", _IP_QUOTAS
    if USER not in names:
        return f"clients/{names[CLIENT_ID]}", _USER_QUOTAS
    of_client = f"/clients/{names[CLIENT_ID]}" if CLIENT_ID in names else ""
    return f"users/{names[USER]}{of_client}", _USER_QUOTAS


def _check_address(path: str) -> None:
    """Raises RequestError for an invalid address (``DynamicConfig.Ip.isValidIpEntity``)."""
    name = desanitized(path.partition("/")[2])
    if name is not None:
        try:
            socket.getaddrinfo(name, None)
        except (OSError, UnicodeError):
            message = f"{name} is not a valid IP or resolvable host."
            raise RequestError(ErrorCode.INVALID_REQUEST, message) from None


def _changes(ops: Sequence[Fields], known: Mapping[str, type]) -> dict[str, str | None]:
    """The value of each key as text, None for a removal. Raises RequestError."""
    changes: dict[str, str | None] = {}
    for op in ops:
        key, value = op["key"], op["value"]
        if op["remove"]:
            changes[key] = None
        elif key not in known:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
        else:
            changes[key] = repr(value) if known[key] is float else _whole(key, value, known is _IP_QUOTAS)
    return changes


def _whole(key: str, value: float, small: bool) -> str:
    """A whole number as text. With ``small``, it must be a non-negative int32. Raises RequestError."""
    number = int(value + _EPSILON) if abs(value) < 2**63 else 0
    if abs(number - value) > _EPSILON or (small and not 0 <= number <= _INT32_MAX):
        kind = "INT" if small else "LONG"
        raise RequestError(ErrorCode.INVALID_REQUEST, f"Configuration {key} must be a {kind} value")
    return str(number)
