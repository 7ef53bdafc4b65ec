"""What must hold once all faults have ended and the cluster has come to rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kframe_kraft.disk import read_history
from kframe_kraft.replay.image import image_of

from verification.kraft.simulation.changes import LAST_KNOWN_ACTIVE
from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.equality import differences
from verification.kraft.simulation.expected.brokers import offset_problems
from verification.kraft.simulation.image import Image, PartitionKey, PartitionState
from verification.kraft.simulation.log_model import log_problems
from verification.kraft.simulation.malformed import replay_problems
from verification.kraft.simulation.quorum_model import QuorumPlay
from verification.kraft.simulation.reopening import epoch_file_problems, truncation_problems
from verification.kraft.simulation.voter_model import voter_problems
from verification.kraft.simulation.wide_requests import WideCluster

#: Wide clusters whose requests are compared.
_WIDE: Final = 3


def problems_at_rest(cluster: Cluster) -> Iterator[str]:
    """What is wrong with a cluster at rest."""
    process = cluster.controllers.process
    if process is None or process.loop is None or process.failure is not None:
        yield "L2: no controller leads"
        return
    image = cluster.rules.image
    for problem in differences(process.node.metadata, image, image.partitions):
        yield f"I24: the controller has {problem}"
    yield from offset_problems(process.node.metadata, image)
    stored = image_of(read_history(process.node.log.directory)).metadata
    for problem in (*differences(stored, image, image.partitions), *replay_problems(stored, image)):
        yield f"I24: the log has {problem}"
    refused, faults = 0 if process.selector is None else process.selector.refused, process.node.selection.faults
    if faults.total() != refused:
        yield f"K10: {refused} choices of the selector were wrong, refused were {faults}"
    yield from _brokers(cluster, image)
    for key, state in sorted(image.partitions.items()):
        yield from _partition(cluster, image, key, state)
    yield from _topics(cluster, image)
    yield from _records(cluster, image)


def problems_apart(cluster: Cluster) -> Iterator[str]:
    """What the parts of the controller do otherwise by themselves: logs like that of a cluster at rest, a quorum, and
    requests to wide clusters."""
    process = cluster.controllers.process
    assert process is not None
    batches, settings = cluster.controllers.history.batches, cluster.options.node_settings().log
    yield from log_problems(process.node.log, batches, cluster.random)
    yield from truncation_problems(process.node.log, settings, batches, cluster.random)
    yield from epoch_file_problems()
    yield from voter_problems(cluster.options)
    for _ in range(_WIDE):
        yield from WideCluster(cluster.options, cluster.random).problems()
    yield from QuorumPlay(cluster.options, batches, cluster.random).problems()


def _brokers(cluster: Cluster, image: Image) -> Iterator[str]:
    for broker_id, process in cluster.brokers.items():
        broker = image.brokers.get(broker_id)
        if process.is_stopping and cluster.options.release < LAST_KNOWN_ACTIVE and _leads(image, broker_id):
            pass  # It was elected although it is shutting down, and waits for five minutes.
        elif not process.is_running or process.is_stopping:
            yield f"L5: broker {broker_id} has not come back"
        elif broker is None or not broker.is_active:
            yield f"L3: broker {broker_id} is {broker}, and asks to be unfenced"
        known = process.metadata.image
        if (known.topics, known.partitions) != (image.topics, image.partitions):
            yield f"I12: broker {broker_id} has other metadata at {process.metadata.applied}"


def _leads(image: Image, broker_id: int) -> bool:
    return any(state.leader == broker_id for state in image.partitions.values())


def _partition(cluster: Cluster, image: Image, key: PartitionKey, state: PartitionState) -> Iterator[str]:
    name = image.names[key[0]], key[1]
    usable = [
        member
        for member in state.replicas
        if (broker := image.brokers.get(member)) is not None
        and broker.is_active
        and broker.has_online(state.directory_of(member))
        # A replica whose log directory has failed stays offline until its broker restarts, also if it was reassigned.
        and name not in cluster.brokers[member].machine.model.replicas.offline
    ]
    if state.leader < 0:
        if usable and (image.is_unclean(key[0]) or {*state.isr, *state.elr} & set(usable)):
            yield f"L1: {name} has no leader: {state}"
        return
    preferred = state.replicas[0]
    if preferred in usable and preferred in state.isr and state.leader != preferred:
        yield f"K11: {preferred} of {name} does not lead: {state}"
    # Kafka may elect a broker whose log directory fails while it is unfenced: no follower can replicate from it.
    if state.leader in usable and set(state.isr) != set(usable):
        yield f"L1: {name} has the ISR {state.isr}, although {usable} can replicate"
    # A replica that is added and removed at once stays so until a cancellation, as under Kafka.
    if state.adding and not set(state.adding) & set(state.removing) and set(state.replicas) <= set(usable):
        yield f"I21: the reassignment of {name} does not complete: {state}"
    for member in usable:
        yield from _replica(cluster, state, name, member)


def _replica(cluster: Cluster, state: PartitionState, name: tuple[str, int], member: int) -> Iterator[str]:
    """A replica knows its role, and has the records of the leader."""
    partition = cluster.brokers[member].machine.model.partitions.get(name)
    if partition is None or partition.log is None:
        yield f"I12: broker {member} has no log of {name}"
        return
    if (partition.leader, partition.leader_epoch) != (state.leader, state.leader_epoch):
        yield f"I12: broker {member} follows {partition.leader} in epoch {partition.leader_epoch} for {name}: {state}"
    led = cluster.brokers[state.leader].machine.model.partitions.get(name)
    if led is not None and led.log is not None and partition.log.records != led.log.records:
        yield f"I11: broker {member} has other records of {name} than the leader {state.leader}"


def _topics(cluster: Cluster, image: Image) -> Iterator[str]:
    admin = cluster.admin
    for name, topic_id in admin.topics.items():
        if name not in admin.uncertain and image.topics.get(name) != topic_id:
            yield f"K9: the creation of {name} was acknowledged, and it does not exist"
    for topic_id in admin.deleted & set(image.topics.values()):
        yield f"K9: the deletion of {topic_id} was acknowledged, and it exists"


def _records(cluster: Cluster, image: Image) -> Iterator[str]:
    """I10: acknowledged records are in the log of the leader."""
    for producer in cluster.producers:
        for topic_id, partition, offset, value in producer.acknowledged:
            key = topic_id, partition
            state = image.partitions.get(key)
            if state is None or state.leader < 0 or key in cluster.rules.unclean:
                continue
            name = image.names[topic_id], partition
            model = cluster.brokers[state.leader].machine.model
            if name in model.replicas.offline:
                continue  # Its log directory has failed, so that the records cannot be read.
            led = model.partitions.get(name)
            log = None if led is None else led.log
            content: Sequence[object] = () if log is None else [record.value for record in log.records]
            if offset >= len(content) or content[offset] != value:
                yield f"I10: record {value} of {name} was acknowledged at {offset}, and the leader lacks it"
