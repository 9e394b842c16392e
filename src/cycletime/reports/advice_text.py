"""Advice in sentences and as a table: which cycle time, with which values, what it gains, how sure that is."""

from __future__ import annotations

from pathlib import Path

from cycletime.agents import SACAgent
from cycletime.duration import Duration
from cycletime.reports.formatting import dt_text, hours_text, join_words
from cycletime.reports.summary import MOST_SEEDS, POWER, seeds_needed
from cycletime.statistics import mean_and_error
from cycletime.studies.advice import Advice, write_advice
from cycletime.studies.scores import MEASURES, settings_text

_FEW_SEEDS = 10
"""Seeds with which failures of one run in five are nearly always seen."""
_FAILURE_RATE = 0.2
_UNITS = ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (float("inf"), 3600.0, "h"))


def save_advice(folder: Path, advice: Advice) -> list[str]:
    """Write advice.json with the answer in sentences, which are given back."""
    answer = advice_sentences(advice)
    write_advice(folder, {**advice.as_json(), "answer": answer})
    return answer


def advice_sentences(advice: Advice) -> list[str]:
    if advice.leader is None:
        return ["There is no answer yet: the first look is not done.", *_rest_of_first_look(advice)]
    return [_answer(advice), *_confidence(advice), *_next_look(advice), *_real_time(advice), *_not_tried(advice)]


def advice_table(advice: Advice) -> list[list[str]]:
    head = ["cycle time", "in time here", "seeds", "mean return", "s.e.", ""]
    dts = sorted({*advice.tried, *advice.in_time})
    return [head, *([dt_text(dt), *_cells(advice, dt), _verdict(advice, dt)] for dt in dts)]


def _answer(advice: Advice) -> str:
    advised, leader, present, gain = advice.advised, advice.leader, advice.question.present, advice.gain
    assert advised is not None, "there is a leader"
    assert leader is not None, "there is a leader"
    values = f"{settings_text(advice.values(advised)) or 'no values'} (rule {advice.question.rule})"
    if advice.ended == "alone":
        return f"Stay at {dt_text(present)}, with {values}: no other cycle time can be compared with it here."
    measure = MEASURES[advice.question.measure][1]
    length = f"{measure} in runs of {_time_text(_run_s(advice))} of the environment's time"
    if advised == leader == present:
        return f"Stay at {dt_text(present)}, with {values}: it has the highest {length}."
    if advised == leader and gain is None:
        return (
            f"Use {dt_text(leader)}, with {values}: staying at {dt_text(present)} has no mean, since "
            f"{advice.without_mean[present]}."
        )
    assert gain is not None, "both have a mean"
    more = gain.difference
    by = f"{more.value:+.3g} ({more.low:+.3g} to {more.high:+.3g}, n = {more.runs} seeds)"
    if advised == leader:
        certain = "" if gain.verdict == "better" else ", which the data do not decide"
        cannot = "" if advice.can_stay() else f"; {dt_text(present)} is not in time on this machine"
        gained = f"that gains {by} in {length}{certain}{cannot}"
        return f"Use {dt_text(leader)} instead of {dt_text(present)}, with {values}: {gained}."
    return (
        f"Stay at {dt_text(present)} for now, with {values}: {dt_text(leader)} has the highest {length}, by {by}, but "
        "the data do not decide that it is better."
    )


def _confidence(advice: Advice) -> list[str]:
    if advice.ended == "alone":
        return []
    leader, confidence = advice.leader, 100 * advice.question.confidence
    assert leader is not None, "there is one"
    dropped = [dt for dt in advice.tried if dt not in advice.left and dt not in advice.without_mean]
    leads = {dt: advice.judgements[-1].lead(dt).difference for dt in advice.left if dt != leader}
    open_ = [f"{dt_text(dt)} ({by.value:+.3g}, from {by.low:+.3g} to {by.high:+.3g})" for dt, by in leads.items()]
    parts = []
    if dropped:
        parts.append(f"decided against {join_words([dt_text(dt) for dt in dropped])}")
    if open_:
        parts.append(f"not decided against {join_words(open_)}")
    if advice.without_mean:
        lacking = join_words([f"{dt_text(dt)} ({why})" for dt, why in advice.without_mean.items()])
        parts.append(f"not compared with {lacking}")
    if advice.ended == "enough":
        parts.append(f"no other can be better by more than {advice.question.enough:g}")
    told = [
        f"How sure: {dt_text(leader)} is {', '.join(parts)}; all intervals and verdicts of all looks hold together "
        f"with {confidence:g} % confidence."
    ]
    fewest = min(len(each) for dt, each in advice.scores.items() if dt not in advice.without_mean)
    if fewest < _FEW_SEEDS:  # no interval knows of failures that it has not seen
        missed = 100 * (1 - _FAILURE_RATE) ** fewest
        told.append(
            f"That holds if single runs do not fail: of failures that happen once in five runs, {fewest} seeds show "
            f"none in {missed:.0f} % of studies; '--first-seeds {_FEW_SEEDS}' in a new folder looks at more."
        )
    return told


def _rest_of_first_look(advice: Advice) -> list[str]:
    rest = advice.next
    assert rest is not None, "it was not done"
    runs = f"{rest.runs} of its {rest.seeds * len(advice.left)} runs"
    takes = f"about {_time_text(rest.wall_s)} here and {hours_text(rest.simulated_h)} simulated"
    why = "The budget ended" if advice.ended == "budget" else "It was stopped"
    return [f"{why} before {runs}: the same command goes on with them, {takes}."]


