"""`cycletime explain`: what configurations mean in seconds, and what is inconsistent in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from cycletime.cli.options import Text
from cycletime.duration import Duration
from cycletime.errors import InputError, printable
from cycletime.libraries.config_in_seconds import describe
from cycletime.libraries.config_search import MOST_NAMED, Search, find_configurations
from cycletime.libraries.configuration import Configuration
from cycletime.libraries.findings import RANKS, Finding, find_inconsistencies
from cycletime.rules.hyperparameters import align_columns
from cycletime.rules.quantities import format_seconds

_MOST_NAMES = 3
_MOST_NOTES = 4
"""Of one kind; what is above a note is printed whole."""


@dataclass(frozen=True, kw_only=True)
class Explain:
    """Say what a configuration means in seconds, without changing it, and what is inconsistent.

    For example: cycletime explain logs/rsl_rl/anymal/2026-01-01, or of a whole repository: cycletime explain . --strict
    """

    path: Annotated[Positional[Path], arg(metavar="FILE_OR_FOLDER")]
    """A run's folder, a library's file, Python source with configurations, or a folder with any of them."""
    dt: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: what the files say)")] = None
    """The cycle time, where the files do not say it."""
    env: Annotated[Text, arg(metavar="ID", help_behavior_hint="(default: all)")] = None
    """The entry of an RL Zoo file."""
    library: Annotated[Text, arg(metavar="LIBRARY", help_behavior_hint="(default: recognised)")] = None
    """Whose settings a file has."""
    algorithm: Annotated[Text, arg(metavar="ALGORITHM", help_behavior_hint="(default: recognised)")] = None
    """The algorithm that a file is for."""
    strict: bool = False
    """Exit with status 1 if there is a warning or a contradiction, for continuous integration."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        search = Search(self.library, self.algorithm, self.env, None if self.dt is None else Duration(self.dt))
        found = find_configurations(self.path, search)
        stated = [each.cycle_time for each in found.configurations]
        if search.dt and all(each and each[0] != search.dt for each in stated) and (first := stated[0]):
            raise InputError(f"{first[1]} is a cycle time of {first[0]}, and --dt is {search.dt}: leave that out.")
        trained = [each.dt_s for each in found.configurations if each.dt_s and each.environment != "deployment"]
        explained = [(each, find_inconsistencies(each, trained)) for each in found.configurations]
        if self.json:
            said = {"configurations": [_as_json(*each) for each in explained], "not_read": found.not_read}
            print(json.dumps(said, indent=2))
        else:
            rest = " --json has all of them." if len(found.not_read) > MOST_NAMED else ""
            print(printable("\n".join([*_lines(explained), found.explain_not_read() + rest]).rstrip("\n")))
        serious = any(finding.rank != "note" for _, findings in explained for finding in findings)
        return int(self.strict and serious)


def _lines(explained: Sequence[tuple[Configuration, list[Finding]]]) -> list[str]:
    lines = _table([each for each, _ in explained])
    if any(not each.uses_defaults for each, _ in explained):
        unseen = sorted({name for each, _ in explained for name in each.unseen})
        shown = ", ".join(unseen[:6]) + (f" and {len(unseen) - 6} more" if len(unseen) > 6 else "")
        lines += ["", "Read from Python source, not run; what is computed, and tasks named Play, are not seen."]
        lines += [f"Base classes that are not in reach: {shown}."] if unseen else []
    if all(each.dt_s is None for each, _ in explained):
        lines += ["", "No cycle time is said: give --dt TIME for the meaning in seconds."]
    if all(each.library and each.table is None for each, _ in explained):
        lines += ["", "No algorithm with a rule is said: give --algorithm for the meaning of its values."]
    grouped: dict[Finding, list[str]] = {}
    for each, findings in explained:
        for finding in findings:
            grouped.setdefault(finding, []).append(each.name)
    for finding, names in sorted(grouped.items(), key=lambda each: RANKS.index(each[0].rank)):
        alike = [each for each in grouped if (each.rank, each.kind) == (finding.rank, finding.kind)]
        if finding.rank != "note" or finding in alike[:_MOST_NOTES]:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            where = ", ".join(names[:_MOST_NAMES]) + more if len(explained) > 1 else ""
            lines += ["", f"{finding.rank}: {finding.sentence}", *(f"  {at}" for at in (finding.place, where) if at)]
        elif finding == alike[-1]:
            lines += ["", f"note: {len(alike) - _MOST_NOTES} more like it; --json has all of them."]
    counts = Counter(finding.rank for finding in grouped)
    said = ", ".join(f"{counts[rank]} {rank}{'' if counts[rank] == 1 else 's'}" for rank in RANKS)
    return [*lines, "", f"Findings: {said}."]


def _whole(one: Configuration) -> list[str]:
    names = dict.fromkeys([one.environment, one.library, one.algorithm and one.algorithm.upper()])
    rows = [row[:3] for row in describe(one)]
    kind = ", ".join(filter(None, names))
    return [f"{one.name}: {kind}", "", *align_columns([("what", "setting", "meaning"), *rows])]


def _table(several: Sequence[Configuration]) -> list[str]:
    if len(several) < 2 + any(each.environment == "deployment" for each in several):  # a run, and what it is run with
        return [line for one in several for line in ("", *_whole(one))][1:]
    header = ("configuration", "cycle time", "discount", "trace", "rollout", "episode", "environments")
    cells = [
        (
            each.name,
            f"{1000 * each.dt_s:.4g} ms" if each.dt_s else "?",
            *("" if steps is None else each.span(steps) for steps in [*each.spans.values()][:3]),
            format_seconds(each.episode[1]) if each.episode else "",
            str(each.n_envs.value) if each.n_envs else "",
        )
        for each in several
    ]
    return [f"{len(several)} configurations", "", *align_columns([header, *cells])]


def _as_json(each: Configuration, findings: Sequence[Finding]) -> Mapping[str, Any]:
    seconds = {name: steps * (each.dt_s or inf) for name, steps in each.spans.items() if steps is not None}
    episode = {"episode": each.episode[1]} if each.episode and each.dt_s else {}
    return {
        "name": each.name,
        "environment": each.environment,
        "library": each.library,
        "algorithm": each.algorithm,
        "cycle_time_s": each.dt_s,
        "stated_as": each.cycle_time[1] if each.cycle_time else None,
        "num_envs": each.n_envs.value if each.n_envs else None,
        "seconds": {name: span for name, span in (seconds | episode).items() if isfinite(span)},
        "meanings": [row._asdict() for row in describe(each)],
        "findings": [finding._asdict() for finding in findings],
        "read_from_source": not each.uses_defaults,
        "base_classes_not_found": list(each.unseen),
    }
