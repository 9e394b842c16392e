"""What is made of the committed results: the paper's report, claims, tables and figures; the pages of horizons."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.goldens.conftest import Say
from tests.goldens.goldens import RESULTS, ROOT, digest, holds, holds_json, steady

pytestmark = pytest.mark.goldens

SVG = "{http://www.w3.org/2000/svg}"
PAPER, HORIZONS = ["--results", str(RESULTS / "paper")], ["--results", str(RESULTS / "horizons")]


def drawn(file: Path) -> dict[str, Any]:
    """What a figure says and shows: its texts, and a hash of its lines, wherever on the page they are drawn."""
    root = ElementTree.parse(file).getroot()
    texts = ["".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")]
    lines = []
    for path in root.iter(f"{SVG}path"):
        numbers = [float(each) for each in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", path.get("d", ""))]
        points = list(zip(numbers[::2], numbers[1::2], strict=False))
        if len(points) >= 8:
            lines.append("".join(_within(axis) for axis in zip(*points, strict=True)))
    return {"texts": texts, "lines": len(lines), "sha256 of lines": digest("\n".join(sorted(lines)))}


def _within(values: tuple[float, ...]) -> str:
    """Numbers as shares of their range."""
    low, high = min(values), max(values)
    return " ".join(f"{(value - low) / ((high - low) or 1.0):.2f}" for value in values) + ";"


def drawn_in(folder: Path) -> dict[str, Any]:
    """All figures in a folder."""
    return {file.stem: drawn(file) for file in sorted(folder.rglob("*.svg"))}


def data_of(page: str) -> dict[str, Any]:
    """What stands in an HTML page: its words, and its data by part, each as a hash; what its figures are called."""
    words = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    words = " ".join(re.sub(r"<[^>]+>", " ", words).split())
    found: dict[str, Any] = {"words": digest(steady(words))}
    blocks = dict(re.findall(r'<script type="text/plain" id="data-([a-z0-9-]+)">(.*?)</script>', page, re.DOTALL))
    lead = json.loads(blocks.pop("lead", "{}"))  # a part of the rest, so that it is drawn at once
    packed = {name: base64.b64decode(block) for name, block in blocks.items()}
    data = {name: json.loads(gzip.decompress(part)) for name, part in packed.items() if part[:2] == b"\x1f\x8b"}
    main = data.pop("main")
    figures = main.pop("figures", {})
    assert main or data, "a page has its data with it"
    assert all(figures[name] == figure for name, figure in lead.get("figures", {}).items())
    named = ("kind", "title", "xLabel", "yLabel")
    found["figures"] = {
        name: {**{key: each.pop(key, None) for key in named}, "sha256": _hash(each)} for name, each in figures.items()
    }
    found["data"] = {name: _hash(part) for name, part in {**main, **data}.items()}
    found["films"] = {name: digest(part) for name, part in packed.items() if name not in data and name != "main"}
    return found


def _hash(part: object) -> str:
    return digest(json.dumps(part, sort_keys=True))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("paper-claims", ["experiment", "verdicts", "paper", *PAPER]),
        ("paper-table-ppo", ["experiment", "table", "paper", "ppo-tuned", *PAPER]),
        ("paper-table-sac", ["experiment", "table", "paper", "sac-tuned", *PAPER]),
        ("paper-table-sac-json", ["experiment", "table", "paper", "sac-tuned", "--json", *PAPER]),
        ("horizons-ranking", ["experiment", "table", "horizons", "search", *HORIZONS]),
        ("horizons-ranking-sac", ["experiment", "table", "horizons", "sac-search", *HORIZONS]),
        ("horizons-verdicts", ["experiment", "verdicts", "horizons", "ppo", *HORIZONS]),
        ("horizons-verdicts-sac", ["experiment", "verdicts", "horizons", "sac", *HORIZONS]),
    ],
)
def test_what_is_printed_of_results(say: Say, here: Path, name: str, words: list[str]) -> None:
    holds(f"results/{name}.txt", say(*words).told(here))


def test_claims_in_json(say: Say) -> None:
    said = say("experiment", "verdicts", "paper", "--json", *PAPER)
    assert said.status == 0
    claims = json.loads(said.out)
    holds_json("results/paper-claims.json", {each["number"]: digest(json.dumps(each)) for each in claims})


def test_the_paper_s_report(say: Say, here: Path) -> None:
    said = say("experiment", "report", "paper", *PAPER, "--out", "report")
    assert said.status == 0, said.err
    out = here / "report"
    holds("results/paper-report/index.md", (out / "index.md").read_text())
    holds_json("results/paper-report/figures.json", drawn_in(out))
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    hashes = {str(file): digest((out / file).read_bytes()) for file in files if file.suffix in (".json", ".md")}
    names = [str(file) for file in files]
    page = data_of((out / "report.html").read_text())
    holds_json("results/paper-report/files.json", {"files": names, "sha256": hashes, "report.html": page})


def test_figures_of_the_paper_by_themselves(say: Say, here: Path) -> None:
    said = say("experiment", "figures", "paper", "rule", "sac-gamma", *PAPER, "--out", "figures")
    holds("results/paper-figures.txt", said.told(here))
    holds_json("results/paper-figures.json", drawn_in(here / "figures"))


def test_the_page_of_horizons(say: Say, here: Path) -> None:
    pages = (ROOT / "docs" / "horizons.md", RESULTS / "horizons" / "tables.md")
    (here / "page.md").write_text("\n".join(page.read_text() for page in pages))
    said = say("experiment", "report", "horizons", "--out", "page.md", *HORIZONS)
    assert said.status == 0, said.err
    made = re.findall(r"<!-- made: .*?<!-- end -->", (here / "page.md").read_text(), re.DOTALL)
    holds("results/horizons-page.md", "\n\n".join(made))
    holds("results/horizons-page.txt", said.told(here))
    holds_json("results/horizons-figures.json", drawn_in(here))
