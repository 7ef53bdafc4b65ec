"""Requests to create and to delete topics, and to add partitions, valid and invalid ones."""

from __future__ import annotations

from random import Random
from uuid import UUID

from kframe.plugin.kraft_controller import LATEST_RELEASE, topic_requests
from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.expected.topics import PARTITIONS_MAX, requested_partitions
from verification.kraft.simulation.image import MIN_ISR


def create_topic(cluster: Cluster, random: Random) -> None:
    """Create a topic by numbers, or by an assignment. Its name may occur again with a dot for an underscore."""
    name = cluster.admin.new_name(random.choice(("t", "a.", "a_")))
    topic = topic_requests.CreatableTopic(name, random.choice((1, 2, 3, 4, 5, 6, 10)), _factor(cluster, random))
    if random.random() < 0.3:
        topic = topic_requests.CreatableTopic(name, assignments=_assignments(cluster, random))
    cluster.admin.create_topics([topic])


def request_creations(cluster: Cluster, random: Random) -> None:
    """Request topics that may be invalid, several at once: most only to be validated."""
    topics = [_creatable(cluster, random) for _ in range(random.randint(1, 4))]
    if random.random() < 0.3:
        topics.append(random.choice(topics))
    if random.random() < 0.1:
        count = PARTITIONS_MAX - requested_partitions(topics) + random.randint(-1, 1)
        topics.append(topic_requests.CreatableTopic(_new(cluster, random), count, 0))
    cluster.admin.create_topics(topics, validate_only=random.random() < 0.8, is_limited=random.random() < 0.2)


def _creatable(cluster: Cluster, random: Random) -> topic_requests.CreatableTopic:
    name = random.choice((_new, _new, _new, _existing, _malformed))(cluster, random)
    configs = random.choice(({}, {}, {}, {MIN_ISR: "2"}, {MIN_ISR: None}, {MIN_ISR: None, "retention.ms": "1"}))
    count, factor = random.choice((-2, -1, -1, 0, 1, 2, 9)), random.choice((-2, -1, -1, 0, 1, 2, 3, 4))
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    if random.random() < 0.5:
        assignments = _mutated(cluster, random, _assignments(cluster, random))
        if random.random() < 0.8:
            count = factor = -1
    return topic_requests.CreatableTopic(name, count, factor, assignments, configs)


def _new(cluster: Cluster, random: Random) -> str:
    return cluster.admin.new_name("t")


def _existing(cluster: Cluster, random: Random) -> str:
    """A topic that exists, or one that has the same name in metrics."""
    known = sorted(cluster.admin.topics) or ["t1"]
    name = random.choice([each for each in known if each.startswith("a")] or known)
    return random.choice((name, name.replace(".", "_"), name.replace("_", ".")))


def _malformed(cluster: Cluster, random: Random) -> str:
    return random.choice(("", ".", "..", "a b", "ä", "x" * 249, "x" * 250, "__cluster_metadata"))


def _factor(cluster: Cluster, random: Random) -> int:
    return random.randint(1, min(3, len(cluster.brokers)))


def _assignments(cluster: Cluster, random: Random) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Replicas of the first partitions, not in order."""
    factor = _factor(cluster, random)
    numbers = random.sample(range(3), 3)[: random.randint(1, 3)]
    ranked = {number: rank for rank, number in enumerate(sorted(numbers))}
    return tuple((ranked[number], _replicas(cluster, random, factor)) for number in numbers)


def _replicas(cluster: Cluster, random: Random, factor: int) -> tuple[int, ...]:
    return tuple(random.sample(sorted(cluster.brokers), factor))


def _mutated(
    cluster: Cluster, random: Random, assignments: tuple[tuple[int, tuple[int, ...]], ...]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Assignments of which one may be wrong."""
    number, replicas = assignments[-1]
    return random.choice(
        (
            assignments,
            assignments,
            (*assignments, (number, replicas)),
            (*assignments, (5, replicas)),
            (*assignments, (len(assignments), ())),
            (*assignments, (len(assignments), (*replicas, replicas[0]))),
            (*assignments, (len(assignments), (*replicas[1:], 99))),
            (*assignments, (len(assignments), _replicas(cluster, random, len(replicas) % len(cluster.brokers) + 1))),
        )
    )


