"""Checks of the parameters of a URL: each once, known, and of its type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kframe.plugin import ParameterError
from kframe.plugin.settings import nearest, short_repr

#: Parameters of every page: the format of the response, and the position in the history of the source.
FORMAT: Final = "format"
AT: Final = "at"
#: Longest value, and most parameters.
_CHARACTERS_MAX: Final = 4_000
_PARAMETERS_MAX: Final = 100
_FIELD: Final = re.compile(r"(?P<problem>.*?)(?: - at `\$\.(?P<field>[^.`\[]+).*`)?", re.DOTALL)
_EXPECTED: Final = re.compile(r"Expected (?P<expected>.+?)(?:, got .*)?")
#: msgspec's names of types, in words.
_TYPES: Final = {"int": "a whole number", "float": "a number", "bool": "true or false", "int | null": "a whole number"}


def distinct_parameters(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The parameters by name. Raises ParameterError for one that is repeated or too long."""
    parameters: dict[str, str] = {}
    for name, text in pairs:
        if name in parameters:
            raise ParameterError(short_repr(name)[1:-1], "it twice", "each parameter once")
        if len(text) > _CHARACTERS_MAX or len(parameters) >= _PARAMETERS_MAX:
            limit = f"at most {_CHARACTERS_MAX} characters in each of {_PARAMETERS_MAX} parameters"
            raise ParameterError(short_repr(name)[1:-1], "a longer query", limit)
        parameters[name] = text
    return parameters


def checked_choice(name: str, text: str, choices: Sequence[str]) -> str:
    """``text``, if it is one of ``choices``. Raises ParameterError."""
    if text not in choices:
        raise ParameterError(name, short_repr(text), f"one of {', '.join(choices)}")
    return text


def typed_parameters(kind: type[msgspec.Struct], parameters: Mapping[str, str]) -> Any:
    """The parameters as a struct of type ``kind``. Raises ParameterError, which names the parameter."""
    fields = {field.encode_name for field in msgspec.structs.fields(kind)}
    for name in parameters:
        if name not in fields:
            expected = nearest(name, sorted(fields)) if fields else "no parameter"
            raise ParameterError(short_repr(name)[1:-1], "an unknown parameter", expected)
    try:
        return msgspec.convert(dict(parameters), kind, strict=False)
    except msgspec.ValidationError as problem:
        raise _parameter_error(str(problem), parameters) from problem


def _parameter_error(message: str, parameters: Mapping[str, str]) -> ParameterError:
    match = _FIELD.fullmatch(message)
    name = (match and match["field"]) or ""
    if match is None or not name:  # A required field is absent: the message has its name in backquotes.
        missing = re.search(r"missing required field `(.+?)`", message)
        return ParameterError(missing[1] if missing else "query", "no value", "one")
    expected = _EXPECTED.fullmatch(match["problem"])
    text = expected["expected"].replace("`", "") if expected else match["problem"]
    text = _TYPES.get(text, text)
    return ParameterError(name, short_repr(parameters.get(name)), text)
