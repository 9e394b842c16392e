"""What studies have of an algorithm's values, and what rules make of them."""

import pytest

from cycletime.experiments.horizons.candidates import ALGORITHM_SPECS, AlgorithmSpec
from cycletime.rules import PPO, SAC

OF_PPO, OF_SAC = ALGORITHM_SPECS["ppo"], ALGORITHM_SPECS["sac"]


@pytest.mark.parametrize("spec", ALGORITHM_SPECS.values(), ids=ALGORITHM_SPECS)
def test_what_rules_are_compared_with_is_known_of_the_algorithm(spec: AlgorithmSpec) -> None:
    assert set(spec.references) <= set(spec.usual.rules)
    assert not set(spec.candidates) & set(spec.usual.rules)
    assert list(spec.rules) == [*spec.references, *spec.candidates]
    stated = spec.usual.stated()
    assert all(task_set in stated for rule in spec.candidates.values() for task_set in rule.laws), (
        "else notes come of it"
    )


def test_what_sac_is_compared_with_is_its_default_by_another_name() -> None:
    assert SAC.rules[OF_SAC.default].laws == SAC.rules["tuned-scaled"].laws


def test_horizons_are_what_tuning_looks_for() -> None:
    assert OF_PPO.horizons == ("discount", "trace_decay")
    assert OF_SAC.horizons == ("discount",)


def test_untuned_values_have_the_horizons_that_everybody_uses_and_all_else_as_it_was() -> None:
    tuned = PPO(dt="4ms", batch=8000, minibatch=200, discount=0.9, trace_decay=0.8)
    untuned = OF_PPO.untuned(tuned)
    assert isinstance(untuned, PPO)
    assert (untuned.dt, untuned.batch, untuned.discount, untuned.trace_decay) == (tuned.dt, 8000, 0.99, 0.95)


@pytest.mark.parametrize(
    ("rule", "to", "point"),
    [
        ("scaled", "4ms", (0.960596, 0.005, 1, 1)),
        ("scaled-smoothing", "4ms", (0.960596, 0.00125235, 1, 1)),
        ("scaled-updates", "4ms", (0.960596, 0.005, 1, 4)),
        ("scaled-updates", "64ms", (0.525596, 0.005, 4, 1)),
        ("floor-6", "64ms", (0.846482, 0.005, 1, 1)),
        ("floor-6-smoothing", "64ms", (0.846482, 0.0198505, 1, 1)),
        ("baseline", "64ms", (0.851458, 0.005, 1, 1)),
    ],
)
def test_points_of_sac(rule: str, to: str, point: tuple[float, ...]) -> None:
    """From 16 ms: .851458^(1/4), .851458^4, e^(-1/6); 1 - .995^(1/4), 1 - .995^4; a fourth of the updates or four."""
    tuned = OF_SAC.tuned(SAC(dt="16ms").dt, {"discount": 0.851458, "minibatch": 256})
    found = OF_SAC.point(tuned.at(to, OF_SAC.rules[rule]))
    names = ("discount", "target_smoothing", "gradient_steps", "learning_period")
    assert [found[name] for name in names] == pytest.approx(point, rel=1e-5)
    assert (str(found["dt"]), found["minibatch"]) == (to, 256)


def test_places_tell_what_rules_change_and_nothing_else() -> None:
    point = OF_SAC.point(OF_SAC.usual)
    assert OF_SAC.point_key({**point, "learning_rate": 1}) == OF_SAC.point_key(point)
    for name in ("dt", "discount", "target_smoothing", "gradient_steps", "learning_period"):
        assert OF_SAC.point_key({**point, name: 0.5}) != OF_SAC.point_key(point)
