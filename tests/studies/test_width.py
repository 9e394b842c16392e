"""The width of a study on a GPU that does not say any."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.runs.spec import RunSpec
from cycletime.studies import width
from cycletime.studies.folder import StudyFolder
from cycletime.studies.spec import Study
from cycletime.studies.width import MOST, SHARE, fitting, with_width


@pytest.mark.parametrize(
    ("runs", "fit", "expected"),
    [
        (30, 1000, 30),
        (30, 30, 30),
        (31, 30, 16),
        (31, 20, 16),
        (360, 200, 180),
        (7, 3, 3),
        (4, 3, 2),
        (1, 9, 1),
        (5, 1, 1),
    ],
)
def test_the_runs_are_shared_evenly_among_as_few_turns_as_fit(runs: int, fit: int, expected: int) -> None:
    assert fitting(runs, memory=(fit + 0.5) / SHARE, lane=1.0) == expected


def test_no_program_is_wider_than_there_is_use_for() -> None:
    assert fitting(10 * MOST, memory=1e12, lane=1.0) == MOST


def test_a_run_that_does_not_fit_is_told() -> None:
    with pytest.raises(InputError, match=r"^A run takes about 3\.0 GiB on the GPU, and 2\.0 GiB are there: give"):
        fitting(4, memory=2 * 2**30, lane=3 * 2**30)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[RunSpec]]:
    """Let a GPU be here that has room for four lanes; the runs that it was asked about."""
    heard: list[list[RunSpec]] = []

    def measured(specs: list[RunSpec]) -> tuple[float, float]:
        heard.append(specs)
        return 4.5 / SHARE, 1.0

    monkeypatch.setattr(width, "_measured", measured)
    return heard


def test_it_is_chosen_for_the_largest_group_and_part_of_the_runs_identity(
    make_study: Callable[..., Study], asked: list[list[RunSpec]]
) -> None:
    study = make_study(seeds=6, device="gpu")
    chosen = with_width(study, given=False)
    assert (study.width, chosen.width) == (1, 3)
    assert len(asked[0]) == 3  # one run of each program
    assert {spec.engine.width for _, spec in chosen.runs()} == {3}
    assert {spec.identity for _, spec in chosen.runs()}.isdisjoint(spec.identity for _, spec in study.runs())


def test_what_is_given_or_on_a_cpu_or_an_environment_stays(
    make_study: Callable[..., Study], asked: list[list[RunSpec]]
) -> None:
    assert with_width(make_study(seeds=6, device="gpu", width=2), given=True).width == 2
    assert with_width(make_study(seeds=6, device="gpu"), given=True).width == 1
    assert with_width(make_study(seeds=6), given=False).width == 1
    keys = {"algorithm": "sac", "rules": [], "tuned": {}, "dts": ["50ms"], "device": "gpu"}
    envs = with_width(make_study(task=[], env="Pendulum-v1", env_dt="50ms", **keys), given=False)
    assert envs.width == 1
    assert asked == []


def test_a_study_that_grows_keeps_the_width_that_it_began_with(
    tmp_path: Path, make_study: Callable[..., Study], asked: list[list[RunSpec]]
) -> None:
    path = tmp_path / "study"
    StudyFolder.create(path, with_width(make_study(seeds=6, device="gpu"), given=False, folder=path))
    grown = with_width(make_study(seeds=8, device="gpu"), given=False, folder=path)
    assert grown.width == 3
    assert len(asked) == 1
    assert StudyFolder.create(path, grown).study.width == 3


def test_without_a_gpu_there_is_nothing_to_choose_by(make_study: Callable[..., Study]) -> None:
    with pytest.raises(InputError, match=r"^width is left out, and JAX finds no GPU here to choose it by \(.+\): give"):
        with_width(make_study(device="gpu"), given=False)
