"""Identifiers use Kafka's, ZooKeeper's and NumPy's terms: words that say nothing keep falling (``CONTRIBUTING.md``)."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Final

import pytest

from tests.architecture.source import tracked_files

#: Word to the most identifiers in the tree that contain it, and the standard terms. A limit only goes down.
LIMITS: Final[dict[str, tuple[int, str]]] = {
    "one": (5201, "the noun of the item"),
    "world": (4692, "cluster, simulation, fixture"),
    "found": (1788, "result, rows, count, matches"),
    "told": (1208, "notified, sent"),
    "place": (767, "index, offset, path, position"),
    "moment": (494, "phase, cause, event"),
    "kept": (349, "saved, retained, checked, owned"),
    "heard": (322, "received, on_watch, on_event"),
    "life": (301, "run, process_lifetime"),
    "verdict": (211, "compare, validate, diff, unverified"),
    "letter": (207, "request, task, store_request"),
    "seat": (183, "controller_process, term, round"),
    "nobody": (172, "a noun"),
    "turn": (153, "controller_process, term, round"),
    "places": (142, "index, offset, path, position"),
    "odd": (125, "malformed, valid"),
    "tell": (122, "notified, sent"),
    "doomed": (99, "deleting"),
    "asks": (96, "request, task, store_request"),
    "fates": (94, "outcome, eligible, violation"),
    "ledger": (82, "producer_history, event_log, trace"),
    "fate": (80, "outcome, eligible, violation"),
    "tally": (79, "counts, incremental_counts"),
    "ahead": (77, "prefetch, pipelined"),
    "occasion": (74, "phase, cause, event"),
    "happening": (73, "phase, cause, event"),
    "away": (68, "failed, offline, unregistered"),
    "judge": (67, "compare, validate, diff, unverified"),
    "carry": (67, "execute"),
    "turns": (61, "controller_process, term, round"),
    "trials": (61, "differential_test"),
    "lives": (58, "run, process_lifetime"),
    "standing": (55, "cluster_health, registered"),
    "trial": (50, "differential_test"),
    "hear": (49, "received, on_watch, on_event"),
    "trail": (44, "producer_history, event_log, trace"),
    "met": (44, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "surroundings": (43, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "office": (41, "controller_process, term, round"),
    "strangers": (39, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "letters": (38, "request, task, store_request"),
    "mend": (36, "fault, quiescence, repair"),
    "lull": (35, "fault, quiescence, repair"),
    "bent": (34, "mutate, mutated"),
    "stranger": (34, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "lend": (34, "lazy_view"),
    "seats": (32, "controller_process, term, round"),
    "spared": (32, "malformed, valid"),
    "doubtful": (26, "compare, validate, diff, unverified"),
    "foreseen": (25, "prefetch, pipelined"),
    "lent": (25, "lazy_view"),
    "whoever": (23, "a noun"),
    "ghosts": (21, "missing_topics, tombstones"),
    "unseen": (19, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "unlawful": (17, "outcome, eligible, violation"),
    "outsider": (17, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "orphans": (17, "missing_topics, tombstones"),
    "misled": (16, "malformed, valid"),
    "befall": (16, "a noun"),
    "lawful": (15, "outcome, eligible, violation"),
    "keen": (15, "malformed, valid"),
    "foretell": (15, "prefetch, pipelined"),
    "showing": (15, "lazy_view"),
    "mended": (15, "fault, quiescence, repair"),
    "errands": (14, "request, task, store_request"),
    "bend": (14, "mutate, mutated"),
    "outsiders": (14, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "stray": (13, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "ghost": (13, "missing_topics, tombstones"),
    "foresee": (12, "prefetch, pipelined"),
    "strays": (12, "non_controller_apis, unknown_brokers, unassigned_isr_members"),
    "vouch": (0, "compare, validate, diff, unverified"),
    "vouching": (0, "compare, validate, diff, unverified"),
    "vouched": (0, "compare, validate, diff, unverified"),
    "errand": (0, "request, task, store_request"),
    "hosting": (0, "replica_index, replicas_by_broker"),
    "orphan": (0, "missing_topics, tombstones"),
    "arrivals": (0, "reregistered_brokers, late_topics, on_brokers_loaded, external_changes"),
    "upheaval": (0, "fault, quiescence, repair"),
    "upheavals": (0, "fault, quiescence, repair"),
}

PROSE: Final = re.compile(r'("""|\'\'\').*?\1|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


def identifier_words(source: str) -> Counter[str]:
    """How many identifiers of ``source`` contain each word; strings and comments do not count."""
    identifiers = Counter(IDENTIFIER.findall(PROSE.sub(" ", source)))
    words: Counter[str] = Counter()
    for identifier, count in identifiers.items():
        for word in {part.lower() for part in WORD.findall(identifier)}:
            words[word] += count
    return words


@cache
def tree_words() -> Counter[str]:
    """The words of all Python and Cython sources."""
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
