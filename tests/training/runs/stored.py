"""Stores with finished runs that nobody had to train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cycletime.training.finished_run import FinishedRun
from cycletime.training.run_store import Store
from tests.training.runs.finished import all_of, make_run

KINDS: tuple[dict[str, Any], ...] = ({}, {"kind": "sac"}, {"episodes": False, "policy": False})


def runs_of(*seeds: int) -> list[FinishedRun]:
    """Runs of three kinds for each seed."""
    return [make_run(**kind, seed=3 * seed + place) for seed in seeds for place, kind in enumerate(KINDS)]


def filled(folder: Path, seeds: int = 4) -> tuple[Store, dict[str, Any]]:
    """A store that runs were added to one seed at a time, and all that there is of them by name."""
    store = Store(folder / "finished")
    runs = runs_of(*range(seeds))
    for seed in range(seeds):
        store.add(runs[3 * seed : 3 * seed + 3])
    return store, {run.name: all_of(run) for run in runs}


def held(folder: Path) -> dict[str, Any]:
    """What somebody finds who looks for the first time."""
    store = Store(folder / "finished")
    names = store.refresh()
    found = list(store.runs())
    assert len(found) == len(names), "each once"
    assert not store.damaged
    return {run.name: all_of(run) for run in found}


def files_of(store: Store) -> set[str]:
    return {path.name for path in store.folder.iterdir()}
