"""Which runs of a study on a GPU go to the kernel."""

from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.errors import InputError, NoGpuError
from cycletime.studies import kernel_choice
from cycletime.studies.estimate import Cost, estimate
from cycletime.studies.folder import StudyFolder
from cycletime.studies.kernel_choice import told_engines, with_engine
from cycletime.studies.plan import Plan
from cycletime.studies.running import jobs_of
from cycletime.studies.spec import Study
from cycletime.studies.study_file import as_table, study_from

NO_CARD = NoGpuError("The engine cuda needs an NVIDIA GPU, and CUDA finds none here.")


@pytest.fixture
def mixed() -> Study:
    table = {"name": "mixed", "task": "reacher", "algorithms": ["ppo", "sac"], "dts": ["16ms", "32ms"], "seeds": 2}
    return study_from({**table, "env_steps": 10**7, "device": "gpu", "width": 2})


@pytest.fixture
def a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "card", lambda: ("A card", 132))


def _resolved(study: Study, *, given: bool = False, folder: Path | None = None) -> tuple[Study, list[str]]:
    notes: list[str] = []
    return with_engine(study, given=given, folder=folder, note=notes.append), notes


@pytest.mark.usefixtures("a_card")
def test_on_a_gpu_the_kernel_takes_what_it_can_and_the_compiled_loop_the_rest(mixed: Study) -> None:
    study, notes = _resolved(mixed)
    assert study.engine == "auto"
    assert not notes
    plan = Plan.of(study)
    assert told_engines(plan) == {"cuda": 4, "compiled": 4}
    assert study.jax_device == "gpu"
    assert replace(study, algorithms=("ppo",)).jax_device == "cpu", "of the kernel's runs JAX makes the weights only"


@pytest.mark.usefixtures("a_card")
def test_all_runs_of_the_kernel_are_one_job_and_run_for_all_blocks_together(mixed: Study) -> None:
    study, _ = _resolved(replace(mixed, algorithms=("ppo",), seeds=tuple(range(264))))
    plan = Plan.of(study)
    (job,) = jobs_of(plan, plan.runs)
    assert len(job.specs) == 528
    told = estimate(plan, plan.runs, {("reacher", "ppo", "cuda"): Cost(1e-9, 20.0, blocks=132)}, 0.0, 1)
    assert 10 < told.computing_s < 20, "four rounds of 132 runs, of 5 s at 16 ms and less at 32 ms"
    assert told.wall_s == pytest.approx(told.computing_s + 20)


@pytest.mark.usefixtures("a_card")
def test_runs_of_one_algorithm_on_two_engines_have_their_own_costs(mixed: Study) -> None:
    wide = {"ppo": {"hidden": ((64, 64), (32, 32))}}
    study, _ = _resolved(replace(mixed, algorithms=("ppo",), others=wide, dts=mixed.dts[:1]))
    plan = Plan.of(study)
    assert told_engines(plan) == {"cuda": 2, "compiled": 2}
    costs = {("reacher", "ppo", "cuda"): Cost(1e-9, 20.0, blocks=132), ("reacher", "ppo", "compiled"): Cost(1e-4, 9.0)}
    told = estimate(plan, plan.runs, costs, 0.0, 1)
    assert told.programs_s == 29
    assert 125 < told.computing_s < 140, "two runs side by side of 1,250,000 agent steps, and 5 s on the kernel"


def test_without_a_card_a_note_says_why_and_the_compiled_loop_takes_all(
    mixed: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_choice, "card", lambda: NO_CARD)
    study, notes = _resolved(mixed)
    assert study == mixed
    assert notes == [f"note: {NO_CARD} The compiled engine trains all runs."]


def test_who_insists_on_the_kernel_gets_it_or_an_error(mixed: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "card", lambda: NO_CARD)
    only_ppo = replace(mixed, algorithms=("ppo",), engine="cuda")
    with pytest.raises(InputError, match="CUDA finds none here"):
        _resolved(only_ppo, given=True)
    with pytest.raises(InputError, match=r'engine is \'cuda\' and device is \'cpu\': the kernel needs device = "gpu"'):
        _resolved(replace(only_ppo, device="cpu"), given=True)
    with pytest.raises(InputError, match="The engine cuda cannot train sac"):
        Plan.of(replace(mixed, engine="cuda"))


def test_who_insists_is_believed_where_other_machines_compute(mixed: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "card", lambda: NO_CARD)
    for engine in ("cuda", "auto"):
        asked = replace(mixed, algorithms=("ppo",), engine=engine)
        assert with_engine(asked, given=True, folder=None, note=pytest.fail, elsewhere=True) == asked


def test_a_cpu_or_a_study_for_other_agents_is_never_asked_for_a_card(
    mixed: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_choice, "card", None)
    assert _resolved(replace(mixed, device="cpu"))[0].engine == "compiled"
    assert _resolved(replace(mixed, algorithms=("sac",)))[0].engine == "compiled"
    assert _resolved(mixed, given=True)[0].engine == "compiled", "it says so itself"


def test_a_study_goes_on_with_the_engine_that_it_began_with(
    tmp_path: Path, mixed: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = replace(mixed, engine="auto")
    assert study_from(as_table(began)) == began
    StudyFolder.create(tmp_path, began)
    monkeypatch.setattr(kernel_choice, "card", None)
    assert _resolved(mixed, folder=tmp_path)[0].engine == "auto"
    with pytest.raises(InputError, match=r"began on gpu with the kernel with 2 runs in a program, and is now to go on"):
        StudyFolder.create(tmp_path, mixed)


def test_a_machine_without_a_card_says_so_in_one_sentence() -> None:
    found = kernel_choice.card()
    assert isinstance(found, InputError)
    assert str(found).startswith("The engine cuda needs")
