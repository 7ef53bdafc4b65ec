"""The fuzz driver finds planted defects and repeats single cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from verification.fuzz import (
    Cases,
    CorpusEntry,
    TargetTotals,
    corpus_problems,
    main,
    problems,
    read_corpus,
    run,
)
from verification.fuzz.command import PEAK_BYTES_MAX
from verification.fuzz.corpus import new_entries, write_corpus
from verification.simulator import fuzz_targets

pytestmark = pytest.mark.kernel


def test_each_case_runs_once_with_any_number_of_processes() -> None:
    reports = [
        [
            (outcome.target, outcome.cases, outcome.decoded, outcome.refused)
            for outcome in run(fuzz_targets.all_valid, 3, 5001, jobs)
        ]
        for jobs in (1, 2)
    ]
    assert reports[0] == reports[1]
    assert sum(cases for _, cases, _, _ in reports[0]) == 5001
    assert all(decoded and refused for _, _, decoded, refused in reports[0])


def test_escape_is_reported_and_reproduced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    valid, escaping = run(fuzz_targets.escaping_target, 1, 4000)
    assert (valid.escaped, escaping.cases) == (0, 2000)
    assert escaping.escaped > len(escaping.escapes) > 1
    for escape in escaping.escapes:
        assert "KeyError" in escape.detail
        arguments = ["--seed", "1", "--target", "escaping", "--case", str(escape.number)]
        with pytest.raises(KeyError):
            main("m", fuzz_targets.escaping_target, tmp_path / "none", arguments)
    assert main("m", fuzz_targets.escaping_target, tmp_path / "none", ["--cases", "4000"]) == 1
    assert f"python -m m --seed 1 --target 'escaping' --case {escaping.escapes[0].number}" in capsys.readouterr().out


def test_case_that_ends_the_process_is_reported() -> None:
    (dying,) = run(fuzz_targets.dying_target, 1, 20_000, jobs=1)
    (escape,) = dying.escapes
    assert "exit code 7" in escape.detail
    ((_, batch),) = Cases(fuzz_targets.dying_target()[0], 1).batches(escape.number, escape.cases)
    assert any(batch[i].endswith(b"!!") for i in range(len(batch)))


def test_excessive_memory_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (greedy,) = run(fuzz_targets.greedy_target, 1, 1000)
    assert greedy.peak_bytes > PEAK_BYTES_MAX
    assert main("m", fuzz_targets.greedy_target, tmp_path / "none", ["--cases", "1000"]) == 1
    assert main("m", fuzz_targets.all_valid, tmp_path / "none", ["--cases", "500"]) == 0
    assert "seed 1" in capsys.readouterr().out


def test_problems_of_a_run_are_listed() -> None:
    totals = [
        TargetTotals("good", decoded=60, refused=40),
        TargetTotals("escaping", decoded=3, refused=4, escaped=1000),
        TargetTotals("greedy", decoded=5, refused=5, peak_bytes=PEAK_BYTES_MAX + 1),
        TargetTotals("one-sided", decoded=99, refused=1),
    ]
    assert problems(totals, 1218) == [
        "escaping: 1,000 escaped",
        "1,217 of 1,218 cases were evaluated",
        "greedy: 67,108,865 bytes of memory",
        "one-sided: 99 decoded and 1 refused",
    ]


def test_problems_of_a_corpus_are_listed() -> None:
    first, *_ = fuzz_targets.all_valid()
    decoded, refused = CorpusEntry(first.name, "plain", "decoded", b"a"), CorpusEntry(first.name, "plain", "old", b"!")
    assert corpus_problems([decoded, refused, refused._replace(target="gone")], [first]) == [
        f"{first.name}: b'!' has the outcome '# bytes with a mark in them', not 'old'",
        "gone: no such target",
    ]
    assert corpus_problems([decoded], [first]) == [f"{first.name}: the corpus has no decoded or no refused message"]


def test_corpus_keeps_the_smallest_case_of_each_outcome(tmp_path: Path) -> None:
    target = fuzz_targets.all_valid()[0]
    saved = list(new_entries(target, 1, 2000, []))
    assert {(entry.outcome, len(entry.raw)) for entry in saved} == {("decoded", 1), ("# bytes with a mark in them", 1)}
    write_corpus(tmp_path / "corpus", saved)
    assert read_corpus(tmp_path / "corpus") == sorted(saved)
    assert list(new_entries(target, 2, 2000, saved)) == []


def test_keep_updates_outcomes_of_corpus(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write_corpus(
        corpus,
        [CorpusEntry("first", "plain", "was worded otherwise", b"!"), CorpusEntry("gone", "plain", "decoded", b"x")],
    )
    assert main("m", fuzz_targets.all_valid, corpus, ["--keep", "--cases", "2"]) == 0
    assert {entry.outcome for entry in read_corpus(corpus) if entry.raw == b"!"} == {"# bytes with a mark in them"}
    assert [entry.target for entry in read_corpus(corpus) if entry.raw == b"x"] == ["gone"]
