"""``quorum-state``: the durable epoch, leader and vote of a node (Kafka ``FileQuorumStateStore``)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from kframe.plugin.kraft import directory_ids, uuid_of_text, uuid_text
from kframe.plugin.snapshot import unique_keys
from kframe_kraft.disk.atomic import replace_file
from kframe_kraft.errors import LogError

FILE_NAME: Final = "quorum-state"


@dataclass(frozen=True, slots=True)
class QuorumState:
    """``data_version`` is 0 with kraft.version 0, else 1. Ids of -1 are unknown.

    Version 0 has ``voters``; version 1 has ``voted_directory_id``.
    """

    leader_epoch: int
    leader_id: int = -1
    voted_id: int = -1
    voted_directory_id: UUID = directory_ids.ZERO_UUID
    voters: tuple[int, ...] = ()
    data_version: int = 0


def read_quorum_state(directory: Path) -> QuorumState | None:
    """Return the state in a log's directory, or None if there is none. Raises LogError if it is malformed."""
    path = directory / FILE_NAME
    try:
        document = json.loads(path.read_bytes(), object_pairs_hook=unique_keys)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogError(str(path), error.strerror or str(error), "a readable file") from error
    except (ValueError, RecursionError) as error:
        raise LogError(str(path), f"malformed JSON ({str(error)[:200]})", "a JSON object") from error
    version = document.get("data_version") if isinstance(document, dict) else None
    if version not in (0, 1):
        raise LogError(f"{path}, data_version", repr(version)[:100], "0 or 1")
    try:
        directory_id = uuid_of_text(document["votedDirectoryId"]) if version == 1 else directory_ids.ZERO_UUID
        voters = document["currentVoters"] or () if version == 0 else ()
        return QuorumState(
            _int32(document["leaderEpoch"], 0),
            _int32(document["leaderId"], -1),
            _int32(document["votedId"], -1),
            directory_id,
            tuple(_int32(voter["voterId"], 0) for voter in voters),
            version,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LogError(str(path), repr(document)[:200], f"the fields of version {version} ({error!r})") from error


def write_quorum_state(directory: Path, state: QuorumState) -> None:
    """Replace the state in a log's directory; it is durable on return."""
    fields: dict[str, Any] = {"clusterId": ""} if state.data_version == 0 else {}
    fields |= {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": state.voted_id}
    if state.data_version == 0:
        fields |= {"appliedOffset": 0, "currentVoters": [{"voterId": voter} for voter in state.voters]}
    else:
        fields["votedDirectoryId"] = uuid_text(state.voted_directory_id)
    fields["data_version"] = state.data_version
    replace_file(directory / FILE_NAME, json.dumps(fields, separators=(",", ":")).encode())


def _int32(value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
        raise ValueError(f"{value!r} is no int32 from {least}")
    return value
