"""Rewriting one environment's entry of a Zoo file: what changes, what must not, and what is refused."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.libraries.yaml_edit import read_entry, rewrite_yaml


def rewrite_entry(text: str, env_id: str, changes: Mapping[str, object]) -> tuple[str, tuple[str, ...]]:
    """The text with other values in one environment's entry, as a transfer reads and writes it."""
    read_entry(text, env_id)
    return rewrite_yaml(text, {(env_id, key): value for key, value in changes.items()})


ZOO = """\
# Used where nothing else fits
default:
  n_timesteps: !!float 1e6
  policy: 'MlpPolicy'

atari:
  env_wrapper:
    - some.wrappers.AtariWrapper
    - some.wrappers.Resize:
        shape: [64, 64]
    # - some.wrappers.Other
  n_steps: 128

# Tuned
Cheetah-v0: &bullet-defaults  # others build on it
  normalize: "{'norm_obs': False}"
  n_steps: 512 # per environment
  batch_size:   128
  gamma: !!float 99e-2   # the discount
  learning_rate: lin_3e-4
  policy_kwargs: "dict(log_std_init=-2,
                       net_arch=dict(pi=[256, 256])
                       )"

# Nearly tuned
Ant-v0:
  <<: *bullet-defaults
  train_freq: [1, "episode"]
  policy_kwargs: "dict(log_std_init=-1,
                       ortho_init=False)"


# To be tuned
Hopper-v0:
  <<: *bullet-defaults
  gamma: 0.995
  # use_sde: True

Walker-v0: &walker
  <<: *bullet-defaults

Runner-v0:
  <<: *walker

Twin-v0: *bullet-defaults # the same

Both-v0:
  <<: [*walker, *bullet-defaults]
  n_steps: 8
"""


def changed_lines(old: str, new: str) -> list[str]:
    """The lines that went ('-') and came ('+'), in order."""
    lines = difflib.ndiff(old.splitlines(keepends=True), new.splitlines(keepends=True))
    return [line for line in lines if line[0] in "+-"]


def assert_only_that_entry_changed(old: str, new: str, env_id: str, changes: dict[str, int | float]) -> None:
    before, after = yaml.safe_load(old), yaml.safe_load(new)
    assert after == {**before, env_id: {**before[env_id], **changes}}


@pytest.mark.parametrize("env_id", list(yaml.safe_load(ZOO)))
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["", "\n", "\n\n# end\n"])
def test_every_kind_of_entry_in_every_kind_of_file(env_id: str, newline: str, ending: str) -> None:
    text = (ZOO.rstrip("\n") + ending).replace("\n", newline)
    changes: dict[str, int | float] = {"gamma": 0.9975, "n_steps": 2048, "batch_size": 513}
    new, _ = rewrite_entry(text, env_id, changes)
    assert_only_that_entry_changed(text, new, env_id, changes)
    assert read_entry(new, env_id) == {**read_entry(text, env_id), **changes}
    assert new.count("\n") == new.count(newline)
    assert new.endswith(ending.replace("\n", newline))
    assert all("#" not in line or "# " in line for line in new.splitlines())


def test_effective_entry_has_its_merges_resolved_and_its_strings_unread() -> None:
    entry = read_entry(ZOO, "Hopper-v0")
    assert entry["gamma"] == 0.995
    assert entry["n_steps"] == 512
    assert entry["learning_rate"] == "lin_3e-4"
    assert entry["policy_kwargs"] == "dict(log_std_init=-2, net_arch=dict(pi=[256, 256]) )"


def test_inherited_key_is_inserted_before_what_belongs_to_the_next_entry() -> None:
    new, notes = rewrite_entry(ZOO, "Ant-v0", {"n_steps": 2048})
    assert notes == ()
    assert new == ZOO.replace('ortho_init=False)"\n', 'ortho_init=False)"\n  n_steps: 2048\n')


def test_insert_after_the_last_line_of_a_file_that_does_not_end_it() -> None:
    assert rewrite_entry("A:\n    n: 1  # c", "A", {"gamma": 0.5})[0] == "A:\n    n: 1  # c\n    gamma: 0.5"


def test_own_value_is_replaced_with_its_tag_and_keeps_its_comment() -> None:
    text = "A:\n  gamma: !!float 99e-2   # the discount\n  n_steps:    8\n"
    new, _ = rewrite_entry(text, "A", {"gamma": 0.5, "n_steps": 32})
    assert new == "A:\n  gamma: 0.5   # the discount\n  n_steps:    32\n"


def test_same_number_in_another_notation_is_no_edit() -> None:
    assert rewrite_entry(ZOO, "default", {"n_timesteps": 1_000_000}) == (ZOO, ())
    assert rewrite_entry(ZOO, "Twin-v0", {"gamma": 0.99}) == (ZOO, ())


