"""What the package index will show of a release, as a program: './check release' gives it the folder of built files."""

import re
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]


def check(dist: Path) -> None:
    (wheel_file,), (source_file,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    (version,) = re.findall(r'^__version__ = "(.*)"$', (ROOT / "src/cycletime/__init__.py").read_text(), re.M)
    with zipfile.ZipFile(wheel_file) as wheel:
        names = wheel.namelist()
        metadata = Parser().parsestr(wheel.read(f"cycletime-{version}.dist-info/METADATA").decode())
    roots = {name.split("/")[0] for name in names}
    assert roots == {"cycletime", f"cycletime-{version}.dist-info"}, f"The wheel has {sorted(roots)}."
    assert "cycletime/py.typed" in names, "Type checkers pass over a package without py.typed."
    check_metadata(metadata, version)
    with tarfile.open(source_file) as source:
        inside = {name.partition("/")[2] for name in source.getnames()}
    missing = {"check", "CITATION.cff", "LICENSE", "hatch_build.py", "tests/conftest.py"} - inside
    assert not missing, f"The source distribution lacks {sorted(missing)}."
    sizes = " and ".join(f"{each.stat().st_size:,}" for each in (wheel_file, source_file))
    print(f"cycletime {version}: {sizes} bytes, with all that the index shows")


def check_metadata(metadata: Message, version: str) -> None:
    assert metadata["Version"] == version
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert {"LICENSE"} <= set(metadata.get_all("License-File", []))
    labels = {each.split(",")[0] for each in metadata.get_all("Project-URL", [])}
    assert {"Repository", "Issues", "Changelog"} <= labels, f"The project's addresses are {sorted(labels)}."
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(), f"CITATION.cff is not of {version}."
    readme = str(metadata.get_payload())
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    relative = [each for each in targets if not each.startswith(("https://", "#"))]
    assert targets, "The description has no links, so it is not the README."
    assert not relative, f"The index cannot follow {relative[0]}."
    for path in re.findall(rf"/(?:blob|raw)/v{re.escape(version)}/([^)\s#]+)", readme):
        assert (ROOT / path).exists(), f"There is no {path}."


if __name__ == "__main__":
    check(Path(sys.argv[1]))
