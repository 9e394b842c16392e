"""What is committed of the paper's results fits together: verdicts and the page about them follow from the data."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel

from cycletime.experiments.judging import judge
from cycletime.experiments.outcome import winners
from cycletime.experiments.paper.claims import CHANGES, CLAIMS, claims_as_json
from cycletime.experiments.paper.data import BATCHES, DTS, PaperResults, read_paper_results
from cycletime.experiments.paper.experiments import PRESPECIFIED_SEEDS
from cycletime.experiments.paper.report import changes_table, judge_all
from cycletime.experiments.paper.sac_claims import ROBOT_SCALED
from cycletime.experiments.paper.tables import tuned_table
from cycletime.statistics import holm_corrected
from cycletime.tasks.references import references

ROOT = Path(__file__).parents[3]
ROBOT = (("dt-aware", "10ms"), ("baseline", "10ms"), ("baseline", "40ms"))
RESULTS, PAGE = ROOT / "results" / "paper", ROOT / "docs" / "paper.md"


@pytest.fixture(scope="module")
def verdicts() -> list[dict[str, object]]:
    return json.loads(json.dumps(claims_as_json(read_paper_results(RESULTS))))  # type: ignore[no-any-return]


def test_the_verdicts_are_those_of_the_data(verdicts: list[dict[str, object]]) -> None:
    committed = json.loads((RESULTS / "claims.json").read_text())
    assert len(committed) == len(verdicts)
    for before, now in zip(committed, verdicts, strict=True):
        told = {
            key: value for key, value in now.items() if key not in ("conditions", "elsewhere", "statistic", "interval")
        }
        assert {key: before[key] for key in told} == told
        assert [each["verdict"] for each in before["elsewhere"]] == [each["verdict"] for each in now["elsewhere"]]  # type: ignore[attr-defined]


def test_the_page_tells_these_verdicts(verdicts: list[dict[str, object]]) -> None:
    rows = re.findall(r"^\| (\w+) \| [^|]* \| ([^|]*) \| ([^|]*) \|$", PAGE.read_text(), re.MULTILINE)
    told = {number: (reacher, pendulum) for number, reacher, pendulum in reversed(rows)}
    by_number = {str(each["number"]): each for each in verdicts}
    asked = ["1a", "1b", "2", "3", "4a", "4b", "5", "6", "7", "12"]
    assert set(asked) <= set(told)
    for number in asked:
        on_reacher, on_pendulum = told[number]
        own, other = (on_pendulum, on_reacher) if number == "12" else (on_reacher, on_pendulum)
        where = "reacher" if number == "12" else "double-pendulum"
        elsewhere = next(each for each in by_number[number]["elsewhere"] if each["where"] == where)  # type: ignore[attr-defined]
        assert own.startswith(f"**{by_number[number]['verdict']}**")
        assert other.startswith(elsewhere["verdict"])
        plain = elsewhere["with_plain_mean"]
        words = "(by the plain mean not decided)" if plain == "not decided" else "(not by the plain mean)"
        assert (words in other) is (plain not in (None, elsewhere["verdict"]))


def test_the_page_tells_the_verdicts_on_sac_and_the_robot(verdicts: list[dict[str, object]]) -> None:
    rows = re.findall(r"^\| (\w+) \| [^|]* \| (\*\*[^|]*) \|$", PAGE.read_text(), re.MULTILINE)
    assert [number for number, _ in rows] == ["8", "9", "10", "11", "13a", "13b", "14", "15"]
    by_number = {str(each["number"]): each for each in verdicts}
    for number, verdict in rows:
        assert verdict.startswith(f"**{by_number[number]['verdict']}**")
    for number, runs in (("14", 5), ("15", 10)):
        few = by_number[number]["elsewhere"][0]  # type: ignore[index]
        assert few["where"] == f"{runs} runs, as in the paper"
        assert f"with the paper's {runs} runs {few['verdict']} |" in PAGE.read_text()


def test_every_changed_criterion_has_its_verdict_before_and_now_on_the_page() -> None:
    data, page = read_paper_results(RESULTS), PAGE.read_text()
    assert [number for number, _, _ in CHANGES] == ["1a", "1b", "4a", "4b", "13a", "13b", "14", "15", "most"]
    assert "\n".join(changes_table(judge_all(data)).markdown()) in (RESULTS / "index.md").read_text()
    verdicts = {claim.number: judge(data, claim) for claim in CLAIMS}
    now = {number: verdicts[number].verdict for number, _, _ in CHANGES}
    for number, before, _ in CHANGES:
        assert f"{number} ({before}, now {now[number]}" in page
    decided = ("1a", "4a", "4b", "13a", "13b", "most")
    assert [now[number] for number in decided] == [
        *("confirmed", "confirmed", "refuted"),
        *("confirmed", "refuted", "confirmed"),
    ]
    for number, studies in (
        ("1b", ["ppo-baseline-4ms"]),
        ("14", ["ppo-robot-fresh", "ppo-robot-2000-fresh"]),
        ("15", ["sac-robot-sweep-fresh", "sac-robot-120ms-fresh", "sac-robot-extended-fresh"]),
    ):  # no verdict on fewer than were prespecified
        seeds = [min(data.outcomes[name].n) if name in data.outcomes else 0 for name in studies]
        assert (now[number] == "not run") is (min(seeds) < PRESPECIFIED_SEEDS)


def test_the_same_batch_time_is_best_everywhere_and_heights_differ() -> None:
    data = read_paper_results(RESULTS).outcome("ppo-dt-aware")
    scores = {(dt, batch): data.cell(dt=dt, batch=batch).scores for dt in DTS for batch in BATCHES}
    best = max(BATCHES, key=lambda batch: _mean(scores["16ms", batch]))
    behind = [
        ttest_ind(scores[dt, batch] - 1, scores[dt, best], equal_var=False, alternative="less").pvalue
        for dt in DTS
        for batch in BATCHES
        if dt != "16ms" and batch != best
    ]
    assert len(behind) == 16
    assert max(behind) < 0.025
    others = [_mean(scores[dt, 8000]) for dt in DTS[:-1]]
    assert _mean(scores["64ms", 8000]) < np.mean(others) - 2
    found = judge(read_paper_results(RESULTS), next(each for each in CLAIMS if each.number == "4b")).decisive
    assert found is not None
    told = found.estimate
    text = f"(4b: at 64 ms {told.value:.2f} [{told.low:.2f}, {told.high:.2f}] from the others' mean, required above -2"
    assert f"{text}, n = 100)" in _in_one_line(PAGE)


def test_sac_s_baseline_is_above_the_bound_of_failing_on_the_double_pendulum() -> None:
    final = read_paper_results(RESULTS).outcome("sac-pendulum-baseline").cell(dt="4ms").final
    assert ttest_1samp(final, 9360 / 4, alternative="greater").pvalue < 0.001
    half = 1.96 * np.std(final, ddof=1) / np.sqrt(len(final))
    found = re.search(r"it ends at ([\d,]+) \[([\d,]+), ([\d,]+)\], required below 2,340, n = 30", PAGE.read_text())
    assert found is not None
    mean, low, high = (float(each.replace(",", "")) for each in found.groups())
    np.testing.assert_allclose([mean, low, high], [_mean(final), _mean(final) - half, _mean(final) + half], atol=20)


def test_most_choices_of_the_cycle_time_are_better_by_plain_tests_of_each() -> None:
    data = read_paper_results(RESULTS)
    pairs = [
        (
            data.outcome(study).cell(dt=dt, rule="dt-aware", **more).scores,
            data.outcome(base).cell(dt=dt, rule="baseline").scores,
        )
        for study, base, more in (
            ("ppo-dt-aware", "ppo-baseline", {"batch": 2000}),
            ("ppo-pendulum", "ppo-pendulum", {}),
        )
        for dt in DTS
    ] + [
        (data.outcome(study).cell(dt=dt, rule=rule).scores, data.outcome(base).cell(dt=dt).scores)
        for study, base in (("sac-dt-aware", "sac-baseline"), ("sac-pendulum-dt-aware", "sac-pendulum-baseline"))
        for dt in DTS
        for rule in ("tuned", "tuned-scaled")
    ]
    assert len(pairs) == 30
    p = [ttest_ind(one, other, equal_var=False, alternative="greater").pvalue for one, other in pairs]
    assert sum(each < 0.025 / 30 for each in p) > 15


def test_what_pairs_have_changed_is_what_the_list_of_changes_says() -> None:
    data, by_number = read_paper_results(RESULTS), {claim.number: claim for claim in CLAIMS}
    one, other = (
        data.outcome(f"sac-pendulum-{name}").cell(dt="32ms", rule=rule)
        for name, rule in (("dt-aware", "tuned-scaled"), ("baseline", "baseline"))
    )
    assert one.seeds == other.seeds
    before, now = (
        4 * test(one.scores, other.scores, alternative="greater").pvalue  # the least but 24 of 28, by Holm
        for test in (partial(ttest_ind, equal_var=False), ttest_rel)
    )
    assert now < 0.025 < before
    most = judge(data, by_number["most"]).conditions
    assert sum(each.p_holds < 0.025 for each in most) == 26
    assert sum(each < 0.025 for each in holm_corrected([each.p_holds for each in most])) == 25
    plain = {batch: data.outcome("pendulum-dt-aware").cell(dt="4ms", batch=batch).plain for batch in (1000, 4000)}
    alone, paired = (
        16 * test(plain[1000] + 468, plain[4000], alternative="less").pvalue  # the least of 16, by Holm
        for test in (partial(ttest_ind, equal_var=False), ttest_rel)
    )
    assert alone < 0.025 < paired
    assert judge(data, by_number["4a"].elsewhere[0]).with_plain_mean == "not decided"


def test_the_page_s_scores_of_sac_on_reacher_are_those_of_the_runs() -> None:
    data, page = read_paper_results(RESULTS), PAGE.read_text()
    won = winners(data.outcome("sac-gamma-sweep"))
    for dt, winner in won.items():
        kept, scaled, fresh = (
            _with_error(data.outcome(name).cell(dt=str(dt)).scores)
            for name in ("sac-baseline", "sac-scaled", "sac-gamma-sweep-winners")
        )
        gamma = f"{winner.cell.values['discount']:.3f}".removeprefix("0")
        in_sweep = _with_error(winner.cell.scores)
        assert f"| {float(dt) * 1e3:.0f} ms | {kept} | {scaled} | {gamma} | {in_sweep} | {fresh} |" in page
    assert set(won) == {cell.dt for cell in data.outcome("sac-gamma-sweep-winners").cells}


def test_the_page_s_scores_of_sac_on_the_double_pendulum_are_those_of_the_runs() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    kept, aware = data.outcome("sac-pendulum-baseline"), data.outcome("sac-pendulum-dt-aware")
    short, longer, start = (_with_error(kept.cell(dt=dt).scores, 0) for dt in ("4ms", "8ms", "16ms"))
    assert f"SAC scores {short} at 4 ms and {longer} at 8 ms, against {start} at 16 ms" in page
    short, longer, start = (_with_error(aware.cell(rule="tuned", dt=dt).scores, 0) for dt in ("4ms", "8ms", "16ms"))
    assert f"(gamma_2) scores {short} and {longer}" in page
    assert f"of the {start} that it has at 16 ms" in page
    told = judge(data, next(each for each in CLAIMS if each.number == "13a")).conditions
    lost, won = ([each.estimate for each in told if each.name.startswith(name)] for name in ("score, ", "score at"))
    assert f"recovers all but {-lost[0].value:.0f} and {-lost[1].value:.0f} of" in page
    further = [f"{each.value:.0f} ({each.low:.0f} to {each.high:.0f})" for each in (won[1], won[4])]
    assert f"it is better by another {further[0]} and {further[1]}" in page
    ends = sorted(_mean(aware.cell(rule="tuned-scaled", dt=dt).final) for dt in ("4ms", "8ms", "16ms", "32ms", "64ms"))
    assert f"end between {ends[0]:,.0f} and {ends[-1]:,.0f}" in page


def test_the_page_s_differences_of_sac_s_discounts_on_reacher_are_those_of_the_runs() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    conditions = judge(data, next(each for each in CLAIMS if each.number == "11")).conditions
    gains = [each.estimate.value for each in conditions if each.name.startswith("score at") and "baseline" in each.name]
    at_4ms, at_8ms, at_32ms, at_64ms = (each.estimate for each in conditions if "minus gamma_2" in each.name)
    assert f"beat .99 at each cycle time, by {min(gains):.1f} to {max(gains):.1f}." in page
    assert f"(gamma_2) by {at_4ms.value:.2f} at 4 ms and by {at_8ms.value:.2f} at 8 ms, and worse by" in page
    behind = f"by {-at_32ms.value:.2f} ({-(at_32ms.high or 0):.2f} to {-(at_32ms.low or 0):.2f})"
    assert f"worse {behind} at 32 ms and by {-at_64ms.value:.2f} at 64 ms" in page
    assert f"behind `tuned` {behind}" in _in_one_line(ROOT / "docs" / "rules" / "sac.md")


@pytest.mark.parametrize(
    ("number", "study", "first", "last", "condition", "unit", "words"),
    [
        ("11", "sac-dt-aware", 30, 99, "score at 32ms, gamma_1 minus gamma_2", 1, "{:.2f} ({:.2f} to {:.2f})"),
        ("12", "ppo-pendulum", 100, 199, "baseline at 4ms: time upright", 0.01, "{:.1f} % ({:.1f} to {:.1f} %)"),
    ],
)
def test_seeds_that_were_added_to_a_claim_say_alone_what_the_page_tells_of_them(
    number: str, study: str, first: int, last: int, condition: str, unit: float, words: str
) -> None:
    every, claim = read_paper_results(RESULTS), next(each for each in CLAIMS if each.number == number)
    new = _from_seed(every, study, first)
    assert all(cell.seeds == tuple(range(first, last + 1)) for cell in new.outcome(study).cells)
    alone = judge(new, claim)
    assert alone.verdict == "confirmed"
    for cell in every.outcome(study).cells:
        assert ttest_ind(cell.scores[:first], cell.scores[first:], equal_var=False).pvalue > 0.05, cell.labels
    (told,) = (each.estimate for each in alone.conditions if each.name.startswith(condition))
    numbers = [(each or 0.0) / unit for each in (told.value, told.low, told.high)]
    assert f"{words.format(*numbers)} with seeds {first} to {last}" in _in_one_line(PAGE)


def test_the_page_s_returns_of_the_baseline_at_4ms_are_those_of_the_runs() -> None:
    """Claim 1b by scipy's t: all 300 seeds, and those alone that were prespecified."""
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    (first,) = data.outcome("ppo-baseline").where(dt="4ms", rule="baseline")
    (further,) = data.outcome("ppo-baseline-4ms").cells
    assert sorted({*first.seed_finals, *further.seed_finals}) == list(range(300))

    def told(finals: NDArray[np.float64]) -> str:
        low, high = ttest_1samp(finals, 0.0).confidence_interval()
        assert -2 < low < high < 2
        return f"{finals.mean():.2f} ({low:.2f} to {high:.2f})"

    every = told(np.concatenate([first.final, further.final]))
    assert f"**Run**: {every} of all, {told(further.final)} of the further ones" in page
    assert f"it is: {every.removesuffix(')')}; claim 1b)" in page


