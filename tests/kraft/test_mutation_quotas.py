"""Controller mutation quotas (KIP-599): which quota applies to a client, and what it charges, refuses and delays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid5

import pytest

from kframe.core.kraft import controller_apis
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.security.mutation_quotas import quota_of, throttle_ms
from kframe.core.kraft.topics.topic_requests import CreatableTopic, CreatePartitionsTopic
from kframe.core.mutation_quotas import MutationQuota, MutationQuotas
from kframe.model.kraft.metadata import QuotaEntity
from tests.whatif.kraft_samples import TOPIC_ID, new_engine, partition

SECOND_NS: Final = 10**9
RATE: Final = "controller_mutation_rate"
Request = Callable[[KraftContext, MutationQuota], ControllerResult[Any]]


def context(*quotas: tuple[QuotaEntity, float], window_s: int = 11) -> KraftContext:
    """Topic t has a partition. A limit of more than one a second is a burst of ``window_s`` times as many."""
    made = new_engine([partition(0, (1, 2), (1, 2))]).context
    made.metadata.quotas |= {entity: {RATE: rate} for entity, rate in quotas}
    made.mutation_quotas, made.now_ns = MutationQuotas(window_s), 5 * SECOND_NS
    return made


def creating(count: int, name: str = "a", *, factor: int = 1, validate_only: bool = False) -> Request:
    return lambda context, quota: controller_apis.create_topics(
        context,
        [CreatableTopic(name, count, factor)],
        lambda name: uuid5(TOPIC_ID, name),
        validate_only=validate_only,
        quota=quota,
    )


def growing(count: int, name: str = "t", assignments: tuple[tuple[int, ...], ...] | None = None) -> Request:
    requested = [CreatePartitionsTopic(name, count, assignments)]
    return lambda context, quota: controller_apis.create_partitions(context, requested, quota=quota)


def deleting(*names: str) -> Request:
    return lambda context, quota: controller_apis.delete_topics(context, names, quota=quota)


def ask(context: KraftContext, request: Request, *, strict: bool = True, user: str = "alice") -> tuple[list[str], int]:
    """The errors of a request, and the throttle time of its response."""
    quota = quota_of(context, user, "tool", strict=strict)
    result = request(context, quota)
    assert len(result.parts) == 0 or any(each.error.name == "NONE" for each in result.response)
    return [each.error.name for each in result.response], throttle_ms(context, quota)


def spent(context: KraftContext) -> int:
    """The partitions that were charged to alice, with a burst of 100."""
    quota = quota_of(context, "alice", "tool", strict=False)
    quota.record(1_000, context.now_ns / 1_000_000)
    return throttle_ms(context, quota) // 100 - 900


ALICE: Final = (("user", "alice"),)
#: A request, its errors, and the number of partitions that it is charged for.
CHARGES: Final[dict[str, tuple[Request, list[str], int]]] = {
    "a topic": (creating(20), ["NONE"], 20),
    "a topic that exists": (creating(20, "t"), ["TOPIC_ALREADY_EXISTS"], 0),
    "a topic with too many replicas": (creating(20, factor=9), ["INVALID_REPLICATION_FACTOR"], 0),
    "a validation": (creating(20, validate_only=True), ["NONE"], 20),
    "partitions": (growing(20), ["NONE"], 19),
    "partitions of an unknown topic": (growing(20, "x"), ["UNKNOWN_TOPIC_OR_PARTITION"], 0),
    "partitions with too few assignments": (growing(20, assignments=((1,),)), ["INVALID_REPLICA_ASSIGNMENT"], 0),
    "partitions with an invalid assignment": (growing(2, assignments=((9, 8),)), ["INVALID_REPLICA_ASSIGNMENT"], 1),
    "a deletion": (deleting("t"), ["NONE"], 1),
    "a deletion of an unknown topic": (deleting("x"), ["UNKNOWN_TOPIC_OR_PARTITION"], 0),
}


@pytest.mark.parametrize("case", CHARGES.values(), ids=CHARGES)
def test_partitions_are_charged(case: tuple[Request, list[str], int]) -> None:
    request, errors, count = case
    cluster = context((ALICE, 10.0), window_s=10)
    assert ask(cluster, request) == (errors, 0)
    assert spent(cluster) == count


@pytest.mark.parametrize("request_", [creating(1, "b"), growing(2), deleting("t")], ids=["create", "grow", "delete"])
def test_strict_quota_refuses_until_the_bucket_has_refilled(request_: Request) -> None:
    cluster = context((ALICE, 1.0))
    assert ask(cluster, creating(20)) == (["NONE"], 0)
    for seconds, remaining_ms in ((0, 9_000), (8, 1_000)):
        cluster.now_ns = (5 + seconds) * SECOND_NS
        assert ask(cluster, request_) == (["THROTTLING_QUOTA_EXCEEDED"], remaining_ms)
    cluster.now_ns = 14 * SECOND_NS
    assert ask(cluster, request_) == (["NONE"], 0)


def test_permissive_quota_delays_the_client() -> None:
    cluster = context((ALICE, 1.0))
    assert ask(cluster, creating(20), strict=False) == (["NONE"], 9_000)
    assert ask(cluster, creating(1, "b"), strict=False) == (["NONE"], 10_000)


def test_one_request_may_exceed_the_quota_once() -> None:
    cluster = context((ALICE, 1.0))
    topics = [CreatableTopic(name, 20, 1) for name in ("a", "b", "c")]
    errors, delay_ms = ask(
        cluster,
        lambda context, quota: controller_apis.create_topics(
            context, topics, lambda name: uuid5(TOPIC_ID, name), quota=quota
        ),
    )
    assert (errors, delay_ms) == (["NONE", *["THROTTLING_QUOTA_EXCEEDED"] * 2], 9_000)


def test_changed_quota_applies_at_once() -> None:
    cluster = context((ALICE, 1.0))
    ask(cluster, creating(20))
    cluster.metadata.quotas[ALICE] = {RATE: 3.0}
    assert ask(cluster, creating(1, "b")) == (["THROTTLING_QUOTA_EXCEEDED"], 3_000)
    del cluster.metadata.quotas[ALICE]
    assert ask(cluster, creating(1, "b")) == (["NONE"], 0)


#: Quotas of 1 and 2 a second for entities, a user, and the rate that applies to its client "tool"; None: no limit.
ENTITIES: Final[dict[str, tuple[tuple[QuotaEntity, ...], str, float | None]]] = {
    "the user": ((ALICE,), "alice", 1.0),
    "another user": ((ALICE,), "bob", None),
    "every user": (((("user", None),),), "bob", 1.0),
    "the user before every user": (((("user", None),), ALICE), "alice", 2.0),
    "the client": (((("client-id", "tool"),),), "bob", 1.0),
    "another client": (((("client-id", "x"),),), "bob", None),
    "every client": (((("client-id", None),),), "bob", 1.0),
    "a client of the user": (((("client-id", "tool"), ("user", "alice")), ALICE), "alice", 1.0),
    "every client of the user": (((("client-id", None), ("user", "alice")), ALICE), "alice", 1.0),
    "the user before the client": (((("client-id", "tool"),), ALICE), "alice", 2.0),
    "an address": (((("ip", "127.0.0.1"),),), "alice", None),
    "a user with the name of the default": (((("user", None),),), "<default>", 1.0),
    "a user with an encoded name": (((("user", "CN=a b,O=x%2C"),), (("user", None),)), "CN=a b,O=x%2C", 1.0),
}


@pytest.mark.parametrize("case", ENTITIES.values(), ids=ENTITIES)
def test_most_specific_quota_applies(case: tuple[tuple[QuotaEntity, ...], str, float | None]) -> None:
    entities, user, rate = case
    cluster = context(*((entity, index + 1.0) for index, entity in enumerate(entities)))
    errors, delay_ms = ask(cluster, creating(100), strict=False, user=user)
    assert errors == ["NONE"]
    assert delay_ms == (0 if rate is None else round((100 - 11 * rate) / rate * 1000))


def test_a_quota_of_all_users_is_counted_for_each() -> None:
    cluster = context(((("user", None),), 1.0))
    ask(cluster, creating(20))
    assert ask(cluster, creating(1, "b"), user="bob") == (["NONE"], 0)
    assert ask(cluster, creating(1, "c")) == (["THROTTLING_QUOTA_EXCEEDED"], 9_000)


def test_quotas_of_other_kinds_do_not_limit() -> None:
    cluster = context()
    cluster.metadata.quotas[ALICE] = {"request_percentage": 1.0}
    assert ask(cluster, creating(100)) == (["NONE"], 0)
