"""The log of a killed controller: what was acknowledged is in it, and what it had is still there."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kframe_kraft.sources.detection import LOG_DIRECTORY
from kframe_kraft.sources.paths import read_image

from kframe.plugin.kraft import ClusterMetadata
from verification.kraft.kills.load import Acknowledged

#: Base offset and length at the head of a batch.
_HEAD: Final = struct.Struct(">qi")
_TOPIC: Final = 2


def contradictions(directory: Path, acknowledged: Acknowledged) -> Iterator[str]:
    """What the metadata in a directory lacks or has against the acknowledgements."""
    has_records = any(complete_batches(directory / LOG_DIRECTORY).values())
    metadata = read_image(directory).metadata if has_records else ClusterMetadata()
    topics = {name: metadata.topics.ids[index] for name, index in metadata.topics.index_by_name.items()}
    for name, topic_id in acknowledged.topics.items():
        if name not in topics and name not in acknowledged.open:
            yield f"topic {name} was created and is missing"
        elif name in topics and topics[name] != topic_id:
            yield f"topic {name} has id {topics[name]}, acknowledged was {topic_id}"
    for name in topics.keys() & acknowledged.deleted:
        yield f"topic {name} was deleted and exists"
    for name in topics.keys() - acknowledged.topics.keys() - acknowledged.open:
        yield f"topic {name} was never requested"
    for name, retention in acknowledged.retention.items():
        stored = metadata.configs.get((_TOPIC, name), {}).get("retention.ms")
        if stored != retention and name not in acknowledged.open:
            yield f"topic {name} has retention.ms {stored}, acknowledged was {retention}"


def complete_batches(log_directory: Path) -> dict[str, bytes]:
    """The complete batches of each segment, by the name of its file."""
    segments = {}
    for path in sorted(log_directory.glob("*.log")):
        content, end = path.read_bytes(), 0
        while len(content) - end >= _HEAD.size:
            size = _HEAD.size + _HEAD.unpack_from(content, end)[1]
            if len(content) - end < size:
                break
            end += size
        segments[path.name] = content[:end]
    return segments


def prefixes(segments: Mapping[str, bytes]) -> dict[str, tuple[int, str]]:
    """Size and digest of the batches of each segment."""
    return {name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in segments.items()}


def rewritten(before: Mapping[str, tuple[int, str]], segments: Mapping[str, bytes]) -> Iterator[str]:
    """The segments that do not begin with what they had before. Removed ones are older than a snapshot."""
    for name, (size, digest) in before.items():
        content = segments.get(name)
        if content is not None and hashlib.sha256(content[:size]).hexdigest() != digest:
            yield f"segment {name} does not begin with the {size} bytes that it had"
