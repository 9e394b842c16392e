"""The README as the package index shows it: links and pictures of the repository by their addresses there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        (version,) = re.findall(r'^__version__ = "(.*)"$', (root / "src/cycletime/__init__.py").read_text(), re.M)
        repository = metadata["urls"]["Repository"]

        def absolute(found: re.Match[str]) -> str:
            picture, label, path = found.groups()
            return f"{picture}{label}({repository}/{'raw' if picture else 'blob'}/v{version}/{path})"

        text = _RELATIVE.sub(absolute, (root / "README.md").read_text())
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
