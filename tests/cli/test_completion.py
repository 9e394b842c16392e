"""Tab completion, as the documentation tells to set it up."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cycletime.cli import main

ASK = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE="${{COMP_WORDS[*]}}"
COMP_POINT=${{#COMP_LINE}}; COMPREPLY=()
$(complete -p cycletime | sed 's/.*-F \\([^ ]*\\).*/\\1/') cycletime "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
echo "${{COMPREPLY[*]}}"
"""


def completed(script: Path, words: str) -> set[str]:
    ran = subprocess.run(
        ["bash", "-c", ASK.format(script=script, words=words)], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = tmp_path / "cycletime"
    with pytest.raises(SystemExit) as leaving:
        main(["--tyro-write-completion", "bash", str(script)])
    assert not leaving.value.code
    assert completed(script, "cycletime tr") == {"train", "transfer"}
    assert {"ppo", "sac", "a2c", "tqc", "td3", "ddpg", "file"} <= completed(script, "cycletime transfer ''")
    assert completed(script, "cycletime transfer ppo --fr") == {"--from", "--from-library"}
    assert completed(script, "cycletime study ru") == {"run"}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_every_shell_has_a_script(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["--tyro-print-completion", shell])
    assert not leaving.value.code
    assert "cycletime" in capsys.readouterr().out
