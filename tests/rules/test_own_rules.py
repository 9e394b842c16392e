"""Rules of one's own as tables of words: every law by its name, round trips, refusals."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.rules import A2C, DDPG, PPO, SAC, TD3, TQC, Rule, laws
from cycletime.rules.rule import law_named, own_rules_as_table, parse_own_rules

TABLE = {
    "floor-6": {
        "batch": "per second, of a count",
        "discount": "per second, of a decay, at least 6 steps",
        "trace_decay": "the paper's min",
        "learning_rate": "a power of rho, -0.25, with the min",
    }
}


def test_a_table_is_the_rule_that_python_makes() -> None:
    wanted = {
        "batch": laws.COUNT,
        "discount": laws.power_with_floor(6),
        "trace_decay": laws.CAPPED_POWER,
        "learning_rate": laws.capped_rho_power(-0.25),
    }
    assert parse_own_rules(TABLE) == {"floor-6": Rule("floor-6", wanted)}
    assert own_rules_as_table(parse_own_rules(TABLE)) == TABLE


def test_short_names_and_tables_are_the_same_laws_as_long_names() -> None:
    short = {
        "batch": "count",
        "discount": {"law": "power", "min_steps": 6},
        "trace_decay": {"law": "capped-power"},
        "learning_rate": {"law": "capped-rho-power", "exponent": -0.25},
    }
    assert parse_own_rules({"floor-6": short}) == parse_own_rules(TABLE)
    assert own_rules_as_table(parse_own_rules({"floor-6": short})) == TABLE, "as identities of runs have them"


def test_every_rule_and_part_with_a_name_can_be_said() -> None:
    for kind in (PPO, SAC, A2C, TQC, TD3, DDPG):
        spoken = {law for rule in kind.rules.values() for law in rule.laws.values()}
        for law in spoken | {part.law for part in kind.parts.values()}:
            assert law_named(law.name) == law


@given(st.floats(1e-3, 1e6), st.floats(-3, 3))
def test_a_number_is_read_as_itself_to_the_last_digit(steps: float, exponent: float) -> None:
    rho = Fraction(7, 3)
    floors = laws.power_with_floor(steps), laws.capped_power_with_floor(steps)
    for law in (*floors, laws.rho_power(exponent), laws.capped_rho_power(exponent)):
        assert law_named(law.name)(0.9, rho) == law(0.9, rho)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("scaled", "own_rules is 'scaled': it must have a table for each rule, such as [own_rules.mine]"),
        ({"mine": "scaled"}, "it must have a table for each rule"),
        ({"mine": {}}, "it must have a table for each rule"),
        ({"mine": {"discount": 0.99}}, "own_rules has discount of 'mine': 0.99 is no law: give its name, such as"),
        (
            {"mine": {"discount": "per secnd, of a decay"}},
            "'per secnd, of a decay' is no law: give one of kept, count, ",
        ),
        ({"mine": {"discount": "powr"}}, "'powr' is no law: give one of kept, count, power, "),
        ({"mine": {"discount": "counts"}}, "times-square-root, rho-power, capped-rho-power; did you mean count?"),
        ({"mine": {"discount": "powr"}}, "; did you mean power?"),
        ({"mine": {"clip": "rho-power"}}, "needs exponent: give { law = 'rho-power', exponent = NUMBER }."),
        ({"mine": {"clip": {"law": "rho-power", "exponent": "half"}}}, "exponent is 'half': it must be a number."),
        ({"mine": {"discount": {"law": "power", "steps": 6}}}, "is no law: give one of { law = 'power', min_steps = "),
        ({"mine": {"discount": {"law": "power", "min_steps": 0}}}, "The floor is 0 steps: it must be a finite number"),
        (
            {"mine": {"discount": "per second, of a decay, at least 0 steps"}},
            "The floor is 0.0 steps: it must be a finite",
        ),
        ({"mine": {"clip": "a power of rho, 1e999"}}, "exponent is inf: it must be a finite number."),
        ({"mine": {"clip": "a power of rho, half"}}, "'a power of rho, half' is no law"),
        ({" ": {"clip": "kept"}}, "A rule's name is ' ': give it one that tables can show"),
    ],
)
def test_what_is_no_rule_is_refused_with_a_sentence(told: object, says: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_own_rules(told)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
