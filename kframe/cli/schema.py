"""``kframe schema``: the JSON Schemas of what commands print and of the files that they read."""

from __future__ import annotations

import click

from kframe.cli.numbers import limit_option
from kframe.cli.output import OutputTable, emit_rows, output_option
from kframe.cli.plugins import PluginSettings, plugin_options


@click.command("schema")
@click.argument("name", metavar="[NAME]", required=False)
@plugin_options
@limit_option
@output_option
def command(name: str | None, plugins: PluginSettings, limit: int | None, output: str) -> None:
    """Print the JSON Schema NAME, such as whatif or scenario; without NAME, list the schemas.

    The field "schema" of a document names its schema. Each line of -o jsonl is a row of the document, with "schema".
    """
    from kframe.cli.documents.engine import SchemaRow
    from kframe.cli.documents.registry import DOCUMENTS, find, schema_text

    if name is not None and any(name in names for names in map(_names, DOCUMENTS)):
        click.echo(schema_text(find(name, DOCUMENTS)), nl=False)
        return
    documents = {**DOCUMENTS, **plugins.registry().documents}
    if name is not None:
        click.echo(schema_text(find(name, documents)), nl=False)
        return
    rows = [
        SchemaRow(document.name, document.doc, "kframe" if name in DOCUMENTS else "plugin")
        for name, document in sorted(documents.items())
    ]
    emit_rows(OutputTable("kframe.schemas/v1", SchemaRow.__struct_fields__, rows, limit=limit), output)


def _names(name: str) -> set[str]:
    short = name.removeprefix("kframe.")
    return {name, short, short.partition("/")[0]}
