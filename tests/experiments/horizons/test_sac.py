"""SAC's search and trial from made-up runs: frozen, judged and told as PPO's are."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.agents import SACAgent
from cycletime.duration import Duration
from cycletime.experiments.horizons import figures
from cycletime.experiments.horizons.candidates import (
    ALGORITHM_SPECS,
    SAC_CANDIDATES,
    SAC_POST_HOC,
    SAC_SEARCH,
    SAC_SUGGESTED,
    SAC_TRIAL,
)
from cycletime.experiments.horizons.page import (
    SAC_PARTS,
    best_horizons_table,
    fill_page,
    post_hoc_table,
    updates_table,
    write_page,
)
from cycletime.experiments.horizons.preregistration import preregistered_rules
from cycletime.experiments.horizons.results import Evidence
from cycletime.experiments.horizons.verdicts import verdicts_text
from cycletime.experiments.outcome import NotRunError, Outcome, read_results
from cycletime.experiments.page_parts import NOT_RUN_TEXT
from cycletime.studies.spec import Cell
from tests.experiments.horizons.freezing import chosen_candidates, freeze
from tests.experiments.horizons.made import BEST_S, NOTHING, by_horizons, save_results, save_trial
from tests.experiments.horizons.markdown import cells_of

PAGE = "".join(f"<!-- made: sac-{name} -->\n<!-- end -->\n" for name in SAC_PARTS)


def likes_slow_targets(cell: Cell) -> float:
    """As horizons have it where targets follow within 2.5 to 26 s, and half of that elsewhere."""
    assert isinstance(cell.agent, SACAgent)
    follow_s = float(cell.dt) * cell.agent.learning_period / cell.agent.gradient_steps / cell.agent.target_smoothing
    nothing = NOTHING[cell.world.name]
    return nothing + (by_horizons(cell) - nothing) * (1 if 2.5 < follow_s < 26 else 0.5)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Of a search alone."""
    folder = save_results(tmp_path_factory.mktemp("searched"), likes_slow_targets, 1.0, SAC_SEARCH)
    return Evidence(read_results(folder), ALGORITHM_SPECS["sac"])


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Of a search, and of a trial of what was frozen."""
    folder = save_results(tmp_path_factory.mktemp("tried"), likes_slow_targets, 1.0, SAC_SEARCH)
    freeze(folder, "sac")
    return Evidence(read_results(save_trial(folder, likes_slow_targets, 1.0, SAC_TRIAL)), ALGORITHM_SPECS["sac"])


def test_the_list_is_in_a_file_of_its_own(tried: Evidence) -> None:
    folder = tried.results.folder
    assert folder is not None
    text = (folder / "sac-candidates.toml").read_text()
    told = tomllib.loads(text)["predictions"]
    assert list(told) == list(chosen_candidates(tried.search))
    assert preregistered_rules(folder, tried.spec) == {name: SAC_CANDIDATES[name] for name in told}
    keys = [key for key in next(iter(told.values())) if key.startswith(("average_", "worst_"))]
    assert len(keys) == 2 * 2 * len(tried.spec.references)


def test_what_users_had_already_is_judged_in_any_case(tried: Evidence) -> None:
    assert "what users have already" in chosen_candidates(tried.search)["floor-6"]
    assert "floor-6" in tried.trial.judged


def test_what_the_search_suggested_is_judged_and_takes_nobody_s_place(tried: Evidence) -> None:
    chosen = chosen_candidates(tried.search)
    assert chosen[SAC_SUGGESTED] == "suggested by the search of the others"
    assert sum(why.count("the best") for name, why in chosen.items() if name != SAC_SUGGESTED) == 4


def test_who_keeps_the_targets_in_seconds_is_chosen_and_wins_where_that_pays(tried: Evidence) -> None:
    kept_in_s = ("smoothing", "updates")
    assert tried.trial.winner.endswith(kept_in_s)
    assert tried.trial.verdict(tried.trial.winner) == "better"
    words = verdicts_text(tried.trial, tried.predictions)
    assert f"{tried.trial.winner}: better than the paper's rules." in words
    assert "As the default it replaces scaled. Objections: none." in words


def test_best_horizons_are_those_of_the_discount_at_four_cycle_times(tried: Evidence) -> None:
    header, rows = cells_of(best_horizons_table(tried))
    assert header == ["task", "horizon", "cycle times", "shortest", "middle", "", "longest"]
    assert [row[:2] for row in rows] == [[task, "discount"] for task in (*SAC_SEARCH.tasks, *SAC_TRIAL.tasks)]
    assert {row[0]: set(row[3:]) for row in rows} == {row[0]: {f"{BEST_S[row[0]][0]:.2g} s"} for row in rows}


def test_returns_by_updates_are_those_of_the_best_discount_with_the_usual_targets(searched: Evidence) -> None:
    header, rows = cells_of(updates_table(searched.search))
    assert header[2:] == ["15.6 updates/s", "31.2 updates/s", "62.5 updates/s", "125 updates/s"]
    assert [row[1] for row in rows] == ["8 ms", "16 ms", "32 ms", "64 ms"] * 2
    every = [
        float(cell.scores.mean())
        for cell in searched.search.outcomes["reacher"].cells
        if (float(cell.dt), cell.values["gradient_steps"], cell.values["target_smoothing"]) == (0.064, 8, 0.005)
    ]
    assert len(every) > 1
    assert float(rows[3][5].split(" ± ")[0]) == pytest.approx(max(every), abs=0.1)
    assert rows[3][3] == "", "64 ms has no update after every second step"


def test_what_the_trial_suggested_is_told_beside_the_others_and_judged_nowhere(tried: Evidence) -> None:
    header, rows = cells_of(post_hoc_table(tried))
    others = ("baseline", "scaled", tried.trial.winner)
    assert header[2:] == [f"`{SAC_POST_HOC.name}`", *(f"more than `{name}`" for name in others)]
    tasks = [", ".join(task_set.tasks) for task_set in (SAC_TRIAL, SAC_SEARCH)]
    assert [row[:2] for row in rows[::4]] == [[each, "tuned, average"] for each in tasks]
    assert SAC_POST_HOC.name not in {*chosen_candidates(tried.search), *tried.trial.judged}
    start = next(start for start in tried.search.starts_of("tuned") if start.values.dt == Duration("16ms"))
    kept, grown = (start.point(Duration(dt), SAC_POST_HOC) for dt in ("8ms", "32ms"))
    assert kept == start.point(Duration("8ms"), "baseline")
    assert grown == start.point(Duration("32ms"), SAC_CANDIDATES[SAC_SUGGESTED])


def test_all_parts_of_the_page_are_made(tried: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FORMATS", ("svg",))
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    arms = Outcome.load(Path(__file__).parents[3] / "results" / "horizons" / "sac-arms.npz")
    results = replace(tried.results, outcomes={**tried.results.outcomes, "sac-arms": arms})
    paths = write_page(results, page)
    assert NOT_RUN_TEXT not in page.read_text()
    assert "](figures/horizons/sac-trial.png)" in page.read_text()
    assert {path.name for path in paths[1:]} == {"sac-tuned-horizons.svg", "sac-search.svg", "sac-trial.svg"}
    svg = (tmp_path / "figures" / "horizons" / "sac-tuned-horizons.svg").read_text()
    assert "SAC" in svg
    assert not any(word in svg for word in ("PPO", "trace"))


def test_what_was_not_run_is_told_once_and_what_was_is_shown(searched: Evidence) -> None:
    text = fill_page(PAGE.replace("-figure -->", "-figure; Words: -->"), [searched])
    parts = {name: body.strip() for name, body in re.findall(r"<!-- made: sac-([\w-]+).*?-->(.*?)<!-- end", text, re.S)}
    shown = {name for name, body in parts.items() if body not in ("", NOT_RUN_TEXT)}
    assert shown == {"search", "search-figure", "search-updates"}
    assert list(parts.values()).count(NOT_RUN_TEXT) == 1
    assert parts["tuned-horizons"] == NOT_RUN_TEXT, "the first of them"
    assert parts["search-figure"].startswith("Words:\n\n!["), "those of a part are there only with it"
    assert "| `scaled-smoothing` |" in text


def test_a_page_of_which_nothing_was_run_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(
        NotRunError, match=r"^sac-tuning-reacher: this has not been run; 'cycletime experiment run' runs it, "
    ):
        fill_page(PAGE, [Evidence(read_results(tmp_path), ALGORITHM_SPECS["sac"])])
