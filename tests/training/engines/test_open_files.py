import resource

import pytest

from cycletime.training.process import SPARE_FILES, allow_open_files


@pytest.mark.parametrize(
    ("soft", "hard", "runs", "expected"),
    [
        (1024, 4096, 2000, 2000 + SPARE_FILES),
        (1024, 1500, 2000, 1500),
        (1024, 4096, 10, 1024),
        (1024, -1, 9000, 9000 + SPARE_FILES),
    ],
)
def test_the_limit_is_raised_as_far_as_runs_need_and_the_system_allows(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, runs: int, expected: int
) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: limits.append(given))
    allow_open_files(runs)
    assert limits[-1] == (expected, hard)
