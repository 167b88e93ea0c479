"""Keys that a scene may have and has not, drawn from the schema of its simulator: sensors, experiments, losses, ..."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from .mutations import Key, places

NUMBERS = (0.0, 0.1, 0.5, 1.0, 2.0, 10.0, -1.0)
DEPTH = 4
"""Tables within tables that are drawn with more than their required keys."""


class Schema:
    """What a scene of a simulator may say."""

    def __init__(self, simulator: str) -> None:
        from pydantic import TypeAdapter

        from simphys.scenefile.simulators import find_config

        config: Any = find_config(simulator)
        self._root = TypeAdapter(config).json_schema()

    def grow(self, scene: dict[str, Any], chance: random.Random) -> tuple[dict[str, Any], str]:
        """Return the tables of a scene with one to three keys that they did not have, and which these are."""
        grown, done = copy.deepcopy(scene), []
        for _ in range(chance.choice((1, 1, 2, 3))):
            key, node = self._choose(grown, chance)
            owner = find(grown, key[:-1])
            value = self._draw(node, chance, words_of(grown), 0)
            if isinstance(owner, list):
                owner.append(value)
            else:
                owner[key[-1]] = value
            done.append(f"add {'.'.join(map(str, key))} = {str(value)[:60]}")
        return grown, ", ".join(done)

    def _choose(self, scene: dict[str, Any], chance: random.Random) -> tuple[Key, Any]:
        """Choose a key that could be added, and its schema."""
        tables = [(), *[key for key in places(scene) if isinstance(find(scene, key), dict | list)]]
        while True:
            key = chance.choice(tables)
            found = [each for node in self._nodes(key) for each in _missing(find(scene, key), node)]
            if found:
                name, node = chance.choice(found)
                return (*key, name), node

    def _nodes(self, key: Key) -> list[Any]:
        """Schemas of what may stand at a key."""
        nodes = self._alternatives(self._root)
        for part in key:
            inner = []
            for node in nodes:
                found = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
                found = found or (node.get("additionalProperties") if isinstance(part, str) else None)
                inner += self._alternatives(found) if isinstance(found, dict) else []
            nodes = inner
        return nodes

    def _alternatives(self, node: Any) -> list[Any]:
        """A schema without references and choices."""
        if "$ref" in node:
            return self._alternatives(self._root["$defs"][node["$ref"].rpartition("/")[2]])
        inner = [each for name in ("anyOf", "oneOf", "allOf") for each in node.get(name, ())]
        return [found for each in inner for found in self._alternatives(each)] if inner else [node]

    def _draw(self, node: Any, chance: random.Random, words: list[str], depth: int) -> Any:
        """Draw a value that a schema permits, but for what only the scene's other values decide."""
        node = chance.choice(self._alternatives(node))
        if "const" in node or "enum" in node:
            return node.get("const", chance.choice(node.get("enum", [None])))
        match node.get("type"):
            case "object":
                return self._draw_table(node, chance, words, depth)
            case "array":
                least = node.get("minItems", 0)
                count = chance.choice((least, max(least, 1), min(node.get("maxItems", 3), least + 2)))
                return [self._draw(node.get("items", {}), chance, words, depth + 1) for _ in range(count)]
            case "number":
                low = node.get("exclusiveMinimum", node.get("minimum", -1.0))
                return chance.choice([x for x in NUMBERS if x >= low])
            case "integer":
                return chance.choice([x for x in (0, 1, 2, 3, 5, 10) if x >= node.get("minimum", 0)])
            case "boolean":
                return chance.random() < 0.5
            case "string":
                return chance.choice(words)
        return chance.choice((None, 1.0, chance.choice(words)))

    def _draw_table(self, node: Any, chance: random.Random, words: list[str], depth: int) -> dict[str, Any]:
        often = 0.3 if depth < DEPTH else 0.0
        required = node.get("required", ())
        chosen = [name for name in node.get("properties", {}) if name in required or chance.random() < often]
        table = {name: self._draw(node["properties"][name], chance, words, depth + 1) for name in chosen}
        if isinstance(inner := node.get("additionalProperties"), dict):
            table[chance.choice(words)] = self._draw(inner, chance, words, depth + 1)
        return table


def find(tables: Any, key: Key) -> Any:
    """The value at a key of nested tables and lists."""
    for part in key:
        tables = tables[part]
    return tables


def _missing(owner: Any, node: Any) -> Iterator[tuple[str | int, Any]]:
    """Yield names, or the place in a list, that could be added to a table with this schema, and their schemas."""
    if isinstance(owner, list):
        if "items" in node:
            yield len(owner), node["items"]
        return
    yield from [(name, inner) for name, inner in node.get("properties", {}).items() if name not in owner]
    if isinstance(inner := node.get("additionalProperties"), dict):
        yield "another", inner


def words_of(tables: Any) -> list[str]:
    """All names and texts in nested tables: of fields, unknowns, bodies, files."""
    found = {"x"}
    for key in places(tables):
        found |= {str(each) for each in (key[-1], find(tables, key)) if isinstance(each, str)}
    return sorted(found)
