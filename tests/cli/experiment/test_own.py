"""`cycletime experiment VERB module:NAME`: a small investigation of one's own, from its module to its verdict."""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cycletime
from cycletime.cli import main
from cycletime.experiments.outcome import Outcome
from tests.studies.stand_ins import Trained

MODULE = """\
from cycletime import Study
from cycletime.experiments.investigation import Experiment, Investigation

TABLE = {
    "name": "first", "task": "pendulum", "algorithm": "ppo", "dts": ["50ms", "100ms"], "seeds": [0, 1, 2],
    "env_steps": 20_000, "tuned": {"dt": "100ms", "batch": 400, "minibatch": 100},
}

TRIAL = Investigation(
    name="mine",
    experiments={"first": Experiment("first", "a trial")},
    study=lambda name, workspace: Study.read(TABLE),
    verdicts={"best": lambda results: f"{results.outcome('first').n[0]} seeds"},
)
"""


@pytest.fixture
def own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """A module in the current folder, which nothing else finds; what a command on it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.setattr(cycletime, "__file__", str(tmp_path / "site-packages" / "cycletime" / "__init__.py"))
    monkeypatch.delitem(sys.modules, "my_trial", raising=False)

    def say(words: str, status: int = 0, module: str = MODULE) -> str:
        Path("my_trial.py").write_text(module)
        assert main(["experiment", *shlex.split(words)]) == status
        told = capsys.readouterr()
        return (told.err if status else told.out).removeprefix("cycletime: ")

    return say


def test_what_is_printed_and_kept_runs_as_it_stands(own: Callable[..., str], trained: Trained) -> None:
    assert own("list my_trial:TRIAL").endswith("'cycletime experiment run my_trial:TRIAL NAME' runs an experiment.\n")
    assert own("collect my_trial:TRIAL none", 2) == (
        "none has no study of 'my_trial:TRIAL', such as first: 'cycletime experiment run my_trial:TRIAL' makes them.\n"
    )
    said = own("run my_trial:TRIAL first --seeds 2 --scale 0.5").splitlines()
    assert said[-1] == "To keep what came of it: cycletime experiment collect my_trial:TRIAL mine"
    said = own(said[-1].partition("experiment ")[2]).splitlines()
    assert own(said[-1].partition("experiment ")[2]) == "2 seeds\n"
    command = str(Outcome.load(Path("mine/results/first.npz")).about["command"])
    assert command == "cycletime experiment run my_trial:TRIAL first --seeds 2 --scale 0.5"
    runs = len(trained.runs)
    own(command.partition("experiment ")[2])
    assert len(trained.runs) == runs, "it is the same study, which is done"


def test_the_example_of_the_docs_has_a_verdict(own: Callable[..., str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "paper.md").read_text()
    (module,) = re.findall(r"### Your own\n.*?```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    own("run my_trial:TRIAL first", module=module)
    own("collect my_trial:TRIAL mytrial")
    said = own("verdicts my_trial:TRIAL --results mytrial/results")
    assert said == "refuted: carried minus kept: 0 (0 to 0; n = 4; required: > 10)\n", "all scores are equal here"


def test_its_report_is_a_text_wherever_that_is_wanted(own: Callable[..., str]) -> None:
    own("run my_trial:TRIAL first")
    own("collect my_trial:TRIAL mine")
    for out in ("", " --out pages/what.md", ""):
        path = out.removeprefix(" --out ") or "mine-report.txt"
        said = own(f"report my_trial:TRIAL --results mine/results{out}")
        assert said == f"Tables and verdicts from 1 study are in {path}\n"
        assert Path(path).read_text() == "3 seeds\n"
    assert own("figures my_trial:TRIAL --results mine/results") == "0 figures in mine-figures\n"


PAGE = """\

def write(results, page):
    page.write_text("new")
    return [page]

PAGE = replace(TRIAL, write_report=write, report_path=Path("page.md"))
"""


def test_a_page_that_is_there_is_not_written_over_unless_it_is_named(own: Callable[..., str]) -> None:
    own("run my_trial:TRIAL first", module=f"from dataclasses import replace\nfrom pathlib import Path\n{MODULE}{PAGE}")
    own("collect my_trial:TRIAL mine")
    report = "report my_trial:PAGE --results mine/results"
    assert own(report) == "Tables and verdicts from 1 study are in page.md\n"
    Path("page.md").write_text("by people")
    assert own(report, 2) == (
        "page.md is there, and may be of other results than mine/results: to write it anew, give --out page.md, or a "
        "copy of it; 'cycletime experiment verdicts my_trial:PAGE --results mine/results' prints what they say.\n"
    )
    assert Path("page.md").read_text() == "by people"
    own(f"{report} --out page.md")
    assert Path("page.md").read_text() == "new"


def test_an_environment_of_gymnasium_s_has_results_too(own: Callable[..., str]) -> None:
    """Whose returns may be of any size: curves keep four digits of the largest."""
    module = MODULE.replace('"task": "pendulum"', '"env": "Pendulum-v1"')
    own("run my_trial:TRIAL first", module=module)
    own("collect my_trial:TRIAL mine", module=module)
    outcome = Outcome.load(Path("mine/results/first.npz"))
    for cell in outcome.cells:
        assert cell.curves.mean(axis=1) == pytest.approx(cell.scores, rel=1e-4)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("list my_trial:TRAIL", "an Investigation of the name 'TRAIL'; did you mean TRIAL?\n"),
        (
            "run my_trial:TRIAL first --scale 0.0001",
            "The study 'first': --scale 0.0001 is too small (env_steps is 2: no episode of pendulum ends before 5,000 "
            "environment steps (10s), so give at least that): give at least 0.25.\n",
        ),
        ("run my_trial:TRIAL first --engine cuda", "The study 'first': The engine cuda has the device 'cpu'"),
    ],
)
def test_what_is_wrong_is_said_of_its_study(own: Callable[..., str], words: str, says: str) -> None:
    assert says in own(words, 2)
    assert not Path("mine").exists()


def test_another_scale_than_before_is_refused_with_the_one_before(own: Callable[..., str]) -> None:
    own("run my_trial:TRIAL first --scale 0.5")
    assert own("run my_trial:TRIAL first --scale 0.25", 2) == (
        "mine/first has runs of 10,000 environment steps, and this size has 5,000: give --scale 0.5 again, or another "
        "folder as --out.\n"
    )


def test_an_error_in_a_study_s_function_says_which_study(own: Callable[..., str]) -> None:
    with pytest.raises(KeyError) as raised:
        own("run my_trial:TRIAL first", module=MODULE.replace("Study.read(TABLE)", "TABLE['none']"))
    assert raised.value.__notes__ == ["This is of the investigation's study 'first'."]
