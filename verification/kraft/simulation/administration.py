"""The requests of administrators that a simulation plays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import (
    KraftElection,
    ResourceType,
    configs,
    controller_apis,
    elections,
    feature_updates,
    isr_proposals,
    reassignment,
    registration,
)
from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.expected.brokers import compare_unregistration
from verification.kraft.simulation.expected.partitions import compare_elections, compare_isr_results
from verification.kraft.simulation.expected.reassignments import compare_reassignment, compare_reassignments

_UNCLEAN: Final = "unclean.leader.election.enable"
_SET: Final = configs.KraftConfigOperation.SET


def reassign(cluster: Cluster, random: Random) -> None:
    """Reassign partitions of a topic to random brokers."""
    for name in _topic(cluster, random):
        last = _partitions(cluster, name)
        partitions = random.sample(range(last + 1), min(last + 1, random.choice((1, 1, 2, 3))))
        requests = [reassignment.RequestedReassignment(name, each, _target(cluster, random)) for each in partitions]
        _reassign(cluster, requests, allows_factor_change=random.random() < 0.7)


def _target(cluster: Cluster, random: Random) -> tuple[int, ...]:
    """Replicas, rarely invalid ones."""
    target = tuple(random.sample(sorted(cluster.brokers), random.randint(1, 3)))
    if random.random() < 0.1:
        return random.choice(((), (target[0], target[0]), (*target, 99)))
    return target


def cancel(cluster: Cluster, random: Random) -> None:
    """Cancel reassignments of a topic."""
    for name in _topic(cluster, random):
        numbers = range(random.randint(1, 4))
        _reassign(cluster, [reassignment.RequestedReassignment(name, number) for number in numbers])


def interrupt(cluster: Cluster, random: Random) -> None:
    """Cancel a reassignment to a running broker and one that is down, when only the new replica is in the ISR."""
    for name in _topic(cluster, random):
        image, number = cluster.rules.image, 0
        state = image.partitions.get((image.topics.get(name, UUID(int=0)), number))
        others = sorted(cluster.brokers.keys() - {*(() if state is None else state.replicas)})
        if len(others) < 2:
            continue
        new, down = random.sample(others, 2)
        cluster.brokers[down].kill()
        cluster.start_later(down, 25_000)
        _reassign(cluster, [reassignment.RequestedReassignment(name, number, (new, down))])
        if random.random() < 0.6:
            _configure(cluster, (int(ResourceType.TOPIC), name), _UNCLEAN, "true")
        after, delay_ms = cluster.scheduler.after, random.uniform(2_000, 8_000)
        after(delay_ms, partial(_elect, cluster, KraftElection.PREFERRED, [(name, number)]))
        after(delay_ms + 1_000, partial(_shrink_to_adding, cluster, name))
        after(delay_ms + 2_000, partial(_reassign, cluster, [reassignment.RequestedReassignment(name, number)]))


def _shrink_to_adding(cluster: Cluster, name: str) -> None:
    """Propose ISRs of the leader alone where that is a new replica: without it, the election is unclean."""
    image = cluster.rules.image
    for topic_id, number in image.partitions_of(image.topics[name]) if name in image.topics else ():
        state = image.partitions[topic_id, number]
        if state.leader in state.adding and state.leader in image.brokers:
            broker_epoch = image.brokers[state.leader].broker_epoch
            isr = ((state.leader, broker_epoch),)
            proposal = isr_proposals.KraftIsrProposal(topic_id, number, isr, state.leader_epoch, state.partition_epoch)
            _propose(cluster, (state.leader, broker_epoch), [proposal])


def _reassign(
    cluster: Cluster,
    requests: Sequence[reassignment.RequestedReassignment],
    *,
    allows_factor_change: bool = True,
) -> None:
    limits = {} if allows_factor_change else {"allow_factor_change": False}
    cluster.admin.ask(
        "reassign" if requests[0].replicas is not None else "cancel",
        lambda context, end: reassignment.reassign_partitions(context, requests, **limits),
        partial(compare_reassignment, requests, allows_factor_change, cluster.options.release),
        is_repeatable=True,
    )


def list_reassignments(cluster: Cluster, random: Random) -> None:
    """List all reassignments in progress, or those of named partitions."""
    topics = [*((name, [0, 1, 9]) for name in _topic(cluster, random)), ("unknown", [0])]
    named = None if random.random() < 0.5 else topics
    cluster.admin.ask(
        "list reassignments",
        lambda context, end: ControllerResult((), reassignment.list_reassignments(context, named)),
        partial(compare_reassignments, named),
    )


def elect(cluster: Cluster, random: Random) -> None:
    """Elect preferred leaders, rarely unclean ones: of all partitions, or of named ones."""
    kind = KraftElection.UNCLEAN if random.random() < 0.1 else KraftElection.PREFERRED
    cluster.rules.is_unclean_requested |= kind is KraftElection.UNCLEAN
    named = [(name, number) for name in _topic(cluster, random) for number in range(random.randint(1, 4))]
    _elect(cluster, kind, None if random.random() < 0.5 else [*named, ("unknown", 0)])


def _elect(cluster: Cluster, kind: KraftElection, partitions: Sequence[tuple[str, int]] | None) -> None:
    cluster.admin.ask(
        f"elect {kind.name.lower()}",
        lambda context, end: elections.elect_leaders(context, kind, partitions),
        partial(compare_elections, kind, partitions),
        is_repeatable=True,
    )


def propose(cluster: Cluster, random: Random) -> None:
    """Propose an ISR in the name of a broker, mostly a wrong one. A valid one removes members."""
    image = cluster.rules.image
    recovering = [key for key, state in image.partitions.items() if state.recovery]
    for topic_id, number in (*recovering, *random.sample(sorted(image.partitions), min(3, len(image.partitions)))):
        state = image.partitions[topic_id, number]
        sender = state.leader if random.random() < 0.8 else random.choice(sorted(image.brokers))
        known = image.brokers.get(sender)
        members = state.replicas if state.recovery and random.random() < 0.5 else state.isr
        isr = [sender, *(member for member in members if member != sender and random.random() < 0.5)]
        if random.random() < 0.2:
            isr = random.choice(([99, *isr], [sender, *isr], isr[1:], sorted({*isr, *image.brokers} - {*state.isr})))
        proposal = isr_proposals.KraftIsrProposal(
            topic_id if random.random() < 0.95 else UUID(int=1),
            number if random.random() < 0.95 else 99,
            tuple((member, _epoch(cluster, random, member)) for member in isr),
            state.leader_epoch + _shift(random),
            state.partition_epoch + _shift(random),
            random.choice((0, 0, 1, state.recovery)),
        )
        node = sender, -1 if known is None else known.broker_epoch + _shift(random)
        _propose(cluster, node, [proposal])


def _propose(cluster: Cluster, node: tuple[int, int], proposals: Sequence[isr_proposals.KraftIsrProposal]) -> None:
    cluster.admin.ask(
        "propose",
        lambda context, end: isr_proposals.alter_partitions(context, *node, proposals),
        partial(compare_isr_results, node, proposals),
        is_repeatable=True,
    )


def _epoch(cluster: Cluster, random: Random, broker_id: int) -> int:
    """The broker epoch of an ISR member, unknown, or wrong."""
    known = cluster.rules.image.brokers.get(broker_id)
    return -1 if known is None or random.random() < 0.3 else known.broker_epoch + _shift(random)


def _shift(random: Random) -> int:
    """Mostly nothing."""
    return random.choice((-1, 1)) if random.random() < 0.1 else 0


def configure(cluster: Cluster, random: Random) -> None:
    """Set ``min.insync.replicas`` of a topic or of the cluster, or allow unclean elections."""
    is_unclean = random.random() < 0.25
    setting = _UNCLEAN if is_unclean else "min.insync.replicas"
    value = "true" if is_unclean else str(random.randint(1, 3))
    resources = [(int(ResourceType.TOPIC), name) for name in _topic(cluster, random)]
    if not resources or (not is_unclean and random.random() < 0.2):
        resources = [(int(ResourceType.BROKER), "")]
    _configure(cluster, resources[0], setting, value)


def configure_min_isr(cluster: Cluster, value: int) -> None:
    """Set ``min.insync.replicas`` of the cluster."""
    _configure(cluster, (int(ResourceType.BROKER), ""), "min.insync.replicas", str(value))


def _configure(cluster: Cluster, resource: tuple[int, str], setting: str, value: str) -> None:
    change = configs.KraftConfigChange(resource, {setting: (_SET, value)})
    cluster.admin.ask("configure", lambda context, end: controller_apis.alter_configs(context, [change]))


def raise_level(cluster: Cluster, random: Random) -> None:
    """Raise ``metadata.version`` by one, or turn ELR on."""
    upgrade = feature_updates.UpgradeType.UPGRADE
    level = cluster.rules.image.features.get("metadata.version", 0) + 1
    updates = {"metadata.version": (level, upgrade)}
    if random.random() < 0.4:
        updates = {"eligible.leader.replicas.version": (1, upgrade)}
    version = int(cluster.options.is_dynamic)
    cluster.admin.ask(
        "raise level",
        lambda context, end: feature_updates.update_features(context, updates, kraft_version=version),
    )


def unregister(cluster: Cluster, random: Random) -> None:
    """Remove the registration of a broker that is down, or has no machine. One that has registered meanwhile is
    restarted, as it does not register again by itself."""
    down = sorted(key for key, broker in cluster.brokers.items() if not broker.is_running)
    down += sorted(cluster.rules.image.brokers.keys() - cluster.brokers.keys())
    if not down:
        return
    broker_id = random.choice(down)

    def restart(response: object) -> None:
        process = cluster.brokers.get(broker_id)
        if process is not None and process.is_running and broker_id not in cluster.rules.image.brokers:
            process.kill()
            cluster.start_later(broker_id, 100)

    cluster.admin.ask(
        "unregister",
        lambda context, end: registration.unregister_broker(context, broker_id),
        partial(compare_unregistration, broker_id),
        restart,
    )


def _partitions(cluster: Cluster, topic: str) -> int:
    """The number of partitions of a topic, 0 of one that is deleted."""
    image = cluster.rules.image
    return len([*image.partitions_of(image.topics[topic])]) if topic in image.topics else 0


def _topic(cluster: Cluster, random: Random) -> list[str]:
    """A known topic, if there is one."""
    known = sorted(cluster.admin.topics)
    return [random.choice(known)] if known else []
