"""Which runs a worker takes: of one program, those that nobody has, and no more than its share."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from cycletime.studies import claim_runs, leases
from cycletime.studies.claim_runs import ClaimedRun, RunClaimer
from cycletime.studies.leases import hold_lease, lease_holders
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.process import HEARTBEAT
from tests.studies.small import finish, finished, make_old, names_of, specs_of

ONE = {"dts": ["16ms"], "rules": ["baseline"]}
"""Of a study with one program."""
MakeTaking = Callable[..., RunClaimer]


@pytest.fixture
def make(make_folder: Callable[..., StudyFolder]) -> MakeTaking:
    """Somebody who takes runs of the small study, with some keys of its file changed."""

    def of(worker: str = "me", workers: int = 1, **keys: object) -> RunClaimer:
        folder = make_folder(**keys)
        return RunClaimer(StudyFolder.open(folder.path), Plan.of(folder.study), worker, workers, lambda: os._exit(99))

    return of


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def names(taken: list[ClaimedRun]) -> list[str]:
    return [run.spec.name for run in taken]


def program_of(taking: RunClaimer, name: str) -> str:
    return next(program for program, group in taking.plan.groups().items() if name in [each.name for each in group])


def all_taken(taking: RunClaimer) -> list[list[str]]:
    """All that somebody takes, turn after turn, where each run is finished at once."""
    turns: list[list[str]] = []
    while True:
        with ExitStack() as stack:
            if not (taken := taking.claim(stack)):
                return turns
            finish(taking.folder, [run.spec for run in taken])
            turns.append(names(taken))


def test_a_worker_stays_with_its_program_while_there_are_runs_of_it(make: MakeTaking) -> None:
    taking = make(seeds=3)
    turns = all_taken(taking)
    assert sorted(name for turn in turns for name in turn) == sorted(names_of(taking.folder))
    programs = [program_of(taking, name) for (name,) in turns]
    assert sum(one != other for one, other in pairwise(programs)) == 2


def test_runs_are_held_until_the_turn_is_over_and_by_one_worker_each(make: MakeTaking, stack: ExitStack) -> None:
    mine, yours = make("me"), make("you")
    with ExitStack() as turn:
        (first,) = names(mine.claim(turn))
        (second,) = names(yours.claim(stack))
        assert first != second
        assert {run: who.split()[0] for run, who in lease_holders(mine.folder.leases).items()} == {
            first: "me",
            second: "you",
        }
    assert list(lease_holders(mine.folder.leases)) == [second]


def test_workers_spread_over_programs(make: MakeTaking, stack: ExitStack) -> None:
    takings = [make(str(number), seeds=3) for number in range(3)]
    taken = [each.claim(stack)[0].spec.name for each in takings]
    assert len({program_of(takings[0], name) for name in taken}) == 3
    late = make("late", seeds=3)
    assert late.claim(stack)[0].spec.name not in taken


def test_of_programs_that_nobody_works_on_the_one_with_most_left_comes_first(
    make: MakeTaking, stack: ExitStack
) -> None:
    taking = make(seeds=3)
    groups = list(taking.plan.groups().values())
    finish(taking.folder, [taking.plan.spec(each) for each in (*groups[0][:2], *groups[1][:1])])
    assert names(taking.claim(stack))[0] in [each.name for each in groups[2]]


def test_runs_that_a_program_carries_are_taken_together_and_shared_where_some_are_enough(
    make: MakeTaking, stack: ExitStack
) -> None:
    assert [len(turn) for turn in all_taken(make(seeds=7, width=3, **ONE))] == [3, 3, 1]
    kernel = make("a", workers=2, name="kernel", device="gpu", seeds=600, **ONE)
    assert len(kernel.claim(stack)) == 300
    other = RunClaimer(StudyFolder.open(kernel.folder.path), kernel.plan, "b", 2, lambda: os._exit(99))
    assert len(other.claim(stack)) == 150, "half of what is left, since the first may have as much again"


def test_what_is_done_or_given_up_is_not_taken_and_what_was_stopped_is(make: MakeTaking, stack: ExitStack) -> None:
    taking = make(**ONE, seeds=4)
    done, hopeless, stopped, pending = specs_of(taking.folder)
    finish(taking.folder, [done])
    for _ in range(3):
        taking.folder.failures(hopeless.name).add("no")
    (taking.folder.runs / stopped.name / "checkpoints" / "000001").mkdir(parents=True)
    taken = [*taking.claim(stack), *taking.claim(stack), *taking.claim(stack)]
    assert sorted(names(taken)) == sorted([stopped.name, pending.name])


def test_where_others_have_all_that_is_left_there_is_nothing_to_take(make: MakeTaking, stack: ExitStack) -> None:
    taking = make(**ONE)
    for name in names_of(taking.folder):
        stack.enter_context(hold_lease(taking.folder.leases, name, "other"))
    assert taking.claim(stack) == []


def test_a_run_that_another_takes_in_the_same_moment_is_left_to_it(
    make: MakeTaking, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = make("me", width=2, seeds=3, **ONE)
    first, second, third = names_of(mine.folder)

    def taken_before(folder: Path, run: str, worker: str, on_loss: Callable[[], object], stale_s: float) -> object:
        if run == first and run not in lease_holders(folder):
            stack.enter_context(hold_lease(folder, run, "faster"))
        return hold_lease(folder, run, worker, on_loss)

    monkeypatch.setattr(claim_runs, "hold_lease", taken_before)
    assert names(mine.claim(stack)) == [second, third]


@pytest.mark.parametrize("width", [1, 3])
def test_a_run_that_is_finished_between_looking_and_taking_is_not_trained_again(
    make: MakeTaking, stack: ExitStack, width: int
) -> None:
    mine = make("me", width=width, seeds=4, **ONE)
    assert mine._find_free_runs()
    first, second, *others = specs_of(mine.folder)
    StudyFolder.open(mine.folder.path).store.add([finished(first), finished(second)])
    taken = [*mine.claim(stack), *mine.claim(stack)]
    assert names(taken) == [spec.name for spec in others]


def test_a_run_that_is_given_up_between_looking_and_taking_is_left_alone(make: MakeTaking, stack: ExitStack) -> None:
    mine = make("me", **ONE)
    first, second = names_of(mine.folder)
    assert mine._find_free_runs()
    for _ in range(3):
        mine.folder.failures(first).add_death("killed", 0, among=1)
    assert names(mine.claim(stack)) == [second]


def test_runs_over_which_a_worker_died_are_trained_in_ever_smaller_groups(make: MakeTaking) -> None:
    mine = make("me", width=6, seeds=6, **ONE)
    everyone = names_of(mine.folder)
    for name in everyone[:4]:
        mine.folder.failures(name).add_death("killed", 0, among=4)
    for name in everyone[:1]:
        mine.folder.failures(name).add_death("killed", 0, among=2)
    turns = all_taken(mine)
    assert turns[0] == everyone[:1], "alone"
    assert turns[1] == everyone[1:3], "half of four"
    assert sorted(name for turn in turns for name in turn) == sorted(everyone)
    for name in everyone[1:4]:
        assert max(len(turn) for turn in turns if name in turn) <= 2


def test_who_asks_whether_it_may_write_gets_further(make: MakeTaking, stack: ExitStack) -> None:
    """As every engine does with each chunk and each checkpoint."""
    (run, *_) = make("me", **ONE).claim(stack)
    before = HEARTBEAT.count
    run.check()
    assert HEARTBEAT.count == before + 1


@pytest.mark.parametrize(("patience", "stale_s"), [("10min", 120.0), ("2s", 120.0), ("1h", 720.0)])
def test_leases_of_a_study_with_more_patience_are_stale_later(
    make: MakeTaking, stack: ExitStack, patience: str, stale_s: float
) -> None:
    mine = make("me", **ONE, patience=patience)
    (run, *_) = mine.claim(stack)
    leases._HEARTBEAT.end(run.lease)  # which would touch it now and then
    for age_s, is_held in ((stale_s - 30, True), (stale_s + 30, False)):
        make_old(run.lease.path, age_s)
        assert (run.spec.name in lease_holders(mine.folder.leases)) is is_held
