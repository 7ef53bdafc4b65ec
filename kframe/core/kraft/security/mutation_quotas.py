"""Controller mutation quotas of users and clients (KIP-599), by the quotas in the metadata.

``kframe.core.mutation_quotas`` has the token buckets (Kafka 4.4 ``ControllerMutationQuotaManager``).
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.mutation_quotas import (
    DEFAULT_ENTITY,
    MUTATION_RATE,
    MutationQuota,
    QuotaEntity,
    entities_of,
)
from kframe.errors import ErrorCode
from kframe.model.kraft.metadata import QuotaEntity as StoredEntity

_NS_PER_MS: Final = 1_000_000


def quota_of(context: KraftContext, user: str, client_id: str, *, strict: bool) -> MutationQuota:
    """The quota of a client for one request. It is unlimited if no quota applies.

    ``strict``: mutations are refused, not only delayed, while the quota is exceeded.
    """
    user, client_id = _encoded(user), _encoded(client_id)
    rates = {
        entity: rate
        for entity in entities_of(user, client_id)
        if (rate := context.metadata.quotas.get(_stored_entity(entity), {}).get(MUTATION_RATE)) is not None
    }
    now_ms = context.now_ns / _NS_PER_MS
    return context.mutation_quotas.quota_of(user, client_id, rates, now_ms, strict=strict)


def charge(context: KraftContext, quota: MutationQuota, partitions: int) -> None:
    """Charge the creation or deletion of partitions. Raises RequestRefused if a strict quota is exceeded."""
    if not quota.record(partitions, context.now_ns / _NS_PER_MS):
        raise RequestRefused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")


def throttle_ms(context: KraftContext, quota: MutationQuota) -> int:
    """The throttle time of a response that is sent now. 0 if the quota was not exceeded."""
    return quota.throttle_ms(context.now_ns / _NS_PER_MS)


def _encoded(name: str) -> str:
    """The name of a user or client in a ``QuotaEntity``: a name of its own, unlike DEFAULT_ENTITY."""
    return quote(name, safe="")


def _stored_entity(entity: QuotaEntity) -> StoredEntity:
    """The entity as the metadata has it: None for the default of a type."""
    parts = (("client-id", entity.client_id), ("user", entity.user))
    return tuple((kind, None if name == DEFAULT_ENTITY else unquote(name)) for kind, name in parts if name is not None)
