"""Changes of client quotas (Kafka 4.4 ``ClientQuotaControlManager``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, check_record_count
from kframe.errors import ErrorCode
from kframe.model.kraft.metadata import QuotaEntity
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import ClientQuotaRecord, EntityData


class QuotaValue(Enum):
    """The types of quotas."""

    FRACTION = "a number"
    WHOLE = "a whole number"


#: Quotas of users and clients, and of IP addresses, with the type of each (Kafka ``QuotaConfig``).
USER_QUOTAS: Final = {
    "producer_byte_rate": QuotaValue.WHOLE,
    "consumer_byte_rate": QuotaValue.WHOLE,
    "request_percentage": QuotaValue.FRACTION,
    "controller_mutation_rate": QuotaValue.FRACTION,
}
IP_QUOTAS: Final = {"connection_creation_rate": QuotaValue.WHOLE}
ENTITY_TYPES: Final = ("client-id", "ip", "user")
#: Rounding error up to which a number counts as whole.
_WHOLE_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """Quotas of an entity by key; None removes one. ``entity`` has the types and names of its parts as requested."""

    entity: tuple[tuple[str, str | None], ...]
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class QuotaResult:
    """The result for an entity."""

    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def alter_client_quotas(
    context: KraftContext, changes: Sequence[QuotaChange], *, validate_only: bool = False
) -> ControllerResult[list[QuotaResult]]:
    """Change quotas; the response is a list of QuotaResult. Equal values and absent removals write nothing."""
    results, records = [], list[RecordAndVersion]()
    for change in changes:
        entity = tuple(sorted(change.entity, key=lambda part: part[0]))
        problem = _entity_problem(change.entity) or _values_problem(change)
        if problem is not None:
            results.append(QuotaResult(entity, ErrorCode.INVALID_REQUEST, problem))
            continue
        stored = context.metadata.quotas.get(entity, {})
        records += [_record(entity, key, value) for key, value in change.values.items() if stored.get(key) != value]
        results.append(QuotaResult(entity))
    check_record_count(records)
    return ControllerResult([] if validate_only else records, results, atomic=True)


def _record(entity: QuotaEntity, key: str, value: float | None) -> RecordAndVersion:
    parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    record = ClientQuotaRecord(
        entity=parts, key=key, value=0.0 if value is None else float(value), remove=value is None
    )
    return RecordAndVersion(record, 0)


def _entity_problem(entity: QuotaEntity) -> str | None:
    types = [kind for kind, _ in entity]
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    if len(set(types)) != len(types):
        return "Invalid client quota entity, types are repeated"
    if "ip" in types and len(types) > 1:
        return "Invalid quota entity combination, IP entity should not be combined with other entities"
    return None


def _values_problem(change: QuotaChange) -> str | None:
    kinds = dict(change.entity)
    if kinds.get("ip") is not None and not _is_address(str(kinds["ip"])):
        return f"{kinds['ip']} is not a valid IP or resolvable host."
    known = IP_QUOTAS if "ip" in kinds else USER_QUOTAS
    for key, value in change.values.items():
        if key not in known:
            return f"Invalid configuration key {key}"
        if value is not None and known[key] is QuotaValue.WHOLE and abs(value - round(value)) > _WHOLE_TOLERANCE:
            return f"{key} cannot be a fractional value."
    return None


def _is_address(text: str) -> bool:
    """Whether a text is an IP address. Kafka accepts names that it can resolve too; the core resolves none."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True
