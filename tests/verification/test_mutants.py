"""Which tests run on a mutant."""

from __future__ import annotations

from pathlib import Path

import pytest

from verification.mutants.measurement import Measurement, Part
from verification.mutants.mutant import Mutant, Result, ResultLog
from verification.mutants.tree import Tree

MODULE = "kframe/core/limits.py"
FILES = {
    MODULE: "LIMIT = 4\n\n\ndef is_within(number):\n    return number < LIMIT\n",
    "kframe/core/requests.py": "from kframe.core.limits import is_within\n",
    "kframe/core/responses.py": "from kframe.core import limits\n",
    "kframe/core/topics.py": "import kframe.core.topics\n",
    "tests/core/test_limits.py": "from kframe.core.limits import LIMIT\n",
    "tests/core/test_requests.py": "",
    "tests/core/test_shared.py": '@pytest.fixture(scope="module")\ndef cluster(): ...\n',
}
#: Tests in parts, with the lines of the module and the other modules that they execute.
EXECUTED: tuple[dict[str, tuple[list[int], list[str]]], ...] = (
    {
        "tests/core/test_limits.py::test_within": ([4, 5], []),
        "tests/core/test_limits.py::test_value": ([], []),
        "tests/core/test_requests.py::test_large": ([5], ["kframe/core/requests.py"]),
        "tests/core/test_requests.py::test_empty": ([], ["kframe/core/requests.py"]),
    },
    {
        "tests/core/test_shared.py::test_first": ([7], []),
        "tests/core/test_shared.py::test_second": ([], []),
        "tests/core/test_other.py::test_responses": ([], ["kframe/core/responses.py"]),
        "tests/core/test_other.py::test_topics": ([], ["kframe/core/topics.py"]),
    },
)


def _bits(flags: list[bool]) -> str:
    number = sum(1 << index for index, flag in enumerate(flags) if flag)
    return number.to_bytes(2, "little").hex()


def _part(executed: dict[str, tuple[list[int], list[str]]]) -> Part:
    lines = {line for numbers, _ in executed.values() for line in numbers}
    files = {file for _, names in executed.values() for file in names}
    return Part(
        seconds=dict.fromkeys(executed, 1.0),
        not_passed={},
        files={file: _bits([file in names for _, names in executed.values()]) for file in files}
        | {MODULE: _bits([bool(numbers) for numbers, _ in executed.values()])},
        lines={MODULE: {str(line): _bits([line in numbers for numbers, _ in executed.values()]) for line in lines}},
        imported={MODULE: [1, 2, 8]},
    )


def _mutant(first_line: int, last_line: int, *, is_in_function: bool) -> Mutant:
    return Mutant(MODULE, first_line, "", "NumberReplacer", 0, "", "", first_line, last_line, is_in_function, "")


@pytest.fixture
def measurement(tmp_path: Path) -> Measurement:
    """Two parts in a tree."""
    for name, source in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    (tmp_path / "tests/core/test_other.py").touch()
    return Measurement(Tree(tmp_path), [_part(executed) for executed in EXECUTED])


LIMITS = "tests/core/test_limits.py"
REQUESTS = "tests/core/test_requests.py"
OTHER = "tests/core/test_other.py"
SHARED = "tests/core/test_shared.py"
OF_STATEMENT = {f"{LIMITS}::test_within", f"{REQUESTS}::test_large"}
OF_MODULE = {
    f"{LIMITS}::test_within",
    f"{LIMITS}::test_value",
    f"{REQUESTS}::test_large",
    f"{REQUESTS}::test_empty",
    f"{SHARED}::test_first",
    f"{SHARED}::test_second",
    f"{OTHER}::test_responses",
}


@pytest.mark.parametrize(
    "mutant, tests",
    [
        pytest.param(_mutant(5, 5, is_in_function=True), OF_STATEMENT, id="statement"),
        pytest.param(_mutant(4, 6, is_in_function=True), OF_STATEMENT, id="statement of several lines"),
        pytest.param(_mutant(6, 6, is_in_function=True), set(), id="statement that no test executes"),
        pytest.param(
            _mutant(7, 7, is_in_function=True),
            {f"{SHARED}::test_first", f"{SHARED}::test_second"},
            id="statement of tests that share a fixture",
        ),
        pytest.param(_mutant(1, 1, is_in_function=False), OF_MODULE, id="constant"),
        pytest.param(_mutant(8, 8, is_in_function=True), OF_MODULE, id="function that runs at import"),
    ],
)
def test_tests_of_a_mutant(measurement: Measurement, mutant: Mutant, tests: set[str]) -> None:
    assert measurement.tests(mutant) == tests


def test_test_that_fails_without_a_mutant_notices_none(measurement: Measurement) -> None:
    measurement.excluded.add(f"{LIMITS}::test_within")

    assert measurement.tests(_mutant(5, 5, is_in_function=True)) == {f"{REQUESTS}::test_large"}


def test_later_result_of_a_mutant_replaces_the_earlier(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "results.jsonl")
    mutant = _mutant(5, 5, is_in_function=True)
    later = Result("killed since", LIMITS, tests=3)
    log.append(mutant, Result("survived", tests=3))
    log.append(mutant, later)

    assert log.read() == {mutant.key: later}
