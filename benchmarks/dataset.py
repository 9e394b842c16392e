"""All committed runs as one dataset: python benchmarks/dataset.py OUT.

OUT gets runs.parquet (a row for each run of every investigation), README.md (the card) and SHA256SUMS.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cycletime
from cycletime.experiments.horizons.candidates import ALGORITHM_SPECS, TASK_SETS, PointKey
from cycletime.experiments.horizons.results import load_comparison
from cycletime.experiments.outcome import NotRunError, Outcome, Results, read_outcomes, read_results

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "investigation": (pa.dictionary(pa.int32(), pa.string()), "what the run belongs to: paper, horizons or robots"),
    "study": (pa.dictionary(pa.int32(), pa.string()), "the study in it"),
    "task": (pa.dictionary(pa.int32(), pa.string()), "the task"),
    "algorithm": (pa.dictionary(pa.int32(), pa.string()), "ppo or sac"),
    "rule": (
        pa.dictionary(pa.int32(), pa.string()),
        "the rule that carried the values, or the trial's arm; null where `carried_by` says it",
    ),
    "carried_by": (
        pa.list_(pa.string()),
        "every 'RULE from START' that gives these values, in the search and the trial of horizons; null elsewhere",
    ),
    "dt_s": (pa.float64(), "the action-cycle time in seconds"),
    "seed": (pa.int64(), "the run's seed; equal seeds of one study are pairs"),
    "score": (pa.float64(), "mean return over learning; null where learning diverged. Robots: return per second"),
    "final": (pa.float64(), "mean return of the last tenth of learning (robots: of the last fifth)"),
    "plain_mean": (pa.float64(), "plain mean over episodes; null for robots"),
    "env_steps": (pa.int64(), "environment steps of the run; null for robots"),
    "simulated_s": (pa.float64(), "simulated seconds, of robots all environments together; null elsewhere"),
    "settings": (pa.string(), "the hyper-parameters of the run at dt_s and what else the study varied, as JSON"),
    "labels": (
        pa.string(),
        "what the study names the run by where that is not its setting, such as the batch that a rule began with; JSON",
    ),
    "source": (pa.dictionary(pa.int32(), pa.string()), "closed form, simulated robot, MJX, ..."),
    "made_by": (pa.dictionary(pa.int32(), pa.string()), "the command that runs it again, or packs it to be run"),
    "curve": (
        pa.list_(pa.float32()),
        "mean return in equal bins of learning, 100 of the paper and 10 of horizons; robots: return per second of each "
        "evaluation, the first untrained",
    ),
}
_LABELS = ("task", "algorithm", "rule", "dt")
CarriedBy: TypeAlias = Mapping[tuple[str, PointKey], list[str]]
"""By study and point, the rules and starting points that give its values."""


def rows_of(investigation: str, outcome: Outcome, carried_by: CarriedBy) -> Iterator[dict[str, Any]]:
    about = outcome.about
    for cell in outcome.cells:
        varied = {name: value for name, value in cell.labels.items() if name not in _LABELS}
        labels = {name: value for name, value in varied.items() if cell.values.get(name, value) != value}
        spec = ALGORITHM_SPECS[cell.labels["algorithm"]]
        for index, seed in enumerate(cell.seeds):
            yield {
                "investigation": investigation,
                "study": outcome.name,
                **{name: cell.labels.get(name) for name in ("task", "algorithm", "rule")},
                "carried_by": carried_by.get((outcome.name, spec.point_key({**cell.values, "dt": cell.dt}))),
                "dt_s": float(cell.dt),
                "seed": seed,
                "score": _finite(cell.scores[index]),
                "final": _finite(cell.final[index]),
                "plain_mean": _finite(cell.plain[index]),
                "env_steps": outcome.env_steps,
                "settings": _json({**varied, **cell.values}),
                "labels": _json(labels) if labels else None,
                "source": ", ".join(outcome.sources),
                "made_by": str(about["command"]),
                "curve": [_finite(value) for value in cell.curves[index]],
            }


def carried_points(results: Results) -> CarriedBy:
    """Of the search and the trial of horizons, whose studies have each point once."""
    found: dict[tuple[str, PointKey], list[str]] = defaultdict(list)
    for task_set in (each for sets in TASK_SETS.values() for each in sets.values()):
        with suppress(NotRunError):
            comparison = load_comparison(task_set, results)
            key = task_set.spec.point_key
            for start, (name, rule) in product(comparison.starts, comparison.rules.items()):
                for dt in comparison.scales[start.task].retuned:
                    point = task_set.study_name(start.task), key(start.point(dt, rule))
                    found[point].append(f"{name} from {start.values.dt}, {start.kind}")
            for task, scale in comparison.scales.items():
                for dt, tuned in scale.retuned.items():
                    found[task_set.study_name(task), key(tuned)].append(f"tuned at {dt}")
    return found


def robot_rows(results: Path) -> Iterator[dict[str, Any]]:
    """The runs of robots that results/robots/runs.csv has, if there are any."""
    import csv

    path = results / "runs.csv"
    if not path.exists():
        return
    with np.load(results / "curves.npz") as file:
        curves = {name.partition("#")[2]: file[name][1] for name in file.files}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            known = {"task", "dt_ms", "arm", "seed", "score", "final", "simulated_s"}
            yield {
                "investigation": "robots",
                "study": "robots-trial",
                "task": row["task"],
                "algorithm": "sac" if row["arm"].startswith("sac") else "ppo",
                "rule": row["arm"],
                "dt_s": float(row["dt_ms"]) / 1000,
                "seed": int(row["seed"]),
                **{name: float(row[name]) if row[name] else None for name in ("score", "final", "simulated_s")},
                "settings": json.dumps({name: value for name, value in row.items() if name not in known}),
                "source": "MJX",
                "made_by": "python -m benchmarks.robots.run",
                "curve": [_finite(value) for value in curves[row["uid"]]],
            }


def table(results: Path = RESULTS) -> pa.Table:
    carried_by = carried_points(read_results(results / "horizons"))
    rows = [
        row
        for name in ("paper", "horizons")
        for outcome in read_outcomes(results / name).values()
        for row in rows_of(name, outcome, carried_by)
    ]
    rows += robot_rows(results / "robots")
    schema = pa.schema([pa.field(name, kind) for name, (kind, _) in COLUMNS.items()])
    return pa.Table.from_pylist(rows, schema=schema)


CARD = """# Trainings at many cycle times

