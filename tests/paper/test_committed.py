"""What is committed of the paper's results fits together: verdicts and the page about them follow from the data."""

import json
import re
from pathlib import Path

import pytest

from cycletime.paper.claims import CLAIMS, claims_as_json
from cycletime.paper.results import read_results
from cycletime.paper.tables import tuned_table

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "results" / "paper", ROOT / "docs" / "paper.md"


@pytest.fixture(scope="module")
def verdicts() -> list[dict[str, object]]:
    return json.loads(json.dumps(claims_as_json(CLAIMS, read_results(RESULTS))))  # type: ignore[no-any-return]


def test_the_verdicts_are_those_of_the_data(verdicts: list[dict[str, object]]) -> None:
    committed = json.loads((RESULTS / "claims.json").read_text())
    assert len(committed) == len(verdicts)
    for before, now in zip(committed, verdicts, strict=True):
        told = {
            key: value for key, value in now.items() if key not in ("conditions", "elsewhere", "statistic", "interval")
        }
        assert {key: before[key] for key in told} == told
        assert [each["verdict"] for each in before["elsewhere"]] == [each["verdict"] for each in now["elsewhere"]]  # type: ignore[attr-defined]


def test_the_page_tells_these_verdicts(verdicts: list[dict[str, object]]) -> None:
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert {number for number, *_ in rows} == {"1", "2", "3", "4", "5", "6", "7", "12"}
    for number, on_reacher, on_pendulum in rows:
        claim = next(each for each in verdicts if each["number"] == number)
        own, other = (on_pendulum, on_reacher) if number == "12" else (on_reacher, on_pendulum)
        where = "reacher" if number == "12" else "double-pendulum"
        elsewhere = next(each for each in claim["elsewhere"] if each["where"] == where)  # type: ignore[attr-defined]
        assert own.startswith(f"**{claim['verdict']}**")
        assert other.startswith(elsewhere["verdict"])


def test_the_page_s_tuned_table_is_that_of_the_data() -> None:
    rows = [
        line for line in tuned_table(read_results(RESULTS), "ppo-tuned").as_markdown().splitlines() if "ms" in line[:8]
    ]
    page = PAGE.read_text()
    assert len(rows) == 5
    assert all(row in page for row in rows)
