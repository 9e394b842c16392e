"""Files of finished runs: what goes in comes out, and no file is taken for what it is not."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cycletime.errors import RunError
from cycletime.training import run_store as bundle_module
from cycletime.training import spec as spec_module
from cycletime.training.finished_run import FinishedRun
from cycletime.training.learning_curve import EpisodeBins, Episodes
from cycletime.training.run_store import Bundle, write_bundles
from tests.training.runs.finished import AGENTS, ENV_STEPS, all_of, make_run, recomputed, run_of

MOST_FILE_BYTES = 16 * 2**20


def written(folder: Path, *runs: FinishedRun) -> Bundle:
    """The one file that runs are written into."""
    folder.mkdir(exist_ok=True)
    (path,) = write_bundles(folder, runs)
    return Bundle(path)


def rewritten(bundle: Bundle, change: Callable[[dict[str, NDArray[Any]]], Mapping[str, Any]]) -> Bundle:
    """The same file with other columns, and the name that it should have then."""
    with np.load(bundle.path) as file:
        columns = change(dict(file))
    bundle.path.unlink()
    buffer = BytesIO()
    np.savez_compressed(buffer, **columns)
    return renamed_after(bundle.path.parent, buffer.getvalue())


def renamed_after(folder: Path, content: bytes) -> Bundle:
    """A file whose name is the hash of its content, as whoever forges one would call it."""
    path = folder / f"{sha256(content).hexdigest()[:32]}.npz"
    path.write_bytes(content)
    return Bundle(path)


def about_of(columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(columns["about"].tobytes())
    return told


def as_column(told: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(told).encode(), np.uint8)


@pytest.mark.parametrize("policy", [True, False])
@pytest.mark.parametrize("episodes", [True, False])
@pytest.mark.parametrize("kind", AGENTS)
def test_runs_come_back_bit_for_bit(tmp_path: Path, kind: str, episodes: bool, policy: bool) -> None:
    runs = [make_run(kind, seed, episodes=episodes, policy=policy, ended=3 + seed, lines=seed + 1) for seed in range(3)]
    back = written(tmp_path, *runs)
    assert [all_of(run) for run in back.runs()] == [all_of(run) for run in runs]
    assert back.names == [run.name for run in runs]
    assert all_of(back.run(runs[1].name)) == all_of(runs[1])
    assert [told["result"] for told in back.about] == [run.result for run in runs]
    np.testing.assert_array_equal([each.means for each in back.scored], [run.curve.binned(ENV_STEPS) for run in runs])
    assert [each.result for each in back.scored] == [run.result for run in runs]


@pytest.mark.parametrize("episodes", [True, False])
def test_numbers_that_went_astray_and_runs_without_any_come_back_too(tmp_path: Path, episodes: bool) -> None:
    ends = np.array([10, 20, 30], np.int64)
    astray = Episodes(ends, ends, np.array([np.nan, -np.inf, -0.0]), np.full(3, 10))
    spec = make_run().spec
    runs = [
        run_of(spec, astray if episodes else EpisodeBins.none(ENV_STEPS).plus(astray)),
        make_run(seed=1, episodes=episodes, ended=0),
    ]
    losses = {"policy_loss": np.array([np.nan, np.inf, 5e-324, -0.0, 1.0])}
    runs[0] = replace(runs[0], metrics={**runs[0].metrics, **losses})
    back = written(tmp_path, *runs)
    assert [all_of(run) for run in back.runs()] == [all_of(run) for run in runs]
    assert np.isnan(back.scored[1].means).all()


def test_a_run_that_never_learned_has_no_lines(tmp_path: Path) -> None:
    run = make_run(lines=0)
    (back,) = written(tmp_path, run).runs()
    assert (all_of(back), back.metrics) == (all_of(run), {})


def test_runs_of_other_kinds_are_in_other_files(tmp_path: Path) -> None:
    kinds = [
        make_run(),
        make_run("sac"),
        make_run(seed=1, policy=False),
        make_run(seed=2, episodes=False),
        make_run(seed=3, lines=0),
    ]
    runs = [*kinds, *(recomputed(run, spec=replace(run.spec, seed=10 + run.spec.seed)) for run in kinds)]
    paths = write_bundles(tmp_path, runs)
    assert len(paths) == len(set(paths)) == len(kinds)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    back = {run.name: run for path in paths for run in Bundle(path).runs()}
    assert {name: all_of(run) for name, run in back.items()} == {run.name: all_of(run) for run in runs}


def test_a_file_has_room_for_so_much_and_a_larger_run_has_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(seed=seed, episodes=False, policy=False, lines=10) for seed in range(9)]
    runs.insert(4, make_run(seed=9, episodes=False, policy=False, lines=2000))
    monkeypatch.setattr(bundle_module, "MOST_BYTES", 4 * (4 * 800 + 5 * 80))
    files = [Bundle(path).names for path in write_bundles(tmp_path, runs)]
    assert [name for names in files for name in names] == [run.name for run in runs]
    assert [len(names) for names in files] == [4, 1, 4, 1]


def test_files_of_runs_that_do_not_compress_are_smaller_than_16_mib(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    large = replace(make_run(policy=False), metrics={"loss": rng.normal(size=12_000)})
    runs = [replace(large, spec=replace(large.spec, seed=seed)) for seed in range(150)]
    paths = write_bundles(tmp_path, runs)
    assert len(paths) == 2
    assert all(path.stat().st_size < MOST_FILE_BYTES for path in paths)


def test_a_file_is_named_after_its_content(tmp_path: Path) -> None:
    one, other = make_run(seed=0), make_run(seed=1)
    paths = [written(tmp_path / name, *runs).path for name, runs in {"a": [one, other], "b": [one, other]}.items()]
    assert paths[0].name == paths[1].name
    assert written(tmp_path, other, one).path.name != paths[0].name
    before = paths[0].stat()
    assert write_bundles(tmp_path / "a", [one, other]) == [paths[0]]
    assert paths[0].stat().st_mtime_ns == before.st_mtime_ns, "it is there already"
    renamed = paths[0].rename(paths[0].with_name(f"{'0' * 32}.npz"))
    with pytest.raises(RunError, match="it is not what was written: its hash is another"):
        Bundle(renamed).runs()


def test_for_the_names_no_more_is_read_than_these(tmp_path: Path) -> None:
    """All else may be missing."""
    run = make_run()
    only = rewritten(written(tmp_path, run), lambda columns: {"about": columns["about"]})
    assert (only.names, only.about[0]["result"]) == ([run.name], run.result)
    with pytest.raises(RunError, match="does not know, 'counts'"):
        _ = only.scored
    only.path.unlink()
    assert only.names == [run.name], "what was read is not read again"


# What is no file of runs.


def test_a_file_that_is_gone_is_told_apart_from_one_that_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _ = Bundle(tmp_path / "gone.npz").names


@pytest.mark.parametrize("share", [0, 0.3, 0.7, 0.99])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, share: float) -> None:
    whole = written(tmp_path, make_run())
    os.truncate(whole.path, int(share * whole.path.stat().st_size))
    for read in (lambda: whole.names, lambda: whole.scored, whole.runs):
        with pytest.raises(RunError, match=f"{whole.path} cannot be read as a file of finished runs: "):
            read()


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("whole"), make_run(), make_run(seed=1)).path.read_bytes()


@settings(max_examples=150)
@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_anywhere_is_one_sentence_or_known_by_the_name(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, share: float, bit: int
) -> None:
    path, flipped = tmp_path_factory.mktemp("flipped") / f"{sha256(content).hexdigest()[:32]}.npz", bytearray(content)
    flipped[int(share * len(content))] ^= 1 << bit
    path.write_bytes(flipped)
    for read in (lambda file: file.names, Bundle.size):
        with suppress(RunError):
            read(Bundle(path))
    for read in (lambda file: file.scored, Bundle.runs):
        with pytest.raises(RunError, match="its hash is another"):
            read(Bundle(path))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda columns: {"x": np.zeros(3)}, "does not know, 'about'"),
        (lambda columns: {"about": np.zeros(3, np.uint8)}, "Expecting value"),
        (lambda columns: {"about": as_column([])}, "it is not a JSON object"),
        (lambda columns: {"about": as_column({"format": 1, "runs": [{}]})}, "does not know, 'name'"),
        (lambda columns: {"about": as_column({**about_of(columns), "format": 2})}, "the format 2, and .* reads 1"),
    ],
)
def test_other_files_and_formats_are_refused(
    tmp_path: Path, change: Callable[[Any], Mapping[str, Any]], reason: str
) -> None:
    with pytest.raises(RunError, match=f"cannot be read as a file of finished runs: .*{reason}"):
        _ = rewritten(written(tmp_path, make_run()), change).names


def test_columns_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    runs = make_run(), make_run(seed=1)
    for number, change in enumerate(
        (
            lambda columns: {**columns, "metrics/each": columns["metrics/each"][:1]},
            lambda columns: {**columns, "policy/log_std": np.zeros((2, 9))},
            lambda columns: {name: each for name, each in columns.items() if name != "sums"},
        )
    ):
        with pytest.raises(RunError, match="cannot be read as a file of finished runs"):
            rewritten(written(tmp_path / str(number), *runs), change).runs()


def test_runs_of_code_that_gives_other_numbers_are_not_taken_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = written(tmp_path, make_run())
    monkeypatch.setattr(spec_module, "RESULT_VERSION", spec_module.RESULT_VERSION + 1)
    assert whole.names != [make_run().name]
    with pytest.raises(RunError, match=f"the run {whole.names[0]} is {make_run().name} by its spec"):
        whole.runs()


class Bomb:
    """What pickle would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_pickles_are_never_run(tmp_path: Path) -> None:
    bomb = Bomb(tmp_path / "exploded")
    bundle = written(tmp_path, make_run())
    bundle = rewritten(bundle, lambda columns: {**columns, "metrics/kl": np.array([bomb], object)})
    with pytest.raises(RunError, match=r"its metrics/kl is object\[1\]"):
        bundle.runs()
    bundle.path.write_bytes(pickle.dumps(bomb))
    with pytest.raises(RunError, match="not a zip file"):
        _ = Bundle(bundle.path).names
    assert not (tmp_path / "exploded").exists()
    pickle.loads(pickle.dumps(bomb))
    assert (tmp_path / "exploded").exists()


