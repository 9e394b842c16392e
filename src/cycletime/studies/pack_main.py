"""The __main__.py of a pack: unpacks the code beside the results, and runs the studies from there.

    python pack.zip OUT [--policies] [--episodes]

OUT becomes a study's folder, and OUT/finished has the runs that are done, many in a file; of several studies each has
a folder in OUT. Whoever kills it loses none of them, and the same command goes on with the others.
"""

import argparse
import json
import os
import sys
import zipfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

MANIFEST = "pack.json"
PACKAGES = "packages"
"""The folder of a pack with other libraries, and what trainers look for beside a study file."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python pack.zip", description="Train the packed runs on this machine.")
    parser.add_argument("out", metavar="OUT", type=Path, help="where results are written")
    parser.add_argument("--policies", action="store_true", help="keep the policies, 20 KB for each run of PPO")
    parser.add_argument("--episodes", action="store_true", help="keep all episodes, and not 100 bins of them")
    parser.add_argument("--workers", type=int, help="processes at a time; by default one for each core or GPU")
    parser.add_argument("--check", action="store_true", help="check the kernels on this card instead")
    given = parser.parse_args(arguments)
    for package in ("numpy", "jax"):
        if find_spec(package) is None:
            print(f"cycletime: {package} is not installed: pip install {package}.", file=sys.stderr)
            return 2
    code = unpack(Path(sys.path[0]), given.out)
    manifest = json.loads((code / MANIFEST).read_text())
    # For this process, and for the workers that it starts.
    sys.path[0] = str(code)
    others = os.environ.get("PYTHONPATH")  # an empty one would stand for the folder that one is in
    packages = str(code / PACKAGES)
    sys.path.insert(1, packages)
    path = os.pathsep.join(filter(None, [str(code), packages, others]))
    os.environ |= {"PYTHONPATH": path, "CYCLETIME_CODE": manifest["code"]}
    for part in manifest["studies"]:
        part["study"]["home"] = packages
    from cycletime.studies.pack_runner import run_pack

    options = {name: getattr(given, name) for name in ("check", "episodes", "policies")}
    return run_pack(manifest, given.out, given.workers, **options)


def unpack(pack: Path, out: Path) -> Path:
    code = out / f"code-{sha256(pack.read_bytes()).hexdigest()[:12]}"
    if not (code / "whole").exists():
        with zipfile.ZipFile(pack) as file:
            file.extractall(code)
        (code / "whole").touch()
    return code.resolve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
