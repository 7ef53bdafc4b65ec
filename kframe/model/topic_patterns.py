"""Names of topics with ``*`` for any text and ``?`` for any character, as all commands and plans select topics."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence

from kframe.errors import ParameterError


def topic_pattern(texts: Iterable[str]) -> re.Pattern[str]:
    """The expression that matches each topic that one of ``texts``, names or patterns, means."""
    return re.compile("|".join(map(fnmatch.translate, texts)))


def has_wildcard(text: str) -> bool:
    """Whether a text is a pattern; the names of topics have none of its characters."""
    return "*" in text or "?" in text


def matching_topics(names: Sequence[str], texts: Iterable[str], option: str) -> list[str]:
    """The names that ``texts`` mean, each once, in the order of the texts. Raises InputError for no match."""
    selected: dict[str, None] = {}
    for text in texts:
        expression = topic_pattern([text])
        matches = [name for name in names if expression.match(name)]
        if not matches:
            raise ParameterError(
                option, repr(text), "the name of a topic of the snapshot, or a pattern that matches some"
            )
        selected |= dict.fromkeys(matches)
    return list(selected)


def named_topics(known: Sequence[str], texts: Iterable[str], argument: str) -> list[str]:
    """The topics that the texts of an argument mean: names as they are, and what matches a pattern, each once.

    Raises InputError for a pattern without a match.
    """
    names: list[str] = []
    for text in texts:
        if has_wildcard(text):
            names += [name for name in matching_topics(known, [text], argument) if name not in names]
        else:
            names.append(text)
    return names
