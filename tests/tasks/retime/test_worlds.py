import re
from pathlib import Path

import pytest

from cycletime import Duration, InputError
from cycletime.tasks.retime import RETIMINGS
from docs.retime_tables import compare_worlds, terms_table, worlds_table

ROOT = Path(__file__).parents[3]
PAGE, KEPT = ROOT / "docs" / "retime.md", ROOT / "results" / "retime-tables.txt"


def test_at_the_own_time_step_both_worlds_are_the_same() -> None:
    worlds = compare_worlds("HalfCheetah-v5", "50ms", time_limit="1s", seed=3)
    assert worlds.own == worlds.retimed
    assert worlds.own.lasted == Duration("1s")
    assert not worlds.own.terminated


def test_a_shorter_step_with_the_own_physics_changes_only_the_sampling() -> None:
    """Forward reward telescopes and the control cost is held: nothing of HalfCheetah's reward is sampled."""
    worlds = compare_worlds("HalfCheetah-v5", "10ms", time_limit="1s", seed=3)
    assert worlds.is_same_physics
    assert worlds.retimed.total_reward == pytest.approx(worlds.own.total_reward, rel=1e-9)


def test_a_shorter_physics_step_is_another_world() -> None:
    worlds = compare_worlds("HalfCheetah-v5", "2ms", time_limit="5s", seed=3)
    assert not worlds.is_same_physics
    assert worlds.retimed.total_reward != pytest.approx(worlds.own.total_reward, rel=1e-3)


def test_a_well_integrated_arm_is_nearly_the_same_world() -> None:
    """Reacher is integrated by a method of fourth order at 10 ms and touches nothing: what remains is the sampling."""
    worlds = compare_worlds("Reacher-v5", "1ms", seed=3)
    assert worlds.retimed.total_reward == pytest.approx(worlds.own.total_reward, abs=0.25)


def test_episodes_end_where_the_body_falls() -> None:
    worlds = compare_worlds("Hopper-v5", "2ms", seed=1)
    assert worlds.own.terminated
    assert worlds.retimed.terminated
    # It goes through the same states but looks four times as often, so it ends earlier, by less than one own step.
    assert worlds.own.lasted.exact_s - worlds.retimed.lasted.exact_s < Duration("8ms").exact_s
    assert worlds.retimed.lasted <= worlds.own.lasted


def test_the_seed_chooses_the_torques() -> None:
    first, again, other = (compare_worlds("Reacher-v5", "10ms", seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_step_over_which_torques_cannot_be_held_is_refused() -> None:
    with pytest.raises(InputError, match="8ms is not a whole multiple of the environment time step 3ms"):
        compare_worlds("Hopper-v5", "3ms")


def test_the_page_and_the_kept_tables_are_what_the_command_prints() -> None:
    page, kept = PAGE.read_text(), KEPT.read_text()
    terms = terms_table(list(RETIMINGS))
    assert terms in kept
    own_steps = re.findall(r"^\| (\w+)-v(\d) \| \S+ x \d+ = (\d+)ms", terms, re.MULTILINE)
    assert len(own_steps) == len(RETIMINGS)
    assert all(f"{name}-v1 ({ms} ms)" in page or f"{name} ({ms} ms)" in page for name, _, ms in own_steps)
    assert all(row in kept for row in worlds_table(["Reacher-v5"]).splitlines())
