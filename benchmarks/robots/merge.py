"""Merge what came back from trainings: python -m benchmarks.robots.merge FOLDER [FOLDER ...].

Each folder has the `rows.jsonl` of one command, and perhaps `policies.tar`. results/robots gets every run that has a
row there, once: rows.jsonl (the master), runs.csv, curves.npz, and policies/. Then `page.py` makes the page anew.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
from pathlib import Path

from benchmarks.robots.rows import Rows, csv_text, curve_arrays, master_text, read_rows
from benchmarks.robots.trial import HERE, read_trial

RESULTS = HERE.parent.parent / "results" / "robots"


def merge(folders: list[Path], results: Path = RESULTS, *, rehearsal: bool = False) -> Rows:
    """Take the rows of all folders into the results."""
    import numpy as np

    master = results / "rows.jsonl"
    files = [file for folder in folders for file in sorted(folder.rglob("rows.jsonl"))]
    if not files:
        raise FileNotFoundError(f"No rows.jsonl in {', '.join(map(str, folders))}.")
    rows = read_rows([*([master] if master.exists() else []), *files], rehearsal=rehearsal)
    results.mkdir(parents=True, exist_ok=True)
    for name, text in (("rows.jsonl", master_text(rows)), ("runs.csv", csv_text(rows))):
        unfinished = results / f".{name}"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(results / name)
    np.savez_compressed(results / "curves.npz", **curve_arrays(rows))
    for folder in folders:
        for archive in sorted(folder.rglob("policies.tar")):
            unpack_policies(archive, results / "policies")
    return rows


def unpack_policies(archive: Path, folder: Path) -> int:
    """Take the policies out of an archive, as far as it was written; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = 0
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                stream = opened.extractfile(member)
                if stream is not None and Path(member.name).name == member.name:
                    (folder / member.name).write_bytes(stream.read())
                    taken += 1
    except tarfile.ReadError:
        print(f"{archive} ends early: {taken} policies were taken.", file=sys.stderr)
    return taken


def summary(rows: Rows) -> str:
    """What is there and what is missing."""
    trial = read_trial()
    finished = rows.finished()
    lines = [f"{len(rows.runs)} runs, {len(rows.failures)} failures, {len(rows.unfinished)} begun and not finished"]
    for name, task in trial.tasks.items():
        planned = {run.key for run in trial.runs if trial.task_of(run) is task}
        intervals = rows.budget_intervals(name)
        budget = "left out" if rows.left_out(name) else "no budget" if intervals is None else f"{intervals} intervals"
        lines.append(f"{name}: {len(planned & finished)} of {len(planned)} runs, {budget}")
    lines += [f"failed: {failure['key']}: {failure['message']}" for failure in rows.failures]
    return "\n".join(lines)


def main() -> int:
    """Merge the folders and say what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--rehearsal", action="store_true", help="take the rows of a rehearsal, and no others")
    asked = parser.parse_args()
    print(summary(merge(asked.folders, asked.results, rehearsal=asked.rehearsal)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
