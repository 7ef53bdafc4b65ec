"""The format of a file depends on its content, then on its name. An option overrides both."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kframe.errors import SnapshotError
from kframe.snapshot import FORMATS, detect_format, read_snapshot
from tests.snapshot.samples import CONTENT, DESCRIBE, kcat


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", CONTENT)
def test_by_content(name: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "whatever"
    content = CONTENT[name].encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    assert detect_format(path) == name
    assert read_snapshot(path).source.format == name
    assert read_snapshot(path).digest() == read_snapshot(path, name).digest()


@pytest.mark.parametrize(
    "content, expected",
    [
        (json.dumps(kcat(), indent=4), "kcat"),
        ("\n\n" + DESCRIBE, "describe"),
        ("Proposed partition reassignment configuration\n", "reassignment"),
        ("Current partition replica assignment\n", "reassignment"),
        ('{"data": null, "version": 0, "czxid": 0, "path": "/"}\n', "zookeeper"),
        ('{"partitions": [], "version": 1}', "reassignment"),
    ],
)
def test_format_is_detected_from_content(content: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "whatever"
    path.write_text(content)
    assert detect_format(path) == expected


@pytest.mark.parametrize(
    "name, expected",
    [
        ("a.zookeeper.jsonl", "zookeeper"),
        ("a.jsonl.gz", "zookeeper"),
        ("a.kcat.json", "kcat"),
        ("a.topics-describe.txt", "describe"),
        ("reassignment.json", "reassignment"),
    ],
)
def test_damaged_content_is_detected_by_file_name(name: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x00 damaged")
    assert detect_format(path) == expected


def test_directory_is_detected_as_kframe(tmp_path: Path) -> None:
    assert detect_format(tmp_path) == "kframe"


@pytest.mark.parametrize("content", [b"PK\x03\x04 a zip", b"hello\n", b"[1, 2]"])
def test_unknown_content_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "whatever"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match="expected one of kframe, zookeeper"):
        detect_format(path)


@pytest.mark.parametrize("content", [b"", b" \n\n", gzip.compress(b"")], ids=["nothing", "blank", "gzip of nothing"])
def test_empty_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.zookeeper.jsonl"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match="found an empty file, expected a snapshot"):
        read_snapshot(path)


def test_too_long_file_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="found File name too long"):
        read_snapshot(tmp_path / ("n" * 300))


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="format: found 'xml', expected one of kframe"):
        read_snapshot(tmp_path, "xml")


def test_command_line_offers_every_format() -> None:
    from kframe.cli.reading import FORMAT_NAMES

    assert tuple(FORMATS) == FORMAT_NAMES
