"""Studies, runs and policies that version 0.2.0 wrote are read, verified, resumed, reported on and exported again."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.goldens.conftest import Say
from tests.goldens.goldens import DATA, digest, holds, holds_json, recording, steady
from tests.goldens.test_results import data_of, drawn_in
from tests.goldens.trained import acting_in_numpy, kind_of, record, recorded, result_of

FINISHED = "finished/reacher-ppo-16ms-seed0-9772da9db0"
BEGUN = {
    "resumed-ppo": "stopped-ppo/reacher-ppo-16ms-seed0-af97a6f81a",
    "resumed-sac": "stopped-sac/reacher-sac-32ms-seed0-8fc48ff5af",
    "resumed-actor-critic": "stopped-actor-critic/pendulum-actor-critic-20ms-seed0-b6b1d77238",
    "resumed-gymnasium": "killed-gymnasium/slow-pendulum-SlowPendulum-v0-ppo-50ms-seed0-14e1e11226",
}
_TIMES = ((r'"(computed_s|wall_s|written|made)": [^,\n]+', r'"\1": <time>'),)


def test_a_finished_study_is_verified_and_exported(say: Say, folders: Path) -> None:
    assert say("study", "verify", "study-finished").status == 0
    assert say("study", "export", "study-finished", "curves.csv").status == 0
    holds("of-folders/curves.csv", (folders / "curves.csv").read_text())


@pytest.mark.goldens
def test_a_finished_study_is_reported_on(say: Say, folders: Path) -> None:
    said = say("study", "report", "study-finished", "--out", "report")
    holds("of-folders/study-report.txt", said.told(folders))
    out = folders / "report"
    for name in ("report.md", "report.json", "scores.csv"):
        holds(f"of-folders/study-report/{name}", steady((out / name).read_text(), folders, _TIMES))
    holds_json("of-folders/study-report/figures.json", drawn_in(out))
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    page = data_of(steady((out / "report.html").read_text(), folders, _TIMES))
    holds_json("of-folders/study-report/files.json", {"files": names, "report.html": page})


@pytest.mark.goldens
@pytest.mark.parametrize("words", ["--measure last-tenth --interval t", "--iqm --markdown", "--json"])
def test_other_reports_on_a_study(say: Say, folders: Path, words: str) -> None:
    name = "-".join(word.strip("-") for word in words.split())
    holds(f"of-folders/study-report-{name}.txt", say("study", "report", "study-finished", *words.split()).told(folders))


@pytest.mark.goldens
def test_the_page_of_a_study_and_of_one_half_done(say: Say, folders: Path) -> None:
    for study in ("study-finished", "study-half"):
        said = say("report", study, "--out", f"{study}.html")
        holds(f"of-folders/report-{study}.txt", said.told(folders))
        page = data_of(steady((folders / f"{study}.html").read_text(), folders, _TIMES))
        holds_json(f"of-folders/report-{study}.json", page)


@pytest.mark.goldens
def test_a_study_that_is_half_done_is_finished_as_the_whole_one_was(say: Say, folders: Path) -> None:
    assert say("study", "run", "study.toml", "--out", "study-half", "--workers", "1").status == 0
    for study in ("study-half", "study-finished"):
        assert say("study", "export", study, f"{study}.csv").status == 0
    half, whole = ((folders / f"{study}.csv").read_text() for study in ("study-half", "study-finished"))
    assert half.splitlines()[0] == whole.splitlines()[0]
    assert len(half.splitlines()) == len(whole.splitlines())
    if kind_now(folders, say) == kind_then():
        assert half == whole, "bit for bit, since the folders were written on this kind of machine"


def kind_then() -> str:
    """The kind of machine that wrote the folders."""
    return kind_of(DATA / "folders" / FINISHED)


def kind_now(here: Path, say: Say) -> str:
    """The kind of this machine, as a tiny training tells it."""
    words = "train --task reacher --algorithm actor-critic --dt 80ms --env-steps 2000 --set hidden=2 --out tiny"
    assert say(*words.split()).status == 0
    return kind_of(next((here / "tiny").iterdir()))


@pytest.mark.goldens
@pytest.mark.parametrize("name", BEGUN)
def test_a_run_that_was_stopped_is_resumed(say: Say, folders: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    run = folders / BEGUN[name]
    said = say("resume", str(run))
    assert said.status == 0, said.err
    result = result_of(run)
    assert (result["sessions"], result["env_steps"]) == (2, json.loads((run / "spec.json").read_text())["env_steps"])
    assert result["resumed"].startswith("resumed")
    bits = {
        "identity": result["identity"],
        "scores": {key: result[key] for key in ("episodes", "average_return", "last_tenth_return", "agent_steps")},
        "metrics": digest((run / "metrics.jsonl").read_bytes()),
    }
    kind, name = kind_of(run), acting_in_numpy(name) if "gymnasium" in name else name
    if recording():
        record(kind, name, bits)
    if name in recorded(kind):
        assert bits == recorded(kind)[name]
    else:
        print(f"no bits of {name} are recorded for {kind}: only its size and its end are compared")


def numpy_policy(folder: Path) -> ModuleType:
    """The program of an exported policy."""
    spec = importlib.util.spec_from_file_location("exported_policy", folder / "policy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_finished_run_is_exported_with_the_same_numbers(say: Say, folders: Path) -> None:
    assert say("export", FINISHED, "--to", "numpy", "--out", "again").status == 0
    with (
        np.load(folders / "exported" / "numpy" / "policy.npz") as then,
        np.load(folders / "again" / "policy.npz") as now,
    ):
        assert sorted(then) == sorted(now)
        for name in then:
            np.testing.assert_array_equal(then[name], now[name])


def test_the_program_of_a_policy_acts_as_it_did(say: Say, folders: Path) -> None:
    assert say("export", FINISHED, "--to", "numpy", "--out", "again").status == 0
    observations = np.linspace(-1.0, 1.0, 27, dtype=np.float32).reshape(3, 9)
    acts = []
    for folder in (folders / "exported" / "numpy", folders / "again"):
        policy = numpy_policy(folder).NumpyPolicy.load(folder / "policy.npz")
        acts.append([policy.act(each) for each in observations])
    then, now = acts
    np.testing.assert_array_equal(then, now)
    holds("of-folders/numpy-policy.txt", "\n".join(" ".join(f"{x:.4f}" for x in each) for each in now))


@pytest.mark.goldens
def test_a_policy_in_onnx_acts_as_it_did(say: Say, folders: Path) -> None:
    import onnxruntime  # type: ignore[import-untyped]

    assert say("export", FINISHED, "--to", "onnx", "--out", "again.onnx").status == 0
    observations = np.linspace(-1.0, 1.0, 27, dtype=np.float32).reshape(3, 9)
    acts = []
    for file in ("exported/policy.onnx", "again.onnx"):
        session = onnxruntime.InferenceSession(str(folders / file), providers=["CPUExecutionProvider"])
        acts.append(session.run(None, {session.get_inputs()[0].name: observations}))
    for then, now in zip(*acts, strict=True):
        np.testing.assert_array_equal(then, now)
