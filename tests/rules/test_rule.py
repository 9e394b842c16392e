"""Rules of one's own: each field by its law, the table that shows it, what they say of themselves, refusals."""

import pickle
import re
from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import exp, isclose
from typing import Any

import pytest

from cycletime.agents import agent_for
from cycletime.errors import InputError
from cycletime.rules import A2C, ALGORITHMS, PPO, SAC, TD3, Law, Rule, laws

CANDIDATE = Rule(
    "floor-6",
    {
        "batch": laws.COUNT,
        "minibatch": laws.COUNT,
        "discount": laws.power_with_floor(6),
        "trace_decay": laws.power_with_floor(6),
        "learning_rate": laws.rho_power(-0.25),
    },
)


def test_every_field_follows_its_law() -> None:
    tuned = PPO(dt="16ms", discount=0.92, trace_decay=0.95, learning_rate=3e-4)
    short, long = tuned.at("4ms", CANDIDATE), tuned.at("64ms", rule=CANDIDATE)
    assert (short.batch, short.minibatch, long.batch, long.minibatch) == (8000, 200, 500, 12)
    assert (isclose(short.discount, 0.92**0.25), isclose(short.trace_decay, 0.95**0.25)) == (True, True)
    assert isclose(long.discount, exp(-1 / 6)), "3 steps otherwise"
    assert isclose(long.trace_decay, exp(-1 / 6)), "4.9 steps otherwise"
    assert short.learning_rate == pytest.approx(3e-4 * 4**0.25)
    assert agent_for(short).learning_rate == short.learning_rate


def test_the_table_has_its_name_and_the_formula_of_every_law() -> None:
    table = PPO(dt="16ms", discount=0.92).at("64ms", CANDIDATE).explain()
    assert "rule 'floor-6', rho = dt/dt0 = 4" in table
    assert re.search(
        r"discount \(gamma\) +0\.92 +0\.846482 +max\(x0\^rho, min\(x0, e\^\(-1/6\)\)\) +0\.192 -> 0", table
    )
    assert re.search(r"learning_rate \(eta\) +0\.0003 +0\.000212132 +x0 \* rho\^-0\.25$", table, re.MULTILINE)
    assert "note: learning_rate was not given: the paper's 0.0003 is used." in table


def test_what_a_rule_does_not_speak_of_is_not_touched() -> None:
    after = PPO(dt="16ms", clip=0.1).at("4ms", Rule("only-b", {"batch": laws.COUNT, "minibatch": laws.COUNT}))
    assert (after.batch, after.discount, after.clip, after.learning_rate) == (8000, 0.99, 0.1, None)
    assert re.search(r"clip \(epsilon\) +0\.1 +0\.1 +not touched", after.explain())


def test_a_part_counts_where_the_rule_speaks_of_the_same_field() -> None:
    tuned = PPO(dt="16ms", learning_rate=1e-3)
    assert tuned.at("4ms", CANDIDATE, also="learning-rate").learning_rate == 2e-3


def test_the_rules_with_names_are_rules_as_well() -> None:
    for kind in (PPO, SAC, A2C, TD3):
        for name, rule in kind.rules.items():
            assert rule.name == name
            assert kind(dt="16ms").at("64ms", rule).explain() == kind(dt="16ms").at("64ms", name).explain()


def test_a_rule_and_what_it_carried_survive_pickling() -> None:
    carried = PPO(dt="16ms").at("64ms", CANDIDATE)
    copy = pickle.loads(pickle.dumps(carried))
    assert (copy, copy.explain()) == (carried, carried.explain())
    assert pickle.loads(pickle.dumps(CANDIDATE)) == CANDIDATE


def test_a_rule_does_not_change_with_the_mapping_that_it_was_made_of() -> None:
    mapping = {"batch": laws.COUNT}
    rule = Rule("mine", mapping)
    mapping["batch"] = laws.KEPT
    assert rule.law("batch") == laws.COUNT
    with pytest.raises(FrozenInstanceError):
        rule.name = "yours"  # type: ignore[misc]


def test_a_rule_that_moves_the_ratio_of_batch_and_minibatch_says_so_and_exports_the_new_count() -> None:
    same_m = Rule("same-m", {"batch": laws.COUNT, "minibatch": laws.KEPT})
    carried = PPO(dt="16ms").at("4ms", same_m)
    assert (carried.batch, carried.minibatch, carried.tuned_ratio) == (8000, 50, Fraction(160))
    assert "Rule 'same-m' moves batch / minibatch from 40 to 160: 160 mini-batches per epoch." in carried.notes
    assert carried.to("cleanrl")["num_minibatches"] == 160
    counted = PPO.from_("cleanrl", dt="16ms", num_steps=2048, num_minibatches=32).at("8ms", same_m)
    assert (counted.minibatch, counted.to("cleanrl")["num_minibatches"]) == (64, 64)


def test_the_ratio_is_the_exact_one_after_rounding_too() -> None:
    rooted = Rule("rooted", {"batch": laws.COUNT, "minibatch": laws.ROOT})
    carried = PPO(dt="16ms", batch=2000, minibatch=50).at("32ms", rooted)
    assert (carried.batch, carried.minibatch) == (1000, 35)
    assert carried.tuned_ratio == pytest.approx(40 / 2**0.5)


