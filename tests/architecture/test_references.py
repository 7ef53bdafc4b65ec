"""Every document, section, path, test, command, make target and configuration key in the repository exists."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.architecture import references
from tests.architecture.references import Check
from tests.architecture.source import ROOT, tracked_files

CODE: Final = tuple(path for path in tracked_files(".py", ".pyx", ".pxd", ".pyi", ".toml") if path != Path(__file__))
#: Records name files of their time, so that only their links are checked.
RECORDS: Final = ("docs/evidence/", "docs/explanation/performance.md")
PAGES: Final = tuple(path for path in tracked_files(".md") if path.name != "CHANGELOG.md")
IN_CODE: Final = (
    references.documents,
    references.sections,
    references.rules,
    references.targets,
    references.modules,
    references.tests_named,
    references.paths,
    references.commands,
)
IN_PAGES: Final = (
    references.documents,
    references.sections,
    references.links,
    references.paths,
    references.tests_named,
    references.targets,
    references.modules,
    references.commands,
    references.keys,
)


def unresolved(files: tuple[Path, ...], check: Check) -> list[str]:
    """Return the references in ``files`` that do not resolve, as file, line and name."""
    results = []
    for path in files:
        name = str(path.relative_to(ROOT))
        record = name.startswith(RECORDS) and check is not references.links
        if not record:
            text = path.read_text()
            results += [
                f"{name}:{text.count(chr(10), 0, offset) + 1} {reference}" for offset, reference in check(path, text)
            ]
    return results


@pytest.mark.parametrize("check", IN_CODE, ids=lambda check: check.__name__)
def test_references_in_code_resolve(check: Check) -> None:
    assert unresolved(CODE, check) == []


@pytest.mark.parametrize("check", IN_PAGES, ids=lambda check: check.__name__)
def test_references_in_documents_resolve(check: Check) -> None:
    assert unresolved(PAGES, check) == []
