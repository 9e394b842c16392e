"""Configurations in Python source: what Python itself would have made of it, and nothing is run."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from cycletime.libraries.config_search import find_configurations, stated_settings
from cycletime.libraries.python_source import Opaque, SourceReader

LEGGED = """
STEPS = 24

class LeggedRobotCfg:
    class env:
        num_envs = 4096
        episode_length_s = 20  # episode length in seconds
    class sim:
        dt = 0.005
    class control:
        decimation = 4
    class rewards:
        class scales:
            termination = -0.0
            action_rate = -0.01

class LeggedRobotCfgPPO:
    class algorithm:
        gamma = 0.99
        lam = 0.95
        num_mini_batches = 4
    class runner:
        num_steps_per_env = STEPS
        max_iterations = 1500
"""
ROBOT = """
from legged_gym.envs.base.legged_robot_config import LeggedRobotCfg, LeggedRobotCfgPPO

class RobotCfg(LeggedRobotCfg):
    class control(LeggedRobotCfg.control):
        stiffness = {"hip": 20.0}
    class sim:  # without the base: what that had is gone
        dt = 1 / 240
    class rewards(LeggedRobotCfg.rewards):
        class scales(LeggedRobotCfg.rewards.scales):
            torques = -2e-5

class RobotCfgPPO(LeggedRobotCfgPPO):
    class algorithm(LeggedRobotCfgPPO.algorithm):
        gamma = 0.99 ** 0.5
"""
ENV_CFG = """
from dataclasses import dataclass, field

SIM = dict(dt=0.002, iterations=10)

@dataclass
class Simulation:
    dt: float = 1 / 60
    interval: int = 1

@dataclass
class Term:
    weight: float = 1.0
    params: dict = field(default_factory=dict)

@dataclass
class Rewards:
    alive: Term = field(default_factory=lambda: Term(weight=2.0))
    rate: Term = field(default_factory=Term)

@dataclass
class BaseCfg:
    decimation: int = 4  # 50 Hz
    sim: Simulation = field(default_factory=Simulation)
    rewards: Rewards = field(default_factory=Rewards)
    steps: int = 24

    def __post_init__(self):
        self.sim.dt = 0.005
        self.sim.interval = self.decimation
        self.period = self.decimation * self.sim.dt

@dataclass
class RoughCfg(BaseCfg):
    decimation: int = 8

    def __post_init__(self):
        super().__post_init__()
        self.rewards.alive.weight = -0.5
        self.rewards.rate.params["limit"] = 3
        self.steps *= 2
        if self.decimation == 8:
            self.low = True
        if self.rewards is None:
            self.low = False
        self.rounded = round(self.decimation / 3)

