"""The answer in sentences: the best cycle time, what a rule changes, and what the data do not decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cycletime.reports.formatting import difference_text, dt_text, estimate_text, join_words, sign_text
from cycletime.reports.summary import MOST_SEEDS, POWER, BestCycleTime, Summary, seeds_needed
from cycletime.statistics import Comparison
from cycletime.studies.plan import untrained
from cycletime.studies.scores import AS_GIVEN, RunOutcome, StudyScores

_MISSING_RUNS: Mapping[RunOutcome, str] = {
    "unfinished": "{} not done yet",
    "failed": "{} failed and given up ('cycletime study status' says why)",
    "astray": "{} without a finite score, since learning diverged or no episode ended",
}


@dataclass(frozen=True)
class Answer:
    best: tuple[str, ...]
    against: tuple[str, ...]
    undecided: tuple[str, ...]

    @classmethod
    def of(cls, summary: Summary) -> Answer:
        best = [_best_sentence(rule, best) for rule, best in summary.best.items() if best is not None]
        against = [each for rule in summary.panel.rules[1:] for each in _rule_sentences(summary, rule)]
        undecided = list(_undecided(summary))
        if undecided:
            undecided.append(
                f"Numbers of seeds are rough estimates: for a verdict in {100 * POWER:.0f} % of such studies, if the "
                "true differences and spreads are those seen here, which few seeds measure badly."
            )
        return cls(tuple(best), tuple(against), tuple(undecided))

    def sections(self) -> list[tuple[str, tuple[str, ...]]]:
        parts = [("Best cycle time", self.best), ("Rules", self.against), ("Not decided by the data", self.undecided)]
        return [(heading, sentences) for heading, sentences in parts if sentences]


def completeness(scores: StudyScores) -> tuple[str, ...]:
    """How many runs have a score, and what became of the others."""
    counts, remarks = scores.counts(), [run for run in scores.runs() if run.result.get("remarks")]
    if counts["scored"] == counts.total():
        sentences = ["The run has a score." if counts.total() == 1 else f"All {counts.total():,} runs have a score."]
    else:
        others = [text.format(f"{counts[outcome]:,}") for outcome, text in _MISSING_RUNS.items() if counts[outcome]]
        sentences = [f"{counts['scored']:,} of {counts.total():,} runs have a score; the others: {join_words(others)}."]
    if counts["unfinished"]:
        sentences.append("The study is not complete: what follows is what there is so far.")
    if counts["astray"] + counts["failed"]:
        sentences.append(
            "Runs without a score are left out of means, so that rules which have some look better than they are."
        )
    sentences += [*scores.folder.damage(), *untrained(run.spec for run in scores.runs())]
    if remarks:
        why = join_words(sorted({remark for run in remarks for remark in run.result["remarks"]})[:2])
        sentences.append(f"Stopped, and not resumed bit for bit: {len(remarks):,} of the runs ({why}).")
    return tuple(sentences)


def _best_sentence(rule: str, best: BestCycleTime) -> str:
    mean = f"a mean of {estimate_text(best.mean)} (n = {best.mean.n})"
    of_rule = "" if rule == AS_GIVEN else f" of {rule}"
    if best.runner_up is None:
        return f"Only {dt_text(best.dt)} has scores{of_rule}: {mean}."
    rounding = 1e-9 * abs(best.mean.value)
    equal = [dt for dt, each in best.against.items() if abs(each.difference.value) <= rounding]
    undecided = join_words([dt_text(dt) for dt in best.undecided if dt not in equal])
    if equal:
        ours = join_words([dt_text(dt) for dt in sorted([best.dt, *equal])])
        decided = f"; not decided against {undecided}" if undecided else ""
        return f"The best cycle times{of_rule} are {ours}, which are equal, with {mean}{decided}."
    decided = f"not decided against {undecided}" if undecided else "decided against all others"
    if undecided and best.runner_up not in best.undecided:
        decided = f"decided against the runner-up, but not against {undecided}"
    lead = f"{dt_text(best.runner_up)}, {difference_text(best.against[best.runner_up].difference)}"
    return f"The best cycle time{of_rule} is {dt_text(best.dt)} with {mean}; the runner-up is {lead}: {decided}."


def _rule_sentences(summary: Summary, rule: str) -> list[str]:
    panel, first = summary.panel, summary.panel.rules[0]
    better, worse, undecided, same = (
        join_words([dt_text(dt) for dt in panel.dts if summary.verdict((rule, dt)) == verdict])
        for verdict in ("better", "worse", "undecided", "same runs")
    )
    parts = [f"{word} than {first} at {dts}" for word, dts in (("better", better), ("worse", worse)) if dts]
    if undecided:
        nowhere = f"neither better nor worse than {first} at any cycle time as far as the data decide"
        parts.append(f"undecided at {undecided}" if parts else nowhere)
    unchanged = [f"at {same} nothing changes"] if same else []
    sentences = [f"{rule} is {'; '.join([*parts, *unchanged])}."] if parts else []
    if same and not parts:
        sentences = [f"With {rule}, {unchanged[0]}."]
    if (gain := summary.advantages[rule]) is not None:
        sentences.append(
            f"Over all cycle times, {rule} minus {first} is {difference_text(gain)}: "
            f"{sign_text(gain.low, gain.high, ('better', 'worse', 'undecided'))}."
        )
    return sentences


def _undecided(summary: Summary) -> Iterator[str]:
    """Rules, and then best cycle times, that the data do not decide against others, with the seeds that would."""
    panel, first = summary.panel, summary.panel.rules[0]
    for (rule, dt), each in summary.comparisons.items():
        alike = [other for other in panel.rules[1:] if panel.shares_runs(rule, other, dt)]
        if summary.verdict((rule, dt)) == "undecided" and rule == alike[0]:
            what = f"{join_words(alike)} against {first} at {dt_text(dt)}"
            yield _undecided_sentence(what, each, panel.seed_scores(rule, dt), panel.seed_scores(first, dt))
    for rule, best in summary.best.items():
        if best is not None and best.runner_up in best.undecided:
            what = f"{dt_text(best.dt)} against {dt_text(best.runner_up)}{'' if rule == AS_GIVEN else f' with {rule}'}"
            x, y = (panel.seed_scores(rule, dt) for dt in (best.dt, best.runner_up))
            yield _undecided_sentence(what, best.against[best.runner_up], x, y)


def _undecided_sentence(what: str, each: Comparison, x: Mapping[int, float], y: Mapping[int, float]) -> str:
    of = f" after {each.comparisons} comparisons" if each.comparisons > 1 else ""
    p_value = "" if each.p_value is None else f", p = {each.p_value:.2g}{of}"
    n, seeds = min(len(x), len(y)), seeds_needed(x, y, each.comparisons, each.confidence)
    if n < 2:
        needed = "one run says nothing of the spread, so at least 2 seeds are needed"
    elif seeds is None:
        needed = f"so small a difference would take more than {MOST_SEEDS:,} seeds to decide"
    else:
        needed = f"about {seeds} seeds would decide it, {seeds - n} more"
    return f"{what}: {difference_text(each.difference)}{p_value}; {needed}."
