"""Times of the day in which stages run, and the first of them that each stage fits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from kframe.errors import ParameterError
from kframe.plans.stage.manifest import StageWindow

#: Seconds of a day.
DAY_SECONDS: Final = 86_400
_WINDOW: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time of every day: ``begin`` in seconds after midnight, local time; ``length`` in seconds, at most a day."""

    begin: int
    length: int

    @staticmethod
    def of(text: str) -> TimeWindow:
        """A window such as ``22:00-06:00``. Raises InputError."""
        match = _WINDOW.fullmatch(text)
        if match is None:
            raise ParameterError("windows", repr(text), "times such as 22:00-06:00")
        hour, minute, end_hour, end_minute = map(int, match.groups())
        begin, end = hour * 3600 + minute * 60, end_hour * 3600 + end_minute * 60
        if begin == end:
            raise ParameterError("windows", repr(text), "an end that differs from the begin")
        return TimeWindow(begin, (end - begin) % DAY_SECONDS)

    def __str__(self) -> str:
        return f"{clock_text(self.begin)[:5]}-{clock_text(self.begin + self.length)[:5]}"


def parse_windows(texts: Iterable[str]) -> tuple[TimeWindow, ...]:
    """The windows of these texts by their begin. Raises InputError for windows that overlap."""
    windows = sorted(map(TimeWindow.of, texts), key=lambda window: window.begin)
    following = [*windows[1:], *(TimeWindow(window.begin + DAY_SECONDS, window.length) for window in windows[:1])]
    for window, later in zip(windows, following, strict=True):
        if window.begin + window.length > later.begin:
            raise ParameterError("windows", f"{window} and {later}", "windows that do not overlap")
    return tuple(windows)


def longest_window(windows: Sequence[TimeWindow]) -> int:
    """Seconds of the longest window."""
    return max(window.length for window in windows)


def allot_windows(seconds: Sequence[float], windows: Sequence[TimeWindow]) -> list[StageWindow | None]:
    """When each stage runs: one after another, each within one window. None for a stage longer than any window."""
    allotted: list[StageWindow | None] = []
    occurrences = ((day, window, float(day * DAY_SECONDS + window.begin)) for day in count() for window in windows)
    day, window, now = next(occurrences)
    for needed in seconds:
        if needed > longest_window(windows):
            allotted.append(None)
            continue
        while now + needed > day * DAY_SECONDS + window.begin + window.length:
            day, window, now = next(occurrences)
        allotted.append(StageWindow(day + 1, str(window), clock_text(now), clock_text(now + needed)))
        now += needed
    return allotted


def clock_text(seconds: float) -> str:
    """The time of the day as HH:MM:SS."""
    minutes, second = divmod(round(seconds) % DAY_SECONDS, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}"


def clock_seconds(text: str) -> int:
    """The seconds after midnight of a time as ``clock_text`` writes it."""
    hour, minute, second = map(int, text.split(":"))
    return hour * 3600 + minute * 60 + second
