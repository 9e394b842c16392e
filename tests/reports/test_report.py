import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError, RunError
from cycletime.reports import drawing
from cycletime.reports.formatting import TextTable
from cycletime.reports.output import markdown_text, report_as_json, report_as_markdown, write_report
from cycletime.reports.report import Report
from cycletime.studies.study_folder import StudyFolder

MakeStudy = Callable[..., StudyFolder]
GOLDEN = Path(__file__).parent / "small.md"


def test_markdown_is_what_it_was(decided: StudyFolder) -> None:
    report = Report.of(decided, command="cycletime study report study")
    told = report_as_markdown(report, [["reacher-ppo-performance.png", "reacher-ppo-curves.png"]])
    # The ends of bootstrap intervals are SciPy's own draws.
    assert re.sub(r"(frequency.*)", lambda line: re.sub(r"\[.*?\]", "[...]", line[0]), told) == GOLDEN.read_text()


def test_all_files_are_written_and_the_same_each_time(decided: StudyFolder, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_report(Report.of(decided), tmp_path / "deep" / name)
    one, two = (
        {file.name: file.read_bytes() for file in (tmp_path / "deep" / name).iterdir()} for name in ("one", "two")
    )
    assert one == two
    assert sorted(one) == [
        "reacher-ppo-curves.png",
        "reacher-ppo-curves.svg",
        "reacher-ppo-performance.png",
        "reacher-ppo-performance.svg",
        "report.html",
        "report.json",
        "report.md",
        "scores.csv",
    ]
    for target in re.findall(rb"\]\(([^)]+)\)", one["report.md"]):
        assert target.decode() in one


def test_files_are_utf_8_whatever_the_locale_is(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io, "text_encoding", lambda encoding, stacklevel=2: encoding or "ascii")
    write_report(Report.of(make_study(lambda labels, seed: None)), tmp_path)
    assert (tmp_path / "report.md").read_bytes().decode()


def test_a_folder_whose_name_is_not_utf_8_gets_a_report_that_is(make_study: MakeStudy, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    write_report(Report.of(make_study(lambda labels, seed: None), command=f"cycletime study report {odd}"), odd)
    for name in ("report.md", "report.html", "report.json"):
        assert r"caf\udce9" in (odd / name).read_text(encoding="utf-8")
    assert (odd / "scores.csv").is_file()


def test_a_row_for_each_cell_and_seed_is_in_the_csv(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "draw_figure", lambda spec: None)
    monkeypatch.setattr(drawing, "save_figures", lambda *_: [])
    comes: list[Any] = [-1.5, "astray", None]
    write_report(Report.of(make_study(lambda labels, seed: comes[seed])), tmp_path)
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    first = {"task": "reacher", "algorithm": "ppo", "rule": "baseline", "dt": "0.032", "seed": "0"}
    assert {key: rows[0][key] for key in first} == first
    assert [row["state"] for row in rows[:3]] == ["done", "done", "pending"]
    assert [row["average_return"] for row in rows[:3]] == ["-1.5", "", ""]


def test_panels_with_the_same_words_have_files_of_their_own_and_layers_stand_in_the_csv(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "draw_figure", lambda spec: None)
    monkeypatch.setattr(drawing, "save_figures", lambda names, out, _: [out / f"{name}.png" for name in names])
    sets = {"hidden": [[8, 8], [88]], "learn_when": ["batch", "episode_end"]}
    scores = {((8, 8), "batch"): 1.0, ((8, 8), "episode_end"): 3.0, ((88,), "batch"): 2.0, ((88,), "episode_end"): 4.0}
    folder = make_study(
        lambda labels, seed: scores[labels["hidden"], labels["learn_when"]], set=sets, rules=["baseline"], seeds=1
    )
    write_report(Report.of(folder), tmp_path)
    told = (tmp_path / "report.md").read_text()
    # The three best of four choices are drawn.
    assert re.findall(r"\]\((.*)-learn-when-(.*)-performance\.png\)", told) == [
        ("reacher-ppo-hidden-8-8", "episode-end"),
        ("reacher-ppo-hidden-88", "batch"),
        ("reacher-ppo-hidden-88", "episode-end"),
    ]
    assert "Figures are of the 3 best" in told
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["hidden"], row["learn_when"]) for row in rows[:3]] == [
        ("(8, 8)", "batch"),
        ("(8, 8)", "episode_end"),
        ("(88,)", "batch"),
    ]