def test_sac_takes_rules_of_one_s_own() -> None:
    rule = Rule("replay", {"discount": laws.power_with_floor(6), "replay_capacity": laws.COUNT, "minibatch": laws.ROOT})
    after = SAC(dt="16ms", discount=0.851, minibatch=256).at("64ms", rule)
    assert isclose(after.discount, exp(-1 / 6))
    assert (after.replay_capacity, after.minibatch) == (250_000, 128)
    assert after.notes == ("replay_capacity was not given: the paper's 1000000 is used.",)
    kept = SAC(dt="16ms").at("64ms", Rule("kept", {"discount": laws.KEPT}))
    assert kept.notes == (), "nothing is scaled, so that nothing has to be tuned first"
    with pytest.raises(InputError, match="minibatch was not given, and the paper has no value for it: give one"):
        SAC(dt="16ms").at("64ms", rule)


@pytest.mark.parametrize(
    ("name", "chosen", "says"),
    [
        ("", {}, "A rule's name is '': give it one that tables can show, such as 'mine'."),
        (3, {}, "A rule's name is 3: give it one"),
        ("mine", [laws.COUNT], "Rule 'mine' has [Law(name='per second, of a count'"),
        ("mine", {"batch": "COUNT"}, "Rule 'mine' has 'COUNT' for batch: give one of cycletime.rules.laws, such as"),
        ("mine", {"batch": laws.rho_power}, "for batch: give one of cycletime.rules.laws"),
    ],
)
def test_what_is_no_choice_of_laws_is_refused(name: Any, chosen: Any, says: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=f"^{re.escape(says)}" if says.startswith(("A", "R")) else re.escape(says)):
        Rule(name, chosen)


def test_a_rule_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"^Rule 'mine' has a law for 'gama': ppo has batch, .*clip\.$"):
        PPO(dt="16ms").at("4ms", Rule("mine", {"gama": laws.POWER}))
    with pytest.raises(InputError, match=r"has a law for 'discout': sac has .*; did you mean discount\?$"):
        SAC(dt="16ms").at("4ms", Rule("mine", {"discout": laws.POWER}))
    with pytest.raises(InputError, match=r"has a law for 'batch': sac has .*, target_entropy\.$"):
        SAC(dt="16ms").at("4ms", Rule("mine", {"batch": laws.COUNT}))
    with pytest.raises(InputError, match=r"has a law for 'replay_capacity': ppo has .*, clip\.$"):
        PPO(dt="16ms").at("4ms", Rule("mine", {"replay_capacity": laws.COUNT}))
    with pytest.raises(InputError, match=r"^'dt-aware' is the name of another rule of ppo: give yours its own"):
        PPO(dt="16ms").at("4ms", Rule("dt-aware", {"batch": laws.COUNT}))
    own = Law("a root of one's own", "x0^rho", "nowhere", laws.POWER.compute)  # and so of any value
    for field, law, value in (("batch", laws.rho_power(-1000), 2000), ("target_entropy", own, -2)):
        kind = PPO if field == "batch" else SAC
        with pytest.raises(
            InputError, match=rf"^{field} {value} cannot be carried from 16ms to 4ms: it would be (inf|nan) "
        ):
            kind(dt="16ms", **{field: value}).at("4ms", Rule("odd", {field: law}))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^learning_rate 0.0003 cannot be carried from 16ms to 1us: it would be inf"):
        PPO(dt="16ms").at("1us", Rule("steep", {"learning_rate": laws.rho_power(-1000)}))


RATES = "kept, count, proportional, grown, square-root, times-square-root, rho-power, capped-rho-power"


@pytest.mark.parametrize(
    ("kind", "field", "law", "which"),
    [
        (PPO, "batch", laws.POWER, f"a count or rate: give one of {RATES}"),
        (PPO, "minibatch", laws.SMOOTHING, f"a count or rate: give one of {RATES}"),
        (PPO, "learning_rate", laws.CAPPED_POWER, f"a count or rate: give one of {RATES}"),
        (PPO, "discount", laws.COUNT, "a decay per step: give one of kept, power, capped-power"),
        (PPO, "trace_decay", laws.rho_power(-0.5), "a decay per step: give one of kept, power, capped-power"),
        (
            SAC,
            "target_smoothing",
            laws.power_with_floor(6),
            "a smoothing per update: give one of kept, smoothing, grown-",
        ),
        (SAC, "target_entropy", laws.ROOT, "an entropy: give one of kept"),
    ],
)
def test_a_law_that_makes_no_sense_of_a_value_is_refused_with_those_that_do(
    kind: type[PPO | SAC], field: str, law: Law, which: str
) -> None:
    says = f"Rule 'mine' has {law.formula} for {field}, which is {which}"
    with pytest.raises(InputError) as refused:
        kind(dt="16ms").at("4ms", Rule("mine", {field: law}))
    assert str(refused.value).startswith(says)


def test_all_rules_that_come_with_the_package_make_sense() -> None:
    for kind in ALGORITHMS.values():
        for rule in kind.rules.values():
            rule.refuse_misfits({each.field: each.kind for each in kind.quantities})
        for part in kind.parts.values():
            (value,) = (each for each in kind.quantities if each.field == part.field)
            assert all(not law.kinds or value.kind in law.kinds for law in (part.law, *part.with_updates.values()))


def test_what_is_said_of_a_power_of_rho_holds_of_any_value() -> None:
    assert laws.rho_power(-0.25).source.startswith(
        "a power of one's own; our own search tried it for the learning rate alone"
    )
    PPO(dt="16ms", clip=0.2).at("4ms", Rule("mine", {"clip": laws.rho_power(-0.25)}))
