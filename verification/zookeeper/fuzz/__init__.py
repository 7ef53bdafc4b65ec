"""Fuzz all input from ZooKeeper: the content of znodes, and the responses to multi requests.

``python -m verification.zookeeper.fuzz --help`` explains how to run it and how to repeat a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from verification.fuzz import DecoderTarget, bases_of, read_corpus
from verification.zookeeper.fuzz.replies import OUTCOMES, Replies
from verification.zookeeper.fuzz.znodes import DECODERS, StateZnodes, TopicZnodes, Znodes

CORPUS: Final = Path(__file__).with_name("corpus.tsv")


def targets() -> Sequence[DecoderTarget]:
    """All targets, with the corpus as their base cases."""
    corpus = read_corpus(CORPUS)
    bulk = {"state": StateZnodes, "topic": TopicZnodes}
    znodes = [bulk.get(name, Znodes)(name, bases_of(corpus, name)) for name in DECODERS]
    return [*znodes, *(Replies(name, bases_of(corpus, name)) for name in OUTCOMES)]
