"""What is in a page: its data unpacked, as the browser does it."""

import gzip
import json
import re
from base64 import b64decode
from typing import Any


def blocks(html: str) -> dict[str, str]:
    """By name, the blocks of data as they stand in the page."""
    return dict(re.findall(r'<script type="text/plain" id="data-([^"]+)">([^<]*)</script>', html))


def unpacked(html: str, name: str = "main") -> Any:  # noqa: ANN401 - any JSON
    """The JSON in a block."""
    return json.loads(gzip.decompress(b64decode(blocks(html)[name])))