{rows:,} rows of {runs:,} runs of PPO and SAC at different action-cycle times, with values kept, tuned and carried by
rules, the evidence behind [cycletime](https://github.com/cycletime/cycletime). Its pages docs/paper.md,
docs/horizons.md and docs/robots-trial.md say how they were made and judged.

| investigation | algorithm | rows |
|---|---|---|
{counts}

`runs.parquet` has a row for each run of each rule: where two rules of a study of the paper give the same values, one
run stands under both. The search and the trial of horizons have a row for each run, with all that gives its values:

| column | type | meaning |
|---|---|---|
{columns}

Curves are rounded as the committed results are; scores are exact. Runs of one study with equal seeds share their random
numbers and are to be compared in pairs. Everything is simulated: no run is of a real robot.

Made by `python benchmarks/dataset.py OUT` of cycletime {version}. `sha256sum -c SHA256SUMS` checks the files. MIT
licence, as the code; please cite what CITATION.cff names.
"""


def card(runs: pa.Table) -> str:
    found = Counter(zip(runs["investigation"].to_pylist(), runs["algorithm"].to_pylist(), strict=True))
    types = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, (kind, _) in COLUMNS.items()}
    return CARD.format(
        rows=runs.num_rows,
        runs=distinct_runs(runs),
        counts="\n".join(f"| {' | '.join(each)} | {count:,} |" for each, count in sorted(found.items())),
        columns="\n".join(f"| `{name}` | {types[name]} | {about} |" for name, (_, about) in COLUMNS.items()),
        version=cycletime.__version__,
    )


def distinct_runs(runs: pa.Table) -> int:
    """Rows without those that have the same run under another rule of the study."""
    names = ("study", "task", "algorithm", "dt_s", "seed", "settings")
    return len(set(zip(*(runs[name].to_pylist() for name in names), strict=True)))


def write(out: Path, results: Path = RESULTS) -> pa.Table:
    runs = table(results)
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(runs, out / "runs.parquet", compression="zstd")
    (out / "README.md").write_text(card(runs), encoding="utf-8")
    sums = [
        f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in ("README.md", "runs.parquet")
    ]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return runs


def _json(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, default=str, sort_keys=True)


def _finite(value: float) -> float | None:
    return float(value) if value == value and abs(value) != float("inf") else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    runs = write(out)
    file = out / "runs.parquet"
    size = f"{file.stat().st_size / 2**20:.1f} MiB"
    print(f"{runs.num_rows:,} rows of {distinct_runs(runs):,} runs in {file}, {size}.")


if __name__ == "__main__":
    main()
