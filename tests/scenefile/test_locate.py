"""The line of every key and list element of a TOML text."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simphys.scenefile.locate import locate, split_key
from simphys.scenefile.section import Key

TEXT = '''\
# title = "a comment with = and [brackets]"
title = "a # b = [c]"  # [no.table]
text = """
[not.a.table]
key = 1 \\""" still text"""
literal = \'\'\'
[neither]
\'\'\'
dotted.inner . "quo.ted" = 1

[geometry]  # behind a header
springs = [
    [0, 1],  # ], a bracket in a comment
    [1, 2], [2,
    3],
]
lattice = { shape = [2, 3], "spa]cing" = "}", origin.x = 0 }
[[geometry.anchors]]
node = 0
[[geometry.anchors]]
node = 1
  [geometry.anchors.extra]
  deep = 2024-01-01T00:00:00
[a.b]
c = true
[a]
d = +1e3
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("title",), 2),
        (("text",), 3),
        (("literal",), 6),
        (("dotted", "inner", "quo.ted"), 9),
        (("geometry",), 11),
        (("geometry", "springs", 0), 13),
        (("geometry", "springs", 1, 1), 14),
        (("geometry", "springs", 2, 0), 14),
        (("geometry", "springs", 2, 1), 15),
        (("geometry", "lattice", "shape", 1), 17),
        (("geometry", "lattice", "spa]cing"), 17),
        (("geometry", "lattice", "origin", "x"), 17),
        (("geometry", "anchors"), 18),
        (("geometry", "anchors", 0, "node"), 19),
        (("geometry", "anchors", 1), 20),
        (("geometry", "anchors", 1, "extra", "deep"), 23),
        (("a", "b", "c"), 25),
        (("a",), 26),
        (("a", "d"), 27),
    ],
)
def test_keys_of_every_notation_are_found(key: Key, line: int) -> None:
    assert locate(TEXT)[key] == line


def test_nothing_else_is_found() -> None:
    assert set(locate(TEXT)) == set(paths(tomllib.loads(TEXT)))


def test_windows_line_ends_count_as_one() -> None:
    assert locate('a = """x\r\ny"""\r\nb = [\r\n1]\r\n') == {("a",): 1, ("b",): 3, ("b", 0): 4}


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a.b", ["a", "b"]), (' a . "b.c" ', ["a", "b.c"]), ("a.0.b", ["a", "0", "b"]), ("'x'", ["x"])],
)
def test_a_dotted_key_is_split(text: str, parts: list[str]) -> None:
    assert split_key(text) == parts


@pytest.mark.parametrize("text", ["", "a..b", "a.", ".a", "a b", "a=b", '"open'])
def test_what_is_no_key_is_not_split(text: str) -> None:
    assert split_key(text) is None


def paths(value: Any, key: Key = ()) -> list[Key]:
    """Every key and index of nested tables and lists."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return []
    return [found for name, item in items for found in ((*key, name), *paths(item, (*key, name)))]


NAMES = st.one_of(st.sampled_from(["a", "b-c", "d_1", "0"]), st.text("ab.=[]#'\" {}é", min_size=1, max_size=4))
NUMBERED = "<number>"
VALUES = st.recursive(
    st.just(NUMBERED),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


class Writer:
    """Writes a value as TOML on as many lines as a drawn choice says, each leaf as a number of its own."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.leaves = 1000

    def gap(self) -> str:
        return self.data.draw(st.sampled_from(["", " ", "\n", " # [x] = ]}\n", "\r\n  "]))

    def name(self, name: str) -> str:
        if name.isascii() and name.replace("-", "").replace("_", "").isalnum() and self.data.draw(st.booleans()):
            return name
        return '"' + name.replace('"', '\\"') + '"'

    def value(self, value: Any) -> str:
        if value == NUMBERED:
            self.leaves += 1
            form = self.data.draw(st.sampled_from(["{}", '"{} = [#"', "'''\n{}'''", '"""{}\n"\\""""""', "+{}.0"]))
            return form.format(self.leaves)
        if isinstance(value, list):
            return "[" + "".join(f"{self.gap()}{self.value(item)}{self.gap()}," for item in value) + self.gap() + "]"
        return "{" + ", ".join(f"{self.name(name)} = {self.value(item)}" for name, item in value.items()) + "}"

    def document(self, tables: dict[str, Any]) -> tuple[str, dict[Key, int]]:
        """The text, and the line of each key and value pair at the head of a line."""
        text = ""
        lines: dict[Key, int] = {}
        for name, table in tables.items():
            text += self.data.draw(st.sampled_from(["", "\n", "# [a]\n"]))
            lines[(name,)] = text.count("\n") + 1
            text += f"[{self.name(name)}]\n"
            for key, value in table.items():
                text += self.data.draw(st.sampled_from(["", "\n", "# b = 1\n"]))
                lines[(name, key)] = text.count("\n") + 1
                text += f"{self.name(key)} = {self.value(value)}\n"
        return text, lines


@given(tables=st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3), data=st.data())
def test_any_valid_text_is_located_completely_and_leaves_stand_on_their_lines(
    tables: dict[str, Any], data: st.DataObject
) -> None:
    text, lines = Writer(data).document(tables)
    parsed = tomllib.loads(text)
    located = locate(text)
    assert set(located) == set(paths(parsed))
    for key, line in lines.items():
        assert located[key] == line
    for key, line in located.items():
        leaf: Any = parsed
        for part in key:
            leaf = leaf[part]
        if not isinstance(leaf, (dict, list)) and not isinstance(leaf, str):
            assert str(int(leaf)) in text.splitlines()[line - 1]
