import pytest

from cycletime import Duration, InputError
from cycletime.tasks.retime import Kind, RewardTerm, Scaling, TimeStep, check_terms

OWN = TimeStep(Duration("3ms"), 5)
FINER = TimeStep(Duration("1ms"), 3)  # a fifth of the time step, with a third of the physics step


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        (Kind.RATE, 1 / 5),
        (Kind.VELOCITY, 1 / 5),
        (Kind.DIFFERENCE, 1.0),
        (Kind.EVENT, 1.0),
        (Kind.OVER_PHYSICS_DT, 1 / 15),
    ],
)
def test_each_kind_has_its_factor(kind: Kind, factor: float) -> None:
    assert kind.factor(OWN, FINER) == pytest.approx(factor, rel=1e-15)
    assert kind.factor(OWN, OWN) == 1.0


def test_summands_in_info_are_taken_out_of_the_reward_and_put_back_with_their_own_factor() -> None:
    terms = [RewardTerm("progress", Kind.DIFFERENCE, "progress"), RewardTerm("1", Kind.RATE)]
    reward, info = Scaling.of(terms, OWN, FINER).apply(3.0 + 1.0, {"progress": 3.0, "x": 7.0})
    assert reward == pytest.approx(3.0 + 0.2)
    assert info == {"progress": 3.0, "x": 7.0}


def test_summands_in_info_still_add_up_to_the_reward() -> None:
    terms = [RewardTerm("a", Kind.DIFFERENCE, "a"), RewardTerm("b", Kind.RATE, "b"), RewardTerm("c", Kind.RATE, "c")]
    reward, info = Scaling.of(terms, OWN, FINER).apply(6.0, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert info == pytest.approx({"a": 1.0, "b": 0.4, "c": 0.6})
    assert reward == pytest.approx(sum(info.values()))


def test_the_own_time_step_changes_no_bit() -> None:
    terms = [RewardTerm("a", Kind.OVER_PHYSICS_DT, "a"), RewardTerm("b", Kind.RATE)]
    assert Scaling.of(terms, OWN, OWN).apply(0.1 + 0.2, {"a": 0.1}) == (0.1 + 0.2, {"a": 0.1})


def test_the_environment_s_own_info_is_not_changed() -> None:
    own = {"a": 1.0}
    Scaling.of([RewardTerm("a", Kind.RATE, "a")], OWN, FINER).apply(1.0, own)
    assert own == {"a": 1.0}


def test_a_summand_that_info_does_not_hold_is_refused() -> None:
    with pytest.raises(InputError, match="no entry 'reward_a' of a reward term: it has x, y"):
        Scaling.of([RewardTerm("a", Kind.RATE, "reward_a")], OWN, FINER).apply(1.0, {"x": 0, "y": 0})


@pytest.mark.parametrize(
    ("terms", "complaint"),
    [
        ([], "No reward terms were given"),
        ([RewardTerm("a", Kind.RATE, "r"), RewardTerm("b", Kind.RATE, "r")], "The entry 'r' of info was given for sev"),
        (
            [RewardTerm("dx", Kind.DIFFERENCE), RewardTerm("1", Kind.RATE)],
            r"'dx' \(difference\) and '1' \(rate\) have different factors",
        ),
        ([RewardTerm("z / h", Kind.OVER_PHYSICS_DT), RewardTerm("1", Kind.RATE)], "have different factors"),
    ],
)
def test_terms_that_cannot_be_told_apart_are_refused(terms: list[RewardTerm], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        check_terms(terms)


def test_terms_with_the_same_factor_need_not_be_told_apart() -> None:
    check_terms([RewardTerm("dx / env_dt", Kind.VELOCITY), RewardTerm("1", Kind.RATE)])
    check_terms([RewardTerm("dx", Kind.DIFFERENCE), RewardTerm("goal", Kind.EVENT)])
