"""Who leads the quorum, and what is committed: a state machine without files, sockets, threads and clocks.

Rules of a quorum of one voter (Kafka 4.4 ``KafkaRaftClient``, KIP-595, KIP-853, KIP-1166):

1. The voter stands in an epoch above every one that its directory knows, also after an orderly stop, because a record
   is identified by epoch and offset. The epoch is durable before anything of it is sent.
2. The first batch of the epoch has a LeaderChange. With kraft.version 1 it repeats the voters, unless the log has them.
3. The high watermark is the end of what is durable here, once that is above the first batch. It never falls.
4. A replica that fetches from offset n has everything below n. The leader sends it records that are not committed.
5. A replica with another history is sent the end of the last epoch that both have, or the newest snapshot.
6. A Fetch without new records or a new high watermark is delayed, because brokers repeat a request at once.
"""

from __future__ import annotations

from kframe_kraft.quorum.fetches import FetchAnswer, FetchService, PendingFetch, ReadableLog, ReplicaFetch
from kframe_kraft.quorum.leadership import Leadership, ReplicaProgress
from kframe_kraft.quorum.quorum import Role, SoleVoter
from kframe_kraft.quorum.voters import ReplicaKey, Voters

__all__ = [
    "FetchAnswer",
    "FetchService",
    "Leadership",
    "PendingFetch",
    "ReadableLog",
    "ReplicaFetch",
    "ReplicaKey",
    "ReplicaProgress",
    "Role",
    "SoleVoter",
    "Voters",
]