def test_the_page_s_returns_on_the_robot_are_those_of_the_runs() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    (aware, kept, start), (aware_2000, kept_2000, start_2000) = (
        [data.outcome(study).cell(rule=rule, dt=dt) for rule, dt in ROBOT] for study in ("ppo-robot", "ppo-robot-2000")
    )
    ends = {cell: f"{_mean(cell.final):.0f}" for cell in (aware, kept, start, aware_2000, kept_2000, start_2000)}
    told = judge(data, next(c for c in CLAIMS if c.number == "14").elsewhere[0]).conditions
    lost, won, _, longer, _ = ((each.estimate.value, each.estimate.low, each.estimate.high) for each in told)
    assert f"PPO ends at {ends[start]}. The same values kept at 10 ms end at {ends[kept]}" in page
    assert "which is {:.0f} less (95 % interval of pairs {:.0f} to {:.0f})".format(*lost) in page
    assert f"dt-aware values at {ends[aware]}, {won[0]:.0f} above them ({won[1]:.0f} to {won[2]:.0f})" in page
    assert f"ends at {ends[kept_2000]} at 10 ms and at {ends[start_2000]} at 40 ms, {-longer[0]:.0f} less" in page
    assert f"({longer[1]:.0f} to {longer[2]:.0f}), and dt-aware values at {ends[aware_2000]}" in page
    split = [cell for cell in ends if 0 < sum(cell.final < 110) < 5]
    assert [sum(cell.final < 110) for cell in split] == [1, 1, 2, 2]
    assert all(end < 110 or end > 200 for cell in split for end in cell.final)
    known = {each.name: each.mean for each in references("ur-reacher", "10ms")}
    assert f"about {round(known['a scripted controller'], -2):.0f} here" in page
    assert f"stands still {known['doing nothing']:.0f}." in page


