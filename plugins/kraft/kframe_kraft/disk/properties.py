"""``meta.properties``: the identity of a node's directory (Kafka ``MetaProperties``, version 1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from kframe.plugin.kraft import directory_ids, uuid_of_text, uuid_text
from kframe.plugin.settings import parse_whole
from kframe_kraft.disk.atomic import replace_file
from kframe_kraft.errors import LogError

FILE_NAME: Final = "meta.properties"


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """``directory_id`` is None in directories that are older than directory ids."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None = None


def read_properties(directory: Path) -> MetaProperties:
    """Return the content of a directory's file. Raises LogError if it is missing or malformed."""
    path = directory / FILE_NAME
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise LogError(str(path), "no such file", "cluster.id and node.id of the node") from None
    except UnicodeDecodeError as error:
        raise LogError(str(path), f"broken UTF-8 (byte {error.object[error.start]:#04x})", "UTF-8") from error
    except OSError as error:
        raise LogError(str(path), error.strerror or str(error), "a readable file") from error
    pairs = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith(("#", "!")))
    values = {key.strip(): value.strip().replace("\\:", ":").replace("\\=", "=") for key, _, value in pairs}
    if values.get("version") != "1":
        raise LogError(f"{path}, version", repr(values.get("version")), "1")
    if not values.get("cluster.id"):
        raise LogError(f"{path}, cluster.id", "nothing", "a cluster id")
    node_id = parse_whole(values.get("node.id", ""))
    if node_id is None:
        raise LogError(f"{path}, node.id", repr(values.get("node.id"))[:100], "a whole number from 0 to 2147483647")
    text = values.get("directory.id")
    try:
        directory_id = None if text is None else uuid_of_text(text)
    except ValueError as error:
        raise LogError(f"{path}, directory.id", repr(text)[:100], "22 characters of URL-safe base64") from error
    if directory_id is not None and directory_ids.is_reserved(directory_id):
        raise LogError(f"{path}, directory.id", f"the reserved id {uuid_text(directory_id)}", "another id")
    return MetaProperties(values["cluster.id"], node_id, directory_id)


def write_properties(directory: Path, properties: MetaProperties) -> None:
    """Replace a directory's file."""
    lines = [f"cluster.id={properties.cluster_id}", f"node.id={properties.node_id}", "version=1"]
    if properties.directory_id is not None:
        lines.insert(1, f"directory.id={uuid_text(properties.directory_id)}")
    replace_file(directory / FILE_NAME, "".join(f"{line}\n" for line in lines).encode())
