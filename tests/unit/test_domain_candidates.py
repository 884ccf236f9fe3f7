"""A file tree is its bytes: equal trees have equal digests, and nothing unsafe gets into one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.candidates import MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, FileTree, check_path
from orchestrator.errors import InputError

segments = st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,10}\Z")
paths = st.lists(segments, min_size=1, max_size=4).map("/".join)
trees = st.dictionaries(paths, st.binary(max_size=50), max_size=8).filter(
    lambda files: not any(other.startswith(f"{path}/") for path in files for other in files)
)


@given(trees, st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_of_files(files: dict[str, bytes], shuffler: object) -> None:
    items = list(files.items())
    shuffler.shuffle(items)  # type: ignore[attr-defined]
    one, other = FileTree(files), FileTree(dict(items))
    assert one == other
    assert one.digest == other.digest
    assert hash(one) == hash(other)
    assert list(one) == sorted(files)
    assert dict(one) == files


@given(trees, trees)
def test_trees_are_equal_exactly_when_their_files_are(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert (FileTree(one) == FileTree(other)) == (one == other)
    assert (FileTree(one).digest == FileTree(other).digest) == (one == other)


def test_a_known_tree_has_a_known_digest() -> None:
    tree = FileTree({"program.py": b"x = 1\n"})
    assert tree.manifest() == {"program.py": "9e26bf369911c45c243c684147b23fc9e1dcfcf257d299a1c632016a6fcd33f4"}
    assert tree.digest == "sha256:dfbd02b8a78891df0f8514bcc0453aca951ffe952e6e266c67093ea7c0fe8115"


def test_moving_content_between_files_changes_the_digest() -> None:
    assert FileTree({"a": b"xy", "b": b""}).digest != FileTree({"a": b"x", "b": b"y"}).digest
    assert FileTree({"a": b"x"}).digest != FileTree({"b": b"x"}).digest
    assert FileTree({}).digest != FileTree({"a": b""}).digest


def test_a_tree_does_not_follow_changes_of_what_it_was_made_from() -> None:
    files, content = {"a": b"x"}, bytearray(b"y")
    tree = FileTree(files | {"b": content})
    files["c"] = b"z"
    content[0] = 0
    assert dict(tree) == {"a": b"x", "b": b"y"}
    with pytest.raises(TypeError):
        tree.files["a"] = b"changed"  # type: ignore[index]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a//b",
        "a/",
        "./a",
        ".hidden",
        "-rf",
        "a b",
        "a\\b",
        "a\nb",
        "a\x00",
        "ä",
        "a:b",
        "C:/x",
        "a\n",
        "~/x",
        "$HOME",
        "x" * 65,
        "a/b/c/d/e/f/g/h/i",
    ],
)
def test_unsafe_paths_are_refused(path: str) -> None:
    with pytest.raises(InputError, match="is not allowed; use relative names"):
        check_path(path)
    with pytest.raises(InputError):
        FileTree({path: b""})


@pytest.mark.parametrize("path", ["program.py", "a/b/c/d/e/f/g/h", "_x", "0", "A-b_c.d", "x" * 64])
def test_plain_relative_paths_are_allowed(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize("paths", [["a", "a/b"], ["a/b/c", "a/b"], ["x", "a/b", "a/b/c/d"]])
def test_a_path_is_not_both_a_file_and_a_folder(paths: list[str]) -> None:
    with pytest.raises(InputError, match="cannot be a file, since"):
        FileTree(dict.fromkeys(paths, b""))
    assert len(FileTree({"a": b"", "a.b": b"", "ab/c": b""})) == 3


def test_bounds_are_kept_to_the_byte() -> None:
    assert len(FileTree({f"f{n}": b"" for n in range(MAX_FILES)})) == MAX_FILES
    with pytest.raises(InputError, match=f"at most {MAX_FILES} files"):
        FileTree({f"f{n}": b"" for n in range(MAX_FILES + 1)})
    FileTree({"a": bytes(MAX_FILE_BYTES)})
    with pytest.raises(InputError, match=f"'a' has {MAX_FILE_BYTES + 1} bytes"):
        FileTree({"a": bytes(MAX_FILE_BYTES + 1)})
    full = {f"f{n}": bytes(MAX_FILE_BYTES) for n in range(MAX_TREE_BYTES // MAX_FILE_BYTES)}
    FileTree(full)
    with pytest.raises(InputError, match=f"{MAX_TREE_BYTES} bytes"):
        FileTree(full | {"one": b"x"})