def test_the_page_s_fresh_pairs_on_the_robot_are_those_of_the_runs() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)

    def told(study: str, more: int, less: int) -> tuple[str, ...]:
        """By scipy's paired t, how much more one of ROBOT's settings ends with than another."""
        one, other = (data.outcome(study).cell(rule=ROBOT[at][0], dt=ROBOT[at][1]) for at in (more, less))
        assert one.seeds == other.seeds == tuple(range(1000, 1200))
        interval = ttest_rel(one.final, other.final).confidence_interval()
        return tuple(f"{each:.0f}" for each in (_mean(one.final - other.final), interval.low, interval.high))

    aware, kept, start = range(3)
    assert "kept values end {} below 40 ms ({} to {})".format(*told("ppo-robot-fresh", start, kept)) in page
    assert "dt-aware ones {} above those ({} to {})".format(*told("ppo-robot-fresh", aware, kept)) in page
    assert "and {} above 40 ms ({} to {})".format(*told("ppo-robot-fresh", aware, start)) in page
    longer = told("ppo-robot-2000-fresh", start, kept)
    assert "With 200 fresh pairs it is {} less ({} to {})".format(*longer) in page
    assert "from b = 2000 10 ms ends {} below 40 ms, {} to {}, and the bound is 40".format(*longer) in page
    assert "end {} above kept ones ({} to {})".format(*told("ppo-robot-2000-fresh", aware, kept)) in page
    assert "and still {} below 40 ms ({} to {})".format(*told("ppo-robot-2000-fresh", start, aware)) in page
    claim = next(each for each in CLAIMS if each.number == "14")
    conditions = judge(data, claim).conditions
    assert [each.p_holds < 0.025 for each in conditions] == [True, True, True, False, True]
    assert min(each.p_fails for each in conditions) > 0.025
    *_, by_score = claim.elsewhere
    assert by_score.word(judge(data, by_score).verdict) == "not decided"


