"""Trainers in study files: values in their words, and a sentence for what is wrong."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import PPO
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table, study_table
from cycletime.trainers.stable_baselines3 import _arguments, no_episode
from cycletime.trainers.trainer_run import TrainerRun
from cycletime.training.external import ExternalAgent, TrainerSpec
from cycletime.training.make_specs import agent_values, tunable_names
from cycletime.training.worlds import GymnasiumEnv

SB3 = {
    "name": "sb3",
    "trainer": "sb3",
    "env": "Pendulum-v1",
    "env_dt": "25ms",
    "algorithm": "ppo",
    "dts": ["25ms", "50ms"],
    "simulated_s": 50,
    "tuned": {"dt": "50ms", "batch": 512, "minibatch": 64, "discount": 0.9},
    "set": {"n_epochs": 7, "policy_kwargs": "dict(net_arch=[8])"},
}


def settings_of(table: dict[str, Any]) -> list[dict[str, Any]]:
    agents = [cell.agent for cell in study_from_table(table).cells()]
    return [dict(agent.settings) for agent in agents if isinstance(agent, ExternalAgent)]


def test_a_budget_in_seconds_counts_the_steps_that_the_environment_publishes() -> None:
    study = study_from_table({key: value for key, value in {**SB3, "dts": ["100ms"]}.items() if key != "env_dt"})
    assert (study.env_steps, study.worlds[0].env_dt) == (1000, None), "50 s, of which Pendulum's step is 50 ms"


def test_values_are_carried_and_said_in_the_librarys_words() -> None:
    study = study_from_table(SB3)
    assert study.env_steps == 2000
    fine, coarse = settings_of(SB3)
    expected = PPO(dt="50ms", batch=512, minibatch=64, discount=0.9).at("25ms").to("stable-baselines3")
    assert {name: fine[name] for name in ("n_steps", "batch_size", "gamma", "gae_lambda")} == {
        name: expected[name] for name in ("n_steps", "batch_size", "gamma", "gae_lambda")
    }
    assert coarse["n_steps"] == 512
    assert fine["n_epochs"] == coarse["n_epochs"] == 7


def test_what_is_set_in_the_librarys_words_is_carried_too() -> None:
    table = {**SB3, "tuned": {"dt": "50ms"}, "set": {"n_steps": 256, "gamma": 0.95}, "rules": ["horizons"]}
    fine, coarse = settings_of(table)
    assert coarse["n_steps"] == 256
    assert fine["n_steps"] == 512
    assert fine["gamma"] == pytest.approx(0.95**0.5)


def test_an_entry_of_the_zoo(tmp_path: Path) -> None:
    entry = """Pendulum-v1:
  n_envs: 4
  n_timesteps: !!float 1e5
  policy: 'MlpPolicy'
  n_steps: 1024
  gae_lambda: 0.95
  gamma: 0.9
  learning_rate: !!float 1e-3
  use_sde: True
"""
    (tmp_path / "ppo.yml").write_text(entry)
    table = {**SB3, "tuned": {"dt": "50ms"}, "set": {}, "trainer": {"name": "sb3", "zoo": "ppo.yml"}}
    study = study_from_table(table, tmp_path)
    assert study.trainer is not None
    assert study.trainer.num_envs == 4
    fine, coarse = (cell.agent.settings for cell in study.cells() if isinstance(cell.agent, ExternalAgent))
    assert (coarse["n_steps"], fine["n_steps"]) == (1024, 2048)
    assert (coarse["gamma"], fine["policy"], fine["use_sde"]) == (0.9, "MlpPolicy", True)
    assert study_from_table(study_table(study)) == study
    named = study_from_table({**table, "env": "gymnasium:Pendulum-v1"}, tmp_path)
    assert named.trainer == study.trainer, "a module that registers the environment is no part of the entry's name"
    twice = r"discount is 0\.9, and gamma=0\.9 in \[set\] or ppo\.yml says it too: leave one out"
    with pytest.raises(InputError, match=twice):
        study_from_table({**table, "tuned": {"dt": "50ms", "discount": 0.9}}, tmp_path)
    values = "[tuned.ppo]\ndt = '50ms'\nbatch = 512\ndiscount = 0.8\n[from.ppo]\nstudy = 's'\n"
    (tmp_path / "tuned.toml").write_text(values)
    agents = [cell.agent for cell in study_from_table({**table, "tuned": "tuned.toml"}, tmp_path).cells()]
    assert isinstance(agents[1], ExternalAgent)
    known = [agents[1].settings[name] for name in ("n_steps", "gamma", "learning_rate")]
    assert known == [128, 0.8, 1e-3], "the tuning's before the entry's"
    (tmp_path / "ppo.yml").write_text(f"{entry}  env_wrapper: a.B\n")
    with pytest.raises(
        InputError, match=r"^env_wrapper is 'a\.B': leave it to an env of yours that has it, 'my_module:Name-v0', or "
    ):
        list(study_from_table(table, tmp_path).cells())


HELD = """Pendulum-v1:
  n_envs: 8
  n_steps: 64
  gamma: 0.9
  env_wrapper: [{cycletime.tasks.CycleTime: {dt: 50ms, env_dt: 25ms}}]
