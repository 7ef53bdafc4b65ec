"""The pages of the life of a what-if list exactly the functions that ``kframe whatif fail`` calls."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import pytest
from click.testing import CliRunner

import kframe
from kframe.cli.app import cli
from tests.architecture.source import ROOT

#: The directory that kframe is imported from; not ROOT for the debug build.
PACKAGES: Final = Path(kframe.__file__).parents[1]
ROW: Final = re.compile(r"^\| (\d+) \| `([\w.]+)` \| `([\w./]+)` \| (.+\.) \|$", re.MULTILINE)
#: The call stack is recorded from this function on. Before it, click parses the command line.
COMMAND: Final = ("kframe/cli/whatif.py", "run_operation")


class RecordedPage(NamedTuple):
    """A page, the snapshot of its what-if and the broker that fails.

    ``recorded_at``: the functions at which the call stack is recorded.
    """

    path: Path
    snapshot: Path
    broker: str
    recorded_at: frozenset[str]
    folded: tuple[str, ...] = ()
    """Folders of which the page has only the functions that others call."""
    first: tuple[str, str] = COMMAND
    """The function with which the page begins."""


PAGES: Final = {
    "zookeeper": RecordedPage(
        ROOT / "docs" / "explanation" / "life-of-a-what-if.md",
        ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / "healthy.zookeeper.jsonl.gz",
        "1",
        frozenset({
            "read_zookeeper", "Snapshot.to_cluster", "ControllerLoop.adopt", "MemoryEnsemble.unregister_brokers",
            "WatchedSelection.choose", "WatchedStore.perform", "encode_known", "health_of", "changes_between",
            "summary_document", "emit_rows",
        }),
        ("kframe/core/", "kframe/runtime/", "kframe/model/"),  # the page of a broker failure has the rest
    ),
    "kraft": RecordedPage(
        ROOT / "docs" / "explanation" / "life-of-a-kraft-what-if.md",
        ROOT / "kframe" / "snapshot" / "examples" / "kafka-4.4-broker-failure" / "__cluster_metadata-0"
        / "00000000000000000000.log",
        "2",
        frozenset({
            "BatchFile.batches", "read_batch", "Replay.apply", "Snapshot.from_metadata", "Snapshot.to_metadata",
            "choose_from_acceptable", "Committer.commit", "apply_part", "kraft_health", "changes_between",
            "summary_document", "emit_rows",
        }),
        first=("plugins/kraft/kframe_kraft/sources/snapshots.py", "read_snapshot"),
    ),
}  # fmt: skip


def _module(path: Path) -> str | None:
    """The path of a module of kframe or of a plugin in the tree; None for others."""
    if path.is_relative_to(PACKAGES / "kframe"):
        return path.relative_to(PACKAGES).as_posix()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT / "plugins") else None


def _functions(frame: FrameType | None) -> list[tuple[str, str]]:
    """Return (file, name) of kframe's public functions on a call stack, from the command down."""
    stack = []
    while frame is not None:
        module, name = _module(Path(frame.f_code.co_filename)), frame.f_code.co_qualname
        if module is not None and not name.rpartition(".")[2].startswith("_") and "<" not in name:
            stack.append((module, name))
        frame = frame.f_back
    stack.reverse()
    return stack[stack.index(COMMAND) :] if COMMAND in stack else []


def _path(stack: list[tuple[str, str]], folded: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Return the functions of a call stack without those that a folded folder itself calls."""
    for position, function in enumerate(stack):
        internal = position and function[0].startswith(folded) and stack[position - 1][0].startswith(folded)
        if not internal:
            yield function


def functions_of_a_what_if(page: RecordedPage) -> list[tuple[str, str]]:
    """Return the functions in the order of their first call, from the page's first one on."""
    functions: dict[tuple[str, str], None] = {}

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_qualname in page.recorded_at:
            functions.update(dict.fromkeys(_path(_functions(frame), page.folded)))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        result = CliRunner().invoke(cli, ["whatif", "fail", str(page.snapshot), "--brokers", page.broker])
    finally:
        sys.setprofile(before)
    assert result.exit_code == 0, result.output
    names = list(functions)
    return names[names.index(page.first) :]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_page_lists_exactly_called_functions(page: RecordedPage) -> None:
    rows = ROW.findall(page.path.read_text(encoding="utf-8"))
    listed = [(file, name) for _, name, file, _ in rows]
    assert [int(step) for step, *_ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) <= 37
    assert len(set(listed)) == len(listed)
    recorded = functions_of_a_what_if(page)
    assert set(recorded) - set(listed) == set(), "called, but not on the page"
    assert set(listed) - set(recorded) == set(), "on the page, but not called"
    assert listed == recorded, "in the order of the first call"