def test_the_page_tells_that_learning_from_2000_is_slower_with_carried_values() -> None:
    """By the page's own score, where the criteria go by final returns."""
    page, study = _in_one_line(PAGE), read_paper_results(RESULTS).outcome("ppo-robot-2000-fresh")
    aware, kept, start = (study.cell(rule=rule, dt=dt).scores for rule, dt in ROBOT)
    less = []
    for other in (kept, start):
        interval = ttest_rel(other, aware).confidence_interval()
        less += [f"{_mean(other - aware):.0f}", f"{interval.low:.0f}", f"{interval.high:.0f}"]
    assert (
        "dt-aware values are {} worse than kept ones ({} to {}) and {} worse than 40 ms ({} to {})".format(*less)
        in page
    )


def test_the_page_s_sac_on_the_robot_is_that_of_the_runs() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    conditions = judge(data, next(c for c in CLAIMS if c.number == "15").elsewhere[0]).conditions
    lost, kept, scaled, (below, most, least), *_, longer = (
        (each.estimate.value, each.estimate.low or 0.0, each.estimate.high or 0.0) for each in conditions
    )
    assert ".99 is {:.1f} below itself at 40 ms ({:.1f} to {:.1f})".format(*lost) in page
    assert "gamma_2 is {:.1f} above .99 ({:.1f} to {:.1f})".format(*kept) in page
    assert "gamma_1 {:.1f} above gamma_2 ({:.1f} to {:.1f})".format(*scaled) in page
    assert f"{-below:.0f} below the paper's peak at 40 ms, .923 ({-least:.0f} to {-most:.0f})" in page
    sweep, scaled_runs = data.outcome("sac-robot-sweep"), data.outcome("sac-robot-120ms").cell(discount=ROBOT_SCALED)
    best = max(sweep.cells, key=lambda cell: cell.scores.mean())
    interval = ttest_rel(best.scores, scaled_runs.scores).confidence_interval()
    behind = _mean(best.scores - scaled_runs.scores), interval.low, interval.high
    assert f"{best.values['discount']:.3f}" == "0.851"
    assert "below ours, .851, {:.0f} ({:.0f} to {:.0f})".format(*behind) in page
    assert "ends {:.0f} above .99 ({:.0f} to {:.0f})".format(*longer) in page


