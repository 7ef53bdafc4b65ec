"""What a seed decides before the first event: the size of the cluster, and the settings of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final
from uuid import UUID

from kframe_kraft.log import LogSettings, RetentionSettings
from kframe_kraft.quorum import Voters
from kframe_kraft.server.node import NodeSettings
from kframe_kraft.server.snapshotting import SnapshotSettings

from kframe.model.kraft.ids import METADATA_VERSION, MetadataLevel
from kframe.plugin.kraft import control
from kframe.plugin.kraft_controller import LATEST_RELEASE, KraftSettings, Release, default_levels, supported_features
from verification.kraft.simulation.image import ELR_FEATURE
from verification.kraft.simulation.selectors import Choice

#: The node id of the controller.
CONTROLLER: Final = 90
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"
#: The first level of brokers of Kafka 4, and the first from which most clusters begin: it has record transactions,
#: directories and the registration of controllers.
_LOWEST_LEVEL: Final = 7
_USUAL_LEVEL: Final = 20
#: Releases whose rules differ.
RELEASES: Final = (Release(3, 9), Release(4, 0), Release(4, 2), Release(4, 3), LATEST_RELEASE)
#: What clusters with another release than the latest have: mostly the first with ELR.
_EARLIER: Final = (*RELEASES[:-1], *(Release(4, 0),) * 4)
_RACKS: Final = (None,), ("zone-1", "us-east-1a"), ("zone-1", "us-east-1a", "west"), (None, "zone-1", "west")
_ENDPOINT: Final = control.VoterEndpoint(name="CONTROLLER", host="localhost", port=9093)


@dataclass(frozen=True, slots=True)
class Options:
    """``faults`` and ``requests`` are played within ``duration_ms``. ``lag_ms`` is ``replica.lag.time.max.ms``."""

    seed: int
    brokers: int
    directories: int
    level: int
    is_dynamic: bool
    faults: int
    requests: int
    duration_ms: float
    lag_ms: float
    delay_ms: tuple[float, float]
    session_ms: int
    no_op_ms: int
    segment_bytes: int
    segment_ms: int
    retention: RetentionSettings
    snapshot_bytes: int
    ends_sessions: bool
    choice: Choice
    """What the leader selectors of plugins do."""
    release: Release
    elections_max: int
    min_isr: int
    """``min.insync.replicas`` of the cluster at first."""
    has_elr: bool
    """Whether ELR is on from the first level with it, not from the level where Kafka turns it on."""
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

    def voters(self) -> Voters:
        """The controller as the only voter."""
        return Voters((self.voter,), int(self.is_dynamic))

    def levels(self) -> dict[str, int]:
        """The levels of all features at the start."""
        levels = default_levels(self.level)
        return {**levels, ELR_FEATURE: 1} if self.has_elr and self.level >= MetadataLevel.ELR else levels

    def node_settings(self) -> NodeSettings:
        """The settings of the controller."""
        return NodeSettings(
            (_ENDPOINT,),
            Voters((self.voter,)),
            LogSettings(self.segment_bytes, self.segment_ms),
            SnapshotSettings(self.snapshot_bytes, 20_000),
            self.retention,
            session_timeout_ns=self.session_ms * 1_000_000,
            no_op_ms=self.no_op_ms,
            balance_ms=15_000,
            unclean_ms=15_000,
        )

    def kraft_settings(self) -> KraftSettings:
        """The settings of the rules."""
        return KraftSettings(
            cluster_id=CLUSTER_ID,
            node_id=CONTROLLER,
            ends_sessions_at_shutdown=self.ends_sessions,
            strict=True,
            release=self.release,
            max_elections=self.elections_max,
            supported_features=supported_features(self.release),
        )


def draw_options(seed: int) -> Options:
    """The options of a seed."""
    random = Random(seed)
    release = random.choice(_EARLIER) if random.random() < 0.5 else LATEST_RELEASE
    highest = supported_features(release)[METADATA_VERSION][1]
    options = Options(
        seed,
        brokers=random.choice((3, 3, 4, 5)),
        directories=random.choice((1, 1, 2)),
        level=random.choice((*range(_USUAL_LEVEL, highest), *(highest,) * 8))
        if random.random() < 0.85
        else random.randint(_LOWEST_LEVEL, _USUAL_LEVEL - 1),
        is_dynamic=random.random() < 0.5,
        faults=random.randint(5, 20),
        requests=random.randint(15, 60),
        duration_ms=random.uniform(30_000, 90_000),
        lag_ms=random.choice((2_000.0, 5_000.0, 10_000.0)),
        delay_ms=random.choice(((0.1, 2.0), (0.1, 20.0), (1.0, 200.0))),
        session_ms=random.choice((6_000, 9_000)),
        no_op_ms=random.choice((500, 2_000, 10_000)),
        segment_bytes=(segment_bytes := random.choice((1_000, 5_000, 50_000))),
        segment_ms=random.choice((5_000, 20_000, 10**9)),
        retention=random.choice(
            (
                RetentionSettings(2 * segment_bytes, 30_000),
                RetentionSettings(-1, 20_000),
                RetentionSettings(8 * segment_bytes, -1),
                RetentionSettings(-1, -1),
            )
        ),
        snapshot_bytes=random.choice((1_000, 5_000, 50_000)),
        ends_sessions=random.random() < 0.7,
        choice=random.choice((Choice.BUILTIN, Choice.BUILTIN, Choice.FIRST, Choice.LAST, Choice.INVALID)),
        release=release,
        elections_max=random.choice((1_000, 1_000, 2)),
        racks=random.choice(_RACKS),
        min_isr=random.choice((1, 2, 3)),
        has_elr=random.random() < 0.8,
    )
    # Below that level, the controller does not learn of failed directories: Kafka supports a single one.
    return options if options.level >= MetadataLevel.DIRECTORIES else replace(options, directories=1)
