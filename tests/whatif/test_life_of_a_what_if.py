"""docs/explanation/life-of-a-what-if.md lists exactly the functions that ``kframe whatif fail`` calls."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from click.testing import CliRunner

import kframe
from kframe.cli.app import cli
from tests.architecture.source import ROOT

#: The directory that kframe is imported from; not ROOT for the debug build.
PACKAGES: Final = Path(kframe.__file__).parents[1]
PAGE: Final = ROOT / "docs" / "explanation" / "life-of-a-what-if.md"
ROW: Final = re.compile(r"^\| (\d+) \| `([\w.]+)` \| `([\w./]+)` \| (.+\.) \|$", re.MULTILINE)
SNAPSHOT: Final = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / "healthy.zookeeper.jsonl.gz"
#: The call stack is recorded from this function on. Before it, click parses the command line.
COMMAND: Final = ("kframe/cli/whatif.py", "fail")
#: Functions at which the call stack is recorded.
RECORDED_AT: Final = {
    "read_zookeeper", "Snapshot.to_cluster", "ControllerLoop.adopt", "MemoryEnsemble.unregister_brokers",
    "WatchedSelection.choose", "WatchedStore.write_states", "encode_known", "health_of", "changes_between",
    "summary_document", "emit_rows",
}  # fmt: skip
#: The page lists only controller functions that other modules call. The page of a broker failure has the rest.
CONTROLLER: Final = ("kframe/core/", "kframe/runtime/", "kframe/model/")


def _functions(frame: FrameType | None) -> list[tuple[str, str]]:
    """Return (file, name) of kframe's public functions on a call stack, from the command down."""
    stack = []
    while frame is not None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_qualname
        if path.is_relative_to(PACKAGES / "kframe") and not name.rpartition(".")[2].startswith("_") and "<" not in name:
            stack.append((path.relative_to(PACKAGES).as_posix(), name))
        frame = frame.f_back
    stack.reverse()
    return stack[stack.index(COMMAND) :] if COMMAND in stack else []


def _path(stack: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Return the functions of a call stack without those that the controller itself calls."""
    for position, function in enumerate(stack):
        internal = position and function[0].startswith(CONTROLLER) and stack[position - 1][0].startswith(CONTROLLER)
        if not internal:
            yield function


def functions_of_a_what_if() -> dict[tuple[str, str], None]:
    """Return the functions in the order of their first call."""
    functions: dict[tuple[str, str], None] = {}

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_qualname in RECORDED_AT:
            functions.update(dict.fromkeys(_path(_functions(frame))))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        result = CliRunner().invoke(cli, ["whatif", "fail", str(SNAPSHOT), "--brokers", "1"])
    finally:
        sys.setprofile(before)
    assert result.exit_code == 0, result.output
    return functions


def test_page_lists_exactly_called_functions() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    listed = [(file, name) for _, name, file, _ in rows]
    assert [int(step) for step, *_ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) <= 23
    assert len(set(listed)) == len(listed)
    recorded = functions_of_a_what_if()
    assert set(recorded) - set(listed) == set(), "called, but not on the page"
    assert set(listed) - set(recorded) == set(), "on the page, but not called"
    assert listed == list(recorded), "in the order of the first call"