def test_the_page_tells_what_came_of_the_settings_that_were_learned_through_the_controller() -> None:
    told, page = (ROOT / "results" / "robot-rows.txt").read_text(), _in_one_line(PAGE)
    exact, apart = (re.findall(pattern, told) for pattern in (r"in float64 (\S+) at most", r"median, (\S+) at most"))
    means = re.findall(r"episodes: (\S+) there, (\S+) in closed form", told)
    assert len(exact) == len(apart) == len(means) == 17
    assert f"differ by {max(exact, key=float)} at most" in page
    off = max(abs(float(one) - float(other)) for one, other in means)
    assert f"it is {max(map(float, apart)):g} at most, of some 370, and {off:.2f} in a mean" in page
    number = r"(-?[\d.]+)"
    words = rf"score {number}, final return {number}; .*, and {number} to {number} and {number} to {number} over"
    found = [[float(each) for each in row] for row in re.findall(words, told)]
    within = [low <= score <= high and worst <= end <= best for score, end, low, high, worst, best in found]
    assert within == [True] * 5 + [False] + [True] * 8 + [False] + [True] * 2
    assert found[5][0] > found[5][3]
    assert found[5][1] > found[5][5]


def test_the_page_s_tuned_values_are_those_of_the_data() -> None:
    table = tuned_table(read_paper_results(RESULTS), "ppo-tuned").as_text()
    rows = [re.split(r" +\| +", line.strip("| ")) for line in table.splitlines() if "ms" in line[:8]]
    assert [row[-1] == "same values" for row in rows] == [False, False, False, True, True]
    page = _in_one_line(PAGE)
    assert "(({}), ({}) and ({}))".format(*(row[2] for row in rows)) in page
    assert "it differs by {}, {} and {}.".format(*(row[-1] for row in rows)) in page


