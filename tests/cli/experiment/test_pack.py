"""`cycletime experiment pack paper`: what is left to do, for a machine with little installed."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cycletime.cli import main
from cycletime.studies.pack_main import MANIFEST
from tests.experiments.paper.made import SMALL, study_folder

SIZE = ("--scale", str(SMALL.scale), "--seeds", str(SMALL.seeds))


def pack(folder: Path, *words: str) -> list[dict[str, Any]]:
    file = folder / "pack.zip"
    assert main(["experiment", "pack", "paper", *words, *SIZE, "--out", str(folder / "out"), "-o", str(file)]) == 0
    with zipfile.ZipFile(file) as packed:
        told: list[dict[str, Any]] = json.loads(packed.read(MANIFEST))["studies"]
    return told


def test_studies_are_packed_for_a_gpu_each_in_its_folder_with_what_it_keeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = pack(tmp_path, "ppo-baseline", "ppo-scaled")
    assert [each["folder"] for each in told] == ["ppo-baseline", "ppo-scaled"]
    assert [each["keep"]["policies"] for each in told] == [True, False]
    assert {each["study"]["device"] for each in told} == {"gpu"}
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"30 runs of the engine cuda in {tmp_path / 'pack.zip'}, ")
    assert said[1] == "There: python pack.zip OUT"


def test_one_study_has_a_folder_too_so_that_collect_finds_it(tmp_path: Path) -> None:
    assert [each["folder"] for each in pack(tmp_path, "ppo-baseline", "--device", "cpu")] == ["ppo-baseline"]


def test_winners_follow_when_their_sweep_is_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [each["folder"] for each in pack(tmp_path, "ppo-grid")] == ["ppo-grid"]
    assert capsys.readouterr().out.startswith(
        f"ppo-grid-winners is not in it: it needs all runs of ppo-grid; bring them to {tmp_path / 'out'} and pack "
    )
    study_folder(tmp_path / "out", "ppo-grid")
    (winners,) = pack(tmp_path, "ppo-grid")
    assert (winners["folder"], winners["study"]["seeds"]) == ("ppo-grid-winners", [1000, 1001])


def test_where_nothing_is_left_nothing_is_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_folder(tmp_path / "out", "ppo-scaled")
    words = [
        "experiment",
        "pack",
        "paper",
        "ppo-scaled",
        "--out",
        str(tmp_path / "out"),
        "-o",
        str(tmp_path / "pack.zip"),
    ]
    assert main(words) == 2
    assert "There is nothing to pack: all that can be run is done in " in capsys.readouterr().err
    assert not (tmp_path / "pack.zip").exists()
