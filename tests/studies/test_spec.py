from fnmatch import fnmatchcase
from typing import Any

import pytest

from cycletime import rules
from cycletime.agents import agent_for
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.studies.spec import StudySpec, Tuned
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld, GymnasiumEnv


def a_study(**overrides: Any) -> StudySpec:  # noqa: ANN401 - any field
    values: dict[str, Any] = {
        "name": "s",
        "worlds": (ClosedFormWorld("reacher"),),
        "algorithms": ("ppo",),
        "dts": (Duration("8ms"), Duration("16ms")),
        "rules": {"ppo": ("baseline", "dt-aware")},
        "seeds": (0, 1, 2),
        "env_steps": 1000,
        "tuned": {"ppo": Tuned(Duration("16ms"), {"batch": (2000,), "minibatch": (50,)})},
    }
    return StudySpec(**{**values, **overrides})


def test_it_has_all_combinations_in_the_order_of_a_table() -> None:
    labels = [
        (each["task"], each["algorithm"], str(each["dt"]), each["rule"], each["seed"]) for each, _ in a_study().runs()
    ]
    wanted = [
        ("reacher", "ppo", dt, rule, seed)
        for dt in ("8ms", "16ms")
        for rule in ("baseline", "dt-aware")
        for seed in (0, 1, 2)
    ]
    assert labels == wanted
    assert a_study().size == 12


def test_each_run_is_what_the_rules_say_by_hand() -> None:
    tuned = rules.PPO(dt="16ms", batch=2000, minibatch=50)
    for labels, spec in a_study().runs():
        by_hand = RunSpec(
            world=ClosedFormWorld("reacher"),
            agent=agent_for(tuned.at(labels["dt"], labels["rule"])),
            dt=labels["dt"],
            env_steps=1000,
            seed=labels["seed"],
        )
        assert spec.identity == by_hand.identity
        assert spec.origin["rule"] == labels["rule"]


def test_where_rules_agree_runs_are_the_same() -> None:
    identities = [spec.identity for _, spec in a_study().runs()]
    assert (len(identities), len(set(identities))) == (12, 9)


def test_grids_are_labels_where_they_vary() -> None:
    study = a_study(
        tuned={"ppo": Tuned(Duration("16ms"), {"batch": (1000, 2000), "minibatch": (50,)})},
        others={"ppo": {"hidden": ((8,), (16, 16)), "epochs": (3,)}},
        dts=(Duration("16ms"),),
        rules={"ppo": ("baseline",)},
    )
    cells = list(study.cells())
    varied = [{name: cell.labels[name] for name in cell.labels if name in ("batch", "hidden")} for cell in cells]
    assert varied == [{"batch": batch, "hidden": hidden} for batch in (1000, 2000) for hidden in ((8,), (16, 16))]
    assert all({"minibatch", "epochs"}.isdisjoint(cell.labels) for cell in cells)
    assert all(cell.run(0).as_json()["agent"]["epochs"] == 3 for cell in cells)


def test_algorithms_have_their_own_rules_and_values() -> None:
    study = a_study(
        algorithms=("ppo", "sac", "actor-critic"),
        rules={"ppo": ("baseline",), "sac": ("tuned", "tuned-scaled")},
        tuned={"sac": Tuned(Duration("16ms"), {"discount": (0.98,)})},
    )
    found = [(cell.labels["algorithm"], cell.labels["rule"]) for cell in study.cells() if str(cell.dt) == "8ms"]
    assert found == [("ppo", "baseline"), ("sac", "tuned"), ("sac", "tuned-scaled"), ("actor-critic", None)]
    discounts = {
        cell.labels["rule"]: cell.run(0).as_json()["agent"]["discount"]
        for cell in study.cells()
        if cell.labels["algorithm"] == "sac" and str(cell.dt) == "8ms"
    }
    assert discounts == {"tuned": 0.98, "tuned-scaled": pytest.approx(0.98**0.5)}


def test_environments_are_stepped_and_tasks_compiled() -> None:
    study = a_study(worlds=(ClosedFormWorld("reacher"), GymnasiumEnv("Pendulum-v1", Duration("4ms"))), width=1)
    engines = {cell.labels["task"]: cell.spec.engine for cell in study.cells()}
    assert engines == {"reacher": EngineSpec("compiled"), "Pendulum-v1": EngineSpec("stepped")}


def test_the_width_and_the_device_are_part_of_the_identity() -> None:
    whole = {spec.identity for _, spec in a_study().runs()}
    assert whole.isdisjoint(spec.identity for _, spec in a_study(width=4).runs())
    assert whole.isdisjoint(spec.identity for _, spec in a_study(device="gpu").runs())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": ()}, "The study 's' has no seeds: give at least one."),
        (
            {"engine": "real-time"},
            "engine is 'real-time': a robot is one run's at a time, so train it with 'cycletime robot run' or "
            "'cycletime train', and study the closed form of the paper's, the task ur-reacher.",
        ),
        ({"worlds": ()}, "The study 's' has no tasks or envs: give at least one."),
        ({"seeds": (1, 2, 1)}, "The study 's' has 1 twice in its seeds: give each once."),
        (
            {"worlds": (ClosedFormWorld("reacher"),) * 2},
            "The study 's' has reacher twice in its tasks or envs: give each once.",
        ),
        ({"dts": (Duration("8ms"), Duration("0.008"))}, "The study 's' has 8ms twice in its dts: give each once."),
        ({"algorithms": ("dqn",)}, "'dqn' is not an algorithm: give one of actor-critic, ppo, sac."),
        ({"others": {"ppo": {"epochs": ()}}}, "epochs of ppo has no value: give at least one."),
        (
            {"others": {"ppo": {"hidden": ([8], [8, 8])}}},
            "hidden is [8]: give one number or text, or a tuple such as (64, 64).",
        ),
        ({"others": {"ppo": {"epochs": (3, 3)}}}, "epochs of ppo has the same value twice: [3, 3]."),
        ({"others": {"ppo": {"batch": (3,)}}}, "set has 'batch': it is a tuned value of ppo, so give it in 'tuned'."),
    ],
)
def test_what_is_no_study_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        a_study(**change)
    assert str(refusal.value) == says


