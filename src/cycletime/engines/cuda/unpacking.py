"""What a pack begins with, as its __main__.py: unpack the code beside the results, and run it from there.

The kernel's compiler reads files, and not what is inside another.
"""

import sys
import zipfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path


def main() -> int:
    """Run the pack; the exit status."""
    for package, why in (("numpy", "is what results are written with"), ("jax", "draws the first weights of runs")):
        if find_spec(package) is None:
            print(f"cycletime: {package} is not installed, and {why}: pip install {package}.", file=sys.stderr)
            return 2
    from cycletime.engines.cuda import travel

    return travel.main(Path(sys.path[0]), sys.argv[1:])


def unpacked(pack: Path, out: Path) -> Path:
    """The folder of a pack's files, which another pack does not share."""
    code = out / f"code-{sha256(pack.read_bytes()).hexdigest()[:12]}"
    if not (code / "whole").exists():
        with zipfile.ZipFile(pack) as file:
            file.extractall(code)
        (code / "whole").touch()
    return code


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if not word.startswith("-")]
    if given:
        sys.path[0] = str(unpacked(Path(sys.path[0]), Path(given[0])))
    sys.exit(main())
