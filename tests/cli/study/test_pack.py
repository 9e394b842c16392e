"""`cycletime study pack`; what packs do elsewhere stands in tests/studies/packing."""

import zipfile
from pathlib import Path

import pytest

from cycletime.cli import main
from tests.cli.conftest import QUICK


def pack(file: Path, keys: str, **replaced: str) -> int:
    text = QUICK
    for old, new in replaced.items():
        text = text.replace(old, new)
    file.write_text(keys + text)
    return main(["study", "pack", str(file), "-o", str(file.parent / "pack.zip")])


@pytest.mark.parametrize(
    ("keys", "algorithm", "engine"),
    [("", "actor-critic", "compiled"), ('device = "gpu"\n', "sac", "compiled"), ('device = "gpu"\n', "ppo", "cuda")],
)
def test_a_study_of_any_engine_for_closed_forms_can_be_packed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: str, algorithm: str, engine: str
) -> None:
    layers = {"[8]": "[64, 64]"} if engine == "cuda" else {}
    assert pack(tmp_path / "s.toml", keys, **{"actor-critic": algorithm, **layers}) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"3 runs of the engine {engine} in {tmp_path / 'pack.zip'}, ")
    assert told[1] == "There: python pack.zip OUT"
    with zipfile.ZipFile(tmp_path / "pack.zip") as file:
        assert {"__main__.py", "pack.json", "cycletime/studies/worker.py"} <= set(file.namelist())


def test_an_environment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pack(tmp_path / "s.toml", "", **{'task = "reacher"': 'env = "Pendulum-v1"\nenv_dt = "8ms"'}) == 2
    assert "'Pendulum-v1' is an environment" in capsys.readouterr().err
    assert not (tmp_path / "pack.zip").exists()


def test_several_studies_go_into_one_pack_and_none_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(QUICK.replace('"quick"', f'"{name}"'))
    files = [str(tmp_path / f"{name}.toml") for name in ("one", "two")]
    assert main(["study", "pack", *files, "-o", str(tmp_path / "pack.zip")]) == 0
    assert capsys.readouterr().out.startswith("6 runs of the engine compiled in ")
    assert main(["study", "pack", "-o", str(tmp_path / "other.zip")]) == 2
    assert capsys.readouterr().err == "cycletime: There is nothing to pack: give the file of a study.\n"
