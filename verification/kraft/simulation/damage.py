"""Damage of the files in the controller's directory while no process has it open."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from crc32c import crc32c

from verification.kraft.simulation.history import WrittenBatch
from verification.kraft.simulation.log_model import snapshot_ids


@dataclass(frozen=True, slots=True)
class Damage:
    """Files that were changed. ``former`` has their content before if the log must not be opened so."""

    what: str
    former: Mapping[Path, bytes] | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the log must not be opened."""
        return self.former is not None

    def repair(self) -> None:
        """Bring the former content back."""
        for path, content in (self.former or {}).items():
            path.write_bytes(content)


def damage_directory(directory: Path, batches: Sequence[WrittenBatch], random: Random) -> Damage | None:
    """Damage something; None if there is nothing to damage yet."""
    acknowledged = directory / "acknowledged"
    if not acknowledged.exists():
        return None
    content = acknowledged.read_bytes()
    (end,) = struct.unpack_from(">q", content)
    match random.randrange(8):
        case 0:
            name = random.choice(("00000000000000000009.log.deleted", "0.checkpoint.part", "quorum-state.tmp"))
            (directory / name).write_bytes(b"left")
            return Damage(name)
        case 1:
            name = random.choice(("leader-epoch-checkpoint", "partition.metadata"))
            (directory / name).unlink(missing_ok=True)
            return Damage(name)
        case 2:
            wrong = random.choice(
                (content[:-1], content + b"\0", content[:-1] + bytes([content[-1] ^ 1]), _acknowledged(-2))
            )
            return _replaced({acknowledged: wrong})
        case 3:
            last = batches[-1].end if batches else 0
            return _replaced({acknowledged: _acknowledged(last + random.randint(1_000, 9_000))})
        case 4:
            # A power failure may leave an older one.
            acknowledged.write_bytes(_acknowledged(random.choice((0, 0, random.randint(0, end)))))
            return Damage("acknowledged")
        case 5:
            return _with_gap(directory, random)
        case 6:
            return _with_hole(directory, batches, random)
        case _:
            return _flipped(directory, batches, end, random)


def _replaced(content: Mapping[Path, bytes]) -> Damage:
    damage = Damage(" and ".join(path.name for path in content), {path: path.read_bytes() for path in content})
    for path, changed in content.items():
        path.write_bytes(changed)
    return damage


def _with_hole(directory: Path, batches: Sequence[WrittenBatch], random: Random) -> Damage | None:
    """Leave a hole and a complete batch after the last one, as a power failure may. It is cut, unless a file has other
    damage too, or what comes after the hole was acknowledged."""
    if not batches:
        return None
    path = max(directory.glob("*.log"))
    content, last = path.read_bytes(), batches[-1]
    if not content.endswith(last.content):
        return None  # The end was not written completely.
    following = struct.pack(">q", last.end + last.end - last.base) + last.content[8:]
    changed = {path: content + bytes(len(last.content)) + following}
    acknowledged, snapshots = directory / "acknowledged", sorted(directory.glob("*.checkpoint"))
    match random.randrange(3):
        case 0:
            changed[acknowledged] = _acknowledged(last.end + 1)
        case 1 if (newest := snapshots[-1]).name[:20].strip("0"):
            damaged = bytearray(newest.read_bytes())
            damaged[random.randrange(17, len(damaged))] ^= 1
            changed[newest] = bytes(damaged)
        case _:
            path.write_bytes(changed[path])
            return Damage(f"end of {path.name}")
    return _replaced(changed)


def _with_gap(directory: Path, random: Random) -> Damage | None:
    """Remove a segment before the newest snapshot, and none before it: as a crash does when the log is shortened."""
    newest = max((snapshot_id.offset for snapshot_id in snapshot_ids(directory)), default=0)
    paths = sorted(directory.glob("*.log"))
    removable = [path for path, following in pairwise(paths) if int(following.stem) <= newest and path != paths[0]]
    if not removable:
        return None
    path = random.choice(removable)
    path.unlink()
    return Damage(f"gap for {path.name}")


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
    acknowledged = directory / "acknowledged"
    if path == max(directory.glob("*.log")) or random.random() < 0.5:
        return _replaced({path: bytes(changed)})
    # Only the last segment may end in records that are not durable.
    return _replaced({path: bytes(changed), acknowledged: _acknowledged(0)})


def _acknowledged(end: int) -> bytes:
    number = struct.pack(">q", end)
    return number + struct.pack(">I", crc32c(number))