def test_a_study_without_any_score_is_reported_without_figures(make_study: MakeStudy, tmp_path: Path) -> None:
    write_report(Report.of(make_study(lambda labels, seed: None)), tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == [
        "report.html",
        "report.json",
        "report.md",
        "scores.csv",
    ]
    told = (tmp_path / "report.md").read_text()
    assert "0 of 9 runs have a score; the others: 9 not done yet." in told
    assert "| 16 ms | - (0 of 3) | - (0 of 3) same runs |" in told


def test_json_has_the_numbers_of_the_table(decided: StudyFolder) -> None:
    told = json.loads(json.dumps(report_as_json(Report.of(decided)), allow_nan=False))
    assert told["runs"] == {"planned": 9, "scored": 9}
    (panel,) = told["panels"]
    assert (panel["rules"], panel["dts_s"]) == (["baseline", "dt-aware"], [0.016, 0.032])
    cell = panel["cells"][3]
    assert (cell["rule"], cell["dt_s"], cell["scores"], cell["verdict"]) == (
        "dt-aware",
        0.032,
        [-27, -26, -25],
        "better",
    )
    assert cell["estimate"] | {"low": 0, "high": 0} == {
        "value": -26.0, "low": 0, "high": 0, "interval": "standard error", "n": 3}  # fmt: skip
    assert cell["comparison"]["difference"]["value"] == 15.0
    assert panel["best"]["dt-aware"]["dt_s"] == 0.016
    assert told["made_by"][0]["runs"] == 9


def test_json_of_nothing_has_no_number_that_json_lacks(make_study: MakeStudy) -> None:
    told = report_as_json(Report.of(make_study(lambda labels, seed: "astray" if seed else None)))
    (panel,) = json.loads(json.dumps(told, allow_nan=False))["panels"]
    assert panel["cells"][0]["estimate"] is None
    assert panel["cells"][0]["runs"] == {"planned": 3, "astray": 2, "unfinished": 1}


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"measure": "median"}, "'median' is not a measure: give one of average, last-tenth, episodes."),
    ],
)
def test_what_there_is_not_is_refused(decided: StudyFolder, keys: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        Report.of(decided, **keys)
    assert str(refusal.value) == says


def test_a_folder_that_cannot_be_made_is_one_sentence(decided: StudyFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        write_report(Report.of(decided), tmp_path / "file" / "report")


def test_names_that_mean_something_in_markdown_stand_in_it_as_they_are(
    make_study: MakeStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a|b <img src=x> [c](http://d) *e* _f_ `g` &amp;"
    folder = make_study(lambda labels, seed: 1.0, name=name)
    report = Report.of(folder, command="cycletime report `a`\n# b\x1b[2J")
    title, *lines = report_as_markdown(report).splitlines()
    assert title == r"# a\|b \<img src=x> [c\](http://d) \*e\* \_f\_ \`g\` \&amp;"
    assert lines[-2] == r"- The report: ``cycletime report `a` # b\x1b[2J``"
    table = TextTable(["|", "b"], [["<b>", "_c_"]], "of *x*", (), ["~", "&amp;"])
    monkeypatch.setattr(Report, "tables", lambda report: [(table, [])])
    told = report_as_markdown(report)
    for line in (r"## of \*x\*", r"| \| | b |", r"| \<b> | \_c\_ |", r"| \~ | \&amp; |"):
        assert f"\n{line}\n" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\n# b\n| c |", r"a # b \| c \|"),
        ("\x1b]0;mine\x07\u202e", r"\\x1b]0;mine\\x07\\u202e"),
        ("[no]: http://definition", r"[no\]: http://definition"),
        ("</details><!-- lost", r"\</details>\<!-- lost"),
        (r"\*", r"\\\*"),
        (
            "-16.5 [-17.2, -15.9], p < 0.05, learning_rate 'dt-aware'",
            "-16.5 [-17.2, -15.9], p < 0.05, learning_rate 'dt-aware'",
        ),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, told: str) -> None:
    assert markdown_text(text) == told
