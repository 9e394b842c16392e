import re
import sys

import pytest

from cycletime.errors import InputError
from cycletime.training.trackers import TRACKERS, trackers_for


def test_no_names_are_no_trackers() -> None:
    assert trackers_for([]) == []


def test_a_name_gives_its_tracker() -> None:
    assert [type(tracker).__name__ for tracker in trackers_for(["tensorboard"])] == ["TensorBoard"]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^'tensorbord' is not a tracker: give one of tensorboard, wandb\.$"):
        trackers_for(["tensorboard", "tensorbord"])


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"^'tensorboard' is given twice: name each tracker once\.$"):
        trackers_for(["tensorboard", "tensorboard"])


@pytest.mark.parametrize(
    ("name", "title"),
    [("tensorboard", "TensorBoard"), ("wandb", "Weights & Biases")],
)
def test_a_missing_package_is_refused_with_its_extra(name: str, title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in TRACKERS
    monkeypatch.setitem(sys.modules, name, None)  # what 'import' takes for 'not there'
    sentence = f"{title} is not installed: pip install 'cycletime[{name}]'."
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        trackers_for([name])
