"""Random clusters, and random operations on them: the steps of a scenario, chosen by what the reference model knows.

All chance comes from the ``Random`` that is handed in, so that Hypothesis can play it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from tests.reference.facts import NONE, Assignment, Key, name_of
from tests.reference.model import Reference

Step: TypeAlias = "dict[str, Any]"
T = TypeVar("T")

TOPICS: Final = ("a", "b", "c")
REPLICAS_MAX: Final = 4
UNCLEAN: Final = "unclean.leader.election.enable"


def chance(random: Random, one_in: int) -> bool:
    return random.randrange(one_in) == one_in - 1


def some(random: Random, values: Iterable[T], most: int) -> list[T]:
    """From one to ``most`` of them, in any order."""
    listed = sorted(values)  # type: ignore[type-var]
    return random.sample(listed, random.randint(1, min(most, len(listed)))) if listed else []


# -- before the controller


def scenario(random: Random) -> dict[str, Any]:
    """A cluster of three to six brokers, of which some may be away, with one to three topics."""
    everybody = random.sample(range(1, 13), random.randint(3, 6))
    present = [one for one in everybody if not chance(random, 6)] or everybody
    topics = [_topic(random, name, everybody) for name in TOPICS[: random.randint(1, 3)]]
    config: dict[str, Any] = {UNCLEAN: True} if chance(random, 5) else {}
    if chance(random, 6):
        config["auto.leader.rebalance.enable"] = True
    begun = {"schema": "kframe.scenario/v1", "name": "random", "config": config, "topics": topics}
    return begun | {"brokers": [{"id": one} for one in present], "steps": [{"elect": {}}]}


def _topic(random: Random, name: str, everybody: list[int]) -> dict[str, Any]:
    factor = random.randint(1, min(REPLICAS_MAX, len(everybody)))
    partitions = [
        {"partition": number, **_partition(random, everybody, factor)} for number in range(random.randint(1, 3))
    ]
    config = {UNCLEAN: random.choice(["true", "false"])} if chance(random, 3) else {}
    return {"name": name, "config": config, "partitions": partitions}


def _partition(random: Random, everybody: list[int], factor: int) -> dict[str, Any]:
    replicas = random.sample(everybody, factor)
    moved = Assignment(tuple(replicas))
    if chance(random, 6):
        moved = moved.towards(random.sample(everybody, random.randint(1, min(REPLICAS_MAX, len(everybody)))))
    entry: dict[str, Any] = {"replicas": list(moved.replicas)}
    if moved.moving:
        entry |= {"adding_replicas": list(moved.adding), "removing_replicas": list(moved.removing)}
    if chance(random, 6):
        return entry
    isr = replicas if not chance(random, 3) else some(random, replicas, factor)
    leader = NONE if chance(random, 8) else random.choice(isr)
    return entry | {"leader": leader, "isr": list(isr), "leader_epoch": random.randint(0, 3)}


# -- brokers


def elect(random: Random, model: Reference) -> Step:
    return {"elect": {}}


def broker_failure(random: Random, model: Reference) -> Step | None:
    gone = some(random, model.storage.brokers, 3)
    return {"broker_failure": gone} if gone else None


def broker_startup(random: Random, model: Reference) -> Step | None:
    away = (_everybody(model) | ({13} if chance(random, 8) else set())) - model.storage.brokers.keys()
    back = some(random, away, 3)
    return {"broker_startup": back} if back else None


def broker_bounce(random: Random, model: Reference) -> Step | None:
    bounced = some(random, model.storage.brokers, 2)
    return {"broker_bounce": bounced} if bounced else None


def controlled_shutdown(random: Random, model: Reference) -> Step:
    return {"controlled_shutdown": random.choice(sorted(_everybody(model)))}


# -- in-sync replicas


def grow(random: Random, model: Reference) -> Step | None:
    """Leaders take replicas in; mostly all that are there."""
    return _proposals(random, model, "alter_partition", _grown)


def shrink(random: Random, model: Reference) -> Step | None:
    return _proposals(random, model, "alter_partition", _shrunk)


def grow_in_storage(random: Random, model: Reference) -> Step | None:
    return _proposals(random, model, "isr_znode", _grown)


def shrink_in_storage(random: Random, model: Reference) -> Step | None:
    return _proposals(random, model, "isr_znode", _shrunk)


def _proposals(
    random: Random, model: Reference, kind: str, choose: Callable[[Random, Reference, Key], list[int]]
) -> Step | None:
    led = [key for key, state in model.storage.states.items() if model.controller.context.serving(state.leader)]
    chosen = sorted(some(random, led, 3))
    return {kind: {name_of(key): {"isr": choose(random, model, key)} for key in chosen}} if chosen else None


def _grown(random: Random, model: Reference, key: Key) -> list[int]:
    isr, context = model.storage.states[key].isr, model.controller.context
    others = [one for one in context.assignment(key).replicas if one not in isr and context.serving(one)]
    stay = [one for one in isr if context.serving(one)]
    return stay + (others if not chance(random, 4) else some(random, others, len(others)))


def _shrunk(random: Random, model: Reference, key: Key) -> list[int]:
    state = model.storage.states[key]
    return [one for one in state.isr if one == state.leader or chance(random, 2)] or [state.leader]


def odd_proposal(random: Random, model: Reference) -> Step:
    """Anything at all, from any replica."""
    keys = [*sorted(model.storage.states), ("nosuch", 0), (TOPICS[0], 9)]
    proposal: dict[str, Any] = {"isr": some(random, _everybody(model), 3) if not chance(random, 4) else []}
    key = random.choice(keys)
    replicas = sorted(model.controller.context.assignment(key).replicas) or [1]
    for field, values in (
        ("sender", replicas),
        ("leader_epoch", range(9)),
        ("partition_epoch", range(9)),
        ("leader_recovery_state", (0, 1)),
    ):
        if chance(random, 3):
            proposal[field] = random.choice(values)
    if "sender" not in proposal and (key not in model.storage.states or model.storage.states[key].leader == NONE):
        proposal["sender"] = random.choice(replicas)
    return {"alter_partition": {name_of(key): proposal}}


# -- topics


def create_topics(random: Random, model: Reference) -> Step:
    made = [_new_topic(random, model) for _ in range(random.randint(1, 2))]
    return {"create_topics": made}


def _new_topic(random: Random, model: Reference) -> dict[str, Any]:
    factor = random.randint(1, 3)
    made: dict[str, Any] = {
        "name": random.choice(TOPICS),
        "assignments": _lists(random, model, random.randint(1, 3), factor),
    }
    return made | ({"config": {UNCLEAN: "true"}} if chance(random, 4) else {})


def create_partitions(random: Random, model: Reference) -> Step | None:
    topics = sorted(model.storage.topics)
    if not topics:
        return None
    topic = random.choice(topics)
    has = model.storage.topics[topic].assignments
    added = random.randint(1, 2)
    lists = _lists(random, model, added, len(has[0].replicas))
    if len(has) + added > 6 or chance(random, 8):
        added = 0
    return {"create_partitions": {"topic": topic, "count": len(has) + added, "assignments": lists}}


def _lists(random: Random, model: Reference, count: int, factor: int) -> list[list[int]]:
    there = sorted(_everybody(model) if chance(random, 3) else model.storage.brokers.keys() or _everybody(model))
    return [random.sample(there, min(factor, len(there))) for _ in range(count)]


def delete_topics(random: Random, model: Reference) -> Step:
    return {"delete_topics": some(random, TOPICS, 2)}


def topic_config(random: Random, model: Reference) -> Step | None:
    topics = sorted(model.storage.topics)
    if not topics:
        return None
    setting = {UNCLEAN: random.choice(["true", "false"])} if not chance(random, 4) else {"min.insync.replicas": "1"}
    return {"topic_config": {random.choice(topics): setting}}


# -- reassignments and elections


def reassign(random: Random, model: Reference) -> Step | None:
    return _reassignments(random, model, "reassign", cancel=True)


def reassign_in_storage(random: Random, model: Reference) -> Step | None:
    return None if model.storage.reassignments else _reassignments(random, model, "reassign_znode", cancel=False)


def _reassignments(random: Random, model: Reference, kind: str, cancel: bool) -> Step | None:
    keys = sorted(model.controller.context.assignments) + ([("nosuch", 0)] if chance(random, 10) else [])
    moving = [key for key in keys if model.controller.context.assignment(key).moving]
    chosen = sorted(some(random, moving if moving and chance(random, 2) else keys, 2))
    targets: dict[str, list[int] | None] = {}
    for key in chosen:
        stop = cancel and chance(random, 3 if key in moving else 8)
        targets[name_of(key)] = None if stop else _target(random, model, key)
    return {kind: targets} if targets else None


def _target(random: Random, model: Reference, key: Key) -> list[int]:
    there = sorted(_everybody(model) if chance(random, 5) else model.storage.brokers.keys() or _everybody(model))
    if chance(random, 3):
        has = list(model.controller.context.assignment(key).target)
        return random.sample(has, len(has)) if has else there[:1]
    if chance(random, 12):
        return []
    return random.sample(there, random.randint(1, min(REPLICAS_MAX, len(there))))


def list_reassignments(random: Random, model: Reference) -> Step:
    return {"list_reassignments": {}}


def elect_leaders(random: Random, model: Reference) -> Step:
    kind = random.choice(["preferred", "unclean"])
    keys = sorted(model.controller.context.assignments)
    named = None if chance(random, 2) or not keys else [name_of(key) for key in sorted(some(random, keys, 3))]
    return {"elect_leaders": {"type": kind, "partitions": named}}


def preferred_in_storage(random: Random, model: Reference) -> Step | None:
    keys = [*sorted(model.controller.context.assignments), ("nosuch", 0)]
    chosen = sorted(some(random, keys, 3))
    return {"preferred_znode": [name_of(key) for key in chosen]} if model.storage.preferred is None else None


# -- how brokers answer, and time


def log_dir_failure(random: Random, model: Reference) -> Step | None:
    if not model.storage.brokers:
        return None
    broker = random.choice(sorted(model.storage.brokers))
    hosted = [key for key, _ in model.controller.context.replicas_on([broker])]
    chosen = sorted(some(random, hosted, 2))
    return {"log_dir_failure": {"broker": broker, "partitions": [name_of(key) for key in chosen]}} if chosen else None


def stop_replica_error(random: Random, model: Reference) -> Step:
    error = random.choice(["KAFKA_STORAGE_ERROR", "UNKNOWN_SERVER_ERROR"])
    said: dict[str, Any] = {"broker": random.choice(sorted(_everybody(model))), "api": "StopReplica", "error": error}
    keys = sorted(model.controller.context.assignments)
    if keys and chance(random, 2):
        said["partitions"] = [name_of(key) for key in sorted(some(random, keys, 2))]
    return {"answer": said}


def refusal(random: Random, model: Reference) -> Step:
    api = random.choice(["LeaderAndIsr", "UpdateMetadata"])
    broker = random.choice(sorted(_everybody(model)))
    return {"answer": {"broker": broker, "api": api, "error": "STALE_CONTROLLER_EPOCH"}}


def good_answers(random: Random, model: Reference) -> Step:
    return {"answer": {"broker": random.choice(sorted(_everybody(model))), "error": "NONE"}}


def advance(random: Random, model: Reference) -> Step:
    return {"advance": random.choice([1, 6, 31, 400])}


Operation: TypeAlias = "Callable[[Random, Reference], Step | None]"

#: Every operation, and how often it is played beside the others.
OPERATIONS: Final[Sequence[tuple[Operation, int]]] = (
    (elect, 2), (broker_failure, 5), (broker_startup, 6), (broker_bounce, 3), (controlled_shutdown, 2), (grow, 8),
    (shrink, 3), (grow_in_storage, 1), (shrink_in_storage, 1), (odd_proposal, 1), (create_topics, 2),
    (create_partitions, 2), (delete_topics, 3), (topic_config, 2), (reassign, 6), (reassign_in_storage, 2),
    (list_reassignments, 1), (elect_leaders, 4), (preferred_in_storage, 1), (log_dir_failure, 2),
    (stop_replica_error, 1), (refusal, 1), (good_answers, 3), (advance, 1),
)  # fmt: skip


def step(random: Random, model: Reference) -> Step:
    """Any operation that the state of things allows."""
    weights = [weight for _, weight in OPERATIONS]
    while True:
        ((operation, _),) = random.choices(OPERATIONS, weights)
        found = operation(random, model)
        if found is not None:
            return found


def _everybody(model: Reference) -> set[int]:
    """Brokers that ever registered or hold a replica."""
    held = {broker for one in model.controller.context.assignments.values() for broker in one.replicas if broker > 0}
    return set(model.known) | held or {1}
