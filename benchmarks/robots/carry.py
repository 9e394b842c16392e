"""Pack what a machine without network needs to train: python -m benchmarks.robots.carry FOLDER --models MENAGERIE.

Downloads wheels for the Python of that machine, leaves out what no training uses (pictures, tests, viewers, meshes that
are only looked at), and writes FOLDER/site.tar.xz with its list of versions. There, `unpack` makes a folder for
PYTHONPATH: python -m benchmarks.robots.carry FOLDER --unpack TARGET. JAX, NumPy and SciPy are to be there already.

MENAGERIE is a copy of google-deepmind/mujoco_menagerie, which Playground would download. Neither it nor the folder
belongs into the repository.
"""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ARCHIVE = "site.tar"
WHEELS = (
    "mujoco==3.5.0",
    "mujoco-mjx==3.5.0",
    "brax==0.14.2",
    "playground==0.1.0",
    "flax==0.12.8",
    "optax==0.2.8",
    "jaxopt==0.8.5",
    "ml_collections==1.1.0",
    "etils==1.15.0",
    "absl-py",
    "msgpack",
    "trimesh",
    "lxml",
    "treescope",
    "rich",
    "markdown-it-py",
    "mdurl",
    "pygments",
    "PyYAML",
    "typing_extensions",
    "tqdm",
    "glfw",
    "fsspec",
    "importlib_resources",
    "zipp",
)
LEFT_OUT = (
    "*/test_data/*",
    "*/tests/*",
    "*_test.py",
    "mujoco/include/*",
    "mujoco/sysid/*",
    "mujoco/plugin/*",
    "mujoco/_simulate*",
    "mujoco/_rollout*",
    "mujoco/mjx/third_party/*",
    "mujoco/MuJoCo*",
    "mujoco_playground/_src/*/aero_hand/xmls/*",
    "brax/envs/assets/*",
    "brax/visualizer/*",
    "brax/test_data/*",
    "lxml/objectify*",
    "lxml/html/*",
    "lxml/includes/*",
    "lxml/isoschematron/*",
    "pygments/styles/*",
    "*.pyi",
    "*.pyx",
    "*.so.dSYM/*",
    "bin/*",
)
ALWAYS = ("brax/envs/assets/__init__.py", "pygments/styles/__init__.py", "pygments/styles/_mapping.py")
MODELS_AT = "mujoco_playground/external_deps/mujoco_menagerie"
LIMIT_MIB = 36  # with the repository it stays below 64


def downloaded(python: str, folder: Path) -> list[Path]:
    """The wheels, for a Python version such as 3.12."""
    words = ["--python-version", python, "--only-binary=:all:", "--no-deps", "--platform", "manylinux_2_28_x86_64"]
    words += ["--platform", "manylinux_2_27_x86_64", "--platform", "manylinux2014_x86_64"]
    words += ["--platform", "manylinux_2_17_x86_64", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *words, *WHEELS], check=True)
    return sorted(folder.glob("*.whl"))


def is_left_out(name: str) -> bool:
    """Whether no training uses a file."""
    return name not in ALWAYS and any(fnmatch.fnmatch(name, pattern) for pattern in LEFT_OUT)


def pack(folder: Path, models: Path, python: str, compression: str) -> Path:
    """Write the archive and the list of versions; the archive."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{ARCHIVE}.*"):
        old.unlink()
    archive = folder / f"{ARCHIVE}.{compression}"
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        site = work / "site"
        wheels = downloaded(python, work / "wheels")
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as opened:
                for member in opened.namelist():
                    if not is_left_out(member):
                        opened.extract(member, site)
        with tarfile.open(archive, "w:xz" if compression == "xz" else "w:gz") as packed:
            packed.add(site, arcname=".", filter=_plain)
            packed.add(models, arcname=MODELS_AT, filter=_plain)
        (folder / "versions.txt").write_text("".join(f"{wheel.name}\n" for wheel in wheels), encoding="utf-8")
    return archive


def unpack(folder: Path, target: Path) -> None:
    """Unpack the archive; nothing is done where it was unpacked before."""
    done = target / ".unpacked"
    if not done.exists():
        with tarfile.open(next(folder.glob(f"{ARCHIVE}.*"))) as packed:
            packed.extractall(target, filter="data")
        done.touch()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if "__pycache__" in member.name:
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def main() -> int:
    """Pack or unpack."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=Path, help="a copy of mujoco_menagerie, to pack")
    parser.add_argument("--python", default="3.12", help="the Python of the machine that trains")
    parser.add_argument(
        "--compression", choices=("xz", "gz"), default="xz", help="gz: larger, for a Python without lzma"
    )
    parser.add_argument("--unpack", type=Path, metavar="TARGET", help="unpack into this folder")
    asked = parser.parse_args()
    if asked.unpack is not None:
        unpack(asked.folder, asked.unpack)
        return 0
    if asked.models is None:
        parser.error("--models is needed to pack")
    archive = pack(asked.folder, asked.models, asked.python, asked.compression)
    size = archive.stat().st_size / 2**20
    print(f"{archive}: {size:.1f} MiB")
    return 0 if size < LIMIT_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
