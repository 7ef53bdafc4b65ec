"""The corpus files: golden messages, and the smallest message for each outcome.

Each line has the target, the kind, the outcome and the bytes as a Python literal, separated by tabs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from verification.fuzz.cases import Base, Batch, Cases, DecoderTarget, Outcome

DECODED: Final = "decoded"
#: The corpus excludes longer messages.
ENTRY_BYTES_MAX: Final = 500
#: The variable parts of an outcome: found values, quoted text, and words with digits.
_VARIABLE: Final = re.compile(r"(?<=: found ).*(?=, expected )|'[^']*'|\"[^\"]*\"|[^\s(),]*\d[^\s(),:]*", re.DOTALL)
_SIGNATURE_MAX: Final = 120


class CorpusEntry(NamedTuple):
    """One line of a corpus."""

    target: str
    kind: str
    outcome: str
    raw: bytes


def signature(outcome: Outcome) -> str:
    """An outcome without the parts that vary between cases or library releases."""
    if outcome is None:
        return DECODED
    return _VARIABLE.sub("#", outcome).replace("\n", " ").replace("\t", " ")[:_SIGNATURE_MAX]


def read_corpus(file: Path) -> list[CorpusEntry]:
    """All entries of a file."""
    rows = (line.split("\t") for line in file.read_text("ascii").splitlines())
    return [CorpusEntry(target, kind, outcome, ast.literal_eval(raw)) for target, kind, outcome, raw in rows]


def write_corpus(file: Path, saved: Iterable[CorpusEntry]) -> None:
    """Write a file with sorted entries."""
    lines = sorted(f"{entry.target}\t{entry.kind}\t{entry.outcome}\t{entry.raw!r}\n" for entry in set(saved))
    file.write_text("".join(lines), "ascii")


def new_entries(target: DecoderTarget, seed: int, cases: int, known: Iterable[CorpusEntry]) -> Iterator[CorpusEntry]:
    """The first message of each outcome that ``known`` lacks. It is reduced while its outcome stays the same.

    Of decoded messages it yields the first of each kind.
    """
    seen = {_outcome_key(entry.kind, entry.outcome) for entry in known if entry.target == target.name}
    for _, batch in Cases(target, seed).batches(0, cases):
        for i, outcome in enumerate(target.evaluate(batch)):
            kind, outcome_signature = batch.kinds[i], signature(outcome)
            if _outcome_key(kind, outcome_signature) not in seen and len(batch[i]):
                seen.add(_outcome_key(kind, outcome_signature))
                raw = _smallest(target, Base(kind, batch[i]), outcome_signature)
                if len(raw) <= ENTRY_BYTES_MAX:
                    yield CorpusEntry(target.name, kind, outcome_signature, raw)


def reevaluated(saved: CorpusEntry, targets: Sequence[DecoderTarget]) -> CorpusEntry:
    """The same message with its present outcome, if its target is among ``targets``."""
    for target in targets:
        if target.name == saved.target:
            outcome = target.evaluate(Batch.of([Base(saved.kind, saved.raw)]))[0]
            return saved._replace(outcome=signature(outcome))
    return saved


def corpus_problems(saved: Sequence[CorpusEntry], targets: Sequence[DecoderTarget]) -> list[str]:
    """Messages whose outcome has changed, and targets of which the corpus has no decoded or no refused message."""
    results = []
    for target in targets:
        entries = [entry for entry in saved if entry.target == target.name]
        if len({entry.outcome == DECODED for entry in entries}) != 2:
            results.append(f"{target.name}: the corpus has no decoded or no refused message")
        outcomes = target.evaluate(Batch.of([Base(entry.kind, entry.raw) for entry in entries]))
        results += [
            f"{target.name}: {entry.raw!r} has the outcome {signature(outcome)!r}, not {entry.outcome!r}"
            for entry, outcome in zip(entries, outcomes, strict=True)
            if signature(outcome) != entry.outcome
        ]
    unknown = {entry.target for entry in saved} - {target.name for target in targets}
    return [*results, *(f"{name}: no such target" for name in sorted(unknown))]


def _outcome_key(kind: str, outcome: str) -> tuple[str, str]:
    return (kind if outcome == DECODED else "", outcome)


def _smallest(target: DecoderTarget, base: Base, outcome: str) -> bytes:
    """Remove parts of decreasing size while the outcome stays the same."""
    raw, size = base.raw, max(len(base.raw) // 2, 1)
    while size:
        offset = 0
        while offset < len(raw):
            shorter = raw[:offset] + raw[offset + size :]
            if shorter and _has_outcome(target, Base(base.kind, shorter), outcome):
                raw = shorter
            else:
                offset += size
        size //= 2
    return raw


def _has_outcome(target: DecoderTarget, base: Base, outcome: str) -> bool:
    return signature(target.evaluate(Batch.of([base]))[0]) == outcome


def bases_of(saved: Sequence[CorpusEntry], target: str) -> list[Base]:
    """The bases of a target. They are decodable messages, because a case has only a few mutations."""
    return [Base(entry.kind, entry.raw) for entry in saved if entry.target == target and entry.outcome == DECODED]
