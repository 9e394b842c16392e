"""README and docs: every command is run and must print what stands below it, every Python example must run.

A ``console`` block is a session: a line that starts with '$ cycletime' is a command, what follows is what it prints.
A block that begins with a comment '# not run: why' is left out; installing, for example, is what CI itself does.
"""

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

import cycletime
from cycletime.cli import main
from cycletime.errors import InputError
from cycletime.rules import PPO
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.tuning_spec import tuning_from_table
from cycletime.tasks import retime

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[object]:
    found = [(page, text) for page in PAGES for kind, text in FENCE.findall(page.read_text()) if kind == language]
    return [
        pytest.param(page, text, id=f"{page.relative_to(ROOT)}: {text.splitlines()[0]}")
        for page, text in found
        if not text.startswith("# not run: ")
    ]


def printed_by(command: str) -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(shlex.split(command)[1:])
    out.seek(0)
    return out.read()


@pytest.mark.parametrize(("page", "session"), blocks("console"))
def test_commands_print_what_the_page_shows(page: Path, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    commands = re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]
    assert commands, f"{page} has a console block without a command"
    for part in commands:
        command, shown = part.split("\n", 1)
        assert command.startswith("cycletime "), f"{page}: only cycletime can be checked, not {command!r}"
        assert printed_by(command).rstrip() == shown.rstrip(), f"{page}: {command}"


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize(("page", "program"), blocks("python"))
def test_python_examples_run_and_print_what_their_comments_say(
    page: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment behind print(...), which may have several lines, is what it prints."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(retime, "RETIMINGS", dict(retime.RETIMINGS))  # to which an example adds
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, str(page), "exec"), {})
    assert {*comments_behind_prints(program)} <= {*out.getvalue().splitlines()}, out.getvalue()


def comments_behind_prints(program: str) -> list[str]:
    lines = program.splitlines()
    calls = [each for each in ast.walk(ast.parse(program)) if isinstance(each, ast.Call)]
    prints = [each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "print"]
    ends = [lines[(each.end_lineno or 0) - 1].encode()[each.end_col_offset :].decode() for each in prints]
    return [end.removeprefix("  # ") for end in ends if end.startswith("  # ")]


def test_comments_behind_prints_of_several_lines_are_found() -> None:
    assert comments_behind_prints("print(1)  # 1\nprint(\n    'é', 2\n)  # é 2\nprint(3)\n") == ["1", "é 2"]


def test_examples_that_are_not_run_import_what_there_is() -> None:
    programs = [(page, text) for page in PAGES for kind, text in FENCE.findall(page.read_text()) if kind == "python"]
    not_run = [(page, ast.parse(text)) for page, text in programs if text.startswith("# not run: ")]
    imports = [(page, each) for page, tree in not_run for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    of_ours = [(page, each) for page, each in imports if (each.module or "").partition(".")[0] == "cycletime"]
    assert of_ours
    for page, each in of_ours:
        module = import_module(each.module or "")
        for name in each.names:
            assert hasattr(module, name.name), f"{page.relative_to(ROOT)}: {each.module} has no {name.name}"


def test_what_pages_say_to_type_works_as_typed_in_a_clone() -> None:
    """Calls of help after 'import cycletime', commands that there are, and extras of the clone, not of an index."""
    texts = [page.read_text() for page in PAGES]
    offered = {call for text in texts for call in re.findall(r"(?:from [\w.]+ import \w+; )?help\([\w.]+\)", text)}
    program = "\n".join(["import cycletime", *(call.replace("help(", "callable(") for call in sorted(offered))])
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert "help(cycletime.train)" in offered
    assert not [text for text in texts if re.search(r"pip install [^`\n]*'cycletime\[", text)]


@pytest.mark.parametrize(("page", "text"), blocks("toml"))
def test_studies_and_tunings_can_be_read(page: Path, text: str) -> None:
    """Of blocks that are a whole study or tuning; others show some lines of one."""
    table = tomllib.loads(text)
    if "env_steps" in table:
        assert tuning_from_table(table).grid() if "fresh_seeds" in table else study_from_table(table).size


def test_the_examples_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "studies.md").read_text()
    assert (ROOT / "docs" / "examples" / "reacher-quick.toml").read_text() in page


