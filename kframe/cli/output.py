"""Output of commands: the same rows or record as a table, JSON, YAML, CSV or JSON lines.

Data goes to stdout, everything else to stderr. JSON has all values of a table, under a versioned ``schema``. Rows are
written one by one, so a million of them need no memory.
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, Union

import click

from kframe.cli.layout import (
    LINE_WIDTH,
    TableColumn,
    broken,
    cell,
    column_widths,
    csv_cell,
    fitting_columns,
    is_breakable,
    printable,
    table_lines,
)
from kframe.errors import InputError, ParameterError, PluginError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from msgspec import Struct

OUTPUTS: Final = ("table", "wide", "json", "yaml", "csv", "jsonl")

#: The fields of a record by name, as plain values.
Fields: TypeAlias = Mapping[str, Any]
Record: TypeAlias = Union[Fields, "Struct", "DataclassInstance"]
Command = TypeVar("Command", bound=Callable[..., Any])

#: Number of first rows that determine column widths.
_PAGE_ROWS: Final = 1_000
#: Titles of columns that are not the names of their fields.
_TITLES: Final = {"max_mean_ratio": "MAX/MEAN"}
#: Wide enough that no line is broken.
_YAML_WIDTH: Final = 1 << 30


class OutputTable(NamedTuple):
    """Rows to print. ``columns`` are fields of the rows in order; those in ``wide`` are only in wide tables and data.

    Values are None, bool, int, float, str, or lists and mappings of these. A row that is None says that no further row
    is ready: all previous ones are printed now. ``limit`` is the number of rows that a table prints; None prints all.
    """

    schema: str
    columns: Sequence[str]
    rows: Iterable[Record | None]
    wide: frozenset[str] = frozenset()
    limit: int | None = None


#: The options that set a parameter of another name, by the parameter.
SET_BY: Final = {
    "brokers": ("broker", "fail"),
    "partition": ("name",),
    "racks": ("add_brokers",),
    "leader_selector": ("selectors",),
}


class BadInput(click.ClickException):
    """An input that cannot be used. It is one line on stderr, with exit code 2."""

    exit_code = 2


class ReportingGroup(click.Group):
    """A group whose commands report an InputError or PluginError as BadInput instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ParameterError as problem:
            raise BadInput(printable(problem.text_for(self._option(ctx, problem.parameter)))) from problem
        except (InputError, PluginError) as problem:
            raise BadInput(printable(str(problem))) from problem

    def _option(self, ctx: click.Context, parameter: str) -> str:
        """The option or argument of the invoked command that sets a parameter; without one, the parameter."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        options = {} if command is None else {option.name or "": option for option in command.params}
        names = (parameter, *SET_BY.get(parameter, ()))
        option = next((options[name] for name in names if name in options), None)
        if option is None:
            return parameter
        if isinstance(option, click.Argument):
            return option.human_readable_name.strip("[]")
        return max(option.opts, key=len)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name. Raises UsageError, which suggests similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            import difflib  # Only a wrong name needs it.

            similar = difflib.get_close_matches(args[0], self.list_commands(ctx), n=3)
            if similar and "Did you mean" not in problem.format_message():
                raise click.UsageError(
                    f"{problem.message} Did you mean {' or '.join(map(repr, similar))}?", ctx
                ) from problem
            raise


def output_option(command: Command) -> Command:
    """Add ``-o``/``--output`` and ``--json`` to a command, as its parameter ``output``."""
    choice = click.Choice(OUTPUTS)
    command = click.option("--json", "output", flag_value="json", help="Short for -o json.")(command)
    return click.option("-o", "--output", type=choice, default="table", show_default=True, help="Output format.")(
        command
    )


def emit_rows(table: OutputTable, output: str) -> None:
    """Print many rows of one kind to stdout."""
    with rows_document(table, output):
        pass


@contextmanager
def rows_document(table: OutputTable, output: str) -> Iterator[dict[str, Any]]:
    """Print many rows of one kind to stdout; then, in JSON and YAML, the fields that the caller adds to the dict."""
    plain_rows = (None if row is None else plain(row) for row in table.rows)
    rows, fields = (row for row in plain_rows if row is not None), dict[str, Any]()
    match output:
        case "table" | "wide":
            visible = [name for name in table.columns if output == "wide" or name not in table.wide]
            remaining = plain_rows
            listed = remaining if table.limit is None else itertools.islice(remaining, table.limit)
            _emit_table(visible, listed, None if output == "wide" else LINE_WIDTH)
            echo_more(sum(row is not None for row in remaining), "data has them all")
        case "csv":
            _emit_csv(table.columns, rows)
        case "jsonl":
            for row in rows:
                click.echo(_json({"schema": table.schema, **row}))
        case "json":
            _emit_json(table.schema, rows)
        case "yaml":
            _emit_yaml(table.schema, rows)
    yield fields
    if fields:
        import msgspec  # Few rows have fields beside them.

        fields = msgspec.to_builtins(fields)
    if output == "json":
        click.echo("".join(f', "{name}": {_json(value)}' for name, value in fields.items()) + "}")
    elif output == "yaml" and fields:
        click.echo(_yaml(fields, flow=None), nl=False)


def emit_section(
    rows: Sequence[Record],
    output: str,
    columns: Sequence[str] = (),
    limit: int | None = None,
    where: str = "data has them all",
) -> None:
    """Print a further table of a report after an empty line, if it has rows, and the number of omitted rows, which are
    ``where``. The columns are by default the fields of the rows."""
    listed = list(map(plain, rows[:limit]))
    if listed:
        click.echo()
        emit_rows(OutputTable("", columns or list(listed[0]), listed), output)
    echo_more(len(rows) - len(listed), where)


def emit_record(schema: str, record: Record, output: str, wide: Collection[str] = ()) -> None:
    """Print one record to stdout: as ``name  value`` lines (keys in ``wide`` only in wide output), or as data."""
    fields = plain(record)
    match output:
        case "table" | "wide":
            visible = {name: element for name, element in fields.items() if output == "wide" or name not in wide}
            _emit_fields(visible, None if output == "wide" else LINE_WIDTH)
        case "csv":
            _emit_csv(list(fields), [fields])
        case "jsonl":
            click.echo(_json({"schema": schema, **fields}))
        case "json":
            click.echo(_json({"schema": schema, **fields}, indent=2))
        case "yaml":
            click.echo(_yaml({"schema": schema, **fields}, flow=False), nl=False)


def emit_data(schema: str, document: Record, columns: Sequence[str], rows: Iterable[Record], output: str) -> bool:
    """Print a document as data, of which CSV and JSON lines have only ``rows``. False for tables, which are not
    printed."""
    if output in ("csv", "jsonl"):
        emit_rows(OutputTable(schema, columns, rows), output)
    elif output in ("json", "yaml"):
        emit_record(schema, document, output)
    return output not in ("table", "wide")


def emit_json(document: Fields, name: str, rows: Iterable[Record]) -> None:
    """Print a document as JSON. Its last field ``name`` has the rows, one per line, written as they are computed."""
    fields = {key: value for key, value in document.items() if key != name}
    click.echo(_json(fields, indent=2).removesuffix("\n}") + f',\n  "{name}": [', nl=False)
    for separator, row in _separated(map(plain, rows)):
        click.echo(f"{separator}\n    {_json(row)}", nl=False)
    click.echo("\n  ]\n}")


def plain(record: Record) -> Fields:
    """The fields of a record in their order, as plain values."""
    if isinstance(record, Mapping):
        return record
    import msgspec  # A list of commands prints no record.

    fields: dict[str, Any] = msgspec.to_builtins(record)
    return fields


def echo_more(count: int, where: str) -> None:
    """Report the number of omitted rows, if any."""
    if count > 0:
        click.echo(f"and {count:,} more (--limit N; {where})")


def emit_heading(text: str, output: str = "table") -> None:
    """Print a text, highlighted on a terminal unless NO_COLOR is set. Only wide lines have more than 100 characters."""
    for line in _text_lines(text, output):
        _echo_styled(line, bold=True)


def echo_text(text: str, output: str = "table") -> None:
    """Print a text. Only wide lines have more than 100 characters."""
    for line in _text_lines(text, output):
        click.echo(line)


def _text_lines(text: str, output: str) -> list[str]:
    return [text] if output == "wide" else broken(text)


def _echo_styled(text: str, **style: Any) -> None:
    click.echo(click.style(text, **style), color=False if os.environ.get("NO_COLOR") else None)


def emit_reasons(heading: str, reasons: Mapping[str, str]) -> None:
    """Print the problem of each path under a heading. Nothing if there are none."""
    if reasons:
        emit_heading(heading)
    for path, reason in reasons.items():
        click.echo(f"  {cell(path)}: {cell(reason)}")


def emit_assumptions(texts: Sequence[str], output: str) -> None:
    """Print assumptions: a line each in wide output, otherwise one line that names the subjects of those that the
    user has not stated."""
    if output == "wide":
        for text in texts:
            click.echo(f"assumption: {text}")
        return
    from kframe.model.texts import AS_STATED, counted  # A list of commands needs no module of the model.

    missing = [text for text in texts if not text.endswith(AS_STATED)]
    if missing:
        subjects = ", ".join(text.partition(":")[0].partition(" unknown")[0] for text in missing)
        echo_text(f"{counted(len(missing), 'fact')} not in this input: {subjects} (-o wide: the values taken)")


def _emit_table(names: Sequence[str], rows: Iterable[Fields | None], limit: int | None) -> None:
    """Print a table. Lines of more than ``limit`` characters lose columns, which a last line names, and break texts."""
    remaining = iter(rows)
    first = _first_page(remaining)
    columns, omitted = fitting_columns([_column(name, first) for name in names], limit)
    widths = column_widths(columns, limit)
    for line in table_lines([column.title for column in columns], widths, columns):
        _echo_styled(line, bold=True)
    for row in itertools.chain(first, (row for row in remaining if row is not None)):
        style = {"fg": "red"} if _is_offline(row) else {}
        texts = [cell(row[column.name]) for column in columns]
        for line in table_lines(texts, widths, columns, breaks=limit is not None):
            _echo_styled(line, **style)
    if omitted:
        echo_text(f"(-o wide adds {', '.join(column.title for column in omitted)})")


def _column(name: str, rows: Sequence[Fields]) -> TableColumn:
    values = [row[name] for row in rows]
    texts = [cell(value) for value in values]
    breakable = any(is_breakable(value, text) for value, text in zip(values, texts, strict=True))
    title = _TITLES.get(name, name.upper().replace("_", "-"))
    return TableColumn(name, title, texts, any(map(_is_number, values)), breakable)


def _is_offline(row: Fields) -> bool:
    """Whether the row is a broker that is not registered or fenced, a partition without a leader, or counts offline
    partitions: those of a topic, or those that a failure adds."""
    leader = row.get("leader_after", row.get("leader"))
    offline = row.get("newly_offline", row.get("offline"))
    return (
        row.get("state") in ("down", "fenced")
        or row.get("registered") is False
        or row.get("fenced") is True
        or leader in ("none", -1)
        or (row.get("partitions") == "offline" and row.get("after") not in (None, 0))
        or (_is_number(offline) and offline > 0)
    )


def _first_page(rows: Iterator[Fields | None]) -> list[Fields]:
    """The rows that are ready, at least one if there is any."""
    page: list[Fields] = []
    for row in rows:
        if row is not None:
            page.append(row)
        if len(page) == _PAGE_ROWS or (row is None and page):
            break
    return page


def _emit_fields(record: Fields, limit: int | None) -> None:
    """Print fields; each item of a list of texts is on its own line, and long texts are broken."""
    names = {name: name.replace("_", " ") for name in record}
    width = max(map(len, names.values()), default=0)
    for name, value in record.items():
        texts = [cell(value)]
        if isinstance(value, list) and value:
            texts = list(map(cell, value))
        elif isinstance(value, Mapping) and value:
            texts = [f"{key}: {cell(element)}" for key, element in value.items()]
        lines = [line for text in texts for line in (broken(text, limit - width - 2) if limit else [text])]
        for number, line in enumerate(lines):
            style = {"fg": "red"} if name == "offline" and _is_number(value) and value > 0 else {}
            _echo_styled(f"{names[name] if number == 0 else '':<{width}}  {line}".rstrip(), **style)


def _emit_csv(columns: Sequence[str], rows: Iterable[Fields]) -> None:
    import csv

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in itertools.chain([columns], ([csv_cell(row[name]) for name in columns] for row in rows)):
        writer.writerow(row)
        click.echo(buffer.getvalue(), nl=False)
        buffer.seek(0)
        buffer.truncate()


def _emit_json(schema: str, rows: Iterable[Fields]) -> None:
    """A document without its end, one row per line."""
    click.echo(f'{{"schema": {_json(schema)}, "rows": [', nl=False)
    for separator, row in _separated(rows):
        click.echo(f"{separator}\n  {_json(row)}", nl=False)
    click.echo("\n]", nl=False)


def _separated(rows: Iterable[Fields]) -> Iterator[tuple[str, Fields]]:
    separator = ""
    for row in rows:
        yield separator, row
        separator = ","


def _emit_yaml(schema: str, rows: Iterator[Fields]) -> None:
    first = next(rows, None)
    click.echo(_yaml({"schema": schema}, flow=False), nl=False)
    click.echo("rows: []" if first is None else "rows:")
    for row in [] if first is None else itertools.chain([first], rows):
        click.echo(_yaml([dict(row)], flow=None), nl=False)


def _yaml(value: Any, flow: bool | None) -> str:
    """``flow`` None sets lists of plain values on one line, False none."""
    import json

    import yaml

    plain = json.loads(json.dumps(value))
    text: str = yaml.safe_dump(plain, sort_keys=False, default_flow_style=flow, width=_YAML_WIDTH)
    return text


def _json(value: Any, indent: int | None = None) -> str:
    import json  # Neither tables nor help need it.

    return json.dumps(value, indent=indent)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