"""


def test_an_entry_that_holds_actions_says_its_cycle_time(tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text(HELD)
    bare = {key: value for key, value in SB3.items() if key not in ("env_dt", "tuned", "set")}
    trainer = {"name": "sb3", "zoo": "ppo.yml", "num_envs": 4}
    study = study_from_table({**bare, "trainer": trainer}, tmp_path)
    study.check_runs()
    assert (study.tuned["ppo"].dt, study.worlds[0].env_dt) == (Duration("50ms"), Duration("25ms"))
    assert study.rules == {"ppo": ("horizons",)}
    agents = [cell.agent for cell in study.cells()]
    assert [agent.settings["n_steps"] for agent in agents if isinstance(agent, ExternalAgent)] == [128, 64]
    assert Plan.of(study).notes() == ("note: The values were tuned with num_envs 8, not 4.",)
    assert study_from_table(study_table(study)) == study
    with pytest.raises(
        InputError, match=r"^tuned has dt 100ms, and the entry in ppo\.yml holds actions for 50ms: leave"
    ):
        study_from_table({**bare, "tuned": {"dt": "100ms"}, "trainer": trainer}, tmp_path)
    for more in ("time_limit: 9s", "env_dt: 25ms}}, {a.B: {"):
        (tmp_path / "ppo.yml").write_text(HELD.replace("env_dt: 25ms", more))
        with pytest.raises(InputError, match=r"^env_wrapper is .*: leave it to an env of yours"):
            list(study_from_table({**bare, "env_dt": "25ms", "trainer": trainer}, tmp_path).cells())


def test_values_of_no_cycle_time_are_noted_where_there_are_several() -> None:
    told = "note: ppo: no rule: [tuned] dt is not given, so the values are the same at every cycle time."
    assert Plan.of(study_from_table({**SB3, "tuned": {"batch": 256}})).notes() == (told,)
    assert Plan.of(study_from_table({**SB3, "tuned": {"batch": 256}, "dts": ["50ms"]})).notes() == ()


CONSTRUCTOR = """class SAC:
    def __init__(self, policy, env, gamma, learning_rate: Union[float, Schedule], ent_coef: Union[str, float], use_sde,
                 policy_kwargs: Optional[dict[str, Any]], verbose: int): ...
"""


POLICIES = """class Actor:
    def __init__(self, observation_space, action_space, lr_schedule, n_arch): ...
class SACPolicy:
    def __init__(self, observation_space, action_space, lr_schedule, net_arch=None, activation_fn=nn.ReLU): ...
