"""The metadata of a cluster from files of a KRaft node: directories, snapshots, segments, and dumps."""

from __future__ import annotations

from kframe_kraft.sources.dumps import read_dump
from kframe_kraft.sources.image import MetadataImage, Timeline, image_of
from kframe_kraft.sources.paths import NodeSource, read_image, read_source

__all__ = ["MetadataImage", "NodeSource", "Timeline", "image_of", "read_dump", "read_image", "read_source"]
