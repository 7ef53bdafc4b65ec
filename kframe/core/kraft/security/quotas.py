"""Changes of client quotas (Kafka 4.4 ``ClientQuotaControlManager``)."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
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
    """The types of quotas, with the greatest value of each. The values of DOUBLE may be fractions."""

    DOUBLE = math.inf
    INT = 2**31 - 1
    LONG = 2**63 - 1


#: Quotas of users and clients, and of IP addresses, with the type of each (Kafka ``QuotaConfig``).
USER_QUOTAS: Final = {
    "producer_byte_rate": QuotaValue.LONG,
    "consumer_byte_rate": QuotaValue.LONG,
    "request_percentage": QuotaValue.DOUBLE,
    "controller_mutation_rate": QuotaValue.DOUBLE,
}
IP_QUOTAS: Final = {"connection_creation_rate": QuotaValue.INT}
ENTITY_TYPES: Final = ("client-id", "ip", "user")
#: Largest fraction that is dropped where whole numbers are expected.
_WHOLE_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """Quotas of an entity by key; None removes one. ``entity`` has the types and names of its parts as requested."""

    entity: tuple[tuple[str, str | None], ...]
    values: Mapping[str, float | None]
    repeated_key: str | None = None
    """A key that the request has twice."""


@dataclass(frozen=True, slots=True)
class QuotaResult:
    """The result for an entity."""

    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def alter_client_quotas(
    context: KraftContext, changes: Sequence[QuotaChange], *, validate_only: bool = False
) -> ControllerResult[list[QuotaResult]]:
    """Change quotas; the response is a list of QuotaResult, one for each entity.

    Equal values and absent removals write nothing. An entity that occurs twice is refused.
    """
    results, records = [], list[RecordAndVersion]()
    by_entity = {tuple(sorted(change.entity, key=lambda part: part[0])): change for change in changes}
    times = Counter(tuple(sorted(change.entity, key=lambda part: part[0])) for change in changes)
    for entity, change in by_entity.items():
        problem = _entity_problem(change.entity) or _values_problem(change)
        if times[entity] > 1:
            problem = "Ignoring duplicate entity"
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
    if change.repeated_key is not None:
        return f"Duplicate quota key {change.repeated_key} not updating quota for this entity"
    known = IP_QUOTAS if "ip" in kinds else USER_QUOTAS
    for key, value in change.values.items():
        problem = None if value is None else _value_problem(known, key, value)
        if problem is not None:
            return problem
    return None


def _value_problem(known: Mapping[str, QuotaValue], key: str, value: float) -> str | None:
    """The reason why a quota cannot be set. Kafka accepts what is no number, and infinity for fractions."""
    kind = known.get(key)
    if kind is None:
        return f"Invalid configuration key {key}"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    if value > kind.value:
        return f"Proposed value for {key} is too large for a {kind.name}."
    if not math.isfinite(value):
        return f"Proposed value for {key} is {value}, expected a finite number"
    if kind is not QuotaValue.DOUBLE and value % 1 > _WHOLE_TOLERANCE:
        return f"{key} cannot be a fractional value."
    return None


def _is_address(text: str) -> bool:
    """Whether a text is an IP address. Kafka accepts names that it can resolve too; the core resolves none."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True