def test_true_is_not_the_number_one() -> None:
    assert rewrite_entry("A: {use_sde: true}", "A", {"use_sde": 1})[0] == "A: {use_sde: 1}"


def test_old_values_are_pinned_in_those_who_inherit_and_nowhere_else() -> None:
    new, notes = rewrite_entry(ZOO, "Cheetah-v0", {"gamma": 0.9, "learning_rate": 1e-5})
    rate = "  learning_rate: lin_3e-4\n"
    pins = "  gamma: 0.99\n" + rate
    merge = "  <<: *bullet-defaults\n"
    expected = (
        ZOO.replace("gamma: !!float 99e-2   #", "gamma: 0.9   #")
        .replace(rate, "  learning_rate: 1.0e-05\n")
        .replace('ortho_init=False)"\n', 'ortho_init=False)"\n' + pins)
        .replace("  gamma: 0.995\n", "  gamma: 0.995\n" + rate)
        .replace("&walker\n" + merge, "&walker\n" + merge + pins)
        .replace("Twin-v0: *bullet-defaults # the same\n", "Twin-v0: # the same\n" + merge + pins)
    )
    assert changed_lines(expected, new) == []
    assert len(notes) == 2
    assert "gamma: 0.99, learning_rate: lin_3e-4 in Ant-v0, Walker-v0, Twin-v0:" in notes[0]
    assert "learning_rate: lin_3e-4 in Hopper-v0:" in notes[1]
    assert all("inherited from Cheetah-v0" in note for note in notes)


def test_pins_go_into_a_merge_list_that_names_the_changed_entry_first() -> None:
    text = "A: &a {x: 1}\nB: &b\n  <<: *a\nC:\n  <<: [*a, *b]\n  y: 2\n"
    new, notes = rewrite_entry(text, "A", {"x": 5})
    assert new == "A: &a {x: 5}\nB: &b\n  <<: *a\n  x: 1\nC:\n  <<: [*a, *b]\n  y: 2\n  x: 1\n"
    assert len(notes) == 1


def test_key_that_heirs_lack_is_set_beside_the_anchor() -> None:
    text = "A: &a # base\n  x: 1\n\nB:\n  <<: *a\nC: *a\n"
    new, notes = rewrite_entry(text, "A", {"gamma": 0.9, "x": 2})
    assert new == "A: # base\n <<: &a\n  x: 1\n gamma: 0.9\n x: 2\n\nB:\n  <<: *a\nC: *a\n"
    assert "'<<: &a'" in notes[0]
    again, _ = rewrite_entry(new, "A", {"gamma": 0.8})
    assert again == new.replace("0.9", "0.8")


def test_key_that_heirs_lack_is_set_beside_the_anchor_in_brackets() -> None:
    new, _ = rewrite_entry("A: &a {x: 1}\nB: {<<: *a}\n", "A", {"gamma": 0.9})
    assert new == "A: {<<: &a {x: 1}, gamma: 0.9}\nB: {<<: *a}\n"


def test_heir_deep_inside_another_entry_keeps_its_values() -> None:
    text = "A: &a\n  x: 1\nB:\n  kwargs:\n    <<: *a\n"
    new, _ = rewrite_entry(text, "A", {"x": 2})
    assert_only_that_entry_changed(text, new, "A", {"x": 2})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{n_steps: 8, x: 0.9}", "{n_steps: 8, x: 0.9, gamma: 0.5}"),
        ("{gamma: 0.9, x: [1, 2]}  # c", "{gamma: 0.5, x: [1, 2]}  # c"),
        ("{x: [1, 2],\n    }", "{x: [1, 2], gamma: 0.5,\n    }"),
        ("{}", "{gamma: 0.5}"),
        ("{gamma}", "{gamma: 0.5}"),
        ("{gamma: , x: 1}", "{gamma: 0.5 , x: 1}"),
        ("\n  gamma:\n  x: 1", "\n  gamma: 0.5\n  x: 1"),
        ("\n  gamma: # unset\n  x: 1", "\n  gamma: 0.5 # unset\n  x: 1"),
        ("\n  'gamma': '0.9' # text", "\n  'gamma': 0.5 # text"),
        ("\n  x: |\n    a\n    b\n\n", "\n  x: |\n    a\n    b\n  gamma: 0.5\n\n"),
        ("\n  x: |+\n    a\n\n", "\n  x: |+\n    a\n\n\n  gamma: 0.5"),
        ("\n  x:\n  - 1\n  - y: 2 # c\n  # end", "\n  x:\n  - 1\n  - y: 2 # c\n  gamma: 0.5\n  # end"),
        ("\n  gamma: &g 0.9\n  x: 1", "\n  gamma: &g 0.5\n  x: 1"),
        ("\n  gamma: &g !!float 9\n  x: *g\n  y: *g", "\n  gamma: 0.5\n  x: &g !!float 9\n  y: *g"),
        ("\n  x: &g 0.9\n  gamma: *g # c", "\n  x: &g 0.9\n  gamma: 0.5 # c"),
    ],
)
def test_notations_of_an_entry(old: str, new: str) -> None:
    text = f"A: {old}\nZ-v0:\n  gamma: 7\n"
    assert rewrite_entry(text, "A", {"gamma": 0.5})[0] == f"A: {new}\nZ-v0:\n  gamma: 7\n"


