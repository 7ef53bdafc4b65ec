"""A long run in parts, saved as they complete. Parts of the same build can be summed.

A part is a line of JSON: the seeds, their totals, and a hash of the build. An interrupted run continues after its last
part. Parts may come from several machines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

import kframe
from kframe.errors import InputError
from kframe.snapshot.decode import decode, refuse_repeated_keys
from kframe_simulator.simulation.run import Totals

SCHEMA: Final = "kframe.sim-part/v1"
#: Seeds of a part. An interruption loses at most one part, some minutes of work.
SEEDS: Final = 500
_SOURCES: Final = (".py", ".pyx", ".pxd", ".h")
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _SavedPart(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A line of the file: ``SimCounts`` of the seeds, with zeros left out."""

    schema: Literal["kframe.sim-part/v1"]
    build: str
    first_seed: _Number
    last_seed: _Number
    failed: dict[str, str] = {}
    seeds: _Number = 0
    events: _Number = 0
    events_least: _Number = 0
    simulated_seconds: _Number = 0
    failed_seeds: _Number = 0
    faults: dict[str, _Number] = {}
    actions: dict[str, _Number] = {}
    looks: dict[str, _Number] = {}
    counts: dict[str, _Number] = {}


_PART: Final = msgspec.json.Decoder(_SavedPart)


@cache
def build() -> str:
    """A hash of the sources of kframe and the simulator. Other sources may produce another history for a seed."""
    digest = hashlib.blake2b(digest_size=8)
    for root in (Path(kframe.__file__).parent, Path(__file__).parents[1]):
        for path in sorted(path for path in root.rglob("*") if path.suffix in _SOURCES):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def append_part(path: Path, seeds: range, totals: Totals) -> None:
    """Append the totals of ``seeds`` (ascending, without a gap) as a part."""
    failed = {str(result.options.seed): result.violations[0].number for result in totals.failed}
    part = {"schema": SCHEMA, "build": build(), "first_seed": seeds[0], "last_seed": seeds[-1], "failed": failed}
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps({**part, **totals.to_dict()})}\n")


def read_parts(path: Path) -> list[dict[str, Any]]:
    """The parts in a file, sorted by seed. None if there is no file. Raises InputError, also if parts overlap or come
    from several builds."""
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as error:
        raise InputError(str(path), error.strerror or "an unreadable file", f"lines of JSON ({SCHEMA})") from error
    parts = [_part(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]
    parts.sort(key=lambda part: part["first_seed"])
    builds = sorted({part["build"] for part in parts})
    if len(builds) > 1:
        raise InputError(str(path), f"parts of the builds {', '.join(builds)}", "parts of one build")
    for before, after in pairwise(parts):
        if after["first_seed"] <= before["last_seed"]:
            raise InputError(str(path), f"seed {after['first_seed']} in two parts", "each seed once")
    return parts


def _part(line: bytes, where: str) -> dict[str, Any]:
    part = decode(_PART, line, where, InputError)
    refuse_repeated_keys(line, where, InputError)
    if part.last_seed < part.first_seed:
        raise InputError(f"{where} field last_seed", str(part.last_seed), f"{part.first_seed} or more, the first seed")
    fields: dict[str, Any] = msgspec.json.decode(line)
    return fields


def missing(seeds: range, parts: Sequence[Mapping[str, Any]]) -> Iterator[range]:
    """The seeds that no part (sorted by seed) contains, in ranges of one part each. Raises InputError for parts of
    another build."""
    if parts and parts[0]["build"] != build():
        raise InputError("parts", f"those of build {parts[0]['build']}", f"those of this build, {build()}")
    start = seeds.start
    for first, last in [*((part["first_seed"], part["last_seed"]) for part in parts), (seeds.stop, seeds.stop)]:
        for begin in range(start, min(first, seeds.stop), SEEDS):
            yield range(begin, min(begin + SEEDS, first, seeds.stop))
        start = max(start, last + 1)


def sum_parts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of ``parts`` (at least one)."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = value if name not in total else _added(name, total[name], value)
    return {name: value for name, value in total.items() if name != "schema"} | {"parts": len(parts)}


def _added(name: str, before: Any, value: Any) -> Any:
    if name in ("first_seed", "events_least"):
        return min(before, value)
    if name == "last_seed":
        return max(before, value)
    if isinstance(value, str):
        return value
    if name == "failed":
        return before | value
    if isinstance(value, dict):
        return {key: before.get(key, 0) + value.get(key, 0) for key in sorted({*before, *value})}
    return before + value