def test_the_page_s_returns_on_the_double_pendulum_are_those_of_the_runs() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    outcome = data.outcome("ppo-pendulum")
    aware, baseline = ([outcome.cell(rule=rule, dt=dt) for dt in DTS] for rule in ("dt-aware", "baseline"))
    gains = [_mean(one.scores) - _mean(other.scores) for one, other in zip(aware, baseline, strict=True)]
    learned, kept = ([f"{_mean(cell.curves[:, 90:]):,.0f}" for cell in cells] for cells in (aware, baseline))
    way = {"task": "double-pendulum", "learn_when": "episode_end", "initial_weights": "released"}
    later = data.outcome("ppo-released-code").cell(rule="baseline", dt="4ms", **way)
    assert f"(by {gains[0]:,.0f}, {gains[1]:.0f}, {gains[3]:.0f} and {gains[4]:.0f})" in page
    assert f"({kept[3]} against {learned[3]}, and {kept[4]} against {learned[4]})" in page
    assert f"they end at {learned[0]}, against {learned[1]} to {learned[3]}" in page
    assert f"The baseline at 4 ms ends at {kept[0]}" in page
    assert f"it scores {_mean(later.scores):,.0f} instead of {_mean(baseline[0].scores):,.0f}" in page
    assert f"ends at {_mean(later.curves[:, 90:]):,.0f} (" in page
    assert f"instead of {gains[0]:,.0f}." in page
    assert f"(at 8 ms, by {_mean(baseline[1].plain) - _mean(aware[1].plain):.0f})" in page
    tuned = _mean(data.outcome("pendulum-grid-winners").cell(dt="16ms").scores)
    assert f"at 16 ms, where it is worth {tuned - _mean(baseline[2].scores):.0f} of 9,360" in page


