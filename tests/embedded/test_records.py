"""The record tree follows ZooKeeper's rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.embedded.records import (
    Change,
    CheckVersion,
    Create,
    Delete,
    Operation,
    RecordCode,
    RecordTree,
    SetData,
    StoredRecordError,
    WatchEvent,
)


class Tree(RecordTree):
    """A tree with session 1, which ignores watch events, and session 2, which records them."""

    def __init__(self) -> None:
        super().__init__()
        self.notified: list[WatchEvent] = []
        assert (self.open_session(lambda _event: None), self.open_session(self.notified.append)) == (1, 2)

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Return all records with data and version."""
        nodes, paths = {}, ["/"]
        for path in paths:
            data, stat = self.get(1, path)
            nodes[path] = data, stat.version
            paths += [f"{path.rstrip('/')}/{name}" for name in self.children(1, path)]
        return nodes


REFUSED: list[tuple[str, Operation, RecordCode, str]] = [
    ("create what is there", Create("/a"), RecordCode.NODE_EXISTS, "/a"),
    ("create below nothing", Create("/x/y"), RecordCode.NO_NODE, "/x"),
    ("create below an ephemeral", Create("/a/e/c"), RecordCode.NO_CHILDREN_FOR_EPHEMERALS, "/a/e/c"),
    ("create without a slash", Create("b"), RecordCode.BAD_ARGUMENTS, "b"),
    ("create with a slash behind", Create("/b/"), RecordCode.BAD_ARGUMENTS, "/b/"),
    ("create with two slashes", Create("/a//b"), RecordCode.BAD_ARGUMENTS, "/a//b"),
    ("create an empty name", Create("/a/"), RecordCode.BAD_ARGUMENTS, "/a/"),
    ("create a dot", Create("/a/.."), RecordCode.BAD_ARGUMENTS, "/a/.."),
    ("create a zero byte", Create("/a/\0"), RecordCode.BAD_ARGUMENTS, "/a/\0"),
    ("set nothing", SetData("/x", b""), RecordCode.NO_NODE, "/x"),
    ("set at an older version", SetData("/a", b"", 0), RecordCode.BAD_VERSION, "/a"),
    ("set at a newer version", SetData("/a", b"", 2), RecordCode.BAD_VERSION, "/a"),
    ("delete nothing", Delete("/x"), RecordCode.NO_NODE, "/x"),
    ("delete another version", Delete("/a/e", 1), RecordCode.BAD_VERSION, "/a/e"),
    ("delete a parent", Delete("/a"), RecordCode.NOT_EMPTY, "/a"),
    ("delete the root", Delete("/"), RecordCode.BAD_ARGUMENTS, "/"),
    ("check nothing", CheckVersion("/x", 0), RecordCode.NO_NODE, "/x"),
    ("check another version", CheckVersion("/a", 0), RecordCode.BAD_VERSION, "/a"),
]


@pytest.fixture
def tree() -> Tree:
    """Record ``/a`` at version 1 with an ephemeral child ``e`` of session 2."""
    tree = Tree()
    tree.create(1, "/a", b"old")
    tree.set(1, "/a", b"data")
    tree.create(2, "/a/e", ephemeral=True)
    return tree


