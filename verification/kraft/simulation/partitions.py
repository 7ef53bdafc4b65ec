"""What a broker does with new metadata (Kafka 4.4 ``ReplicaManager.applyDelta``, ``BrokerMetadataPublisher``)."""

from __future__ import annotations

from uuid import UUID

from kframe.model.events import TopicPartition
from kframe.model.ids import EPOCH_DURING_DELETE
from kframe.plugin.kraft import directory_ids
from kframe_simulator.broker import Broker
from kframe_simulator.broker.disks import StorageError
from kframe_simulator.broker.messages import LeaderState, PartitionMetadata, Stop, StopReplica
from kframe_simulator.broker.partition import Partition
from kframe_simulator.simulation.scheduler import Scheduler
from verification.kraft.simulation.image import Image, PartitionKey, PartitionState
from verification.kraft.simulation.options import CONTROLLER


class Publisher:
    """Lets the replicas of a broker's process follow its metadata."""

    def __init__(self, model: Broker, directories: dict[str, UUID], scheduler: Scheduler) -> None:
        self._model = model
        self._directories = directories
        self._scheduler = scheduler
        self._names: dict[PartitionKey, TopicPartition] = {}
        self._is_first = True

    def publish(self, image: Image) -> None:
        """Follow the partitions that have changed; at first all."""
        model, changed = self._model, image.changed
        if self._is_first:
            self._is_first, changed = False, set(image.partitions)
            self._delete_removed(image)
        node = model.replicas.node
        node.cache.controller_id = CONTROLLER
        node.cache.live_brokers = frozenset(key for key, broker in image.brokers.items() if broker.is_active)
        for name, topic_id in image.topics.items():
            node.min_insync[name] = image.configured_min_isr(topic_id)
        removed = [key for key in changed if not image.has_replica(key, self._model.broker_id)]
        for key in sorted(removed):
            self._remove(image, key)
        for key in sorted(changed - set(removed)):
            self._follow(image, key)
        for key in sorted(changed & image.partitions.keys()):
            self._cache(image, key)
        image.changed = set()

    def misplaced(self, image: Image) -> dict[PartitionKey, UUID]:
        """The directories of the replicas that the controller has in another directory."""
        own_id, logs = self._model.broker_id, self._model.disks.logs
        return {
            key: self._directories[log.log_dir]
            for key, name in self._names.items()
            if (log := logs.get(name)) is not None
            and image.has_replica(key, own_id)
            and image.partitions[key].directory_of(own_id) != self._directories[log.log_dir]
        }

    def _delete_removed(self, image: Image) -> None:
        """Delete the logs of topics that were deleted, or moved, while the broker was down."""
        disks = self._model.disks
        for name, log in list(disks.logs.items()):
            if not image.has_replica((UUID(bytes=log.topic_id), name[1]), self._model.broker_id):
                disks.delete(name)

    def _remove(self, image: Image, key: PartitionKey) -> None:
        name = self._names.pop(key, None)
        cache = self._model.replicas.node.cache
        if name is not None:
            stop = StopReplica(CONTROLLER, 0, -1, {name: Stop(EPOCH_DURING_DELETE, delete=True)})
            self._model.replicas.stop_replicas(stop, self._scheduler.now_ms)
        known = image.names.get(key[0], ""), key[1]
        if key not in image.partitions and image.topics.get(known[0]) in (None, key[0]):
            cache.partitions.pop(known, None)

    def _cache(self, image: Image, key: PartitionKey) -> None:
        state = image.partitions[key]
        self._model.replicas.node.cache.partitions[image.names[key[0]], key[1]] = PartitionMetadata(
            state.leader, state.leader_epoch, state.isr, state.partition_epoch, state.replicas
        )

    def _follow(self, image: Image, key: PartitionKey) -> None:
        """Lead or follow a partition."""
        replicas, now, state = self._model.replicas, self._scheduler.now_ms, image.partitions[key]
        name = image.names[key[0]], key[1]
        self._names[key] = name
        if name in replicas.offline:
            return
        partition = replicas.partitions.get(name)
        if partition is None:
            partition = Partition(name, replicas.node, replicas.proposals.submit)
            replicas.partitions[name] = partition
        try:
            self._assume(partition, self._leader_state(state), key[0].bytes, state.leader)
        except StorageError:
            replicas.fail_log(name, now)

    def _assume(self, partition: Partition, state: LeaderState, topic_id: bytes, leader: int) -> None:
        replicas, now = self._model.replicas, self._scheduler.now_ms
        if leader == self._model.broker_id:
            replicas.fetcher.stop(partition.key)
            partition.make_leader(state, topic_id, now)
            return
        is_new_epoch = partition.make_follower(state, topic_id, now)
        if not is_new_epoch or partition.log is None:
            return
        replicas.fetcher.stop(partition.key)
        if leader >= 0 and not replicas.shutting_down:
            replicas.fetcher.follow(partition.key, partition.log, leader, state.leader_epoch, topic_id, now)

    def _leader_state(self, state: PartitionState) -> LeaderState:
        directory = state.directory_of(self._model.broker_id)
        names = [name for name, directory_id in self._directories.items() if directory_id == directory]
        alive = self._model.disks.alive
        is_new = directory == directory_ids.UNASSIGNED or any(alive[name] for name in names)
        return LeaderState(
            0,
            state.leader,
            state.leader_epoch,
            state.isr,
            state.partition_epoch,
            state.replicas,
            state.adding,
            state.removing,
            is_new,
            state.recovery,
        )