def test_the_page_s_intervals_on_the_double_pendulum_are_those_of_pairs() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    kept, shrunk = (
        np.mean([data.outcome(f"pendulum-{rule}").cell(dt="32ms", batch=batch).scores for batch in BATCHES], axis=0)
        for rule in ("constant", "dt-aware")
    )
    worse, at_32ms = _mean(shrunk - kept), ttest_rel(shrunk, kept).confidence_interval()
    assert f"makes no difference ({worse:.0f} worse, {at_32ms.low:.0f} to {at_32ms.high:.0f})" in page
    way = {"task": "double-pendulum", "learn_when": "episode_end", "initial_weights": "released", "dt": "4ms"}
    aware, baseline = (data.outcome("ppo-released-code").cell(rule=rule, **way) for rule in ("dt-aware", "baseline"))
    assert aware.seeds == baseline.seeds
    ahead, ends = _mean(aware.scores - baseline.scores), ttest_rel(aware.scores, baseline.scores).confidence_interval()
    assert f"dt-aware values are ahead by {ahead:.0f} ({ends.low:.0f} to {ends.high:.0f})" in page


def test_the_longest_batch_time_is_best_on_the_double_pendulum_and_by_the_plain_mean_nowhere() -> None:
    outcome = read_paper_results(RESULTS).outcome("pendulum-dt-aware")
    cells = {dt: [outcome.cell(dt=dt, batch=batch) for batch in BATCHES] for dt in DTS}
    assert {max(BATCHES, key=lambda batch: _mean(cells[dt][BATCHES.index(batch)].scores)) for dt in DTS} == {8000}
    assert 8000 not in {max(BATCHES, key=lambda batch: _mean(cells[dt][BATCHES.index(batch)].plain)) for dt in DTS}
    assert "is best at every cycle time (by the plain mean at none)" in _in_one_line(PAGE)


