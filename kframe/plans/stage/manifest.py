"""The stages of a plan as a document that commands write and read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from kframe.errors import SnapshotError
from kframe.plans.file.read import Stamp
from kframe.snapshot.decode import Count, decode, refuse_repeated_keys
from kframe.snapshot.files import InputFile, read_document

SCHEMA: Final = "kframe.plan-stages/v1"
#: The file of the manifest in the folder of a staged plan.
MANIFEST_FILE: Final = "manifest.json"

Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
"""A number of replicas or bytes."""


class StagedReassignment(msgspec.Struct, forbid_unknown_fields=True):
    """A partition of a stage. ``before`` are its replicas in the snapshot, ``replicas`` those that it is to have.

    ``bytes`` is the size of one replica; null without sizes. ``observers`` are those of a partition that has any.
    """

    topic: str
    partition: Count
    before: list[Count]
    replicas: list[Count]
    bytes: Amount | None
    observers: list[Count] | msgspec.UnsetType = msgspec.UNSET


class StageBroker(msgspec.Struct, forbid_unknown_fields=True):
    """What a stage copies to a broker and from it. ``disk_peak`` is what its disks hold before old replicas are
    deleted. Bytes are null without sizes."""

    broker_id: Count
    moves_in: Amount
    moves_out: Amount
    bytes_in: Amount | None
    bytes_out: Amount | None
    disk_peak: Amount | None


class StageFailure(msgspec.Struct, forbid_unknown_fields=True):
    """Partitions of the stage that the failure of a broker harms while they are copied, or after the stage, but not
    before the plan.

    ``broker_id`` is null for what no failure causes; other rows leave that out. ``under_min_isr`` is null if topic
    settings are not known. ``unclean`` leaders are elected from replicas that may lack data.
    """

    broker_id: Count | None
    phase: Literal["during", "after"]
    offline: Amount
    under_min_isr: Amount | None
    unclean: Amount


class StageWindow(msgspec.Struct, forbid_unknown_fields=True):
    """When a stage runs at the earliest: the day, from 1, on which the window begins, and local times as HH:MM:SS."""

    day: Annotated[int, msgspec.Meta(ge=1)]
    window: str
    begin: str
    end: str


class PlanStage(msgspec.Struct, forbid_unknown_fields=True):
    """Reassignments that begin together, once those of the stage before have ended.

    ``file`` is the stage as Kafka's reassignment JSON, in the folder of the manifest. ``moves`` are the replicas that
    it copies. ``alone``: it has one reassignment that alone exceeds a limit. ``seconds`` is null without sizes and
    a rate, ``window`` also where no window is long enough.
    """

    number: Annotated[int, msgspec.Meta(ge=1)]
    file: str | None
    moves: Amount
    bytes: Amount | None
    alone: bool
    seconds: float | None
    window: StageWindow | None
    brokers: list[StageBroker]
    failures: list[StageFailure]
    reassignments: list[StagedReassignment]


class StageLimits(msgspec.Struct, forbid_unknown_fields=True):
    """The limits that each stage keeps, null for none. Those of brokers hold for inbound and for outbound copies.

    ``disk_capacity`` is in bytes by broker id. ``rate`` is the bytes per second into a broker, and out of it.
    """

    moves_per_broker: Amount | None = None
    moves: Amount | None = None
    bytes_in_flight: Amount | None = None
    bytes_per_broker: Amount | None = None
    disk_capacity: dict[str, Amount] | None = None
    rate: Amount | None = None
    windows: list[str] = []


class UnstagedReassignment(msgspec.Struct, forbid_unknown_fields=True):
    """A partition of the plan that no stage has, and why."""

    topic: str
    partition: int
    reason: Literal["invalid", "no-leader", "reassigning", "disk"]
    detail: str


class StagedSnapshot(msgspec.Struct, forbid_unknown_fields=True):
    """The snapshot that the stages were made from."""

    format: str
    name: str
    partitions: Amount


class StageManifest(msgspec.Struct, forbid_unknown_fields=True):
    """A plan in stages. They have each reassignment of the plan once, apart from ``unstaged``.

    ``stamp`` is that of the whole plan, before its first stage. No order within the limits has fewer stages than
    ``bound``; ``gap`` is the part of the bound by which the stages exceed it.
    """

    summary: str
    snapshot: StagedSnapshot
    stamp: Stamp
    limits: StageLimits
    bound: Amount
    gap: float
    stages: list[PlanStage]
    unstaged: list[UnstagedReassignment]
    notes: list[str]


class _Versioned(StageManifest):
    schema: Literal["kframe.plan-stages/v1"] = msgspec.field(name="schema")


_MANIFEST: Final = msgspec.json.Decoder(_Versioned)


def manifest_text(manifest: StageManifest) -> bytes:
    """The manifest as JSON with its schema, a reassignment a line."""
    fields = {"schema": SCHEMA, **msgspec.structs.asdict(manifest)}
    stages = fields.pop("stages")
    head = msgspec.json.encode(fields)[:-1]
    return head + b',"stages":[\n' + b",\n".join(map(_stage_text, stages)) + b"\n]}\n"


def read_manifest(path: InputFile) -> StageManifest:
    """Read a manifest: the file, or the folder that has it. Raises SnapshotError for a malformed document."""
    source = path / MANIFEST_FILE if isinstance(path, Path) and path.is_dir() else path
    text = read_document(source)
    refuse_repeated_keys(text, str(source))
    manifest = decode(_MANIFEST, text, str(source))
    for position, stage in enumerate(manifest.stages):
        if stage.number != position + 1:
            raise SnapshotError(f"{source} field stages[{position}].number", str(stage.number), str(position + 1))
    return manifest


def _stage_text(stage: PlanStage) -> bytes:
    fields = msgspec.structs.asdict(stage)
    reassignments = fields.pop("reassignments")
    head = msgspec.json.encode(fields)[:-1]
    return head + b',"reassignments":[\n' + b",\n".join(map(msgspec.json.encode, reassignments)) + b"\n]}"
