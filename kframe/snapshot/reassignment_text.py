"""The documents in what ``kafka-reassign-partitions`` prints, and the text of its ``--list`` and ``--verify``.

Kafka's ``ReassignPartitionsCommand``, releases 0.8 to 4.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kframe.errors import SnapshotError
from kframe.model.texts import short_repr
from kframe.snapshot.decode import text_repr
from kframe.snapshot.files import InputFile, read_document

CURRENT_HEADING: Final = "Current partition replica assignment"
PROPOSED_HEADING: Final = "Proposed partition reassignment configuration"
LIST_HEADING: Final = "Current partition reassignments:"
EMPTY_LIST: Final = "No partition reassignments found."
VERIFY_HEADING: Final = "Status of partition reassignment:"
#: What ``--execute`` prints after the current assignment: that it is the plan of the rollback.
_ROLLBACK: Final = re.compile(rb"Save this to use as the --reassignment-json-file option during rollback\.?")
#: Further lines of ``--execute``. They report success.
_EXECUTED: Final = re.compile(
    rb"Successfully started |Warning: You must run |The (?:inter-broker |replica-alter-dir )?throttle limit was set to "
)
_LISTED: Final = re.compile(
    r"(\S+)-([0-9]{1,10}): replicas: ([0-9,]+)\.(?: adding: ([0-9,]+)\.)?(?: removing: ([0-9,]+)\.)?"
)
_VERIFIED: Final = re.compile(
    r"There is no active reassignment of partition (\S+)-([0-9]{1,10}), but replica set is ([0-9,]+) rather than "
    r"[0-9,]*\."
)
#: Lines after the states of ``--verify``.
_THROTTLES: Final = re.compile(r"Clearing (?:broker|topic)-level throttles |Throttle was removed\.")
_PLAN: Final = "the JSON of a plan, or the output of --generate or --execute"


class Document(NamedTuple):
    """A JSON document that is not decoded, and its location."""

    raw: bytes
    where: str


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a file. ``current`` is None unless a heading marks it; a bare document is the proposed one.

    ``is_rollback``: the current assignment is a plan, the rollback of a reassignment that ``--execute`` has started.
    """

    current: Document | None
    proposed: Document | None
    is_rollback: bool = False

    @property
    def assignment(self) -> Document:
        """The current assignment, or else the only document."""
        document = self.current or self.proposed
        assert document is not None
        return document


class ListedAssignment(NamedTuple):
    """The replicas of a partition, with those that are being added and removed, and the number of its line."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    line: int


def read_documents(path: InputFile) -> Documents:
    """The JSON documents of a file. Raises SnapshotError."""
    content = read_document(path)
    if content.lstrip().startswith(b"{"):
        return Documents(None, Document(content, str(path)))
    check_has_documents(content, path)
    texts: dict[str, list[bytes]] = {}
    starts: dict[str, str] = {}
    heading, is_rollback, is_open = None, False, False
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        text, where = line.strip(), f"{path}:{number}"
        if new := next((name for name in (CURRENT_HEADING, PROPOSED_HEADING) if text == name.encode()), None):
            heading, is_open = new, False
        elif _ROLLBACK.fullmatch(text) or _EXECUTED.match(text):
            is_rollback, heading, is_open = is_rollback or text.startswith(b"Save"), None, False
        elif heading is not None and (is_open or text.startswith(b"{")):
            is_open = True
            starts.setdefault(heading, where)
            texts.setdefault(heading, []).append(line)
        elif text:
            raise SnapshotError(
                where, text_repr(text), f'"{CURRENT_HEADING}", "{PROPOSED_HEADING}" or a JSON document under one'
            )
    documents = {name: Document(b"".join(lines).strip(), starts[name]) for name, lines in texts.items()}
    if not documents:
        raise SnapshotError(str(path), "no JSON document", f'one under "{CURRENT_HEADING}"')
    return Documents(documents.get(CURRENT_HEADING), documents.get(PROPOSED_HEADING), is_rollback)


def check_has_documents(content: bytes, path: InputFile) -> None:
    """Raise SnapshotError for the output of ``--list`` and ``--verify``, which has no documents."""
    for heading, option in ((LIST_HEADING, "--list"), (EMPTY_LIST, "--list"), (VERIFY_HEADING, "--verify")):
        if content.lstrip().startswith(heading.encode()):
            raise SnapshotError(str(path), f"the output of kafka-reassign-partitions {option}", _PLAN)


def read_listed(path: InputFile) -> list[ListedAssignment] | None:
    """The assignments that ``--list`` or ``--verify`` prints; None for a file with documents. Raises SnapshotError.

    It is raised for output without assignments, and where ``--verify`` prints no replicas of a partition.
    """
    content = read_document(path).decode(errors="replace").lstrip()
    if content.startswith(EMPTY_LIST):
        raise SnapshotError(str(path), f'"{EMPTY_LIST}", the output of --list', "an assignment")
    if content.startswith(LIST_HEADING):
        listed = list(_listed(content, path))
    elif content.startswith(VERIFY_HEADING):
        listed = list(_verified(content, path))
    else:
        return None
    if not listed:
        raise SnapshotError(str(path), "a heading and no partition", "an assignment")
    return listed


def _listed(content: str, path: InputFile) -> Iterator[ListedAssignment]:
    for number, line in enumerate(content.splitlines(), start=1):
        if number == 1 or not line.strip():
            continue
        if (match := _LISTED.fullmatch(line.strip())) is None:
            raise SnapshotError(f"{path}:{number}", short_repr(line), "a line of kafka-reassign-partitions --list")
        yield ListedAssignment(match[1], int(match[2]), _ids(match[3]), _ids(match[4]), _ids(match[5]), number)


def _verified(content: str, path: InputFile) -> Iterator[ListedAssignment]:
    for number, line in enumerate(content.splitlines(), start=1):
        if number == 1 or not line.strip() or _THROTTLES.match(line):
            continue
        if (match := _VERIFIED.fullmatch(line.strip())) is None:
            raise SnapshotError(
                f"{path}:{number}",
                f"{short_repr(line)}, a state of --verify without replicas",
                "the replicas of each partition: the output of --generate, --execute or kafka-topics --describe",
            )
        yield ListedAssignment(match[1], int(match[2]), _ids(match[3]), [], [], number)


def _ids(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",") if number] if text else []