"""


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("lr", 1e-3, r"lr is 0\.001: SAC has no such setting; lr is learning_rate here\.$"),
        ("use_sd", True, r"use_sd is True: SAC has no such setting; did you mean use_sde\?$"),
        ("noise_type", "normal", "noise_type is 'normal': SAC has no such setting"),
        ("policy_kwargs", "dict(net_arch=[foo", r"policy_kwargs is 'dict\(net_arch=\[foo', which cannot be read"),
        ("policy_kwargs", "dict(activation_fn=nn.ReLU)", None),
        ("policy_kwargs", "dict(net_arch=[8])", None),
        (
            "policy_kwargs",
            "{'n_arch': [8]}",
            r"policy_kwargs has 'n_arch': SACPolicy takes net_arch, activation_fn; did you mean net_arch\?$",
        ),
        ("normalize", True, None),
        ("learning_rate", "1e-3", r"learning_rate is '1e-3': it must be a number, or a schedule as lin_3e-4\.$"),
        ("learning_rate", "lin_1e-3", None),
        ("ent_coef", "auto_0.1", None),
        ("verbose", "loud", "verbose is 'loud': SAC takes int, and no text"),
    ],
)
def test_a_plan_knows_the_settings_of_the_constructor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, says: str | None
) -> None:
    (tmp_path / "stable_baselines3" / "sac").mkdir(parents=True)
    (tmp_path / "stable_baselines3" / "__init__.py").write_text("1 / 0  # not imported")
    (tmp_path / "stable_baselines3" / "sac" / "sac.py").write_text(CONSTRUCTOR)
    (tmp_path / "stable_baselines3" / "sac" / "policies.py").write_text(POLICIES)
    monkeypatch.syspath_prepend(tmp_path)
    _arguments.cache_clear()
    table = {**SB3, "algorithm": "sac", "tuned": {"dt": "50ms"}, "set": {name: value}}
    with pytest.raises(InputError, match=says) if says else nullcontext():
        study_from_table(table).check_runs()
    _arguments.cache_clear()


def test_a_plan_notes_what_a_librarys_words_cannot_say() -> None:
    several = {**SB3, "trainer": {"name": "sb3", "num_envs": 7}, "rules": ["baseline", "constant"], "dts": ["50ms"]}
    assert Plan.of(study_from_table(several)).notes() == (
        "note: ppo at 50ms: stable-baselines3 cannot express batch 512 with 7 environments: the nearest is 511.",
        "note: ppo at 50ms: stable-baselines3's last mini-batch of each epoch has 63 samples instead of 64.",
    )
    assert Plan.of(study_from_table(SB3)).notes() == ()


def test_values_of_no_cycle_time_are_not_carried() -> None:
    fine, coarse = settings_of({**SB3, "tuned": {}, "set": {"n_steps": 100}})
    assert fine == coarse
    assert (fine["n_steps"], fine["batch_size"], fine["gamma"]) == (100, 64, 0.99)
    with pytest.raises(InputError, match="it needs tuned_at"):
        settings_of({**SB3, "tuned": {}, "rules": ["horizons"]})


def test_the_other_algorithms_of_a_library() -> None:
    table = {**SB3, "algorithm": "td3", "tuned": {"dt": "50ms", "discount": 0.98}, "set": {}}
    assert settings_of(table)[1]["gamma"] == 0.98


@pytest.mark.parametrize(
    ("tuned", "given", "rule"),
    [
        ({}, {}, "dt-aware"),
        ({"discount": 0.9}, {}, "horizons"),
        ({}, {"gamma": 0.9}, "horizons"),  # in the library's words it is as much tuned
        ({}, {"gamma": 0.99}, "dt-aware"),  # Stable-Baselines3's default
    ],
)
def test_the_default_rule_looks_at_all_that_is_given(tuned: dict[str, Any], given: dict[str, Any], rule: str) -> None:
    study = study_from_table({**SB3, "tuned": {"dt": "50ms", **tuned}, "set": given})
    assert study.rules == {"ppo": (rule,)}


COMMAND = {**SB3, "env": "My-Robot", "set": {}, "tuned": {"dt": "50ms", "discount": 0.9}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trainer": "sb4"}, r"'sb4' is not a trainer: .*; did you mean sb3\?$"),
        ({"trainer": "stable-baseline3"}, r"; did you mean stable-baselines3\?$"),
        ({"trainer": "sb3", "seed_count": 2}, r"'seed_count' is nothing that a study has: .*; did you mean seeds\?$"),
        ({"trainer": 3}, "trainer is 3"),
        ({"trainer": {"command": "train"}}, "command = 'train': it must be a list of texts"),
        ({"trainer": {"name": "sb3", "command": ["x"]}}, "a name or a command"),
        ({"trainer": {"command": ["x", "{discount}"], "nun_envs": 3}}, "'nun_envs' is not a setting of a trainer"),
        ({"trainer": {"command": ["x", "{gama}"]}}, r"The command has \{gama\}"),
        ({"trainer": {"command": ["x"]}}, "discount is given, and the command does not take it"),
        ({"trainer": {"command": ["x", "{discount}"], "words": "clean"}}, "not a library whose words are known"),
        ({"trainer": {"command": ["x", "{discount}"]}, "simulated_s": -1}, "simulated_s is -1"),
        ({"trainer": {"command": ["x", "{discount}"]}, "env_steps": 1}, "are both given"),
        (
            {"trainer": {"command": ["x", "{discount}"]}},
            "2 cycle times, which the command does not take: add {dt_s} or",
        ),
        ({"trainer": {"command": ["x", "{discount}{dt_s}"]}, "seeds": 3}, "3 seeds, .* take: add {seed}."),
        ({"trainer": {"command": ["x", "{discount}"], "curve": "p.txt"}}, "curve is 'p.txt': give a file .csv"),
        *(
            ({"trainer": {"command": ["x", "{discount}"], "curve": curve}}, "give a file .csv or .jsonl in the run's")
            for curve in ("/elsewhere/old.csv", "../other/progress.csv", "{folder}/progress.csv", "progress.json")
        ),
        (
            {"trainer": {"command": ["x", "{discount}", "{updates}"]}},
            "{updates} counts batches, and the command does not take the batch: add {batch}",
        ),
        ({"trainer": "sb3", "simulated_s": 0.01}, "simulated_s is 0.01: a run must last 50ms at least, one cycle."),
        ({"trainer": "sb3", "simulated_s": None}, "'env_steps' is missing: a study needs it, or 'simulated_s'"),
        ({"trainer": "sb3", "set": {"gamma": 0.8}}, "discount is 0.9, and gamma=0.8 says it too: leave one out."),
        ({"trainer": "sb3", "set": {"n_envs": 8}}, r"n_envs is 8: leave it to \[trainer\] num_envs = 8\.$"),
        ({"trainer": "sb3", "set": {"num_envs": 8}}, r"num_envs is 8: leave it to \[trainer\] num_envs = 8\.$"),
        ({"trainer": {"command": ["x"], "words": "sb3"}, "set": {"n_envs": 8}}, r"n_envs is 8: leave it to"),
        ({"trainer": "sb3", "set": {"seed": 3}, "tuned": {}, "env": "Pendulum-v1"}, r"seed is 3: leave it to seeds\.$"),
        ({"trainer": "sb3", "set": {"device": "cuda"}}, "device is 'cuda': leave it to the study's device"),
        ({"trainer": "sb3", "set": {"total_timesteps": 9}}, r"total_timesteps is 9: leave it to simulated_s\."),
        (
            {"trainer": "sb3", "env": None, "envs": ["Pendulum-v1", "Reacher-v5"], "env_dt": None, "dts": ["100ms"]},
            "needs one time step of all environments, and Pendulum-v1 has 50ms, Reacher-v5 has 20ms: give env_steps",
        ),
        (
            {"trainer": "sb3", "env": "MountainCarContinuous-v0", "env_dt": None},
            "MountainCarContinuous-v0 publishes no time step .*: give it, for example env_dt='20ms'",
        ),
        ({"trainer": {"command": ["x", "{discount}"]}, "set": {"batch": 9}}, "so give it in 'tuned'"),
        ({"trainer": "sb3", "algorithm": "dqn"}, "'dqn' is not an algorithm"),
        (
            {"trainer": "sb3", "algorithm": "tqc", "env": "Pendulum-v1"},
            "stable-baselines3 has no tqc here: give one of",
        ),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], says: str) -> None:
    table = {key: value for key, value in {**COMMAND, **changes}.items() if value is not None}
    with pytest.raises(InputError, match=says):
        study_from_table(table, Path()).check_runs()


@pytest.mark.parametrize(("dropped", "value"), [("num_steps", "would be 4096"), ("gamma", "would be 0.9")])
def test_a_command_takes_all_that_is_not_as_usual_in_its_library(dropped: str, value: str) -> None:
    names = {"num_steps", "num_minibatches", "gamma", "gae_lambda"} - {dropped}
    trainer = {"command": ["python", "ppo.py", *(f"{{{name}}}" for name in names)], "words": "cleanrl"}
    table = {**COMMAND, "tuned": {"dt": "50ms", "discount": 0.9}, "rules": ["dt-aware"], "trainer": trainer}
    with pytest.raises(InputError, match=f"{dropped} {value}.*, and the command does not take it: add {{{dropped}}}"):
        study_from_table(table, Path()).check_runs()


def test_a_budget_that_all_environments_share_is_told_with_what_would_be_enough(tmp_path: Path) -> None:
    """An episode of Pendulum is 10 s long, also where it steps every 25 ms."""
    given: dict[str, Any] = {"algorithm": "ppo", "dt": Duration("50ms"), "values": {}, "seed": 0, "device": "cpu"}
    run = TrainerRun(
        world=GymnasiumEnv("Pendulum-v1", Duration("25ms")),
        num_envs=8,
        simulated_s=40,
        folder=tmp_path,
        resumes=False,
        **given,
    )
    assert no_episode(run) == (
        "No episode ended in 40 s simulated, 5 s in each of 8 environments: give the study a larger budget, "
        "env_steps = 3200 for a whole one in each."
    )


@pytest.mark.parametrize(
    ("words", "taken"),
    [(["{discount}"], {"discount"}), (["{discount}", "--iterations", "{updates}"], {"discount"})],
)
def test_of_a_commands_values_those_are_told_that_it_takes(words: list[str], taken: set[str]) -> None:
    table = {**COMMAND, "trainer": {"command": ["python", "train.py", *words]}}
    for cell in study_from_table(table, Path()).cells():
        assert set(agent_values(cell.agent, tunable_names("ppo", TrainerSpec(name="brax")))) == taken


def test_a_rule_whose_work_a_command_does_not_take_is_refused() -> None:
    trainer = {"words": "cleanrl", "command": ["x", "{gamma}{dt_ms}"]}
    table = {**COMMAND, "tuned": {"dt": "50ms"}, "rules": ["constant", "baseline"], "trainer": trainer}
    told = r"^num_steps would be 4096, and the command does not take it: add \{num_steps\}, or leave it out\.$"
    with pytest.raises(InputError, match=told):
        study_from_table(table, Path()).check_runs()


@pytest.mark.parametrize("trainer", ["mine:train", {"command": ["x", "{discount}{dt_ms}"]}])
def test_rules_that_change_nothing_that_is_given_are_refused(trainer: object) -> None:
    """At shorter cycle times dt-aware keeps the discount."""
    table = {**COMMAND, "env": "Pendulum-v1", "rules": ["constant", "baseline"], "trainer": trainer}
    told = r"^The rules constant and baseline differ in batch, and in nothing that the study gives: give batch in \[tun"
    with pytest.raises(InputError, match=told):
        study_from_table(table).check_runs()
    for rule in ("constant", "dt-aware"):
        told = f"^The rule {rule} changes batch, and nothing that the study gives: give batch in \\[tuned\\], or "
        with pytest.raises(InputError, match=told):
            study_from_table({**table, "rules": [rule]}).check_runs()
    study_from_table({**table, "rules": ["baseline", "horizons"]}).check_runs()


@pytest.mark.parametrize("trainer", ["mine:train", {"command": ["x", "{discount}{dt_ms}"]}])
def test_a_trainer_of_ones_own_is_given_what_the_study_gives(trainer: object) -> None:
    """None of the paper's values, which are PPO's where our own agents are trained."""
    study = study_from_table({**COMMAND, "env": "Pendulum-v1", "rules": ["horizons"], "trainer": trainer})
    study.check_runs()
    carried = PPO(dt="50ms", discount=0.9).at("25ms", "horizons").discount
    cells = list(study.cells())
    assert [cell.agent.settings for cell in cells if isinstance(cell.agent, ExternalAgent)] == [
        {"discount": carried},
        {"discount": 0.9},
    ]
    assert agent_values(cells[0].agent, tunable_names("ppo", study.trainer)) == {"discount": carried}
    assert cells[0].spec.origin["tuned"] == {"discount": 0.9}
    assert Plan.of(study).notes() == (
        "note: ppo at 25ms: the rule horizons changes batch, minibatch, trace_decay too, which [tuned] does not give: "
        f"{study.trainer.label if study.trainer else ''} has its own.",
    )


def test_a_batch_alone_is_not_held_against_the_papers_minibatch() -> None:
    for tuned in ({"batch": 32}, {"minibatch": 4096}):
        study = study_from_table({**COMMAND, "tuned": {"dt": "50ms", **tuned}, "trainer": "mine:train"})
        (name, value), *_ = tuned.items()
        agents = [cell.agent for cell in study.cells()]
        assert [dict(each.settings) for each in agents if isinstance(each, ExternalAgent)] == [
            {name: 2 * value},
            {name: value},
        ]


def test_a_batch_that_no_environments_share_evenly_is_noted() -> None:
    several = {"dt": "50ms", "batch": 403}
    trainer = {"name": "mine:train", "num_envs": 3}
    study = study_from_table({**COMMAND, "dts": ["50ms"], "tuned": several, "trainer": trainer})
    assert Plan.of(study).notes() == (
        "note: ppo at 50ms: batch 403 is no multiple of num_envs, 3: mine:train is given it as it is.",
    )


MINE = {"dts": ["25ms", "50ms"], "own_rules": {"mine": {"learning_rate": {"law": "rho-power", "exponent": 0.5}}}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trainer": "mine:train"}, r"The rule mine changes learning_rate, which .* give, and what mine:train takes"),
        (
            {"trainer": {"command": ["x", "{dt_s}", "{discount}"]}},
            "The rule mine changes learning_rate, .* what x takes",
        ),
        (
            {"trainer": "brax"},
            "The rule mine changes learning_rate, .* and what brax takes then is not known: give it in",
        ),
        (
            {"trainer": "mine:train", "algorithm": "sac", "rules": ["baseline", "horizons"], "dts": ["50ms", "100ms"]},
            "The rule horizons changes updates_per_step",
        ),
        (
            {"trainer": {"command": ["x", "{dt_s}", "{discount}", "{learning_rate}"]}, "rules": ["baseline"]},
            "give this one",
        ),
        ({"trainer": "mine:train", "dts": ["50ms"]}, None),  # where the values are from, nothing changes
        ({"trainer": "sb3"}, None),  # whose default is what it would take
    ],
)
def test_a_rule_changes_what_was_given_or_is_known(changes: dict[str, Any], says: str | None) -> None:
    table = {**COMMAND, **MINE, "rules": ["baseline", "mine"], **changes}
    if "mine" not in table["rules"]:
        del table["own_rules"]
    with pytest.raises(InputError, match=says) if says else nullcontext():
        study_from_table({**table, "env": "Pendulum-v1"}).check_runs()


def test_a_value_that_a_rule_of_ones_own_changes_reaches_the_trainer() -> None:
    tuned = {"dt": "50ms", "discount": 0.9, "learning_rate": 1e-3}
    table = {**COMMAND, **MINE, "rules": ["baseline", "mine"], "trainer": "mine:train", "tuned": tuned}
    assert [each["learning_rate"] for each in settings_of(table)] == [1e-3, pytest.approx(1e-3 * 0.5**0.5), 1e-3, 1e-3]


def test_a_command_in_cleanrls_words() -> None:
    trainer = {"command": ["python", "ppo.py", "--num-steps", "{num_steps}"], "words": "cleanrl"}
    fine, coarse = settings_of({**COMMAND, "tuned": {"dt": "50ms"}, "trainer": trainer})
    assert (fine["num_steps"], coarse["num_steps"]) == (4096, 2048)