def make(decimation=2, play=False):
    cfg = RoughCfg()
    cfg.decimation = decimation
    if play:
        cfg.steps = 1
    return cfg
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def run_python(path: Path) -> Any:  # noqa: ANN401 - a module
    spec = importlib.util.spec_from_file_location("as_python_runs_it", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


def as_python_has_it(value: Any, name: str) -> Any:  # noqa: ANN401 - whatever a setting is
    for part in name.split("."):
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    return value


@pytest.mark.parametrize("name", ["BaseCfg", "RoughCfg", "make"])
def test_what_is_read_is_what_python_makes(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, {"cfg.py": ENV_CFG}) / "cfg.py"
    made = getattr(run_python(path), name)()
    read = SourceReader().build(path, name)
    assert read is not None
    settings = stated_settings(read, tmp_path)
    assert {"decimation", "sim.dt", "sim.interval", "period", "rewards.alive.weight", "steps"} <= settings.keys()
    assert {key: leaf.value for key, leaf in settings.items()} == {key: as_python_has_it(made, key) for key in settings}


def test_each_value_has_its_line_and_comment(tmp_path: Path) -> None:
    path = write(tmp_path, {"cfg.py": ENV_CFG}) / "cfg.py"
    read = SourceReader().build(path, "BaseCfg")
    assert read is not None
    leaf = stated_settings(read, tmp_path)["decimation"]
    line = 1 + ENV_CFG.splitlines().index("    decimation: int = 4  # 50 Hz")
    assert (leaf.place, leaf.comment) == (f"cfg.py:{line}", "50 Hz")


def legged_gym(root: Path, registered: bool = True) -> Path:
    base = "legged_gym/envs"
    registry = (
        "from .robot.robot_config import RobotCfg, RobotCfgPPO\n"
        "task_registry.register('robot', Robot, RobotCfg(), RobotCfgPPO())\n"
    )
    files = {
        f"{base}/__init__.py": registry if registered else "",
        f"{base}/base/legged_robot_config.py": LEGGED,
        f"{base}/robot/robot_config.py": ROBOT,
    }
    return write(root, files)


def test_a_task_of_legged_gym(tmp_path: Path) -> None:
    (found,) = find_configurations(legged_gym(tmp_path)).configurations
    assert (found.name, found.library, found.environment) == ("robot", "rsl-rl", "legged-gym")
    assert found.dt_s == pytest.approx(4 / 240)
    assert found.n_envs is not None
    assert found.n_envs.value == 4096
    assert found.discount is not None
    assert found.discount.value == pytest.approx(0.99**0.5)
    assert found.discount.place == "legged_gym/envs/robot/robot_config.py:15"
    assert found.rollout is not None
    assert found.rollout.value == 24
    assert found.env["rewards.scales.torques"].value == -2e-5
    assert found.env["rewards.scales.action_rate"].value == -0.01


def test_classes_of_one_file_are_paired_by_their_names(tmp_path: Path) -> None:
    path = legged_gym(tmp_path, registered=False) / "legged_gym/envs/robot/robot_config.py"
    (found,) = find_configurations(path).configurations
    assert found.name == "RobotCfg"
    assert found.dt_s == pytest.approx(4 / 240)
    assert found.discount is not None


def test_a_registered_task_of_isaac_lab_with_agents_of_two_libraries(tmp_path: Path) -> None:
    registration = """
import gymnasium as gym
from . import agents
gym.register(id="Reach-v0", kwargs={
    "env_cfg_entry_point": f"{__name__}.env_cfg:EnvCfg",
    "rsl_rl_cfg_entry_point": f"{agents.__name__}.rsl_rl_cfg:RunnerCfg",
    "skrl_cfg_entry_point": f"{agents.__name__}:skrl.yaml",
})
gym.register(id="Reach-Play-v0", kwargs={"env_cfg_entry_point": f"{__name__}.env_cfg:EnvCfg_PLAY"})
"""
    env = """
from isaaclab.envs import ManagerBasedRLEnvCfg
class EnvCfg(ManagerBasedRLEnvCfg):
    rewards = Rewards(end=RewTerm(func=mdp.is_terminated, weight=-200.0))
    def __post_init__(self):
        super().__post_init__()
        self.decimation = 2  # 50 Hz
        self.sim.dt = 1 / 120
        self.scene.num_envs = compute()
        if os.environ.get("FAST"):
            self.decimation = 1
class EnvCfg_PLAY(EnvCfg):
    pass
"""
    agent = "class RunnerCfg(Base):\n    num_steps_per_env = 24\n    algorithm = Ppo(gamma=0.99, lam=0.95)\n"
    skrl = "agent:\n  discount_factor: 0.995\n  rollouts: 32\n"
    files = {"__init__.py": registration, "env_cfg.py": env, "agents/rsl_rl_cfg.py": agent, "agents/skrl.yaml": skrl}
    rsl_rl, other = find_configurations(
        write(tmp_path, {f"tasks/{name}": text for name, text in files.items()})
    ).configurations
    assert (rsl_rl.name, rsl_rl.library) == ("Reach-v0 (rsl_rl)", "rsl-rl")
    assert rsl_rl.dt_s == pytest.approx(1 / 60)
    assert (other.library, other.discount and other.discount.value) == ("skrl", 0.995)
    assert rsl_rl.n_envs is None, "what is computed is not seen"
    assert rsl_rl.env["rewards.end.func"].value == "mdp.is_terminated"
    assert "ManagerBasedRLEnvCfg" in rsl_rl.unseen


ML_COLLECTIONS = """class ConfigDict:
    def __init__(self, initial_dictionary=None, type_safe=True):
        super().__setattr__("_fields", {})

def create(**kwargs):
    return ConfigDict(initial_dictionary=kwargs)
"""


@pytest.mark.parametrize("beside", [{}, {"ml_collections/config_dict.py": ML_COLLECTIONS}])
def test_tables_of_playground(beside: dict[str, str], tmp_path: Path) -> None:
    """Also where it is installed, and the library that makes its settings lies beside it."""
    table = 'from . import hop\n_cfgs = {"Hop": hop.default_config, "HopFast": hop.default_config}\n'
    imported = "from ml_collections import config_dict\n"
    env = "def default_config():\n  return config_dict.create(ctrl_dt=0.02, sim_dt=0.004, episode_length=1000)\n"
    params = (
        f"{imported}def brax_ppo_config(env_name):\n"
        "  rl = config_dict.create(discounting=0.97, unroll_length=20, num_minibatches=32, batch_size=256)\n"
        '  if env_name in ("HopFast",):\n    rl.discounting = 0.99\n  return rl\n'
    )
    files = {"_src/jump/__init__.py": table, "_src/jump/hop.py": imported + env, "config/jump_params.py": params}
    found = find_configurations(write(tmp_path, files | beside)).configurations
    assert {each.name: each.discount and each.discount.value for each in found} == {"Hop": 0.97, "HopFast": 0.99}
    assert {each.dt_s for each in found} == {0.02}


def test_a_task_whose_settings_are_out_of_reach_is_named(tmp_path: Path) -> None:
    text = "class Cfg:\n    decimation = 4\n    sim = Simulation(dt=0.005)\n" + "".join(
        f'gym.register(id="{task}", kwargs={{"env_cfg_entry_point": "{where}:Cfg"}})\n'
        for task, where in (("Near", "tasks.cfg"), ("Far", "elsewhere.cfg"))
    )
    found = find_configurations(write(tmp_path, {"tasks/cfg.py": text, "tasks/__init__.py": ""}))
    assert [each.name for each in found.configurations] == ["Near"]
    assert found.not_read == {"tasks/cfg.py": "the environments of Far have no setting in reach"}


def test_a_helper_that_passes_its_arguments_on(tmp_path: Path) -> None:
    """As mjlab's term(), which makes a dataclass's field of them."""
    text = (
        "def term(kind, *args, **words):\n    return field(default_factory=lambda: kind(*args, **words))\n"
        "class Rewards:\n    rate = term(RewardTerm, func=mdp.action_rate_l2, weight=-0.1)\n"
    )
    read = SourceReader().build(write(tmp_path, {"cfg.py": text}) / "cfg.py", "Rewards")
    assert read is not None
    settings = {name: leaf.value for name, leaf in stated_settings(read, tmp_path).items()}
    assert settings == {"rate.func": "mdp.action_rate_l2", "rate.weight": -0.1}


@pytest.mark.parametrize(
    "text",
    [
        "class A(A):\n    decimation = 1\n",
        "class A(B):\n    decimation = 1\nclass B(A):\n    gamma = 1\n",
        "def make():\n    return make()\n",
        "x = y\ny = x\nclass C:\n    decimation = x\n",
        "class C:\n    gamma = " + "-" * 3000 + "1\n",
        "class C:\n    gamma = 9.0 ** 9.0 ** 9.0\n    decimation = 1 / 0\n",
        f"class C:\n    gamma = int(1e400)\n    decimation = float({10**400})\n",
        "from m import *\nclass C(D):\n    decimation = 4\n",
    ],
)
def test_source_that_has_no_end_is_left(text: str, tmp_path: Path) -> None:
    reader = SourceReader()
    path = write(tmp_path, {"m.py": text}) / "m.py"
    for name in ("A", "C", "make"):
        read = reader.build(path, name)
        for _, leaf in read.leaves() if read else ():
            assert isinstance(leaf.value, int | Opaque)


def test_modules_that_import_all_of_each_other(tmp_path: Path) -> None:
    """Every path through them would be more than can be walked: 20 modules, each of which imports all others."""
    names = [f"m{number}" for number in range(20)]
    imports = "".join(f"from .{name} import *\n" for name in names)
    files = {f"package/{name}.py": imports for name in names}
    files["package/cfg.py"] = (
        f"{imports}class Cfg(Nowhere):\n    decimation = 4\n    sim = Simulation(dt=0.005, steps=NOWHERE)\n"
    )
    (found,) = find_configurations(write(tmp_path, files) / "package" / "cfg.py").configurations
    assert found.env["decimation"].value == 4
    assert found.unseen == ("Nowhere",)


def test_nothing_is_run(tmp_path: Path) -> None:
    text = (
        "import pathlib\npathlib.Path('run').touch()\nclass Cfg:\n    decimation = 4\n    sim = Simulation(dt=0.005)\n"
    )
    (found,) = find_configurations(write(tmp_path, {"cfg.py": text}) / "cfg.py").configurations
    assert found.dt_s == pytest.approx(0.02)
    assert not Path("run").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cfg.py"]
