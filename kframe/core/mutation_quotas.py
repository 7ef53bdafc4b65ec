"""Limit the partitions that a client creates and deletes: controller mutation quotas (KIP-599).

A token bucket holds ``rate`` tokens for each second of the quota window. A mutation takes a token for each partition
and may leave the bucket below zero. While it is below zero, a strict quota refuses further mutations; a permissive one
accepts them and delays the client (Kafka 3.9 ``ControllerMutationQuotaManager``, ``TokenBucket``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field

#: The setting of users and clients: partitions a second.
MUTATION_RATE: Final = "controller_mutation_rate"
#: The name of the entity that applies to users or clients without a quota of their own.
DEFAULT_ENTITY: Final = "<default>"
#: Milliseconds without an accepted mutation after which a bucket is forgotten, as Kafka expires sensors.
_FORGET_MS: Final = 3_600_000
_THROTTLE_MAX_MS: Final = 2**31 - 1
_BUCKETS_BEFORE_SWEEP: Final = 1_000


class QuotaEntity(NamedTuple):
    """A user, a client id, or a client id of a user, named as in paths of ZooKeeper. None for no such part."""

    user: str | None
    client_id: str | None


def entities_of(user: str, client_id: str) -> tuple[QuotaEntity, ...]:
    """The entities whose quota may apply to a client, the most specific first (``ClientQuotaManager``).

    Quotas of client ids do not apply to a client without an id.
    """
    users = (QuotaEntity(user, None), QuotaEntity(DEFAULT_ENTITY, None))
    if not client_id:
        return users
    return (
        QuotaEntity(user, client_id),
        QuotaEntity(user, DEFAULT_ENTITY),
        users[0],
        QuotaEntity(DEFAULT_ENTITY, client_id),
        QuotaEntity(DEFAULT_ENTITY, DEFAULT_ENTITY),
        users[1],
        QuotaEntity(None, client_id),
        QuotaEntity(None, DEFAULT_ENTITY),
    )


class _Bucket(Struct):
    """Tokens at a time in milliseconds, of a bucket that holds ``rate * window_s`` tokens at most."""

    rate: float
    window_s: int
    tokens: float
    refilled_ms: float
    recorded_ms: float

    def refill(self, now_ms: float) -> float:
        """Add the tokens since the last call. Return the tokens."""
        added = self.rate * (now_ms - self.refilled_ms) / 1000
        self.tokens, self.refilled_ms = min(self.rate * self.window_s, self.tokens + added), now_ms
        return self.tokens

    def take(self, partitions: int, now_ms: float) -> None:
        """Take a token for each partition."""
        self.tokens -= partitions
        self.recorded_ms = now_ms

    def can_be_dropped(self, now_ms: float) -> bool:
        """Whether a new bucket would decide the same."""
        return self.refill(now_ms) >= self.rate * self.window_s or now_ms - self.recorded_ms > _FORGET_MS


class MutationQuota(Struct):
    """The quota of a client during one request. Without a bucket it is unlimited."""

    _bucket: _Bucket | None
    _is_strict: bool
    _throttle_ms: int = 0
    _violated_ms: float = 0.0

    @property
    def is_limited(self) -> bool:
        """Whether a quota applies."""
        return self._bucket is not None

    def record(self, partitions: int, now_ms: float) -> bool:
        """Whether a mutation of this many partitions is accepted. Refuse it with THROTTLING_QUOTA_EXCEEDED if not."""
        if self._bucket is None:
            return True
        tokens = self._bucket.refill(now_ms)
        if self._is_strict and tokens < 0:
            self._violate(tokens, self._bucket.rate, now_ms)
            return False
        self._bucket.take(partitions, now_ms)
        if not self._is_strict and self._bucket.tokens < 0:
            self._violate(self._bucket.tokens, self._bucket.rate, now_ms)
        return True

    def throttle_ms(self, now_ms: float) -> int:
        """The throttle time of a response that is sent now. 0 if the quota was not exceeded."""
        return max(0, self._throttle_ms - int(now_ms - self._violated_ms))

    def _violate(self, tokens: float, rate: float, now_ms: float) -> None:
        seconds = -tokens / rate if rate > 0 else math.inf
        self._throttle_ms = int(min(seconds * 1000 + 0.5, _THROTTLE_MAX_MS))
        self._violated_ms = now_ms


#: The quota of a request that changes nothing.
UNLIMITED: Final = MutationQuota(None, False)


class MutationQuotas(Struct):
    """The token buckets of all clients. Not thread-safe."""

    window_s: int = 11
    """Seconds: the number of windows (controller.quota.window.num) times controller.quota.window.size.seconds."""
    _buckets: dict[QuotaEntity, _Bucket] = field(default_factory=dict)
    _sweep_size: int = _BUCKETS_BEFORE_SWEEP

    def quota_of(
        self, user: str, client_id: str, rates: Mapping[QuotaEntity, float], now_ms: float, *, strict: bool
    ) -> MutationQuota:
        """The quota of a client for one request, where ``rates`` has the configured quotas.

        A quota of a user is shared by all its clients, and a quota of a client id by all users.
        """
        entity = next((entity for entity in entities_of(user, client_id) if entity in rates), None)
        if entity is None:
            return MutationQuota(None, strict)
        shared = QuotaEntity(
            None if entity.user is None else user, None if entity.client_id is None else client_id
        )  # The default entities have a bucket for each client, too.
        bucket = self._buckets.get(shared)
        rate = rates[entity]
        if bucket is None or now_ms - bucket.recorded_ms > _FORGET_MS:
            self._sweep(now_ms)
            bucket = self._buckets[shared] = _Bucket(rate, self.window_s, rate * self.window_s, now_ms, now_ms)
        bucket.rate = rate
        return MutationQuota(bucket, strict)

    def __len__(self) -> int:
        """The number of buckets."""
        return len(self._buckets)

    def _sweep(self, now_ms: float) -> None:
        """Drop the buckets that are full, each time their number has doubled."""
        if len(self._buckets) >= self._sweep_size:
            self._buckets = {
                entity: bucket for entity, bucket in self._buckets.items() if not bucket.can_be_dropped(now_ms)
            }
            self._sweep_size = max(_BUCKETS_BEFORE_SWEEP, 2 * len(self._buckets))