def test_the_page_of_studies_has_every_key_of_their_files() -> None:
    with pytest.raises(InputError) as refused:
        study_from_table({"nothing": 1})
    keys = str(refused.value).partition("it has ")[2].rstrip(".").split(", ")
    table = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "studies.md").read_text(), re.MULTILINE)
    named = set(re.findall(r"`\[?(\w+)", " ".join(table)))
    assert len(keys) > 20
    assert named.issuperset(keys)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_the_table_of_carried_values_is_the_rule_at_work() -> None:
    rows = re.findall(r"^\| \**(\d+) ms\** \|(.*)\|$", (ROOT / "docs" / "move.md").read_text(), re.MULTILINE)
    assert [int(dt) for dt, _ in rows] == [4, 8, 16, 32, 64]
    for dt, cells in rows:
        batch, minibatch, discount, trace_decay, batch_time = cells.replace("*", "").replace(" s", "").split("|")
        values = PPO(dt="16ms").at(f"{dt}ms")
        assert (int(batch), int(minibatch)) == (values.batch, values.minibatch)
        assert (float(discount), float(trace_decay)) == (round(values.discount, 4), round(values.trace_decay, 4))
        assert float(batch_time) == pytest.approx(values.seconds()["batch"])


def test_the_readme_begins_with_films_and_the_figure_and_its_study_ends_with_the_page() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(r"!\[.+\]\((.*)\)", readme.split("\n## ")[0].replace(" | ", "\n"))
    assert [Path(name).stem for name in shown] == ["reacher-4ms-baseline", "reacher-4ms-dt-aware", "rule"]
    assert readme.index("cycletime report quick") < readme.index("`quick/report/report.html`")


def test_pictures_have_words_and_are_small_and_shown() -> None:
    shown = {
        (page.parent / picture).resolve(): words
        for page in PAGES
        for words, picture in re.findall(r"!\[(.*?)\]\((.+?)\)", page.read_text())
    }
    assert all(len(words.split()) > 2 for words in shown.values())
    assert all(picture.stat().st_size < 300_000 for picture in shown)
    assert {*(ROOT / "docs" / "figures").glob("*.*")} <= shown.keys()


def test_the_navigation_has_every_page_once() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = [page for section in navigation for page in _pages_of(section)]
    assert sorted(pages) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES[1:])


def test_a_built_site_has_its_list_of_pages_and_the_calculator_as_one_file(tmp_path: Path) -> None:
    """Without the reference from docstrings, which takes its time and has no part in this."""
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), plugins=[], strict=False)
    build(config)
    listed = re.findall(r"^- \[[^]]+\]\((\S+)\)$", (tmp_path / "llms.txt").read_text(), re.MULTILINE)
    paths = [tmp_path / url.removeprefix(config.site_url or "") / "index.html" for url in listed]
    assert len(paths) == len(PAGES) - 1
    assert [path for path in paths if not path.exists()] == []
    calculator = (tmp_path / "calculator.html").read_text()
    assert 'class="calculator"' in calculator
    page = (tmp_path / "calculator" / "index.html").read_text()
    assert 'class="calculator"' in page
    assert "docs/hooks.py" not in page  # which stands there for those who read the source alone
    assert not re.findall(r"(?:src|href)=[\"']http", calculator)


def _pages_of(entry: str | dict[str, Any]) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [
        page
        for inside in entry.values()
        for each in ([inside] if isinstance(inside, str) else inside)
        for page in _pages_of(each)
    ]


def test_the_reference_has_all_that_the_package_offers() -> None:
    reference = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    documented = re.findall(r"^::: \S+\.(\w+)$", reference, re.MULTILINE)
    assert {*documented} >= {*vars(cycletime)["__all__"]} - {"rules"}


def test_ci_runs_the_readme_s_test_command() -> None:
    assert "```sh\n./check\n```" in (ROOT / "README.md").read_text()
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("exec ./check")


def test_outputs_that_the_docs_show_stand_in_the_results() -> None:
    """A ``text`` block of a page that names files in results/ is copied from one of them."""
    for page in PAGES:
        text = page.read_text()
        named = [ROOT / name for name in re.findall(r"`(results/[^`]+\.txt)`", text)]
        kept = "\n".join(file.read_text() for file in named)
        for kind, block in FENCE.findall(text):
            if named and kind == "text":
                assert block in kept + "\n", f"{page.relative_to(ROOT)}: {block[:60]!r} is in none of {named}"


def test_how_often_advice_is_wrong_stands_in_the_results() -> None:
    kept, page = ((ROOT / name).read_text().splitlines() for name in ("results/advise.txt", "docs/advise.md"))
    rows = [line for line in kept if line.startswith("| ")]
    assert len(rows) == 5
    assert set(rows) <= set(page)
    assert "`--first-seeds 10` or 20: the same line then has {} or {} %.".format(*kept[-1].split(" and ")) in page


def test_the_agreement_with_pybullet_stands_in_the_results() -> None:
    kept = (ROOT / "results" / "closed-form-against-pybullet.txt").read_text()
    rows = re.findall(r"16ms .*200 episodes.* median (\S+), worst (\S+),", kept)
    assert len(rows) == 5
    median, worst = (max(each, key=float) for each in zip(*rows, strict=True))
    page = (ROOT / "docs" / "tasks.md").read_text()
    assert f"by {median} or less in the median and by {worst} at most" in page
