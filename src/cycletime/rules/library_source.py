"""Hyper-parameters in another library's names: as they were read from it, and as they are given to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from cycletime.duration import Duration


@dataclass(frozen=True)
class LibrarySource:
    """How a library said values that were read from it, for what `export` gives back to it."""

    library: str
    """Whose words these are."""
    dt: Duration
    """The cycle time that they are for."""
    n_envs: int
    values: Mapping[str, object]
    """All that was said, also what does not depend on the cycle time."""
    layout: Mapping[str, int] = field(default_factory=dict)
    """What the library leaves a choice of, as it was chosen."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """By our fields, why they cannot be carried, where what was said is no number."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """By our fields, why rules leave them alone: what was said of them does not depend on the cycle time."""
    notes: tuple[str, ...] = ()
    """What the reader should know of how it was understood."""


@dataclass(frozen=True, eq=False)  # equal to any mapping with the same items
class LibraryValues(Mapping[str, Any]):
    """Hyper-parameters in a library's words: pass them on as ``**values``, or as `nested` settings."""

    library: str
    """Whose words these are."""
    by_name: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    """What the library cannot express, and what it does on its own."""
    exact: bool = True
    """Whether the library will use exactly the values that were asked for."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever the library wants there
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def _repr_html_(self) -> str:
        lines = [*(f"{name} = {value!r}" for name, value in self.items()), *(f"note: {note}" for note in self.notes)]
        return f"<pre>{escape(chr(10).join(lines))}</pre>"

    def nested(self) -> dict[str, Any]:
        """The values with ``a.b`` as ``{"a": {"b": ...}}``, as configuration files have them."""
        tree: dict[str, Any] = {}
        for name, value in self.by_name.items():
            *branches, leaf = name.split(".")
            node = tree
            for branch in branches:
                node = node.setdefault(branch, {})
            node[leaf] = value
        return tree
