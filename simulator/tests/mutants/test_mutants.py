"""The mutation catalogue and the table of past defects match the tree."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kframe_simulator.mutants import observed_kills, page
from kframe_simulator.mutants.run import (
    Evaluation,
    MutantOutcome,
    MutantResult,
    evaluate,
    read_report,
    read_seeds,
    run_simulator,
)
from kframe_simulator.mutants.saved_results import ResultFile
from kframe_simulator.mutants.table import KRAFT_RULES, ROOT, Mutant, defects, mutants

MUTANTS = mutants()
DEFECTS = defects()
NUMBERS = [f"R{number:02}" for number in range(1, 65)] + [f"X{number}" for number in range(1, 12)]
RULE = re.compile(r"R\d\d|X\d{1,2}|I([1-9]|[12]\d|30)|L[1-6]|K([1-9]|1[0-4])")


def test_mutant_replaces_a_unique_text_and_compiles() -> None:
    for mutant in MUTANTS:
        text = (ROOT / mutant.file).read_text()
        assert text.count(mutant.old) == 1, mutant.id
        assert mutant.new != mutant.old, mutant.id
        ast.parse(text.replace(mutant.old, mutant.new))


def test_mutant_has_rules_and_tests() -> None:
    for mutant in MUTANTS:
        assert mutant.rules, mutant.id
        assert [rule for rule in mutant.rules if not RULE.fullmatch(rule)] == []
        assert [rule for rule in mutant.rules if rule[0] in "RX" and rule not in NUMBERS] == []
        assert mutant.tests, mutant.id
        assert [node for node in mutant.tests if not node_exists(node)] == []


def test_each_group_of_kraft_rules_has_mutants() -> None:
    assert {rule for mutant in MUTANTS for rule in mutant.rules if rule[0] == "K"} == set(KRAFT_RULES)


def test_mutants_are_unique() -> None:
    assert len(MUTANTS) >= 60
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(mutant.simulated for mutant in MUTANTS) >= 60


def test_defects_are_complete_and_in_order() -> None:
    assert [defect.number for defect in DEFECTS] == NUMBERS


def test_defect_has_existing_tests_and_mutant() -> None:
    for defect in DEFECTS:
        assert [node for node in defect.tests if not node_exists(node)] == []
        mutated = any(defect.number in mutant.rules for mutant in MUTANTS)
        assert (mutated and defect.tests) or defect.open, defect.number


def test_every_test_of_a_defect_has_failed_under_a_mutant() -> None:
    """Under a mutant of its own row, in the recorded run. ``make mutants`` records it."""
    recorded = observed_kills.recorded()
    assert {defect.number: missing for defect in DEFECTS if (missing := observed_kills.missing(defect, recorded))} == {}
    assert [defect.number for defect in DEFECTS if defect.tests and defect.number not in recorded] == []


def test_tests_that_did_not_fail_are_reported() -> None:
    """Only for defects whose mutants all ran."""
    passed, nothing = (
        Evaluation(MutantOutcome.SURVIVED, "2 tests passed"),
        Evaluation(MutantOutcome.NOT_RUN, "not asked for"),
    )
    of_r26 = [mutant for mutant in MUTANTS if "R26" in mutant.rules]
    (defect,) = (row for row in DEFECTS if row.number == "R26")
    failed = Evaluation(MutantOutcome.KILLED, "it", defect.tests[1:])
    results = [MutantResult(row, failed, nothing) for row in of_r26[:1]] + [
        MutantResult(row, passed, nothing) for row in of_r26[1:]
    ]
    assert observed_kills.unobserved(results) == ["R26 test_faults::test_a_silent_broker_does_not_delay_others"]
    assert observed_kills.failures(results)["R26"] == [(node, of_r26[0].id) for node in defect.tests[1:]]
    assert observed_kills.unobserved(results[:-1]) == []


def test_defect_state_depends_on_recorded_failures() -> None:
    (defect,) = (row for row in DEFECTS if row.number == "R06")
    names = [observed_kills.name(node) for node in defect.tests]
    assert page.state(defect, {"R06": frozenset(names)}) == "held"
    assert page.state(defect, {"R06": frozenset(names[1:])}) == "shown"
    assert page.state(defect, {}) == "shown"


def test_numbered_tests_are_in_row_of_defect() -> None:
    rows = {
        defect.number.replace("X", "X0") if len(defect.number) == 2 else defect.number: defect.tests
        for defect in DEFECTS
    }
    named = [node for path in sorted((ROOT / "tests" / "defects").glob("test_*.py")) for node in functions(path)]
    numbered = [(match[1].upper(), name) for name in named if (match := re.match(r"test_([rx]\d\d)_", name))]
    assert numbered
    assert [name for number, name in numbered if not any(node.endswith(f"::{name}") for node in rows[number])] == []


def test_page_equals_generated_page() -> None:
    assert page.PATH.read_text() == page.render()


#: (cases of a report, outcome, failed nodes among the requested ones).
REPORTS = [
    ('<testcase classname="tests.a" name="test_one[x]"><failure/></testcase>', "killed", ("tests/a.py::test_one",)),
    ('<testcase classname="tests.a" name="test_one"><error/></testcase>', "killed", ("tests/a.py::test_one",)),
    ('<testcase classname="tests.a" name="test_two[y]"><error/></testcase>', "killed", ("tests/a.py::test_two[y]",)),
    ('<testcase classname="tests.a" name="test_two[x]"><error/></testcase>', "killed", ()),
    ('<testcase classname="tests.b" name="test_one"><failure/></testcase>', "killed", ("tests/b.py",)),
    ('<testcase classname="tests.a" name="test_one"/>', "survived", ()),
    ('<testcase classname="tests.a" name="test_one"><skipped/></testcase>', "not run", ()),
]


@pytest.mark.parametrize("cases, outcome, failed", REPORTS)
def test_junit_reports_are_parsed(cases: str, outcome: str, failed: tuple[str, ...]) -> None:
    requested = ("tests/a.py::test_one", "tests/a.py::test_two[y]", "tests/b.py")
    evaluation = read_report(f"<testsuites><testsuite>{cases}</testsuite></testsuites>", requested)
    assert (evaluation.outcome, evaluation.failed) == (outcome, failed)


def test_simulator_results_are_parsed() -> None:
    result = {"seed": 17, "invariant": "I5", "problem": "an empty ISR"}
    assert read_seeds(json.dumps(result), "1..9") == (Evaluation(MutantOutcome.KILLED, "seed 17, I5"), 17)
    assert read_seeds('{"played": 9}', "1..9") == (Evaluation(MutantOutcome.SURVIVED, "1..9 passed"), None)
    output = '{"played": 9, "raised": "seed 2: KeyError: 1"}'
    assert read_seeds(output, "1..9") == (Evaluation(MutantOutcome.BROKEN, "seed 2: KeyError: 1"), None)


@pytest.mark.parametrize("seed, without, evaluation", [
    (3, "5", ("killed", "seed 3, I1")),
    (3, "3", ("killed", "seed 4, I1")),
    (9, "9", ("survived", "1..9 passed, but for what fails without it, too")),
])  # fmt: skip
def test_seed_that_fails_without_mutant_is_ignored(
    tmp_path: Path, seed: int, without: str, evaluation: tuple[str, str]
) -> None:
    """Seeds from ``seed`` on fail with the mutant; the seed ``without`` fails without it, too."""
    package = tmp_path / "simulator" / "kframe_simulator"
    for name in ("mutants", "simulation"):
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "simulation" / "run.py").write_text(
        "from types import SimpleNamespace as Object\nFROM = 99\n\n\n"
        f"def play_seed(seed):\n    bad = seed >= FROM or seed == {without}\n"
        "    return Object(violations=[Object(number='I1', problem='bad')] if bad else [])\n"
    )
    seeds = "simulator/kframe_simulator/mutants/seeds.py"
    (tmp_path / seeds).write_text((ROOT / seeds).read_text())
    (tmp_path / "simulator" / "pyproject.toml").touch()
    run = "simulator/kframe_simulator/simulation/run.py"
    mutant = Mutant("earlier", run, "FROM = 99", f"FROM = {seed}", "it", ("I1",), ())
    result = run_simulator(tmp_path, mutant, "1..9")
    assert (result.outcome, result.by) == evaluation


def test_results_are_saved_until_the_mutant_changes(tmp_path: Path) -> None:
    mutant = Mutant("one", "kframe/a.py", "True", "False", "checks", ("I1",), ("test_a.py",))
    path, nothing = tmp_path / "kept.jsonl", Evaluation(MutantOutcome.NOT_RUN, "not asked for")
    failed = Evaluation(MutantOutcome.KILLED, "test_it", ("test_a.py::test_it",))
    ResultFile(path).add(MutantResult(mutant, failed, nothing), None)
    ResultFile(path).add(MutantResult(mutant, nothing, Evaluation(MutantOutcome.SURVIVED, "1..9 passed")), "1..9")
    assert [ResultFile(path).pending_seeds(mutant, name) for name in ("1..9", "1..20", "30..40")] == [
        None,
        "10..20",
        "30..40",
    ]
    ResultFile(path).add(MutantResult(mutant, nothing, Evaluation(MutantOutcome.KILLED, "seed 12, I1")), "1..20")
    result = ResultFile(path).result(mutant)
    assert (result.tests, result.simulator) == (failed, Evaluation(MutantOutcome.KILLED, "seed 12, I1"))
    assert ResultFile(path).pending_seeds(mutant, "1..2000") is None
    assert ResultFile(path).result(replace(mutant, new="None")).tests == nothing


def test_evaluate_restores_mutated_file(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("CHECKS = True\n")
    (tmp_path / "test_plain.py").write_text("import plain\n\n\ndef test_it():\n    assert plain.CHECKS\n")
    mutant = Mutant("no-checks", "plain.py", "True", "False", "checks", ("I1",), ("test_plain.py",))
    result = evaluate(tmp_path, mutant, (), None)
    assert (result.tests.outcome, result.tests.failed) == ("killed", ("test_plain.py",))
    assert (tmp_path / "plain.py").read_text() == "CHECKS = True\n"


def node_exists(node: str) -> bool:
    """Whether the test or the test file exists. The parameter of a golden trace is the name of its scenario."""
    file, _, name = node.partition("::")
    name, _, parameter = name.partition("[")
    path = ROOT / file
    if not path.exists() or (name and name not in functions(path)):
        return False
    return not parameter or (ROOT / "tests" / "golden" / "scenarios" / f"{parameter.removesuffix(']')}.yaml").exists()


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