# What was forged, and given the name that it should have.


def with_result(**changes: Any) -> Callable[[dict[str, Any]], Mapping[str, Any]]:  # noqa: ANN401 - whatever JSON has
    """Change what the first run's result says."""

    def change(columns: dict[str, Any]) -> Mapping[str, Any]:
        told = about_of(columns)
        told["runs"][0]["result"] |= changes
        return {**columns, "about": as_column(told)}

    return change


def with_column(name: str, change: Callable[[NDArray[Any]], Any]) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    return lambda columns: {**columns, name: change(columns[name])}


def twice(columns: dict[str, Any]) -> Mapping[str, Any]:
    told = about_of(columns)
    return {**columns, "about": as_column({**told, "runs": [told["runs"][0], told["runs"][0]]})}


def nameless(columns: dict[str, Any]) -> Mapping[str, Any]:
    return {**columns, "about": as_column({"format": 1, "runs": [{"name": 3, "spec": {}, "result": {}}]})}


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], Mapping[str, Any]], str]] = {
    "average": (with_result(average_return=7.0), "says 7.0 as average_return, and it is -0.76"),
    "last tenth": (with_result(last_tenth_return=7.0), "says 7.0 as last_tenth_return, and it is"),
    "plain mean": (with_result(mean_over_episodes=7.0), "says 7.0 as mean_over_episodes, and it is"),
    "no number": (with_result(average_return=float("nan")), "says nan as average_return, and it is"),
    "episodes": (with_result(episodes=8), "says 8 as episodes, and it is 7"),
    "dt": (with_result(dt="8ms"), "says '8ms' as dt, and it is '16ms'"),
    "agent steps": (with_result(agent_steps=1), "out of order"),
    "where": (with_result(where=None), "says None as where"),
    "real robot": (with_result(where="real robot"), "its result comes from 'real robot', and its spec is for reacher"),
    "wall time": (with_result(wall_s=float("inf")), "says inf as wall_s"),
    "environment's step": (with_result(env_dt_s=0.004), "says 0.004 as env_dt_s, and it is 0.002"),
    "resumed": (with_result(resumed="resumed, identical"), "as resumed, and it is 'never'"),
    "remarks": (with_result(remarks="none"), "says 'none' as remarks"),
    "machine": (with_result(machine=[]), r"says \[\] as machine"),
    "digits": (with_result(agent_steps=10**399), "a number of 400 digits"),
    "something else": (with_result(new=1), "says new, which no result does"),
    "counts": (with_column("counts", lambda counts: counts + 1), "its bins are not those of its episodes"),
    "sums": (with_column("sums", lambda sums: sums * 2), "its bins are not those of its episodes"),
    "sums of no number": (with_column("sums", lambda sums: sums * np.nan), "not those of its episodes"),
    "returns": (with_column("episodes/returns", lambda returns: returns + 1), "as average_return, and it is 0.23"),
    "lengths": (with_column("episodes/length_steps", lambda lengths: -lengths), "of a length that cannot be"),
    "kind": (with_column("counts", lambda counts: counts.astype(float)), r"its counts is float64\[2, 100\]"),
    "text": (with_column("metrics/kl", lambda column: column.astype("U")), "its metrics/kl is <U"),
    "shape": (with_column("sums", lambda sums: sums[:, :50]), "its curves do not fit each other"),
    "rows": (with_column("sums", lambda sums: sums[:1]), r"its sums is float\d+\[1, 100\] for 2 runs"),
    "dimensions": (with_column("sums", lambda sums: sums[0]), r"its sums is float\d+\[100\]"),
    "lines": (with_column("metrics/each", lambda each: each * [-1, 3]), "tables of metrics that do not fit"),
    "many": (with_column("metrics/each", lambda each: each * 10**9), "tables of metrics that do not fit"),
    "twice": (twice, "it has a run twice"),
    "no name": (nameless, "it says 3 where a run's name, spec and result should be"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found_by_what_it_says(tmp_path: Path, name: str) -> None:
    change, reason = FORGERIES[name]
    forged = rewritten(written(tmp_path, make_run(), make_run(seed=1)), change)
    for read in (lambda: forged.scored, forged.runs):
        with pytest.raises(RunError, match=f"{forged.path} cannot be read as a file of finished runs: .*{reason}"):
            read()


def test_a_file_that_unpacks_to_very_much_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_module, "MOST_READ", 10**6)
    bomb = rewritten(written(tmp_path, make_run()), with_column("counts", lambda _: np.zeros((1, 10**6), np.int64)))
    assert bomb.path.stat().st_size < 20_000
    with pytest.raises(RunError, match=r"it declares 8,0.* bytes, and 1,000,000 are the most"):
        _ = bomb.names
    monkeypatch.setattr(bundle_module, "MOST_READ", 1000)
    with pytest.raises(RunError, match=r"has .* bytes or more: at most 1000 are read"):
        bomb.runs()


def test_a_file_declares_no_more_than_the_specs_of_its_runs_let_them_have(tmp_path: Path) -> None:
    for number, (name, zeros, reason) in enumerate(
        (
            ("episodes/returns", np.zeros(10**6), "has 1,000,000 rows, and its runs have 3,000 at most"),
            ("metrics/kl", np.zeros(10**6), "has 1,000,000 rows, and its runs have 3,000 at most"),
            ("policy/log_std", np.broadcast_to(np.zeros(1, "e"), (1, 2**26 + 1)), r"is \[1, 67108865\]"),
        )
    ):
        bomb = rewritten(written(tmp_path / str(number), make_run()), with_column(name, lambda _: zeros))  # noqa: B023
        with pytest.raises(RunError, match=f"its {name} {reason}"):
            bomb.runs()


@pytest.mark.parametrize("hostile", ["fifo", "/dev/zero"])
def test_a_file_that_does_not_end_is_refused(tmp_path: Path, hostile: str) -> None:
    path = tmp_path / f"{'0' * 32}.npz"
    if hostile == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(hostile)
    for read in (lambda: Bundle(path).names, Bundle(path).runs, Bundle(path).size):
        with pytest.raises(RunError, match=r"is a (pipe|device): give a regular file"):
            read()
