"""Identifiers use the terms of Kafka, ZooKeeper and NumPy. Counts of replaced words only fall (``CONTRIBUTING.md``)."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Final

import pytest

from tests.architecture.source import tracked_files

#: Word to the largest number of identifiers that contain it, and the standard terms. A limit only goes down.
LIMITS: Final[dict[str, tuple[int, str]]] = {
    "one": (66, "the noun of the item"),
    "world": (0, "cluster, simulation, fixture"),
    "found": (78, "result, rows, count, matches"),
    "told": (8, "notified, sent"),
    "place": (29, "index, offset, path, position"),
    "heard": (5, "received, on_watch, on_event"),
    "kept": (8, "saved, retained, checked, owned"),
    "nobody": (2, "a noun"),
    "tell": (8, "notified, sent"),
    "asks": (3, "request, task, store_request"),
    "occasion": (0, "phase, cause, event"),
    "odd": (14, "malformed, valid"),
    "life": (6, "run, process_lifetime"),
    "ahead": (0, "prefetch, pipelined"),
    "turn": (3, "controller_process, term, round"),
    "standing": (0, "cluster_health, registered"),
    "lives": (24, "run, process_lifetime"),
    "places": (0, "index, offset, path, position"),
    "doomed": (2, "deleting"),
    "carry": (7, "execute"),
    "verdict": (8, "compare, validate, diff, unverified"),
    "away": (2, "failed, offline, unregistered"),
    "met": (0, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "hear": (13, "received, on_watch, on_event"),
    "lend": (0, "lazy_view"),
    "stranger": (2, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "tally": (0, "counts, incremental_counts"),
    "lent": (0, "lazy_view"),
    "ghosts": (0, "missing_topics, tombstones"),
    "judge": (0, "compare, validate, diff, unverified"),
    "turns": (7, "controller_process, term, round"),
    "trial": (0, "differential_test"),
    "unseen": (0, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "whoever": (0, "a noun"),
    "trials": (7, "differential_test"),
    "strangers": (0, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "mend": (0, "fault, quiescence, repair"),
    "moment": (2, "phase, cause, event"),
    "befall": (0, "a noun"),
    "fate": (0, "outcome, eligible, violation"),
    "lawful": (0, "outcome, eligible, violation"),
    "unlawful": (0, "outcome, eligible, violation"),
    "spared": (0, "malformed, valid"),
    "report_brokers": (0, "prefetch, pipelined"),
    "mended": (0, "fault, quiescence, repair"),
    "trail": (0, "producer_history, event_log, trace"),
    "lull": (0, "fault, quiescence, repair"),
    "letter": (0, "request, task, store_request"),
    "letters": (3, "request, task, store_request"),
    "fates": (0, "outcome, eligible, violation"),
    "foreseen": (0, "prefetch, pipelined"),
    "stray": (0, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "ghost": (0, "missing_topics, tombstones"),
    "office": (0, "controller_process, term, round"),
    "bend": (0, "mutate, mutated"),
    "surroundings": (0, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "bent": (0, "mutate, mutated"),
    "happening": (0, "phase, cause, event"),
    "vouch": (0, "compare, validate, diff, unverified"),
    "vouching": (0, "compare, validate, diff, unverified"),
    "vouched": (0, "compare, validate, diff, unverified"),
    "doubtful": (0, "compare, validate, diff, unverified"),
    "seat": (0, "controller_process, term, round"),
    "seats": (0, "controller_process, term, round"),
    "errand": (0, "request, task, store_request"),
    "errands": (0, "request, task, store_request"),
    "keen": (0, "malformed, valid"),
    "misled": (0, "malformed, valid"),
    "hosting": (0, "replica_index, replicas_by_broker"),
    "foresee": (0, "prefetch, pipelined"),
    "ledger": (0, "producer_history, event_log, trace"),
    "outsider": (0, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "outsiders": (0, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "strays": (0, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "orphan": (0, "missing_topics, tombstones"),
    "orphans": (0, "missing_topics, tombstones"),
    "showing": (0, "lazy_view"),
    "arrivals": (0, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "upheaval": (0, "fault, quiescence, repair"),
    "upheavals": (0, "fault, quiescence, repair"),
}

PROSE: Final = re.compile(r'("""|\'\'\').*?\1|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


def identifier_words(source: str) -> Counter[str]:
    """Return how many identifiers of ``source`` contain each word; strings and comments do not count."""
    identifiers = Counter(IDENTIFIER.findall(PROSE.sub(" ", source)))
    words: Counter[str] = Counter()
    for identifier, count in identifiers.items():
        for word in {part.lower() for part in WORD.findall(identifier)}:
            words[word] += count
    return words


@cache
def tree_words() -> Counter[str]:
    """Return the words of all Python and Cython sources."""
    total: Counter[str] = Counter()
    for path in tracked_files(".py", ".pyx", ".pxd", ".pyi"):
        total += identifier_words(path.read_text())
    return total


@pytest.mark.parametrize("word", LIMITS)
def test_replaced_word_does_not_spread(word: str) -> None:
    limit, terms = LIMITS[word]
    assert tree_words()[word] <= limit, f"{word}: use {terms}"


def test_words_are_counted_in_identifiers_only() -> None:
    source = 'def found_rows(one, World):\n    """One world."""\n    return "one"  # one\n'
    words = identifier_words(source)
    assert (words["one"], words["found"], words["world"], words["rows"]) == (1, 1, 1, 1)
