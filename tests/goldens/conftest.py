"""Commands in a folder and a terminal that are the same everywhere."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cycletime.cli import main
from tests.goldens.goldens import FOLDERS, steady


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    words: tuple[str, ...]
    status: int
    out: str
    err: str

    def told(self, folder: Path, *also: tuple[str, str]) -> str:
        """All of it as one text, without what is of the day."""
        parts = [f"$ cycletime {' '.join(self.words)}", f"status {self.status}"]
        parts += [f"--- {name}\n{text}" for name, text in (("stdout", self.out), ("stderr", self.err)) if text]
        return steady("\n".join(parts), folder, also)


Say = Callable[..., Said]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty; the terminal is 100 columns wide, and has no colours."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "CYCLETIME_CODE", "LINES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def say(here: Path, capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs a command in this process; what it and the processes that it starts print."""

    def said(*words: str) -> Said:
        capfd.readouterr()
        try:
            status = main(list(words))
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 1
        told = capfd.readouterr()
        return Said(words, status, told.out, told.err)

    return said


@pytest.fixture
def folders(here: Path) -> Path:
    """A copy of all committed folders, in the current one."""
    shutil.copytree(FOLDERS, here, dirs_exist_ok=True)
    return here
