"""Against the real MLflow with a store in a file, read back by its own client."""

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.training.observers import Status
from cycletime.training.run_folder import RunFolder
from cycletime.training.trackers import MLflow, RunInfo
from tests.training.engines.scripted import make_spec, progress_at

pytestmark = [
    pytest.mark.trackers,
    # MLflow's tables use what SQLAlchemy 2.1 deprecates.
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"),
]

MakeInfo = Callable[..., RunInfo]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One database for all tests, since making one takes seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"


@pytest.fixture(autouse=True)
def _its_own_experiment(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", tmp_path.name)
    monkeypatch.chdir(tmp_path)


def client() -> Any:  # noqa: ANN401 - of a package without types
    return importlib.import_module("mlflow").MlflowClient()


def kept_in(experiment: str) -> list[Any]:
    return list(client().search_runs([client().get_experiment_by_name(experiment).experiment_id]))


def curve(run: Any, name: str) -> list[tuple[int, float]]:  # noqa: ANN401 - of a package without types
    return [(metric.step, metric.value) for metric in client().get_metric_history(run.info.run_id, name)]


def log(run: RunInfo, *env_steps: int, value: float, status: Status = "finished") -> None:
    tracker = MLflow()
    tracker.open_run(run)
    for each in env_steps:
        tracker.log(each, {"charts/episodic_return": value, "losses/policy_loss": -value})
    tracker.close_run(status)


def test_values_config_and_name_come_back(run_info: MakeInfo, tmp_path: Path) -> None:
    log(run_info(), 1200, 2400, value=0.5)
    (kept,) = kept_in(tmp_path.name)
    assert curve(kept, "charts/episodic_return") == [(1200, 0.5), (2400, 0.5)]
    assert curve(kept, "losses/policy_loss") == [(1200, -0.5), (2400, -0.5)]
    assert kept.data.params == {key: str(value) for key, value in run_info().config.items()}
    assert kept.info.run_name == run_info().name


def test_a_value_that_is_not_a_number_is_kept_as_such(run_info: MakeInfo, tmp_path: Path) -> None:
    log(run_info(), 10, value=math.nan)
    (kept,) = kept_in(tmp_path.name)
    ((step, value),) = curve(kept, "charts/episodic_return")
    assert step == 10
    assert math.isnan(value)


def test_a_config_longer_than_one_request_takes_comes_back(run_info: MakeInfo, tmp_path: Path) -> None:
    config = {f"key{number}": number for number in range(201)}
    log(run_info(config=config), value=0.0)
    (kept,) = kept_in(tmp_path.name)
    assert kept.data.params == {key: str(value) for key, value in config.items()}


@pytest.mark.parametrize(("status", "told"), [("finished", "FINISHED"), ("stopped", "KILLED"), ("failed", "FAILED")])
def test_the_end_is_told_as_mlflow_tells_it(status: Status, told: str, run_info: MakeInfo, tmp_path: Path) -> None:
    log(run_info(), value=0.0, status=status)
    (kept,) = kept_in(tmp_path.name)
    assert kept.info.status == told


def test_a_resumed_run_goes_on_and_logs_nothing_twice(run_info: MakeInfo, tmp_path: Path) -> None:
    log(run_info(), 100, 200, 300, value=1.0, status="stopped")
    tracker = MLflow()
    tracker.open_run(run_info(resumed_from=100))
    (kept,) = kept_in(tmp_path.name)
    assert kept.info.status == "RUNNING"
    tracker.log(200, {"charts/episodic_return": 2.0, "charts/new": 2.0})
    tracker.log(300, {"charts/episodic_return": 2.0})
    tracker.log(400, {"charts/episodic_return": 2.0})
    tracker.close_run("finished")
    (kept,) = kept_in(tmp_path.name)
    assert kept.info.status == "FINISHED"
    assert curve(kept, "charts/episodic_return") == [(100, 1.0), (200, 1.0), (300, 1.0), (400, 2.0)]
    assert curve(kept, "charts/new") == [(200, 2.0)]


def test_another_run_is_another(run_info: MakeInfo, tmp_path: Path) -> None:
    log(run_info(), 100, value=1.0)
    log(run_info(identity="0b" * 32), 100, value=2.0)
    assert sorted(curve(kept, "charts/episodic_return") for kept in kept_in(tmp_path.name)) == [
        [(100, 1.0)],
        [(100, 2.0)],
    ]


def test_a_tracker_serves_one_run_after_another(run_info: MakeInfo, tmp_path: Path) -> None:
    log(run_info(), 100, value=1.0, status="stopped")
    tracker = MLflow()
    for run in (run_info(resumed_from=100), run_info(name="next", identity="0b" * 32)):
        tracker.open_run(run)
        tracker.log(50, {"charts/episodic_return": 2.0})
        tracker.close_run("finished")
    curves = {kept.info.run_name: curve(kept, "charts/episodic_return") for kept in kept_in(tmp_path.name)}
    assert curves == {run_info().name: [(100, 1.0)], "next": [(50, 2.0)]}


def test_a_deleted_run_is_made_anew(run_info: MakeInfo, tmp_path: Path) -> None:
    log(run_info(), 100, value=1.0)
    (kept,) = kept_in(tmp_path.name)
    client().delete_run(kept.info.run_id)
    log(run_info(resumed_from=100), 200, value=2.0)
    (kept,) = kept_in(tmp_path.name)
    assert curve(kept, "charts/episodic_return") == [(200, 2.0)]


def test_the_experiment_is_cycletime_unless_a_variable_says_otherwise(
    run_info: MakeInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME")
    log(run_info(), 100, value=1.0)
    (kept,) = kept_in("cycletime")
    assert kept.info.run_name == run_info().name
    number = client().create_experiment(f"{tmp_path.name} by number")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", number)
    log(run_info(), 100, value=1.0)
    assert len(kept_in(f"{tmp_path.name} by number")) == 1


def test_two_that_create_the_experiment_at_once_share_it(
    run_info: MakeInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(run_info(), 100, value=1.0)
    real, answers = type(client()).get_experiment_by_name, [None]
    monkeypatch.setattr(
        type(client()), "get_experiment_by_name", lambda self, name: answers.pop() if answers else real(self, name)
    )
    log(run_info(identity="0b" * 32), 100, value=1.0)
    assert len(kept_in(tmp_path.name)) == 2


def test_its_links_are_not_printed_as_ours(
    run_info: MakeInfo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = type(client()).set_terminated

    def with_links(self: object, run_id: str, status: str) -> None:
        print("View run at http://...")  # as MLflow does with a server
        real(self, run_id, status)

    monkeypatch.setattr(type(client()), "set_terminated", with_links)
    log(run_info(), value=0.0)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "View run" in printed.err


def test_a_server_that_goes_away_is_one_sentence(run_info: MakeInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings = list[str]()
    tracker, folder = MLflow(warnings.append), RunFolder(run_info().folder, make_spec())
    tracker.begin(folder, None)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")  # nobody listens there
    tracker._client = client()
    for env_steps in range(3):
        tracker.update(progress_at(env_steps + 1))
    tracker.end("finished")
    (warning,) = warnings
    assert warning.startswith("MLflow failed; disabled for this run: MlflowException: ")


def test_a_server_that_is_not_there_refuses_the_run(run_info: MakeInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"^MLflow could not begin: MlflowException: .*127\.0\.0\.1.*\.$"):
        MLflow(pytest.fail).begin(RunFolder(run_info().folder, make_spec()), None)
