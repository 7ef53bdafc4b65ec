"""Damage of the files in the controller's directory while no process has it open."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from crc32c import crc32c

from verification.kraft.simulation.history import WrittenBatch
from verification.kraft.simulation.log_model import snapshot_ids


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that was damaged, and its content before if the log must not be opened so."""

    path: Path
    content: bytes | None

    @property
    def is_refused(self) -> bool:
        """Whether the log must not be opened."""
        return self.content is not None

    def repair(self) -> None:
        """Bring the former content back."""
        if self.content is not None:
            self.path.write_bytes(self.content)


def damage_directory(directory: Path, batches: Sequence[WrittenBatch], random: Random) -> Damage | None:
    """Damage something; None if there is nothing to damage yet."""
    acknowledged = directory / "acknowledged"
    if not acknowledged.exists():
        return None
    content = acknowledged.read_bytes()
    (end,) = struct.unpack_from(">q", content)
    match random.randrange(6):
        case 0:
            name = random.choice(("00000000000000000009.log.deleted", "0.checkpoint.part", "quorum-state.tmp"))
            (directory / name).write_bytes(b"left")
            return Damage(directory / name, None)
        case 1:
            path = directory / random.choice(("leader-epoch-checkpoint", "partition.metadata"))
            path.unlink(missing_ok=True)
            return Damage(path, None)
        case 2:
            wrong = random.choice(
                (content[:-1], content + b"\0", content[:-1] + bytes([content[-1] ^ 1]), _acknowledged(-2))
            )
            return _replaced(acknowledged, wrong)
        case 3:
            last = batches[-1].end if batches else 0
            return _replaced(acknowledged, _acknowledged(last + random.randint(1_000, 9_000)))
        case 4:
            return _with_gap(directory, random)
        case _:
            return _flipped(directory, batches, end, random)


def _replaced(path: Path, content: bytes) -> Damage:
    damage = Damage(path, path.read_bytes())
    path.write_bytes(content)
    return damage


def _with_gap(directory: Path, random: Random) -> Damage | None:
    """Remove a segment before the newest snapshot, and none before it: as a crash does when the log is shortened."""
    newest = max((snapshot_id.offset for snapshot_id in snapshot_ids(directory)), default=0)
    paths = sorted(directory.glob("*.log"))
    removable = [path for path, following in pairwise(paths) if int(following.stem) <= newest and path != paths[0]]
    if not removable:
        return None
    path = random.choice(removable)
    path.unlink()
    return Damage(path, None)


def _flipped(directory: Path, batches: Sequence[WrittenBatch], end: int, random: Random) -> Damage | None:
    """Change a byte of an acknowledged batch after the newest snapshot."""
    first = max((snapshot_id.offset for snapshot_id in snapshot_ids(directory)), default=0)
    known = [batch for batch in batches if first <= batch.base and batch.end <= end]
    if not known:
        return None
    batch = random.choice(known)
    path = max(path for path in directory.glob("*.log") if int(path.stem) <= batch.base)
    content = path.read_bytes()
    position = content.find(batch.content)
    if position < 0:
        return None
    changed = bytearray(content)
    changed[position + random.randrange(17, len(batch.content))] ^= 1 << random.randrange(8)
    return _replaced(path, bytes(changed))


def _acknowledged(end: int) -> bytes:
    number = struct.pack(">q", end)
    return number + struct.pack(">I", crc32c(number))