def test_what_pairs_of_equal_seeds_save_is_what_the_page_on_statistics_says() -> None:
    data, saved, correlations = read_paper_results(RESULTS), list[float](), list[float]()
    aware = [data.outcome(f"sac-{task}dt-aware") for task in ("", "pendulum-")]
    base = [data.outcome(f"sac-{task}baseline") for task in ("", "pendulum-")]
    pairs = [(data.outcome("sac-scaled").cell(dt=dt), base[0].cell(dt=dt)) for dt in DTS if dt != "16ms"]
    for tuned, kept in zip(aware, base, strict=True):
        for dt in DTS:
            both = [tuned.cell(dt=dt, rule=rule) for rule in ("tuned", "tuned-scaled")]
            pairs += [(each, kept.cell(dt=dt)) for each in both] + ([] if dt == "16ms" else [(both[0], both[1])])
    for one, other in pairs:
        n = min(len(one.seeds), len(other.seeds))
        assert one.seeds[:n] == other.seeds[:n]
        x, y = one.scores[:n], other.scores[:n]
        widths = [
            np.diff(test(x, y).confidence_interval()).item()
            for test in (ttest_rel, partial(ttest_ind, equal_var=False))
        ]
        saved.append(widths[0] / widths[1])
        correlations.append(np.corrcoef(x, y)[0, 1])
    page = _in_one_line(ROOT / "docs" / "statistics.md")
    told = f"{np.mean(correlations):.1f} on average ({min(correlations):.1f} to {max(correlations):.1f})".replace(
        "0.", "."
    )
    assert f"are correlated by {told}" in page
    assert f"{np.mean(saved):.1f} times as wide ({min(saved):.1f} to {max(saved):.1f})" in page


def test_the_page_s_behaviour_is_that_of_the_policies() -> None:
    data, page = read_paper_results(RESULTS), _in_one_line(PAGE)
    from_target = [
        100 * fmean(data.behaviour(f"ppo-{rule}", rule, "4ms").values()) for rule in ("baseline", "dt-aware")
    ]
    upright = [100 * fmean(data.behaviour("ppo-pendulum", rule, "4ms").values()) for rule in ("baseline", "dt-aware")]
    assert f"{from_target[0]:.0f} % of its first distance" in page
    assert f"leave it at {from_target[1]:.0f} %" in page
    stands = judge(data, next(each for each in CLAIMS if each.number == "12")).conditions[-1].estimate
    ends = [100 * (end or 0.0) for end in (stands.low, stands.high)]
    assert f"policies stand {upright[0]:.1f} % of the time ({ends[0]:.1f} to {ends[1]:.1f} %)" in page
    assert f"and stand {upright[1]:.0f} % of the time" in page


def test_the_page_of_reports_has_the_number_of_all_runs() -> None:
    runs = sum(each.about["runs"] for each in read_paper_results(RESULTS).outcomes.values())
    assert f"the page of the whole paper ({runs:,} runs," in (ROOT / "docs" / "report.md").read_text()


def _from_seed(data: PaperResults, study: str, first: int) -> PaperResults:
    """The same without a study's runs of smaller seeds."""
    outcome = data.outcome(study)
    cells = tuple(
        replace(
            cell,
            seeds=cell.seeds[first:],
            scores=cell.scores[first:],
            plain=cell.plain[first:],
            curves=cell.curves[first:],
        )
        for cell in outcome.cells
    )
    behaviours = dict(data.behaviours)
    if study in behaviours:
        behaviours[study] = {
            cell: {seed: share for seed, share in told.items() if seed >= first}
            for cell, told in behaviours[study].items()
        }
    return PaperResults({**data.outcomes, study: replace(outcome, cells=cells)}, behaviours)


def _in_one_line(page: Path) -> str:
    return " ".join(page.read_text().split())


def _with_error(scores: NDArray[np.float64], digits: int = 1) -> str:
    return f"{_mean(scores):,.{digits}f} ± {np.std(scores, ddof=1) / np.sqrt(len(scores)):.{digits}f}"


def _mean(numbers: NDArray[np.float64]) -> float:
    return float(np.mean(numbers))
