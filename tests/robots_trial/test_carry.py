import zipfile
from pathlib import Path

import pytest

from benchmarks.robots import carry


@pytest.mark.parametrize("compression", ["xz", "gz"])
def test_what_is_packed_is_unpacked_without_what_no_training_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    def downloaded(python: str, folder: Path) -> list[Path]:
        folder.mkdir()
        with zipfile.ZipFile(folder / f"mujoco-3.5.0-{python}.whl", "w") as wheel:
            for name in (
                "mujoco/__init__.py",
                "mujoco/include/mujoco.h",
                "mujoco/mjx/test_data/a.obj",
                "brax/a_test.py",
            ):
                wheel.writestr(name, name)
        return list(folder.iterdir())

    monkeypatch.setattr(carry, "downloaded", downloaded)
    models = tmp_path / "menagerie"
    (models / "unitree_go1").mkdir(parents=True)
    (models / "unitree_go1" / "go1.xml").write_text("<mujoco/>")
    carry.pack(tmp_path / "carried", models, "3.12", compression)
    for _ in range(2):  # the second time nothing is done
        carry.unpack(tmp_path / "carried", tmp_path / "site")
    found = {
        path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*") if path.is_file()
    }
    assert found == {".unpacked", "mujoco/__init__.py", f"{carry.MODELS_AT}/unitree_go1/go1.xml"}
    assert (tmp_path / "carried" / "versions.txt").read_text() == "mujoco-3.5.0-3.12.whl\n"
