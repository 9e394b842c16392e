"""Extras: what works without them, what is said where one is missing, and that the package brings what it says."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from cycletime import extras
from cycletime.errors import InputError, NotInstalledError
from cycletime.extras import lazy_exports, require_extras
from tests import light_install

ROOT = Path(__file__).parents[1]
BLOCKED = """
import runpy, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {heavy}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
runpy.run_path({program!r}, run_name="__main__")
"""


def test_without_extras_the_light_parts_work_and_the_others_name_what_is_missing() -> None:
    program = BLOCKED.format(heavy=light_install.HEAVY, program=light_install.__file__)
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_outermost_asker_is_named() -> None:
    with (
        pytest.raises(NotInstalledError, match=r"^a needs SciPy, which .* pip install 'cycletime\[study\]'\.$") as told,
        require_extras("a"),
        require_extras("b"),
    ):
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
    assert isinstance(told.value, InputError)
    assert told.value.name == "scipy"


@pytest.mark.parametrize("name", ["some_package", "jax.some_part", None])
def test_what_no_extra_brings_is_a_defect_as_ever(name: str | None) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^no$") as told, require_extras("a"):
        raise ModuleNotFoundError("no", name=name)
    assert not isinstance(told.value, NotInstalledError)


def test_a_lazy_room_lists_only_what_can_be_loaded_since_notebooks_load_all_of_it() -> None:
    """IPython asks for every listed name to complete 'import cycletime.ru', and prints whatever is raised."""
    homes = {"Duration": "cycletime.duration", "Heavy": "cycletime.duration", "Light": "cycletime.duration"}
    _, names, everything = lazy_exports("cycletime", homes, needs={"Heavy": "no_such_package", "Light": "json"})
    assert everything == ["Duration", "Light"]
    assert "Heavy" not in names()
    program = "import sys; sys.modules['jax'] = None; from cycletime import *; print(PPO, 'Study' in dir())"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "<class 'cycletime.rules.ppo.PPO'> False\n"


def test_a_lazy_room_loads_names_and_rooms_and_knows_no_others() -> None:
    load, names, everything = lazy_exports("cycletime", {"Duration": "cycletime.duration", "rules": "cycletime.rules"})
    assert load("Duration") is sys.modules["cycletime.duration"].Duration
    assert load("rules") is sys.modules["cycletime.rules"]
    assert {"Duration", "rules", "__version__"} <= set(names())
    assert everything == ["Duration", "rules"]
    with pytest.raises(AttributeError, match=r"^module 'cycletime' has no attribute 'other'$"):
        load("other")


def project() -> dict[str, dict[str, str]]:
    """The packages that each extra asks for, with the oldest version of each; those of every install under ''."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {"": told["dependencies"], **told["optional-dependencies"]}
    return {extra: dict(each.split(">=") for each in packages if ">=" in each) for extra, packages in asked.items()}


def test_an_install_without_extras_asks_for_four_packages() -> None:
    assert set(project()[""]) == {"gymnasium", "numpy", "pyyaml", "tyro"}


@pytest.mark.parametrize(
    ("file", "parts", "but"),
    [("oldest-light.in", [""], {}), ("oldest.in", ["", "train", "study"], {"numpy": "2.0.0"})],  # jax asks for 2
)
def test_the_oldest_versions_that_are_tried_are_those_promised(
    file: str, parts: list[str], but: dict[str, str]
) -> None:
    pins = dict(re.findall(r"^(\w+)==(\S+)", (ROOT / "requirements" / file).read_text(), re.MULTILINE))
    promised = {package: bound for part in parts for package, bound in project()[part].items()} | but
    assert pins.keys() == promised.keys()
    assert all(f"{pin}.0.0".startswith(f"{promised[package]}.0") for package, pin in pins.items())


@pytest.mark.parametrize("package", sorted(extras._PACKAGES))
def test_what_a_sentence_says_to_install_brings_the_package(package: str) -> None:
    _, extra = extras._PACKAGES[package]
    distribution = {"PIL": "pillow", "pybullet_data": "pybullet"}.get(package, package)
    assert distribution in project()[extra or ""]


@pytest.mark.parametrize(
    ("source", "command"),
    [
        ({}, "pip install 'cycletime[study]'"),
        ({"url": "file:///home/me/my%20clone", "dir_info": {}}, "pip install '/home/me/my clone[study]'"),
        ({"url": "file:///clone", "dir_info": {"editable": True}}, "pip install -e '/clone[study]'"),
        (
            {"url": "https://a.org/c", "vcs_info": {"vcs": "git", "commit_id": "12ab", "requested_revision": "main"}},
            "pip install 'cycletime[study] @ git+https://a.org/c@12ab'",
        ),
        ({"url": "file:///c-1.whl", "archive_info": {}}, "pip install 'cycletime[study] @ file:///c-1.whl'"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_is_from(
    source: dict[str, Any], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PathDistribution, "read_text", lambda *_: json.dumps(source) if source else None)
    assert extras.install_command("study") == command
