"""What a simulation plays at random times, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final, TypeAlias

from verification.kraft.simulation.administration import (
    cancel,
    configure,
    elect,
    interrupt,
    list_reassignments,
    propose,
    raise_level,
    reassign,
    unregister,
)
from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.faults import (
    cordon_directories,
    cut_brokers,
    cut_controller,
    fail_directory,
    fail_sync,
    fill_disk,
    freeze_broker,
    freeze_controller,
    kill_broker,
    kill_controller,
    roll_brokers,
    slow_disk,
    stop_at_operation,
    stop_broker,
    stop_controller,
    stop_during_failover,
)
from verification.kraft.simulation.forged_requests import (
    allocate_producer_ids,
    assign_again,
    register_broker,
    register_controller,
    send_heartbeat,
    unregister_controller,
)
from verification.kraft.simulation.topics import (
    add_partitions,
    create_topic,
    delete_topic,
    request_creations,
    request_deletions,
    request_partitions,
)

Action: TypeAlias = Callable[[Cluster, Random], None]

#: Faults with their weights.
FAULTS: Final[Mapping[Action, int]] = {
    kill_controller: 4,
    stop_at_operation: 6,
    fill_disk: 1,
    fail_sync: 1,
    slow_disk: 1,
    stop_controller: 2,
    freeze_controller: 3,
    kill_broker: 8,
    stop_broker: 6,
    stop_during_failover: 3,
    roll_brokers: 1,
    freeze_broker: 4,
    fail_directory: 3,
    cordon_directories: 2,
    cut_controller: 6,
    cut_brokers: 6,
}
#: Requests with their weights.
REQUESTS: Final[Mapping[Action, int]] = {
    create_topic: 4,
    delete_topic: 2,
    add_partitions: 2,
    reassign: 12,
    cancel: 5,
    interrupt: 3,
    list_reassignments: 3,
    propose: 6,
    elect: 6,
    configure: 6,
    raise_level: 3,
    unregister: 2,
    request_creations: 6,
    request_partitions: 4,
    request_deletions: 2,
    register_broker: 6,
    send_heartbeat: 4,
    assign_again: 3,
    allocate_producer_ids: 2,
    register_controller: 1,
    unregister_controller: 1,
}
