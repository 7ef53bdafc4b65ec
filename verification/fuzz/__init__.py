"""Fuzzing of decoders with mutated messages from a corpus.

A *target* reads one kind of message (``cases``). A *run* passes numbered cases to it in child processes, and reports
every case that is neither decoded nor refused (``run``). Cases are mutations of the messages in the *corpus*
(``corpus``).
"""

from __future__ import annotations

from verification.fuzz.cases import Base, Batch, Cases, DecoderTarget, Outcome, packed
from verification.fuzz.command import CASES, PEAK_BYTES_MAX, main, problems, report
from verification.fuzz.corpus import CorpusEntry, bases_of, corpus_problems, read_corpus, signature
from verification.fuzz.run import Escape, TargetTotals, run

__all__ = [
    "CASES",
    "PEAK_BYTES_MAX",
    "Base",
    "Batch",
    "Cases",
    "CorpusEntry",
    "DecoderTarget",
    "Escape",
    "Outcome",
    "TargetTotals",
    "bases_of",
    "corpus_problems",
    "main",
    "packed",
    "problems",
    "read_corpus",
    "report",
    "run",
    "signature",
]
