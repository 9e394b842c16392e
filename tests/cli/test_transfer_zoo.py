"""`cycletime transfer` of RL Zoo files: files that are printed, written whole or not at all, and read by others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cycletime.cli import main
from tests.cli.transferring import OWN, ZOO, carried_json


@pytest.mark.parametrize("form", ["", "--algorithm ppo"])
def test_a_zoo_file_is_printed_with_the_table_on_standard_error(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, form: str
) -> None:
    file = tmp_path / "ppo.yml"
    file.write_bytes(ZOO.replace("\n", "\r\n").encode())
    words = f"transfer {file} {form} --env ReacherBulletEnv-v0 --from 16.5ms --to 33ms --rule dt-aware --as yaml"
    assert main(words.split()) == 0
    captured = capfdbinary.readouterr()
    assert captured.out.startswith(b"ReacherBulletEnv-v0:\r\n  n_envs: 8\r\n  n_steps: 256   # per environment\r\n")
    assert b"  67.6 s\n" in captured.err
    for setting, new in (("n_steps", 256), ("batch_size", 32), ("gamma", 0.9801), ("gae_lambda", 0.81)):
        assert re.search(rf"\d +{setting} +\S+ +{new} ", captured.err.decode())


def test_a_zoo_file_is_written_but_never_over_another(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, out = tmp_path / "ppo.yml", tmp_path / "new.yml"
    file.write_text(ZOO)
    words = f"transfer {file} --env ReacherBulletEnv-v0 --from 16ms --to 8ms --rule dt-aware --to-file".split()
    assert main([*words, str(out)]) == 0
    assert out.read_text() == ZOO.replace("512", "1024").replace("64", "128")
    assert re.search(r"n_steps +512 +1024 ", capsys.readouterr().out)
    for taken in (file, out):
        before = taken.read_bytes()
        assert main([*words, str(taken)]) == 2
        assert f"{taken} exists already" in capsys.readouterr().err
        assert taken.read_bytes() == before
    assert main([*words, str(tmp_path / "no" / "folder.yml")]) == 2
    assert f"there is no folder {tmp_path / 'no'}: make it first." in capsys.readouterr().err


def test_a_zoo_file_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ppo.yml"
    file.write_text(ZOO)
    data = carried_json(capsys, *f"{file} --env ReacherBulletEnv-v0 --from 16ms --to 8ms --rule dt-aware".split())
    changes = data["configuration"]["changes"]
    assert {each["name"]: each["to"] for each in changes} == {"n_steps": 1024, "batch_size": 128}
    assert {each["file"] for each in changes} == {str(file)}
    assert data["to"]["batch"] == 8192


def test_a_file_that_is_no_text_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ppo.yml"
    file.write_bytes(b"\xff\xfe\x00")
    assert main(f"transfer {file} --env A --from 16ms --to 8ms".split()) == 2
    assert "cannot be read: byte 1 is not UTF-8 text" in capsys.readouterr().err


def run_for_real(words: str, out: int | None) -> tuple[int, str]:
    """The command's own exit status and standard error, with output buffered as it is for users."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "cycletime", "transfer", *words.split()]
    ran = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(("words", "size"), [("ppo", 0), ("ppo.yml --as yaml", 0), ("ppo.yml --as yaml", 20_000)])
def test_a_reader_that_has_seen_enough_is_no_error(
    tmp_path: Path, words: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ppo.yml").write_text(ZOO + "# more\n" * size)  # the last is more than a pipe holds
    env = "--env ReacherBulletEnv-v0" if "yaml" in words else ""
    reader, writer = os.pipe()
    os.close(reader)
    status, complaint = run_for_real(f"{words} {env} --from 16ms --to 8ms", writer)
    os.close(writer)
    assert status == 0
    assert "BrokenPipe" not in complaint
    assert "Traceback" not in complaint


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_one_sentence_and_exit_status_1() -> None:
    with Path("/dev/full").open("w") as full:
        status, complaint = run_for_real("ppo --from 16ms --to 8ms", full.fileno())
    assert (status, complaint) == (1, "cycletime: The output cannot be written: No space left on device.\n")


def test_a_file_that_could_not_be_written_whole_is_removed(tmp_path: Path) -> None:
    file, out = tmp_path / "ppo.yml", tmp_path / "new.yml"
    file.write_text(ZOO)
    words = f"transfer {file} --env ReacherBulletEnv-v0 --from 16ms --to 8ms --to-file {out}"
    program = f"""
import resource, signal
from cycletime.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5))
main({words.split()!r})
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "new.yml cannot be written: File too large" in ran.stderr
    assert not out.exists()


def test_a_zoo_file_by_a_rule_of_one_s_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ppo.yml").write_text(ZOO)
    (tmp_path / "own.toml").write_text(OWN)
    files = [str(tmp_path / "ppo.yml"), "--as", "yaml", "--own-rules", str(tmp_path / "own.toml"), "--rule", "mine"]
    assert main(["transfer", *files, "--env", "ReacherBulletEnv-v0", "--from", "16ms", "--to", "32ms"]) == 0
    assert "n_steps: 256 " in capsys.readouterr().out


DQN = "policy: MlpPolicy\nbatch_size: 64\nbuffer_size: 100000\nn_timesteps: 50000\n"


@pytest.mark.parametrize("is_saved", [False, True])
def test_dqn_is_refused_by_its_lack_of_a_rule(
    is_saved: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if is_saved:
        given = tmp_path
        rows = "".join(f"  - - {line.replace(': ', chr(10) + '    - ')}\n" for line in DQN.splitlines())
        ordered = "!!python/object/apply:collections.OrderedDict\n-\n"
        (tmp_path / "config.yml").write_text(ordered + rows)
        (tmp_path / "args.yml").write_text(f"{ordered}  - - algo\n    - dqn\n  - - env\n    - CartPole-v1\n")
    else:
        given = tmp_path / "dqn.yml"
        given.write_text("CartPole-v1:\n" + "".join(f"  {line}\n" for line in DQN.splitlines()))
    words = [] if is_saved else ["--env", "CartPole-v1"]
    assert main(["transfer", str(given), *words, "--from", "20ms", "--to", "40ms"]) == 2
    named = "the algorithm 'dqn', which has no rule" if is_saved else "no algorithm with a rule"
    assert f"names {named}: ppo, sac, a2c, tqc, td3, ddpg have one here; DQN and others have none." in (
        capsys.readouterr().err
    )
