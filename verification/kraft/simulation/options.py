"""What a seed decides before the first event: the size of the cluster, and the settings of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final
from uuid import UUID

from kframe_kraft.log import LogSettings, RetentionSettings
from kframe_kraft.quorum import Voters
from kframe_kraft.server.node import NodeSettings
from kframe_kraft.server.snapshotting import SnapshotSettings

from kframe.plugin import ElectionBatch, ElectionKind, LeaderSelector
from kframe.plugin.columns import Int32
from kframe.plugin.kraft import control
from kframe.plugin.kraft_controller import KraftSettings, default_levels

#: The node id of the controller.
CONTROLLER: Final = 90
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"
#: The first level with record transactions, directories and the registration of controllers, and the last.
_LEVELS: Final = (20, 33)
_RACKS: Final = (None,), ("zone-1", "us-east-1a"), ("zone-1", "us-east-1a", "west"), (None, "zone-1", "west")
_ENDPOINT: Final = control.VoterEndpoint(name="CONTROLLER", host="localhost", port=9093)


class FirstReplica:
    """A leader selector that chooses as Kafka: the first replica that may lead."""

    name = "first-replica"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Write the leaders."""
        offsets = batch.candidates.offsets
        for position in range(len(batch)):
            span = slice(offsets[position], offsets[position + 1])
            leader[position] = batch.candidates.values[span][batch.may_lead[span] != 0][0]


@dataclass(frozen=True, slots=True)
class Options:
    """``actions`` are played within ``duration_ms``. ``lag_ms`` is ``replica.lag.time.max.ms``."""

    seed: int
    brokers: int
    directories: int
    level: int
    is_dynamic: bool
    actions: int
    duration_ms: float
    lag_ms: float
    delay_ms: tuple[float, float]
    session_ms: int
    no_op_ms: int
    segment_bytes: int
    snapshot_bytes: int
    ends_sessions: bool
    has_selector: bool
    racks: tuple[str | None, ...]
    """Those of the brokers, in turn."""

    @property
    def directory_id(self) -> UUID:
        """The directory of the controller's log."""
        return UUID(int=(1 << 96) + self.seed)

    @property
    def voter(self) -> control.Voter:
        """The controller."""
        return control.Voter(voter_id=CONTROLLER, voter_directory_id=self.directory_id, endpoints=(_ENDPOINT,))

    def levels(self) -> dict[str, int]:
        """The levels of all features at the start."""
        return default_levels(self.level)

    def node_settings(self) -> NodeSettings:
        """The settings of the controller."""
        return NodeSettings(
            (_ENDPOINT,),
            Voters((self.voter,)),
            LogSettings(segment_bytes=self.segment_bytes),
            SnapshotSettings(self.snapshot_bytes, 20_000),
            RetentionSettings(2 * self.segment_bytes, 30_000),
            session_timeout_ns=self.session_ms * 1_000_000,
            no_op_ms=self.no_op_ms,
            balance_ms=15_000,
            unclean_ms=15_000,
        )

    def selectors(self) -> dict[ElectionKind, LeaderSelector]:
        """The leader selectors of plugins."""
        return dict.fromkeys(ElectionKind, FirstReplica()) if self.has_selector else {}

    def kraft_settings(self) -> KraftSettings:
        """The settings of the rules."""
        return KraftSettings(ends_sessions_at_shutdown=self.ends_sessions, strict=True)


def draw_options(seed: int) -> Options:
    """The options of a seed."""
    random = Random(seed)
    return Options(
        seed,
        brokers=random.choice((3, 3, 4, 5)),
        directories=random.choice((1, 1, 2)),
        level=random.choice((*range(_LEVELS[0], _LEVELS[1]), *(_LEVELS[1],) * 4)),
        is_dynamic=random.random() < 0.5,
        actions=random.randint(8, 30),
        duration_ms=random.uniform(30_000, 90_000),
        lag_ms=random.choice((2_000.0, 5_000.0, 10_000.0)),
        delay_ms=random.choice(((0.1, 2.0), (0.1, 20.0), (1.0, 200.0))),
        session_ms=random.choice((6_000, 9_000)),
        no_op_ms=random.choice((500, 2_000, 10_000)),
        segment_bytes=random.choice((1_000, 5_000, 50_000)),
        snapshot_bytes=random.choice((1_000, 5_000, 50_000)),
        ends_sessions=random.random() < 0.7,
        has_selector=random.random() < 0.3,
        racks=random.choice(_RACKS),
    )
