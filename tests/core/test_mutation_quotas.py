"""Controller mutation quotas (KIP-599), with the figures of Kafka's ControllerMutationQuotaManagerTest."""

from __future__ import annotations

import pytest

from kframe.core.mutation_quotas import DEFAULT_ENTITY, MutationQuotas, QuotaEntity

D = DEFAULT_ENTITY
#: All levels, the most specific first, with different rates.
LEVELS = {
    QuotaEntity("alice", "app"): 1.0,
    QuotaEntity("alice", D): 2.0,
    QuotaEntity("alice", None): 3.0,
    QuotaEntity(D, "app"): 4.0,
    QuotaEntity(D, D): 5.0,
    QuotaEntity(D, None): 6.0,
    QuotaEntity(None, "app"): 7.0,
    QuotaEntity(None, D): 8.0,
}
#: (user, client id, number of most specific levels removed, applying rate)
RESOLUTION = [
    *(("alice", "app", removed, 1.0 + removed) for removed in range(8)),
    ("alice", "other", 0, 2.0),
    ("alice", "other", 2, 3.0),
    ("alice", "other", 3, 5.0),
    ("alice", "other", 6, 8.0),
    ("bob", "app", 0, 4.0),
    ("bob", "other", 0, 5.0),
    ("bob", "other", 5, 6.0),
    ("bob", "app", 6, 7.0),
    ("alice", "", 0, 3.0),
    ("bob", "", 0, 6.0),
    ("bob", "", 6, None),
    ("alice", "app", 8, None),
]


@pytest.mark.parametrize("user, client_id, removed, rate", RESOLUTION)
def test_most_specific_quota_applies(user: str, client_id: str, removed: int, rate: float | None) -> None:
    rates = dict(list(LEVELS.items())[removed:])
    quota = MutationQuotas(1).quota_of(user, client_id, rates, 0, strict=False)
    assert quota.is_limited == (rate is not None)
    assert quota.record(100, 0)  # With a window of a second, the bucket has ``rate`` tokens.
    assert quota.throttle_ms(0) == (0 if rate is None else int((100 - rate) / rate * 1000 + 0.5))


#: Rate 10 and a burst of 100. (milliseconds, partitions, strict, accepted, throttle time)
RECORDS: list[tuple[str, list[tuple[int, int, bool, bool, int]]]] = [
    ("a burst may exceed the bucket, then all is refused", [
        (0, 110, True, True, 0), (0, 1, True, False, 1000), (500, 1, True, False, 500), (1000, 1, True, True, 0),
        (1000, 1, True, False, 100),
    ]),
    ("a strict quota charges nothing that it refuses", [
        (0, 150, True, True, 0), (0, 500, True, False, 5000), (4999, 0, True, False, 1), (5000, 10, True, True, 0),
    ]),
    ("a permissive quota accepts and delays", [
        (0, 90, False, True, 0), (0, 20, False, True, 1000), (0, 10, False, True, 2000), (2000, 0, False, True, 0),
    ]),
    ("strict and permissive requests share the bucket", [
        (0, 110, False, True, 1000), (0, 1, True, False, 1000), (900, 1, True, False, 100),
    ]),
    ("an unused bucket holds the burst only", [(90_000, 100, True, True, 0), (90_000, 1, True, True, 0),
                                               (90_000, 1, True, False, 100)]),
    ("a debt is forgotten after an hour", [(0, 100_000, True, True, 0), (3_600_000, 1, True, False, 6_390_000),
                                           (3_600_001, 100, True, True, 0), (3_600_001, 1, True, True, 0),
                                           (3_600_001, 1, True, False, 100)]),
    ("throttle times are rounded to the nearest millisecond", [(0, 101, True, True, 0), (99, 1, True, False, 1)]),
]  # fmt: skip


@pytest.mark.parametrize("records", [rows for _, rows in RECORDS], ids=[name for name, _ in RECORDS])
def test_token_bucket_equals_kafkas(records: list[tuple[int, int, bool, bool, int]]) -> None:
    quotas, rates = MutationQuotas(10), {QuotaEntity("alice", None): 10.0}
    for now_ms, partitions, strict, accepted, throttle_ms in records:
        quota = quotas.quota_of("alice", "app", rates, now_ms, strict=strict)
        assert (quota.record(partitions, now_ms), quota.throttle_ms(now_ms)) == (accepted, throttle_ms)


def test_throttle_time_excludes_waiting_time() -> None:
    quota = MutationQuotas(1).quota_of("alice", "app", {QuotaEntity("alice", None): 1.0}, 0, strict=False)
    quota.record(3, 0)
    assert [quota.throttle_ms(now_ms) for now_ms in (0, 500, 2000, 9000)] == [2000, 1500, 0, 0]


#: (entity with a quota, client that exhausts it, clients that are refused, clients that are not)
SHARING = [
    (QuotaEntity("alice", None), ("alice", "app"), [("alice", "other"), ("alice", "")], [("bob", "app")]),
    (QuotaEntity(D, None), ("alice", "app"), [("alice", "other")], [("bob", "app")]),
    (QuotaEntity(None, "app"), ("alice", "app"), [("bob", "app")], [("alice", "other")]),
    (QuotaEntity(None, D), ("alice", "app"), [("bob", "app")], [("alice", "other")]),
    (QuotaEntity("alice", D), ("alice", "app"), [("alice", "app")], [("alice", "other"), ("bob", "app")]),
    (QuotaEntity(D, D), ("alice", "app"), [("alice", "app")], [("alice", "other"), ("bob", "app")]),
]


@pytest.mark.parametrize("entity, client, refused, accepted", SHARING)
def test_clients_of_entity_share_bucket(
    entity: QuotaEntity, client: tuple[str, str], refused: list[tuple[str, str]], accepted: list[tuple[str, str]]
) -> None:
    quotas = MutationQuotas(1)
    quotas.quota_of(*client, {entity: 1.0}, 0, strict=True).record(5, 0)
    for other, is_accepted in [*((each, False) for each in refused), *((each, True) for each in accepted)]:
        assert quotas.quota_of(*other, {entity: 1.0}, 0, strict=True).record(1, 0) is is_accepted


def test_changed_rate_applies_to_next_request() -> None:
    quotas, alice = MutationQuotas(1), QuotaEntity("alice", None)
    quotas.quota_of("alice", "app", {alice: 1.0}, 0, strict=True).record(11, 0)
    assert not (slow := quotas.quota_of("alice", "app", {alice: 1.0}, 0, strict=True)).record(1, 0)
    assert not (fast := quotas.quota_of("alice", "app", {alice: 100.0}, 0, strict=True)).record(1, 0)
    assert (slow.throttle_ms(0), fast.throttle_ms(0)) == (10_000, 100)


def test_zero_rate_refuses_second_mutation() -> None:
    quotas, rates = MutationQuotas(1), {QuotaEntity("alice", None): 0.0}
    assert quotas.quota_of("alice", "app", rates, 0, strict=True).record(1, 0)
    quota = quotas.quota_of("alice", "app", rates, 10, strict=True)
    assert (quota.record(1, 10), quota.throttle_ms(10)) == (False, 2**31 - 1)


def test_full_buckets_are_dropped() -> None:
    quotas = MutationQuotas(1)
    for number in range(5_000):
        quotas.quota_of("alice", str(number), {QuotaEntity(None, D): 1.0}, number * 1000, strict=True).record(1, 0)
    assert len(quotas) <= 1_000