@pytest.mark.parametrize("operation, code, path", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refusals(tree: Tree, operation: Operation, code: RecordCode, path: str) -> None:
    before = tree.content()
    for position in (0, 2):
        allowed: list[Operation] = [Create("/b", b"1"), SetData("/b", b"2")]
        with pytest.raises(StoredRecordError) as refused:
            tree.multi(1, [*allowed[:position], operation, Create("/c")])
        assert (refused.value.code, refused.value.path, refused.value.position) == (code, path, position)
        assert tree.content() == before


def test_multi_takes_one_zxid_and_gives_each_result(tree: Tree) -> None:
    results = tree.multi(1, [Create("/b"), SetData("/b", b"x"), CheckVersion("/b", 1), Delete("/a/e")])
    assert results == ["/b", "1", "/b", "/a/e"]
    assert tree.zxid == 4
    assert tree.get(1, "/b")[1].czxid == 4


@pytest.mark.parametrize("names", [[], ["x"], ["x", "y", "..z"]])
def test_create_children_equals_multi_of_creates(names: list[str]) -> None:
    trees = Tree(), Tree()
    for tree in trees:
        tree.create(1, "/a")
        tree.children(2, "/a", watch=True)
        tree.exists(2, "/a/y", watch=True)
    trees[0].create_children(1, "/a", names)
    trees[1].multi(1, [Create(f"/a/{name}") for name in names])
    for tree in trees:
        tree.create(1, "/a/n", sequential=True)
    first, second = ([tree.content(), tree.zxid, tree.notified, tree.get(1, "/a")] for tree in trees)
    assert first == second


@pytest.mark.parametrize("name, code", [("e", RecordCode.NODE_EXISTS), ("..", RecordCode.BAD_ARGUMENTS)])
def test_children_are_created_all_or_none(tree: Tree, name: str, code: RecordCode) -> None:
    before = tree.content(), tree.zxid
    with pytest.raises(StoredRecordError) as refused:
        tree.create_children(1, "/a", ["x", name])
    assert (refused.value.code, refused.value.path) == (code, f"/a/{name}")
    assert (tree.content(), tree.zxid) == before


def test_sequential_names_count_all_children_ever_created(tree: Tree) -> None:
    assert tree.create(1, "/a/isr_change_", sequential=True) == "/a/isr_change_0000000001"
    tree.delete(1, "/a/isr_change_0000000001")
    assert tree.create(1, "/a/isr_change_", sequential=True) == "/a/isr_change_0000000002"
    with pytest.raises(StoredRecordError):
        tree.multi(1, [Create("/a/s_", sequential=True), CheckVersion("/a", 9)])
    assert tree.create(1, "/a/", sequential=True) == "/a/0000000003"


def test_restored_record_keeps_czxid_and_raises_zxid(tree: Tree) -> None:
    tree.multi(1, [Create("/b", czxid=700), Create("/c", czxid=20)])
    assert [tree.get(1, path)[1].czxid for path in ("/b", "/c")] == [700, 20]
    tree.create(1, "/d")
    assert tree.get(1, "/d")[1].czxid == 701


CREATED, DELETED, DATA, CHILDREN = Change.CREATED, Change.DELETED, Change.DATA, Change.CHILDREN
EXISTS, GET, LIST = Tree.exists, Tree.get, Tree.children

#: Watches of session 2, operations of session 1, and the watch events of session 2.
WATCHES: list[tuple[str, list[tuple[Callable[..., object], str]], list[Operation], list[tuple[Change, str]]]] = [
    ("exists hears creation", [(EXISTS, "/b")], [Create("/b")], [(CREATED, "/b")]),
    ("exists hears data", [(EXISTS, "/a")], [SetData("/a", b"")], [(DATA, "/a")]),
    ("exists hears deletion", [(EXISTS, "/a/e")], [Delete("/a/e")], [(DELETED, "/a/e")]),
    ("get hears data", [(GET, "/a")], [SetData("/a", b"")], [(DATA, "/a")]),
    ("get hears deletion", [(GET, "/a/e")], [Delete("/a/e")], [(DELETED, "/a/e")]),
    ("get does not hear children", [(GET, "/a")], [Create("/a/c")], []),
    ("children hears a child come", [(LIST, "/a")], [Create("/a/c")], [(CHILDREN, "/a")]),
    ("children hears a child go", [(LIST, "/a")], [Delete("/a/e")], [(CHILDREN, "/a")]),
    ("children does not hear data", [(LIST, "/a")], [SetData("/a", b""), SetData("/a/e", b"")], []),
    ("children hears deletion", [(LIST, "/a/e")], [Delete("/a/e")], [(DELETED, "/a/e")]),
    ("both watches, one deletion", [(LIST, "/a/e"), (GET, "/a/e")], [Delete("/a/e")], [(DELETED, "/a/e")]),
    ("armed twice", [(GET, "/a"), (GET, "/a")], [SetData("/a", b"")], [(DATA, "/a")]),
    ("one-shot", [(GET, "/a")], [SetData("/a", b""), SetData("/a", b"")], [(DATA, "/a")]),
    ("children of a replaced child", [(LIST, "/a")], [Delete("/a/e"), Create("/a/e")], [(CHILDREN, "/a")]),
    ("check is no change", [(GET, "/a"), (LIST, "/a")], [CheckVersion("/a", 1)], []),
]


@pytest.mark.parametrize("in_one_multi", [False, True], ids=["one by one", "in one multi"])
@pytest.mark.parametrize("armed, operations, notified", [row[1:] for row in WATCHES], ids=[row[0] for row in WATCHES])
def test_watches(
    tree: Tree,
    armed: list[tuple[Callable[..., object], str]],
    operations: list[Operation],
    notified: list[tuple[Change, str]],
    in_one_multi: bool,
) -> None:
    for read, path in armed:
        read(tree, 2, path, watch=True)
    for part in [operations] if in_one_multi else [[operation] for operation in operations]:
        tree.multi(1, part)
    assert [(event.change, event.path) for event in tree.notified] == notified


@pytest.mark.parametrize("read", [GET, LIST])
def test_get_and_children_arm_no_watch_on_missing_record(tree: Tree, read: Callable[..., object]) -> None:
    with pytest.raises(StoredRecordError):
        read(tree, 2, "/b", watch=True)
    tree.multi(1, [Create("/b"), Create("/b/c")])
    assert tree.notified == []


def test_refused_multi_notifies_no_session_and_leaves_watches_armed(tree: Tree) -> None:
    tree.get(2, "/a", watch=True)
    with pytest.raises(StoredRecordError):
        tree.multi(1, [SetData("/a", b""), CheckVersion("/a", 1)])
    assert tree.notified == []
    tree.set(1, "/a", b"")
    assert tree.notified == [WatchEvent(DATA, "/a")]


def test_listener_sees_committed_transaction_and_can_rearm_watch() -> None:
    tree, children_at_watch = RecordTree(), []

    def on_watch(_event: WatchEvent) -> None:
        children_at_watch.append(tree.children(watcher, "/", watch=True))

    writer, watcher = tree.open_session(lambda _event: None), tree.open_session(on_watch)
    tree.children(watcher, "/", watch=True)
    tree.multi(writer, [Create("/a"), Create("/b")])
    tree.create(writer, "/c")
    assert children_at_watch == [["a", "b"], ["a", "b", "c"]]


def test_session_end_removes_ephemerals_and_watches(tree: Tree) -> None:
    third = tree.open_session(lambda _event: pytest.fail("a closed session receives no events"))
    for name in ("f", "g"):
        tree.create(third, f"/a/{name}", ephemeral=True)
    tree.create(third, "/stays")
    tree.children(third, "/a", watch=True)
    tree.children(2, "/a", watch=True)
    before = tree.zxid
    tree.close_session(third)
    assert (tree.children(1, "/a"), tree.children(1, "/")) == (["e"], ["a", "stays"])
    assert tree.notified == [WatchEvent(CHILDREN, "/a")]
    assert tree.zxid == before + 1


def test_closed_session_is_refused(tree: Tree) -> None:
    tree.close_session(2)
    for call in (
        lambda: tree.get(2, "/a"),
        lambda: tree.exists(2, "/a", watch=True),
        lambda: tree.children(2, "/a"),
        lambda: tree.create(2, "/b"),
        lambda: tree.close_session(2),
    ):
        with pytest.raises(StoredRecordError) as refused:
            call()
        assert refused.value.code is RecordCode.SESSION_EXPIRED
    assert tree.open_session(lambda _event: None) == 3, "numbers of sessions are not used again"


PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/deep"])
VERSIONS = st.integers(-1, 2)
OPERATIONS = st.lists(
    st.one_of(
        st.builds(Create, PATHS, st.binary(max_size=1), st.booleans(), st.booleans()),
        st.builds(SetData, PATHS, st.binary(max_size=1), VERSIONS),
        st.builds(Delete, PATHS, VERSIONS),
        st.builds(CheckVersion, PATHS, VERSIONS),
    ),
    max_size=6,
)


@given(OPERATIONS, OPERATIONS)
def test_multi_is_all_or_nothing(before: list[Operation], operations: list[Operation]) -> None:
    together, singly = Tree(), Tree()
    for tree in (together, singly):
        for operation in before:
            try_all(tree, [operation])
    start = together.content()
    assert start == singly.content()
    if try_all(together, operations):
        for operation in operations:
            assert try_all(singly, [operation]), "what a multi does, its operations do one after another"
        assert together.content() == singly.content()
    else:
        assert together.content() == start


def try_all(tree: Tree, operations: list[Operation]) -> bool:
    """Whether the tree accepted the operations."""
    try:
        tree.multi(1, operations)
    except StoredRecordError:
        return False
    return True
