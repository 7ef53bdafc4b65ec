"""``kframe completion``: complete commands, options, and the brokers and topics of the snapshot that a line names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem, get_completion_class, split_arg_string

if TYPE_CHECKING:
    from kframe.snapshot import Snapshot

_SHELLS: Final = ("bash", "zsh", "fish")
#: A larger file is not read while the user waits for completions.
_FILE_BYTES_MAX: Final = 32 << 20


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    For bash: eval "$(kframe completion bash)". For zsh the same with zsh. For fish: kframe completion fish | source.
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    root = click.get_current_context().find_root()
    click.echo(shell_class(root.command, {}, "kframe", "_KFRAME_COMPLETE").source())


def complete_brokers(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The broker ids of the snapshot, after the ids that the list has already."""
    selected, comma, start = incomplete.rpartition(",")
    ids = _of_snapshot(ctx, lambda snapshot: (str(facts.broker_id) for facts in snapshot.brokers))
    return _items(f"{selected}{comma}", (name for name in ids if name not in selected.split(",")), start)


def complete_topics(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The topics of the snapshot."""
    return _items("", _of_snapshot(ctx, lambda snapshot: snapshot.topics.names), incomplete)


def complete_partitions(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The partitions of the snapshot as ``topic-partition``. Of one topic, once it is complete."""

    def names(snapshot: Snapshot) -> Iterable[str]:
        start = incomplete.rpartition("-")[0] or incomplete
        topics = [name for name in snapshot.topics.names if name.startswith(start)]
        if len(topics) > 1:
            return (f"{name}-" for name in topics)
        return (
            f"{name}-{number}"
            for name in topics
            for number in range(int(snapshot.topics.partition_counts[snapshot.topics.names.index(name)]))
        )

    return _items("", _of_snapshot(ctx, names), incomplete)


def complete_selectors(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The leader selectors of kframe and of the installed plugins."""
    from kframe.errors import KframeError
    from kframe.registry.registry import build_registry

    try:
        registry = build_registry(ctx.params.get("no_plugin") or (), ctx.params.get("plugins_dir"))
        return _items("", registry.selectors, incomplete)
    except KframeError:
        return []


def _of_snapshot(ctx: click.Context, names: Callable[[Snapshot], Iterable[str]]) -> list[str]:
    """Names from the snapshot of the command line. None if it is a stream, large or unreadable."""
    from kframe.errors import KframeError
    from kframe.snapshot import read_snapshot

    path = ctx.params.get("source")
    if not path:  # click parses no arguments if the last option still lacks its value
        words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
        path = next((Path(word) for word in words if os.path.exists(word)), None)
    if not isinstance(path, Path) or not path.exists():
        return []
    if sum(os.stat(file).st_size for file in (path.iterdir() if path.is_dir() else (path,))) > _FILE_BYTES_MAX:
        return []
    try:
        return list(names(read_snapshot(path, ctx.params.get("source_format"))))
    except (KframeError, OSError):
        return []


def _items(prefix: str, names: Iterable[str], start: str) -> list[CompletionItem]:
    return [CompletionItem(f"{prefix}{name}") for name in names if name.startswith(start)]
