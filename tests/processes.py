"""Processes that do not outlive the test that started them, whether it passes or not."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import PIPE, Popen
from typing import Any


@contextmanager
def started(words: Sequence[str], stderr: int | None = PIPE, **options: Any) -> Iterator["Popen[str]"]:  # noqa: ANN401
    """A process whose output can be read; it is killed where the block ends."""
    with subprocess.Popen(words, stdout=PIPE, stderr=stderr, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
