"""What all algorithms share: horizons that shrink are told, unknown names get the nearest, notebooks get the table."""

import pickle

import pytest

from cycletime import rules
from cycletime.errors import InputError
from cycletime.rules import A2C, ALGORITHMS, DDPG, PPO, SAC, TD3, TQC, Hyperparameters


def shrinking(values: Hyperparameters) -> list[str]:
    return [note for note in values.notes if "shrinks horizons" in note]


def test_a_rule_that_shrinks_horizons_says_so_with_both_numbers() -> None:
    # 1.59 s is -0.016 / ln(0.99), and half the cycle is half of that
    assert shrinking(PPO(dt="16ms").at("8ms")) == [
        "Rule 'dt-aware' shrinks horizons: discount 0.99 from 1.59 s to 0.796 s, trace_decay 0.95 from 0.312 s to "
        "0.156 s."
    ]
    assert shrinking(SAC(dt="16ms", discount=0.98).at("8ms", "tuned")) == [
        "Rule 'tuned' shrinks horizons: discount 0.98 from 0.792 s to 0.396 s."
    ]


@pytest.mark.parametrize("rule", ["baseline", "constant", "dt-aware"])
def test_every_rule_that_keeps_gamma_at_a_shorter_cycle_is_told(rule: str) -> None:
    assert shrinking(PPO(dt="16ms").at("4ms", rule))
    assert shrinking(A2C(dt="16ms").at("4ms", rule))


@pytest.mark.parametrize(
    "values",
    [
        PPO(dt="16ms").at("64ms"),
        PPO(dt="16ms").at("16ms"),
        PPO(dt="16ms").at("15.9ms"),  # less than a hundredth
        PPO(dt="16ms").at("4ms", "scaled"),
        PPO(dt="16ms").at("64ms", "constant"),
        PPO(dt="16ms", discount=1, trace_decay=0).at("4ms"),
        SAC(dt="16ms").at("64ms"),
    ],
)
def test_horizons_that_do_not_shrink_are_not_spoken_of(values: Hyperparameters) -> None:
    assert shrinking(values) == []


@pytest.mark.parametrize(("kind", "whose"), [(A2C, "PPO"), (TQC, "SAC"), (TD3, "SAC"), (DDPG, "SAC")])
def test_algorithms_that_the_paper_has_not_take_the_rules_of_its_own(kind: type[Hyperparameters], whose: str) -> None:
    theirs = ALGORITHMS[whose.lower()]
    for rule in kind.rules:
        carried, expected = kind(dt="16ms").at("4ms", rule), theirs(dt="16ms").at("4ms", rule)
        assert carried.stated()["discount"] == expected.stated()["discount"]
        assert f"The paper has no {kind.__name__}: these are rules for {whose}, untested on it." in carried.notes
    assert kind.rules.keys() == theirs.rules.keys()
    assert pickle.loads(pickle.dumps(kind(dt="16ms").at("4ms"))) == kind(dt="16ms").at("4ms")


def test_a2c_s_batch_is_one_gradient_step() -> None:
    carried = A2C(dt="16ms", trace_decay=0.9).at("64ms", "dt-aware")
    assert (carried.batch, carried.minibatch) == (1, 1)  # 1.25, which is told
    assert any("batch 1.25 was rounded to 1" in note for note in carried.notes)
    assert carried.trace_decay == pytest.approx(0.9**4)


def test_td3_has_no_entropy() -> None:
    carried = TD3(dt="16ms", noise_std=0.1).at("4ms", also=["exploration-noise", "target-smoothing", "warm-up"])
    assert (carried.noise_std, carried.warmup_steps) == (0.2, 40_000)
    assert carried.target_smoothing == pytest.approx(1 - 0.995**0.25)
    with pytest.raises(InputError, match="Unknown part 'target-entropy' for td3: choose one of replay-capacity"):
        TD3(dt="16ms").at("4ms", also="target-entropy")


def test_misspelt_rules_and_parts_get_the_nearest() -> None:
    with pytest.raises(InputError, match=r"Unknown rule 'dt_aware' for ppo: .*, horizons; did you mean dt-aware\?$"):
        PPO(dt="16ms").at("4ms", "dt_aware")
    with pytest.raises(InputError, match=r"Unknown part 'warmup' for sac: .* did you mean warm-up\?$"):
        SAC(dt="16ms").at("4ms", also="warmup")


def test_a_number_with_hundreds_of_digits_is_refused_in_a_sentence() -> None:
    for digits in (400, 10_000):
        with pytest.raises(InputError, match=r"^batch is a number of more than 60 digits: it must be a whole number"):
            PPO(dt="16ms", batch=10**digits)
    with pytest.raises(InputError, match=r"at most 1e\+18"):
        PPO(dt="16ms", batch=10**18 + 1)


def test_a_notebook_shows_the_table_and_knows_the_names() -> None:
    html = PPO(dt="16ms").at("8ms")._repr_html_()
    assert html.startswith("<pre>PPO from 16ms to 8ms, rule &#x27;dt-aware&#x27;")
    assert "discount (gamma)" in html
    assert "n_steps = 4000" in PPO(dt="16ms").at("8ms").to("sb3")._repr_html_()
    assert {"A2C", "ALGORITHMS", "DDPG", "PPO", "SAC", "TD3", "TQC"} <= {*dir(rules)}
    for name in rules.__all__:
        assert getattr(rules, name).__doc__