def delete_topic(cluster: Cluster, random: Random) -> None:
    """Delete a topic, by name or by id."""
    if cluster.admin.topics:
        name = random.choice(sorted(cluster.admin.topics))
        cluster.admin.delete_topic(name, by_id=random.random() < 0.5)


def request_deletions(cluster: Cluster, random: Random) -> None:
    """Request deletions that are refused: of unknown topics, and of those that the request names twice."""
    known = sorted(cluster.admin.topics)
    names = random.choice(([], ["unknown"], ["unknown", "unknown"]))
    topic_ids = random.choice(([], [UUID(int=7)], [UUID(int=7), UUID(int=7)]))
    for name in random.sample(known, min(2, len(known))):
        topic_id = cluster.admin.topics[name]
        twice = random.choice(
            (([name, name], []), ([], [topic_id] * 2), ([name], [topic_id]), ([name], [topic_id] * 2))
        )
        names, topic_ids = [*names, *twice[0]], [*topic_ids, *twice[1]]
    cluster.admin.request_deletions(names, topic_ids)
    cluster.admin.request_unknown([UUID(int=7), UUID(int=8)])


def add_partitions(cluster: Cluster, random: Random) -> None:
    """Add partitions to a topic by numbers, or by an assignment."""
    for name, count, factor in _known(cluster, random):
        assignments = None
        added = random.randint(1, 2)
        if random.random() < 0.4:
            assignments = tuple(_replicas(cluster, random, min(factor, len(cluster.brokers))) for _ in range(added))
        cluster.admin.add_partitions([topic_requests.CreatePartitionsTopic(name, count + added, assignments)])


def request_partitions(cluster: Cluster, random: Random) -> None:
    """Request partitions that may be invalid, for several topics at once: most only to be validated."""
    requests = [
        _partitions(cluster, random, *topic) for _ in range(random.randint(1, 3)) for topic in _known(cluster, random)
    ]
    requests.append(topic_requests.CreatePartitionsTopic("unknown", 3))
    if random.random() < 0.2:
        requests.append(random.choice(requests))
    is_limited = cluster.options.release == LATEST_RELEASE
    for name, count, factor in _known(cluster, random) if is_limited and random.random() < 0.1 else ():
        total = count + PARTITIONS_MAX + random.randint(-1, 1)
        requests = [topic_requests.CreatePartitionsTopic(name, total, ((1,) * factor,))]
    cluster.admin.add_partitions(requests, validate_only=random.random() < 0.8, is_limited=random.random() < 0.2)


def _partitions(
    cluster: Cluster, random: Random, name: str, count: int, factor: int
) -> topic_requests.CreatePartitionsTopic:
    added = random.choice((-1, 0, 1, 1, 2, 5))
    if random.random() < 0.4:
        return topic_requests.CreatePartitionsTopic(name, count + added)
    start = tuple((number, _replicas(cluster, random, factor)) for number in range(max(added, 1)))
    lists = [replicas for _, replicas in _mutated(cluster, random, start)]
    # Some requests have a wrong number of assignments, others a wrong one in its place.
    content = lists if random.random() < 0.2 else lists[len(lists) - max(added, 1) :]
    return topic_requests.CreatePartitionsTopic(name, count + added, tuple(content))


def _known(cluster: Cluster, random: Random) -> list[tuple[str, int, int]]:
    """A topic, if there is one, with its number of partitions and the replicas of one of them: rather a topic whose
    partitions differ."""
    image = cluster.rules.image
    factors = {
        name: [len(image.partitions[key].replicas) for key in image.partitions_of(image.topics[name])]
        for name in sorted(cluster.admin.topics.keys() & image.topics.keys())
    }
    different = [name for name in factors if len(set(factors[name])) > 1]
    if not factors:
        return []
    name = random.choice(different if different and random.random() < 0.7 else list(factors))
    return [(name, len(factors[name]), min(random.choice(factors[name]), len(cluster.brokers)))]
