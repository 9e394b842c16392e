from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.training.trackers import RunInfo, Scalar


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """W&B reads its variables once, on import; so they are set once for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("WANDB_SILENT", "true")
        for name in ("WANDB_PROJECT", "WANDB_DIR", "WANDB_NAME"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def run_info(tmp_path: Path) -> Callable[..., RunInfo]:
    config: dict[str, Scalar] = {"agent.discount": 0.99, "dt": "16ms", "seed": 3, "exact": True, "exploration": None}
    usual = RunInfo(name="reacher-ppo-16ms-seed3", identity="0a" * 32, folder=tmp_path / "run", config=config)

    def make(**changes: object) -> RunInfo:
        return replace(usual, **changes)  # type: ignore[arg-type]

    return make
