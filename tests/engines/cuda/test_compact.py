import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cycletime.engines.cuda.compact import EPISODE, REPORTED, Kept, read_kept, write_kept
from cycletime.engines.cuda.layout import NUMBERS
from cycletime.errors import RunError
from cycletime.loops import EpisodeBins, Episodes


def make(seed: int) -> Kept:
    """A run as long as the paper's, with numbers that do not compress."""
    rng = np.random.default_rng(seed)
    reports = np.zeros(300, REPORTED)
    reports["agent_steps"] = np.arange(1, 301) * 4000 + seed
    for name in ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction"):
        reports[name] = rng.normal(size=300)
    lengths = np.full(8333, 1200, np.int64)
    curve = Episodes(lengths.cumsum(), lengths.cumsum() // 8, rng.normal(size=8333), lengths)
    return Kept(f"{seed:064}", EpisodeBins.none(10**7).plus(curve), 8, reports, wall_s=1.5, sessions=2)


def test_runs_come_back_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    runs = [
        replace(make(seed), policy=rng.normal(size=NUMBERS).astype(np.float32), episodes=np.ones(seed, EPISODE))
        for seed in range(3)
    ]
    write_kept(tmp_path / "some.npz", {"study": "grid"}, runs, states=np.arange(6).reshape(3, 2))
    about, back, arrays = read_kept(tmp_path / "some.npz")
    assert about == {"study": "grid"}
    assert arrays["states"].tolist() == [[0, 1], [2, 3], [4, 5]]
    for one, other in zip(runs, back, strict=True):
        assert (one.identity, one.wall_s, one.sessions, one.finished) == (
            other.identity,
            other.wall_s,
            other.sessions,
            other.finished,
        )
        for name in ("reports", "episodes", "policy"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
        for name in ("counts", "sums", "env_steps", "agent_steps"):
            assert getattr(one.bins, name).tobytes() == getattr(other.bins, name).tobytes(), name


def test_the_papers_grid_fits_into_64_mib(tmp_path: Path) -> None:
    write_kept(tmp_path / "some.npz", {}, [make(seed) for seed in range(20)])
    assert (tmp_path / "some.npz").stat().st_size / 20 * 3750 < 64 * 2**20


def test_a_file_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"npz cannot be written: No space left on device; the same command goes on\.$"):
        write_kept(tmp_path / "some.npz", {}, [make(0)])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"PK", None])
def test_what_is_no_file_of_runs_is_told_of(tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        np.savez(tmp_path / "some.npz", about=np.zeros(3, np.uint8))
    else:
        (tmp_path / "some.npz").write_bytes(content)
    with pytest.raises(RunError, match=r"some\.npz (is no file of runs|cannot be read as a file of runs): "):
        read_kept(tmp_path / "some.npz")