def test_document_in_brackets() -> None:
    new, _ = rewrite_entry("{A: &a {x: 1}, B: *a}", "B", {"x": 2})
    assert new == "{A: &a {x: 1}, B: {<<: *a, x: 2}}"


def test_markers_of_the_document_stay() -> None:
    text = "%YAML 1.1\n---\nA:\n  x: 1\n...\n"
    assert rewrite_entry(text, "A", {"y": 2})[0] == "%YAML 1.1\n---\nA:\n  x: 1\n  y: 2\n...\n"


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers()))
def test_numbers_are_read_back_exactly(number: int | float) -> None:
    new, _ = rewrite_entry("A:\n  x: text\n", "A", {"x": number})
    value = yaml.safe_load(new)["A"]["x"]
    assert (type(value), repr(value)) == (type(number), repr(number))


def test_small_float_gets_the_dot_without_which_yaml_reads_a_string() -> None:
    assert rewrite_entry("A:\n  lr: 1e-05\n", "A", {"lr": 1e-05})[0] == "A:\n  lr: 1.0e-05\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("- A\n- B\n", "expected a mapping"),
        ("Ant-v1: {}\nAnt-v2: {}\nBee: {}\n", "no environment 'A'"),
        ("A: 3\n", "A is 3; expected a mapping"),
        ("A:\n", "A is None; expected a mapping"),
        ("A:\n  x: [1\n", "Line 3 is not valid YAML"),
        ("A:\n\tx: 1\n", "Line 2 is not valid YAML"),
        ("A:\n  x: 1\n  y: \0\n", "Line 3 is not valid YAML"),
        ("A:\n  <<: *nobody\n", "Line 2 is not valid YAML: found undefined alias 'nobody'"),
        ("A: {}\n---\nB: {}\n", "Line 2 starts a second YAML document"),
        ("A:\n  x: 1\nA:\n  x: 2\n", "'A' is there twice"),
        ("A:\n  x: 1\n  'x': 2\n", "'x' is there twice"),
        ("B: &b {x: 1, x: 2}\nA: *b\n", "'x' is there twice"),
        ("A:\n  x: !!python/object/apply:os.abort []\n", r"Line 2 has the tag .*python/object.* is refused"),
        ("A: !mine {x: 1}\n", "Line 1 has the tag '!mine', which is refused"),
        ("A: {x: !!float abc}\n", "tag does not allow"),
    ],
)
def test_refused_files(text: str, message: str) -> None:
    for refused in (lambda: read_entry(text, "A"), lambda: rewrite_entry(text, "A", {"x": 5})):
        with pytest.raises(InputError, match=message) as caught:
            refused()
        assert "\n" not in str(caught.value)


def test_unknown_environment_names_the_three_closest() -> None:
    text = "".join(f"Ant-v{number}: {{}}\n" for number in range(5)) + "Zebra: {}\n"
    with pytest.raises(InputError, match=r"'Ant-v9'.*closest are Ant-v\d, Ant-v\d, Ant-v\d\.$"):
        read_entry(text, "Ant-v9")


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), "8"])
def test_only_finite_numbers_are_written(value: float) -> None:
    with pytest.raises(InputError, match="expected an int or a float"):
        rewrite_entry(ZOO, "Ant-v0", {"n_steps": value})


def test_list_does_not_become_a_number() -> None:
    with pytest.raises(InputError, match=r"train_freq is \[1, 'episode'\]"):
        rewrite_entry(ZOO, "Ant-v0", {"train_freq": 4})


@pytest.mark.parametrize(
    "text",
    [
        "<<: {A: {x: 1}}\nB: {x: 2}\n",
        "A:\n ? x\n : 1\n",
        "A: &a\n x: 1\nB: *a\n",
        "B: {k: &k A}\n*k : {x: 1}\n",
    ],
)
def test_unsupported_structure_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match=r"A: the file's structure .* nothing was written; set y: 2 by hand"):
        rewrite_entry(text, "A", {"y": 2})


