import os
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.training.toml_files import MOST_BYTES, check_plain, made_by, read_json, read_toml, read_tuned

MANY_PARTS = " has a key of more than 100 parts: tables are not nested so deeply."
TABLE = {"name": "größe", "dts": ["8ms"]}


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_files_of_any_editor_are_read(tmp_path: Path, before: bytes, line_end: bytes) -> None:
    lines = ['name = "größe"'.encode(), b'dts = ["8ms"]', b""]
    (tmp_path / "a.toml").write_bytes(before + line_end.join(lines))
    assert read_toml(tmp_path / "a.toml") == TABLE


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a = 1\n".encode("utf-16"), " cannot be read: byte 1 is not UTF-8 text."),
        ("a = 1\n".encode("utf-16-le"), " is not UTF-8 text: it has the character NUL, as files in UTF-16 have."),
        (b"a = " + b"[" * 5000, " is not a valid TOML file: its lists and tables are nested too deeply."),
        (b"a = " + b"{a = " * 5000, " is not a valid TOML file: its lists and tables are nested too deeply."),
        (b"a = " + b"9" * 5000, " is not a valid TOML file: it has a number of thousands of digits."),
        (b"a." * 50_000 + b"b = 1", " has a key of more than 100 parts: tables are not nested so deeply."),
        (b"[" + b"'a b' . " * 50_000 + b"b]", " has a key of more than 100 parts: tables are not nested so deeply."),
        (
            b"a = {" + b'"x".' * 50_000 + b"b = 1}",
            " has a key of more than 100 parts: tables are not nested so deeply.",
        ),
        (b"#" * (MOST_BYTES + 1), f" has {MOST_BYTES + 1} bytes or more: at most {MOST_BYTES} are read."),
    ],
)
def test_what_is_no_table_of_settings_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(content)
    with pytest.raises(InputError) as refusal:
        read_toml(file)
    assert str(refusal.value) == f"{file}{says}"
    assert made_by(file, "ppo") is None


@pytest.mark.parametrize(
    "text", ["a" * 10**6, "9" * 10**6, "a-" * 10**5, '"' * 10**5, "a " * 10**5, "'a'. " * 99 + "b"]
)
def test_no_text_is_looked_at_for_long(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.toml").write_text(f"# {text}\na = 1\n")  # times that grow with the square would be hours here
    assert read_toml(tmp_path / "a.toml") == {"a": 1}


def test_long_lists_of_numbers_are_no_keys_of_many_parts(tmp_path: Path) -> None:
    numbers = [f"{number / 1000}" for number in range(1, 500)]
    (tmp_path / "a.toml").write_text(f"# {'.' * 300}\na = [{', '.join(numbers)}]\nb = 'see www.example.org/a.b.c'\n")
    assert len(read_toml(tmp_path / "a.toml")["a"]) == 499


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a valid JSON file: Expecting value: line 1 column 1 (char 0)."),
        ("[" * 100_000, "is not a valid JSON file: it is nested too deep."),
        ("9" * 5000, "is not a valid JSON file: it has a number of 5000 digits."),
    ],
)
def test_what_is_no_json_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError) as refusal:
        read_json(tmp_path / "a.json")
    assert str(refusal.value) == f"{tmp_path / 'a.json'} {says}"


def nested(levels: int) -> Any:  # noqa: ANN401
    return [nested(levels - 1)] if levels else 1


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([1], "[1] is not a table of keys and values."),
        ({"task": "a" * 201}, f"task is '{'a' * 49}...{'a' * 49}': a text is one line of at most 200 printable char"),
        ({"tasks": ["\x1b[31mred"]}, "tasks has '\\x1b[31mred': a text is one line of at most 200 printable"),
        ({"a\nb": 1}, "There is the key 'a\\nb': a text is one line of at most 200 printable characters."),
        ({"set": {"\u202e": 1}}, "set has the key '\\u202e': a text is one line of at most 200 printable"),
        ({"tuned": "a" * 4097}, f"tuned is '{'a' * 49}...{'a' * 49}': a text is one line of at most 4096 printable"),
        ({"seeds": 2**63}, "seeds is 9223372036854775808: whole numbers must lie below 2**63."),
        ({"seeds": [-(10**400)]}, "seeds is a number of more than 60 digits: whole numbers must lie below"),
        ({"seeds": nested(21)}, "seeds is nested more than 20 levels deep: give lists and tables of values."),
    ],
)
def test_what_no_table_has_is_refused_with_a_short_sentence(table: Any, says: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as refusal:
        check_plain(table)
    assert str(refusal.value).startswith(says)


def test_what_tables_have_is_taken() -> None:
    check_plain({"name": "größe 漢字", "seeds": nested(20), "tuned": f"{'a/' * 500}b.toml", "n": 2**63 - 1, "x": 1.5})


def test_a_tuned_file_is_read_within_the_same_bounds(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, says in ((tmp_path / "pipe", "is a pipe"), (Path("/dev/zero"), "is a device")):
        with pytest.raises(InputError, match=rf"^{path} {says}: give a regular file\.$"):
            read_tuned(path)
        assert made_by(path, "ppo") is None
    (tmp_path / "a.toml").write_text(f"[tuned.ppo]\ndt = '16ms'\nbatch = {'9' * 400}\n")
    with pytest.raises(InputError, match=rf"^{tmp_path}/a\.toml: tuned is a number of more than 60 digits: whole"):
        read_tuned(tmp_path / "a.toml")
