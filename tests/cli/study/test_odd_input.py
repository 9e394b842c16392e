"""What people give by mistake: every command answers in one short sentence, and nothing is written."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import finish, small_study, specs_of

STUDY = """\
name = "s"
env_steps = 2000
seeds = 2
dts = ["16ms"]
algorithm = "ppo"
task = "reacher"
"""
READERS = {
    "plan": ["study", "plan", "FILE", "--no-calibration"],
    "run": ["study", "run", "FILE", "--out", "OUT"],
    "pack": ["study", "pack", "FILE", "-o", "OUT"],
    "tune": ["tune", "FILE", "--out", "OUT"],
}


def make_sparse(file: Path) -> None:
    file.touch()
    os.truncate(file, 2**36)


FILES: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "FILE is a pipe: give a regular file."),
    "folder": (Path.mkdir, "FILE is a directory: give a regular file."),
    "missing": (lambda file: None, "There is no file FILE."),
    "sparse": (make_sparse, "FILE has 68719476736 bytes or more: at"),
    "utf-16": (lambda file: file.write_text(STUDY, "utf-16"), "FILE cannot be read: byte 1 is not UTF-8 text."),
    "deep": (lambda file: file.write_text("a = " + "[" * 9999), "FILE is not a valid TOML file: its lists and"),
}
Say = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Say:
    """What a command says that refuses its input."""

    def said(*words: str, status: int = 2) -> str:
        assert main(words) == status
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("cycletime: ")
        assert told.err.endswith(".\n")
        assert told.err.rstrip("\n").isprintable()
        return told.err.removeprefix("cycletime: ").rstrip("\n")

    return said


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("kind", FILES)
def test_what_is_no_file_of_a_study(command: str, kind: str, tmp_path: Path, said: Say) -> None:
    make, sentence = FILES[kind]
    file = tmp_path / "a file, größer.toml"
    make(file)
    words = [{"FILE": str(file), "OUT": str(tmp_path / "out")}.get(word, word) for word in READERS[command]]
    assert said(*words).startswith(sentence.replace("FILE", str(file)))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", READERS)
def test_a_device_that_never_ends(command: str, tmp_path: Path, said: Say) -> None:
    words = [{"FILE": "/dev/zero", "OUT": str(tmp_path / "out")}.get(word, word) for word in READERS[command]]
    assert said(*words) == "/dev/zero is a device: give a regular file."
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('task = "reacher"', 'env = "Hoper-v5"', "'Hoper-v5' is "),
        ("env_steps = 2000", "env_steps = 1100", "env_steps is 1100: no episode of reacher ends before 1,200"),
        ("env_steps = 2000", "env_steps = 3e9", "env_steps is 3000000000: it must be below 2**31, since steps"),
        ("env_steps = 2000", f"env_steps = {'9' * 400}", "FILE: env_steps is a number of more than 60 digits: whole"),
        ("seeds = 2", "seeds = 1000000000", "FILE: seeds is 1000000000: it is how many there are, at most 1,000,000."),
        ('"s"', f'"{"s" * 5000}"', f"FILE: name is '{'s' * 49}...{'s' * 49}': a text is one line of at most 200"),
        ('"s"', '"\\u001b[31m"', r"FILE: name is '\x1b[31m': a text is one line of at most 200 printable characters."),
    ],
)
def test_what_cannot_run(command: str, old: str, new: str, sentence: str, tmp_path: Path, said: Say) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f"{STUDY.replace(old, new)}[tuned]\ndt = '16ms'\ndiscount = [0.9, 0.99]\n")
    words = [{"FILE": str(file), "OUT": str(tmp_path / "out")}.get(word, word) for word in READERS[command]]
    told = said(*words).removeprefix(f"{file}: ")
    assert told.startswith(sentence.removeprefix("FILE: "))
    assert len(told) < 400
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["plan", "run", "tune"])
def test_a_grid_that_nobody_can_finish(command: str, tmp_path: Path, said: Say) -> None:
    file = tmp_path / "study.toml"
    many = ", ".join(str(number) for number in range(1, 2001))
    rates = ", ".join(f"{number}e-6" for number in range(1, 2001))
    file.write_text(f"{STUDY}[set]\nepochs = [{many}]\nlearning_rate = [{rates}]\nclip = [{rates}]\n")
    words = [{"FILE": str(file), "OUT": str(tmp_path / "out")}.get(word, word) for word in READERS[command]]
    assert said(*words).endswith("The study 's' has 16,000,000,000 runs: it may have 1,000,000 at most.")
    assert not (tmp_path / "out").exists()


def test_a_pack_replaces_nothing_but_a_file(tmp_path: Path, said: Say) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    os.mkfifo(tmp_path / "pipe")
    words = ["study", "pack", str(tmp_path / "study.toml"), "-o"]
    assert said(*words, str(tmp_path)) == f"'{tmp_path}' is a folder: give the name of a file, such as pack.zip."
    assert said(*words, "") == "'.' is a folder: give the name of a file, such as pack.zip."
    told = said(*words, str(tmp_path / "no" / "a.zip"))
    assert told == f"'{tmp_path}/no/a.zip' is in a folder that is not there: give the name of a file, such as pack.zip."
    told = said(*words, str(tmp_path / "pipe"), status=1)
    assert told == f"{tmp_path}/pipe cannot be written: it is not a regular file, so give another name."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "study.toml"]


def test_to_plan_imports_no_module_of_an_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_robot.py").write_text("raise SystemExit('it was imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "study.toml").write_text(STUDY.replace('task = "reacher"', 'env = "my_robot:Arm-v0"'))
    assert main(["study", "plan", str(tmp_path / "study.toml")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1].startswith("my_robot:Arm-v0: its module was not imported: no estimate, and whether it can start ")
    assert "my_robot" not in sys.modules


@pytest.mark.parametrize("command", ["status", "retry", "verify", "report", "export"])
def test_what_is_no_folder_of_a_study(command: str, tmp_path: Path, said: Say) -> None:
    more = [str(tmp_path / "a.csv")] if command == "export" else []
    (tmp_path / "study.toml").write_text(STUDY)
    missing, file = str(tmp_path / "a\x1b[31mb"), str(tmp_path / "study.toml")
    hint = "give the one that 'cycletime study run' has as --out."
    assert said("study", command, missing, *more) == f"There is no folder {missing!r}: {hint}"
    assert said("study", command, file, *more).startswith(f"{file!r} is a file: give the study's folder, which ")


def test_what_a_run_says_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StudyFolder.create(tmp_path / "s", small_study())
    first, *others = specs_of(folder)
    finish(folder, others)
    for _ in range(3):
        folder.failures(first.name).add("\x1b[2J\rgone")
    assert main(["study", "status", str(folder.path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == rf"  {first.name}: \x1b[2J\rgone"


def test_a_name_of_a_file_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StudyFolder.create(tmp_path / "s", small_study())
    finish(folder, specs_of(folder))
    (folder.path / "finished" / "\x1b[2J.npz").write_bytes(b"torn")
    for command in ("status", "verify"):
        assert main(["study", command, str(folder.path)]) == 1
        out = capsys.readouterr().out
        assert r"\x1b[2J.npz" in out
        assert out.replace("\n", "").isprintable()