def _next_look(advice: Advice) -> list[str]:
    following = advice.next
    if following is None:
        if advice.ended == "alone":
            return []
        return ["Surer: the comparison is decided; longer runs would tell whether it stays so."]
    sentence = (
        f"Surer: {following.seeds} seeds of {join_words([dt_text(dt) for dt in advice.left])} take "
        f"{following.runs} more runs, about {_time_text(following.wall_s)} here and "
        f"{hours_text(following.simulated_h)} simulated; the same command with more budget goes on."
    )
    return [sentence, *_seeds_needed(advice)]


def _seeds_needed(advice: Advice) -> list[str]:
    if advice.ended == "enough":
        return []
    assert advice.leader is not None, "there was a look"
    comparisons = advice.looks.comparisons(len(advice.judgements) + 1)
    leader = dict(enumerate(advice.numbers(advice.leader)))
    found = {
        dt: seeds_needed(leader, dict(enumerate(advice.numbers(dt))), comparisons, advice.question.confidence)
        for dt in advice.left
        if dt != advice.leader
    }
    counts = [f"{dt_text(dt)} {f'about {n}' if n else f'more than {MOST_SEEDS}'}" for dt, n in found.items()]
    return [
        f"Seeds that would decide in {100 * POWER:.0f} % of such studies, if the true differences are those seen: "
        f"against {join_words(counts)}."
    ]


def _real_time(advice: Advice) -> list[str]:
    if not advice.in_time:
        return ["Whether this machine acts and learns in time was not measured."]
    assert advice.advised is not None, "there is a leader"
    timing = advice.in_time[advice.advised]
    is_busy = advice.machine["load"] > advice.machine["cores"] / 2
    busy = " The machine was busy when that was measured: true times may be shorter." if is_busy else ""
    if not timing.fits:
        return [
            f"Real time: {dt_text(advice.advised)} is not in time on this machine (acting takes "
            f"{_percent(timing.act_share)} of the cycle, learning {_percent(timing.learn_share)} of the time there "
            f"is), so it is for simulation only.{busy}"
        ]
    how = "in the cycle itself" if timing.way == "inline" else "in the background"
    return [
        f"Real time: at {dt_text(advice.advised)} acting takes {_percent(timing.act_share)} of the cycle here, "
        f"and learning fits {how} ({_percent(timing.learn_share)} of the time there is for it).{busy}"
    ]


def _not_tried(advice: Advice) -> list[str]:
    left_out = [f"{dt_text(Duration(dt))} ({why})" for dt, why in advice.not_tried.items()]
    tried, present = join_words([dt_text(dt) for dt in advice.tried]), dt_text(advice.question.present)
    edge = ""  # where the best is the shortest or the longest that was tried, the true best may lie beyond
    if len(advice.tried) > 1 and advice.leader in (advice.tried[0], advice.tried[-1]):
        which = "shorter" if advice.leader == advice.tried[0] else "longer"
        edge = f" ({dt_text(advice.leader)} is the last on its side, so {which} ones may be better yet)"
    # At shorter cycles SAC makes more updates of as much experience, unless its rule says otherwise.
    agents = advice.question.agents(advice.tried)
    rates = {
        dt: f"{agent.updates_per_step / float(dt):.3g}" for dt, agent in agents.items() if isinstance(agent, SACAgent)
    }
    made = join_words([f"{rate} at {dt_text(dt)}" for dt, rate in rates.items()])
    others = [
        *left_out,
        f"cycle times other than {tried}{edge}",
        f"values tuned anew at each of them (the rule {advice.question.rule} carried those of {present})",
        *([f"as many updates a second at each of them (SAC made {made})"] if len(set(rates.values())) > 1 else []),
        f"runs longer than {_time_text(_run_s(advice))}",
        "delays, other machines, a real robot",
    ]
    return [f"Not tried: {'; '.join(others)}.", _comparability(advice)]


def _comparability(advice: Advice) -> str:
    if advice.comparable is None and advice.question.trainer is not None:
        return "Whether returns can be compared across cycle times was not checked: the trainer makes its environment."
    if advice.comparable is None:
        return (
            "Whether returns can be compared across cycle times could not be checked: the same seed did not give the "
            "same episode, or the cycle times have no common multiple soon."
        )
    if advice.comparable:
        return "Returns sum over environment steps: a held action earned the same at every cycle time, so they compare."
    return (
        "Beware: a held action earned different returns at different cycle times, so that the environment pays for the "
        "cycle time itself, and these returns do not compare."
    )


def _run_s(advice: Advice) -> float:
    return float(advice.question.env_steps * advice.env_dt.exact_s)


def _time_text(seconds: float) -> str:
    return next(f"{seconds / size:,.3g} {unit}" for most, size, unit in _UNITS if seconds < most)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _cells(advice: Advice, dt: Duration) -> list[str]:
    """Whether a cycle time is in time here, its seeds, and their mean with its standard error."""
    in_time = "not asked" if dt not in advice.in_time else advice.in_time[dt].way or "no"
    scores = advice.scores.get(dt, ())
    if not scores or dt in advice.without_mean:
        return [in_time, str(len(scores)), "none", ""]
    mean = mean_and_error(advice.numbers(dt))
    error = "" if mean.high is None else f"{mean.high - mean.value:.3g}"
    return [in_time, str(mean.n), f"{mean.value:.4g}", error]


def _verdict(advice: Advice, dt: Duration) -> str:
    if dt not in advice.tried:
        return "not tried"
    if dt in advice.without_mean:
        return advice.without_mean[dt]
    words = ["leads"] if dt == advice.leader else []
    better = next((each.dropped[dt] for each in advice.judgements if dt in each.dropped), None)
    words += [f"worse than {dt_text(better)}"] if better is not None else []
    words += ["present"] if dt == advice.question.present else []
    return ", ".join(words or ["not decided"])
