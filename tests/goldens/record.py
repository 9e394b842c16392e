"""Record the goldens anew, where something changes on purpose: ./check goldens --record [words for pytest]."""

import os
import sys
from pathlib import Path

import pytest


def main(words: list[str]) -> int:
    """Run the tests of the goldens, which write instead of comparing."""
    os.environ["CYCLETIME_RECORD_GOLDENS"] = "1"
    return int(pytest.main(["-m", "goldens or not goldens", str(Path(__file__).parent), *words]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
