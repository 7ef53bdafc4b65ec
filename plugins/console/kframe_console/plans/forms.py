"""Forms with the options of a command: the same names, texts, checks and help as on the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from kframe.plugin import InputError, ParameterError
from kframe.plugin.settings import short_repr

_YES: Final = ("true", "yes", "on", "1")
_NO: Final = ("", "false", "no", "off", "0")
#: Characters of an abbreviation.
_ABBREVIATION: Final = 2
_EXPECTED: Final = re.compile(r"(?:.*: )?found .*?, expected (?P<expected>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FormField:
    """An option: its name in a URL, its flag on the command line, and what a form shows.

    ``flag`` of an argument is its metavariable. ``choices`` of a flag with a negation are both.
    """

    name: str
    flag: str
    help: str
    metavar: str
    default: str
    is_flag: bool
    is_list: bool
    """Whether values are separated by commas where the option itself does not split them."""
    choices: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name that a form shows: both names of a flag with a negation, and the full name of an abbreviation."""
        flag = self.flag.removeprefix("--")
        if self.is_flag and self.choices:
            flag = " or ".join(self.choices)
        return (flag if len(flag) > _ABBREVIATION else self.name).replace("-", " ").replace("_", " ").lower()


class OptionForm:
    """The options that ``decorators`` add to a command. ``make`` receives their values, and returns the request."""

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        *decorators: Callable[..., Any],
        parameters: type[Struct] | None = None,
    ) -> None:
        """``parameters`` is a struct with further fields of the URL."""
        command: Any = make
        for decorate in reversed(decorators):
            command = decorate(command)
        self._command = click.command(name, add_help_option=False)(command)
        self.fields = tuple(map(_field, self._command.params))
        options = [(field.name, str | None, None) for field in self.fields]
        bases = (Struct,) if parameters is None else (parameters,)
        self.parameters: type[Struct] = msgspec.defstruct(
            f"{name.title().replace('-', '')}Parameters", options, bases=bases, kw_only=True, forbid_unknown_fields=True
        )

    def parameters_with(self, **fields: tuple[Any, ...]) -> type[Struct]:
        """``parameters`` with further fields, of types with or without a default."""
        further = [(name, *field) for name, field in fields.items()]
        name = "".join(map(str.title, fields)) + self.parameters.__name__
        return msgspec.defstruct(name, further, bases=(self.parameters,), kw_only=True, forbid_unknown_fields=True)

    def texts_of(self, parameters: Any) -> dict[str, str]:
        """``texts`` of an object of ``parameters``. Raises ParameterError."""
        return self.texts({field.name: getattr(parameters, field.name) for field in self.fields})

    def texts(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """The given values that are not defaults, in the order of the options. Raises ParameterError."""
        texts = {}
        for field in self.fields:
            text = (values.get(field.name) or "").strip()
            if field.choices:
                if text not in ("", *field.choices):
                    raise ParameterError(field.name, short_repr(text), f"one of {', '.join(field.choices)}")
            elif field.is_flag:
                if text.lower() not in (*_YES, *_NO):
                    raise ParameterError(field.name, short_repr(text), "true or false")
                text = "true" if text.lower() in _YES else ""
            if text and text != field.default:
                texts[field.name] = text
        return texts

    def request(self, texts: Mapping[str, str], obj: object = None) -> Any:
        """The request that the command makes of ``texts``, and of ``obj``, the object of its context.

        Raises ParameterError, which names the field, and InputError.
        """
        try:
            return self._command.main(self.arguments(texts), self._command.name, standalone_mode=False, obj=obj)
        except (click.ClickException, InputError) as problem:
            message = str(problem) if isinstance(problem, InputError) else problem.format_message()
            option = getattr(problem, "param", None)
            name = option.name if option is not None else _field_name(message, self.fields)
            if name is None:
                raise
            match = _EXPECTED.fullmatch(message)
            expected = message if match is None else match["expected"]
            raise ParameterError(name, short_repr(texts.get(name, "")), expected) from problem

    def arguments(self, texts: Mapping[str, str]) -> list[str]:
        """The options with these values, as arguments of a command line."""
        options, arguments = list[str](), list[str]()
        for field in self.fields:
            text = texts.get(field.name)
            if text is None:
                continue
            values = [part.strip() for part in text.split(",")] if field.is_list else [text]
            if field.is_flag:
                options.append(f"--{text}" if field.choices else field.flag)
            elif field.flag.startswith("--"):
                options += [f"{field.flag}={value}" for value in values]
            else:
                arguments += values
        return [*options, "--", *arguments] if arguments else options

    def command_line(self, texts: Mapping[str, str]) -> str:
        """The options as users type them."""
        return shlex.join(self.arguments(texts))


def _field(option: click.Parameter) -> FormField:
    assert option.name is not None
    if not isinstance(option, click.Option):
        metavar = (option.metavar or option.name).removesuffix("...")
        return FormField(option.name, metavar, "", metavar, "", False, option.nargs == -1)
    is_flag, is_multiple = bool(option.is_flag), bool(option.multiple)
    pair = is_flag and bool(option.secondary_opts)
    choices: tuple[str, ...] = ()
    if pair:
        choices = (option.opts[0].removeprefix("--"), option.secondary_opts[0].removeprefix("--"))
    elif isinstance(option.type, click.Choice):
        choices = tuple(map(str, option.type.choices))
    is_number = not is_flag and not is_multiple and isinstance(option.default, int | float)
    default = f"{option.default:g}" if is_number else choices[0] if pair and option.default is True else ""
    return FormField(
        option.name,
        option.opts[0],
        (option.help or "").removesuffix(".").split("; may be repeated")[0] + ".",
        option.metavar or "",
        default,
        is_flag,
        is_multiple and option.callback is None,
        choices,
    )


def _field_name(message: str, fields: tuple[FormField, ...]) -> str | None:
    """The name of the field with whose option a message begins; None if there is none."""
    return next((field.name for field in fields if message.startswith((f"{field.flag}:", f"{field.flag} "))), None)
