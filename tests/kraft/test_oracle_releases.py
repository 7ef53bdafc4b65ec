"""kframe decides by the rules of each release as the controller classes of that release do."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, Final

import pytest

from kframe.model.kraft.releases import RULES, Release, ReleaseRule, parse_release
from tests.kraft.oracle.releases import VERSIONS, cases, comparable, decide, recorded
from tests.kraft.oracle_cases import decide_case

CASES: Final = cases()
ANSWERS: Final = recorded()


def release_of(text: str) -> Release:
    release = parse_release(text)
    assert release is not None
    return release


@pytest.mark.parametrize("release", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_is_decided_as_by_the_classes_of_a_release(case: dict[str, Any], release: str) -> None:
    expected = ANSWERS[case["id"]][release]
    assert not expected or comparable(decide_case(case, release_of(release))) == expected


@pytest.mark.parametrize("rule", ReleaseRule)
def test_answers_change_in_the_first_release_of_a_rule(rule: ReleaseRule) -> None:
    shown = [ANSWERS[case["id"]] for case in CASES if case["comment"] == rule]
    assert shown
    for answers in shown:
        known = [(release_of(release), _decided(answer)) for release, answer in answers.items() if answer]
        known.sort(key=lambda pair: pair[0])
        changes = [release for (_, before), (release, after) in pairwise(known) if before != after]
        assert changes == ([RULES[rule].since] if RULES[rule].since > known[0][0] else [])


def _decided(answer: dict[str, Any]) -> str:
    """A decision without the levels that registered brokers support, which differ in each release."""
    results = json.loads(json.dumps(answer["results"]))
    for result in results:
        for record in result["records"] if isinstance(result.get("records"), list) else ():
            record["data"].pop("features", None)
    return json.dumps(results)


@pytest.mark.real
@pytest.mark.extended
@pytest.mark.parametrize("release", VERSIONS)
def test_recorded_answers_are_those_of_the_classes(release: str) -> None:
    answers = decide(release, CASES)
    assert [ANSWERS[case["id"]][release] for case in CASES] == answers
