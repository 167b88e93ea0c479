"""Line numbers of the keys in a TOML text, which tomllib does not report.

tomllib has accepted the text, so the scanner need not detect errors.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

from simphys.scenefile.section import Key

_STRING = re.compile(
    r"""
    \"\"\" (?: \\. | [^\\] )*? \"{3,5} (?!\")   # a multi-line string may end in up to two quotes of its own
    | ''' .*? '{3,5} (?!')
    | \" (?: \\. | [^\"\\] )* \"
    | ' [^']* '
    """,
    re.VERBOSE | re.DOTALL,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")


def locate(text: str) -> dict[Key, int]:
    """The line, counted from 1, of every table, key and list element of a valid TOML text.

    Elements of arrays of tables are addressed like those of any list: ("geometry", "anchors", 0, "node").
    A table that is only implied, as `a` is by `[a.b]`, stands where it is first mentioned.
    """
    return _Scanner(text).lines


def split_key(text: str) -> list[str] | None:
    """Split a dotted TOML key into its parts; None for any other text."""
    try:
        parts, end = _dotted(text, 0)
    except ValueError:
        return None
    return parts if end == len(text) else None


def _dotted(text: str, position: int) -> tuple[list[str], int]:
    """The dotted key at a position, and the position behind it and its blanks."""
    parts = []
    while True:
        start = _after(_SPACE, text, position)
        if match := _BARE_KEY.match(text, start):
            parts.append(match.group())
        elif match := _STRING.match(text, start):
            parts.append(tomllib.loads(f"key = {match.group()}")["key"])
        else:
            raise ValueError(f"no key at position {start}")
        position = _after(_SPACE, text, match.end())
        if not text.startswith(".", position):
            return parts, position
        position += 1


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None, "the patterns used here match the empty text"
    return match.end()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        self.lines: dict[Key, int] = {}
        self.lengths: dict[Key, int] = {}  # of the arrays of tables
        self._document()

    def _document(self) -> None:
        table: Key = ()
        position = _after(_BLANK, self.text, 0)
        while position < len(self.text):
            if self.text[position] == "[":
                table, position = self._header(position)
            else:
                position = self._pair(table, position)
            position = _after(_BLANK, self.text, position)

    def _header(self, start: int) -> tuple[Key, int]:
        """[a.b] or [[a.b]]: the table that is open from here on."""
        is_array = self.text.startswith("[[", start)
        parts, position = _dotted(self.text, start + 1 + is_array)
        table: Key = ()
        for part in parts[:-1]:
            table = self._latest((*table, part))
            self._note(table, start)
        table = (*table, parts[-1])
        self._note(table, start)
        if is_array:
            self.lengths[table] = self.lengths.get(table, 0) + 1
        table = self._latest(table)
        # A table named only now was perhaps implied before; its own header is the better place to point at.
        self.lines[table] = self._line(start)
        return table, position + 1 + is_array

    def _latest(self, key: Key) -> Key:
        """Resolve names within an array of tables to its latest element."""
        return (*key, self.lengths[key] - 1) if key in self.lengths else key

    def _pair(self, table: Key, start: int) -> int:
        parts, position = _dotted(self.text, start)
        key = table
        for part in parts:
            key = (*key, part)
            self._note(key, start)
        return self._value(key, _after(_SPACE, self.text, position + 1))

    def _value(self, key: Key, position: int) -> int:
        opening = self.text[position]
        if opening == "[":
            return self._array(key, position + 1)
        if opening == "{":
            return self._inline_table(key, position + 1)
        if match := _STRING.match(self.text, position):
            return match.end()
        return _after(_SCALAR, self.text, position)

    def _array(self, key: Key, position: int) -> int:
        index = 0
        while True:
            position = _after(_BLANK, self.text, position)
            if self.text[position] == "]":
                return position + 1
            if self.text[position] == ",":
                position += 1
                continue
            self._note((*key, index), position)
            position = self._value((*key, index), position)
            index += 1

    def _inline_table(self, key: Key, position: int) -> int:
        while True:
            position = _after(_BLANK, self.text, position)
            if self.text[position] == "}":
                return position + 1
            position = position + 1 if self.text[position] == "," else self._pair(key, position)

    def _note(self, key: Key, position: int) -> None:
        self.lines.setdefault(key, self._line(position))

    def _line(self, position: int) -> int:
        return bisect_right(self.starts, position)
