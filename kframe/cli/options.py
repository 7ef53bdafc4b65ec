"""Groups of options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def with_options(command: Callable[..., Any], *options: Callable[..., Any]) -> Callable[..., Any]:
    """Add options and arguments to a command, in this order."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def collected(
    name: str, make: Callable[..., Any], *options: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that adds options to a command, whose parameter ``name`` is what ``make`` returns for their values.

    The options set the parameters of ``make``, or all of them its further keywords if it takes any.
    """
    fields = tuple(inspect.signature(make).parameters)
    if inspect.getfullargspec(make).varkw:
        declared: Any = with_options(lambda: None, *options)
        fields = tuple(option.name for option in declared.__click_params__)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def collect(**values: Any) -> Any:
            made = make(**{field: values.pop(field) for field in fields})
            return command(**values, **{name: made})

        return with_options(collect, *options)

    return decorate