KEYS = ("x", "y", "z")
VALUES = (
    "1",
    "0.5",
    "!!float 3",
    "lin_0.1",
    "'a, b'",
    "[1, 2]",
    '"dict(\n      a=1)"',
    "true",
    "",
    "|\n    a\n",
)


@st.composite
def zoo_files(draw: st.DrawFn) -> str:
    """Small files with anchors on entries and values, merges, aliases, comments and both newlines."""
    lines: list[str] = []
    bases: list[str] = []
    shared: list[str] = []
    for index in range(draw(st.integers(1, 5))):
        comment = draw(st.sampled_from(["", " # c"]))
        if bases and draw(st.integers(0, 4)) == 0:
            lines.append(f"E{index}: *{draw(st.sampled_from(bases))}{comment}")
            continue
        pairs = []
        merged = draw(st.lists(st.sampled_from(bases), unique=True, max_size=2)) if bases else []
        if merged:
            names = ", ".join(f"*{name}" for name in merged)
            pairs.append(f"<<: {names if len(merged) == 1 else f'[{names}]'}")
        for key in draw(st.lists(st.sampled_from(KEYS), unique=True, min_size=not merged)):
            value = draw(st.sampled_from([*VALUES, *(f"*{name}" for name in shared)]))
            if value[:1] in tuple("10l!") and draw(st.booleans()):
                shared.append(f"s{index}{key}")
                value = f"&{shared[-1]} {value}"
            pairs.append(f"{key}: {value}")
        anchor = f" &b{index}" if draw(st.booleans()) else ""
        if not any("\n" in pair for pair in pairs) and draw(st.integers(0, 3)) == 0:
            lines.append(f"E{index}:{anchor} {{{', '.join(pairs)}}}{comment}")
        else:
            indent = " " * draw(st.integers(1, 3))
            lines += [f"E{index}:{anchor}{comment}", *(indent + pair for pair in pairs)]
        bases += [anchor[2:]] if anchor else []
        lines += draw(st.sampled_from([[], [""], ["", "# next"]]))
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@given(zoo_files(), st.data())
def test_random_file_is_rewritten_right_or_refused(text: str, data: st.DataObject) -> None:
    before = yaml.safe_load(text)
    env_id = data.draw(st.sampled_from(sorted(before)))
    numbers = st.one_of(st.integers(-3, 3), st.floats(-1, 1))
    changes = data.draw(st.dictionaries(st.sampled_from((*KEYS, "new")), numbers, min_size=1))
    try:
        new, _ = rewrite_entry(text, env_id, changes)
    except InputError:
        return
    assert_only_that_entry_changed(text, new, env_id, changes)
    untouched = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    assert [line for line in new.splitlines() if line.lstrip().startswith("#")] == untouched
    assert rewrite_entry(new, env_id, changes) == (new, ())


SHARED = """\
A: &a
  n_steps: 8
  env_wrapper: &w
    - some.Wrapper:
        dt: 8ms  # one step
    - some.Other
B:
  n_steps: 4
  env_wrapper: *w  # as A
C:
  <<: *a
  n_steps: 2
"""
NEW = [{"some.Wrapper": {"dt": "16ms"}}, "some.Other"]


def test_what_an_entry_shares_is_written_out_below_its_key_where_it_differs_and_that_is_said() -> None:
    new, notes = rewrite_entry(SHARED, "B", {"env_wrapper": NEW})
    below = "  env_wrapper:  # as A\n  - some.Wrapper: {dt: 16ms}\n  - some.Other\n"
    assert new == SHARED.replace("  env_wrapper: *w  # as A\n", below)
    assert notes == ("env_wrapper is written out, since it differs now from what it shares as *w.",)


def test_what_others_share_with_an_entry_moves_to_the_first_of_them_with_its_comments() -> None:
    new, notes = rewrite_entry(SHARED, "A", {"env_wrapper": NEW, "n_steps": 16})
    before, after = yaml.safe_load(SHARED), yaml.safe_load(new)
    assert after == {**before, "A": {"n_steps": 16, "env_wrapper": NEW}}
    assert new.startswith("A: &a\n  n_steps: 16\n  env_wrapper:\n  - some.Wrapper: {dt: 16ms}\n  - some.Other\nB:\n")
    assert "B:\n  n_steps: 4\n  env_wrapper: &w\n    - some.Wrapper:\n        dt: 8ms  # one step\n" in new
    assert notes[0] == "The anchor &w of env_wrapper moved to its next use, so that who shares it keeps its value."
    assert "in C: inherited from A, it would have changed there." in notes[1]


def test_in_brackets_what_differs_stays_on_its_line() -> None:
    text = "A: {x: &w [{a: 1}], y: 2}\nB: {x: *w}\n"
    assert rewrite_entry(text, "B", {"x": [{"a": 3}]})[0] == text.replace("*w", "[{a: 3}]")
