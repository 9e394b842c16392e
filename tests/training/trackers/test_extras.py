import json.decoder
from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.training.trackers import load_extra


def test_an_installed_module_is_loaded() -> None:
    assert load_extra("json.decoder", "JSON", "json") is json.decoder


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part", "json.no_such_part"])
def test_a_missing_one_is_named_with_its_extra(module: str) -> None:
    with pytest.raises(InputError, match=r"^Some is not installed: pip install 'cycletime\[some\]'\.$"):
        load_extra(module, "Some", "some")


def test_a_plain_folder_of_that_name_is_not_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder_of_results").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="Some is not installed"):
        load_extra("folder_of_results", "Some", "some")


def test_a_package_that_misses_another_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import its_missing_part\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"^Some cannot be loaded \(No module named 'its_missing_part'\): pip install"):
        load_extra("half_installed", "Some", "some")
