"""What the controller classes of each release decide on the cases of the rules by release.

    python -m tests.kraft.oracle.releases

records the answers of all releases beside the cases. Needs Java 17 or newer and Maven.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.kraft import oracle_cases
from tests.kraft.oracle.process import oracle_command

#: The version of Kafka's classes for each release.
VERSIONS: Final = {
    "3.9": "3.9.1",
    "4.0": "4.0.2",
    "4.1": "4.1.2",
    "4.2": "4.2.0",
    "4.3": "4.3.1",
    "4.4": "4.4.0",
}
_CASES: Final = Path(__file__).parent / "cases" / "releases.jsonl"
_ANSWERS: Final = _CASES.with_suffix(".answers.jsonl")
#: Most records that an answer lists.
_RECORDS_MAX: Final = 100


def cases() -> list[dict[str, Any]]:
    """The cases. ``comment`` is the rule that a case shows."""
    return [json.loads(line) for line in _CASES.read_text().splitlines()]


def recorded() -> dict[str, dict[str, Any]]:
    """The recorded answer of each release to each case, by the id of the case; empty if a release has no such state."""
    lines = [json.loads(line) for line in _ANSWERS.read_text().splitlines()]
    return {
        line["id"]: {release: answer["answer"] for answer in line["answers"] for release in answer["releases"]}
        for line in lines
    }


def decide(release: str, asked: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of a release's classes, as ``comparable`` makes them."""
    text = "".join(f"{json.dumps(case)}\n" for case in asked)
    command = oracle_command(VERSIONS[release])
    result = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True)
    return [comparable(json.loads(line)) for line in result.stdout.splitlines()]


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without messages and boundaries of batches. Many records are a count."""
    if "inputError" in answer:
        return {}
    results = [
        {name: value for name, value in result.items() if name not in ("atomic", "message")}
        for result in oracle_cases.comparable(answer)["results"]
    ]
    for result in results:
        if len(result.get("records", ())) > _RECORDS_MAX:
            result["records"] = len(result["records"])
    return {"results": results}


def record() -> None:
    """Write the answers of all releases; releases with the same answer share it."""
    asked = cases()
    by_release = {release: decide(release, asked) for release in VERSIONS}
    lines = []
    for index, case in enumerate(asked):
        answers: list[dict[str, Any]] = []
        for release, decided in by_release.items():
            same = next((entry for entry in answers if entry["answer"] == decided[index]), None)
            if same is None:
                answers.append({"releases": [release], "answer": decided[index]})
            else:
                same["releases"].append(release)
        lines.append(json.dumps({"id": case["id"], "answers": answers}, separators=(",", ":")))
    _ANSWERS.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    record()