POINTS = ({"batch": 1000, "minibatch": 50, "epochs": 2}, {"batch": 4000, "minibatch": 25, "epochs": 5})


def test_points_are_choices_that_are_no_grid_and_are_carried_like_others() -> None:
    study = a_study(points={"ppo": POINTS}, tuned={"ppo": Tuned(Duration("16ms"), {"discount": (0.9, 0.99)})})
    labels = [cell.labels for cell in study.cells() if cell.labels["rule"] == "dt-aware" and str(cell.dt) == "8ms"]
    wanted = [{**point, "discount": discount} for point in POINTS for discount in (0.9, 0.99)]
    assert [{name: each[name] for name in wanted[0]} for each in labels] == wanted
    agents = [cell.run(0).as_json()["agent"] for cell in study.cells() if cell.labels["rule"] == "dt-aware"]
    assert {(each["batch"], each["epochs"]) for each in agents} == {(2000, 2), (8000, 5), (1000, 2), (4000, 5)}


def test_a_point_is_the_run_that_the_same_values_are_without_it() -> None:
    _, point = next(a_study(points={"ppo": POINTS[:1]}, tuned={}, rules={}).runs())
    grid = {"ppo": Tuned(None, {"batch": (1000,), "minibatch": (50,)})}
    _, by_grid = next(a_study(tuned=grid, others={"ppo": {"epochs": (2,)}}, rules={}).runs())
    assert point.identity == by_grid.identity


def test_a_point_with_a_cycle_time_is_for_that_one_alone_and_no_label_of_its_own() -> None:
    points = ({"dt": Duration("8ms"), "batch": 8000}, {"dt": Duration("16ms"), "batch": 4000})
    study = a_study(points={"ppo": points}, tuned={}, rules={"ppo": ("baseline", "dt-aware")})
    assert [(str(cell.dt), cell.labels["rule"], cell.labels["batch"]) for cell in study.cells()] == [
        ("8ms", "baseline", 8000),
        ("8ms", "dt-aware", 8000),
        ("16ms", "baseline", 4000),
        ("16ms", "dt-aware", 4000),
    ]
    by_grid = a_study(
        dts=(Duration("8ms"),), rules={"ppo": ("baseline",)}, tuned={"ppo": Tuned(Duration("16ms"), {"batch": (8000,)})}
    )
    assert next(study.runs())[1].identity == next(by_grid.runs())[1].identity


@pytest.mark.parametrize("at", [("8ms", "8ms", "16ms"), (None, None, None)])
def test_its_size_is_that_of_its_cells_also_where_points_have_a_cycle_time(at: tuple[str | None, ...]) -> None:
    points = tuple(
        {"batch": batch} if dt is None else {"dt": Duration(dt), "batch": batch}
        for dt, batch in zip(at, (1000, 2000, 4000), strict=True)
    )
    study = a_study(points={"ppo": points}, tuned={"ppo": Tuned(Duration("16ms"), {"discount": (0.9, 0.99)})})
    assert study.size == len(list(study.cells())) * 3 == (3 if at[0] else 2 * 3) * 2 * 2 * 3


@pytest.mark.parametrize(
    ("points", "says"),
    [
        (
            ({"batch": 1}, {"minibatch": 1}),
            "points has one with batch and one with minibatch: give all the same names.",
        ),
        (({"batch": 1}, {}), "points has one with batch and one with nothing: give all the same names."),
        (({"epochs": 1}, {"epochs": 1}), "points has the same one twice: {'epochs': 1}."),
        (({"hidden": [8]},), "hidden is [8]: give one number or text, or a tuple such as (64, 64)."),
        (({"bach": 1},), "points has 'bach': ppo has batch, *"),
        (({"exploration": 1},), "points has 'exploration': ppo has batch, *"),
        (
            ({"dt": Duration("8ms"), "epochs": 1}, {"dt": Duration("12ms"), "epochs": 1}),
            "points has one with dt 12ms: the study has 8ms, 16ms.",
        ),
        (
            ({"dt": Duration("16ms"), "epochs": 1},),
            "points has none with dt 8ms: each cycle time of the study, 8ms, 16ms, needs one.",
        ),
        (({"dt": Duration("8ms")}, {"dt": Duration("0.008")}), "points has the same one twice: {'dt': '8ms'}."),
        (({"dt": Duration("8ms"), "epochs": 1}, {"epochs": 1}), "points has one with dt, epochs and one with epochs:*"),
        (({"batch": 9},), "batch of ppo has a value in 'points' and elsewhere: give one of them."),
    ],
)
def test_what_are_no_points_is_refused(points: Any, says: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as refusal:
        a_study(points={"ppo": points}, tuned={"ppo": Tuned(None, {"batch": (2000,)} if "9" in str(points) else {})})
    assert fnmatchcase(str(refusal.value), says.replace("[", "[[]"))
