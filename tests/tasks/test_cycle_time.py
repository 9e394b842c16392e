"""CycleTime: against Gymnasium's RepeatAction, and on an environment whose every step is known."""

import sys
from fractions import Fraction
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cycletime.cli.run_options import TaskOptions
from cycletime.cli.usage_errors import with_option_names
from cycletime.errors import InputError
from cycletime.tasks.cycle_time import CycleTime

Step = tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]


class Tape(gym.Env[NDArray[np.float64], Any]):
    """Remembers the actions it gets, observes its own step count, and pays the action."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 (as Gymnasium has it)
    observation_space = spaces.Box(0, np.inf, (1,), np.float64)
    action_space = spaces.Box(-np.inf, np.inf, (), np.float64)
    render_mode = "rgb_array"

    def __init__(self, dt: object = 0.002, ends_at: int | None = None) -> None:
        if dt is not None:
            self.dt = dt
        self.ends_at = ends_at
        self.actions: list[float] = []
        self.resets: list[tuple[int | None, dict[str, Any] | None]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        self.resets.append((seed, options))
        self.actions = []
        return self._observe(), {"count": 0}

    def step(self, action: Any) -> Step:  # noqa: ANN401
        self.actions.append(float(action))
        return self._observe(), float(action), len(self.actions) == self.ends_at, False, {"count": len(self.actions)}

    def render(self) -> Any:  # noqa: ANN401
        return np.full((2, 2, 3), len(self.actions), np.uint8)

    def _observe(self) -> NDArray[np.float64]:
        return np.array([len(self.actions)], np.float64)


def run_to_end(env: gym.Env[Any, Any], action: Any = 1.0) -> list[Any]:  # noqa: ANN401
    env.reset(seed=0)
    steps = [env.step(action)]
    while not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(action))
    return steps


@pytest.mark.parametrize(
    ("env_id", "dt", "env_dt", "repeats"),
    [
        ("Pendulum-v1", "350ms", None, 7),
        ("Pendulum-v1", 0.15, None, 3),
        ("Reacher-v5", "80ms", None, 4),
        ("CartPole-v1", "60ms", "20ms", 3),
    ],
)
def test_steps_as_repeat_action_does(env_id: str, dt: str | float, env_dt: str | None, repeats: int) -> None:
    ours = CycleTime(gym.make(env_id), dt, env_dt=env_dt)
    theirs = wrappers.RepeatAction(gym.make(env_id), repeats)
    ours.action_space.seed(1)
    for episode in range(3):
        observation, info = ours.reset(seed=episode)
        np.testing.assert_array_equal(observation, theirs.reset(seed=episode)[0])
        assert (info["env_steps"], info["agent_steps"], info["elapsed_s"], info["cycle_steps"]) == (0, 0, 0.0, 0)
        ended = False
        while not ended:
            action = ours.action_space.sample()
            observation, reward, terminated, truncated, info = ours.step(action)
            expected = theirs.step(action)
            np.testing.assert_array_equal(observation, expected[0])
            assert (reward, terminated, truncated) == expected[1:4]
            assert expected[4].items() <= info.items()
            ended = terminated or truncated
        if truncated:
            assert info["env_steps"] == ours.env.get_wrapper_attr("_max_episode_steps")
    assert (ours.cycle_steps, ours.unwrapped.has_wrapper_attr("cycle_steps")) == (repeats, False)


@pytest.mark.parametrize("limited_by", ["an inner TimeLimit", "time_limit"])
def test_1200_env_steps_are_38_cycles_of_32_and_the_last_is_of_half_length(limited_by: str) -> None:
    if limited_by == "time_limit":
        env = CycleTime(Tape(0.002), "64ms", time_limit="2.4s")
    else:
        env = CycleTime(wrappers.TimeLimit(Tape(0.002), 1200), "64ms")
    steps = run_to_end(env)
    assert [step[4]["cycle_steps"] for step in steps] == [32] * 37 + [16]
    assert [step[1] for step in steps] == [32.0] * 37 + [16.0]
    assert [step[4]["agent_steps"] for step in steps] == list(range(1, 39))
    assert [step[4]["env_steps"] for step in steps] == [*range(32, 1200, 32), 1200]
    assert steps[-1][4]["elapsed_s"] == 2.4
    assert steps[-1][0] == steps[-1][4]["count"] == 1200
    assert [step[3] for step in steps] == [False] * 37 + [True]
    assert not any(step[2] for step in steps)


@given(k=st.integers(1, 9), length=st.integers(1, 40), milliseconds=st.integers(1, 50))
def test_actions_are_held_whole_cycles_and_no_env_step_is_lost(k: int, length: int, milliseconds: int) -> None:
    tape = Tape(milliseconds * 0.001, ends_at=length)
    env = CycleTime(tape, Fraction(k * milliseconds, 1000))
    env.reset()
    cycle, terminated, total = 0, False, 0.0
    while not terminated:
        observation, reward, terminated, truncated, info = env.step(cycle)
        cycle, total = cycle + 1, total + reward
        assert observation == info["env_steps"] == min(length, cycle * k)
        assert not truncated
    assert cycle == ceil(length / k) == info["agent_steps"]
    assert tape.actions == [i // k for i in range(length)]
    assert total == sum(tape.actions)
    assert info["elapsed_s"] == float(Fraction(length * milliseconds, 1000))


@pytest.mark.parametrize(
    ("env_dt", "dt", "k"),
    [
        (0.04, 0.12, 3),
        (0.001 * 9, 0.027, 3),
        (np.float32(0.02), "60ms", 3),
        (np.float64(0.01) * 5, "50ms", 1),
        (0.1 + 0.2, 0.9, 3),
        (1 / 60, "20Hz", 3),
        (0.002, 0.016, 8),
    ],
)
def test_published_floats_are_read_as_the_time_steps_they_stand_for(env_dt: object, dt: str | float, k: int) -> None:
    env = CycleTime(Tape(env_dt), dt)
    assert env.cycle_steps == k
    env.reset()
    assert env.step(0)[4]["env_steps"] == k


def test_one_env_step_per_cycle_is_the_environment_itself() -> None:
    ours, plain = CycleTime(gym.make("Pendulum-v1"), "50ms"), gym.make("Pendulum-v1")
    np.testing.assert_array_equal(ours.reset(seed=3)[0], plain.reset(seed=3)[0])
    for _ in range(200):
        action = ours.action_space.sample()
        (observation, *rest, info), expected = ours.step(action), plain.step(action)
        np.testing.assert_array_equal(observation, expected[0])
        assert rest == list(expected[1:4])
    assert rest[-1] is True
    assert info == {"env_steps": 200, "agent_steps": 200, "elapsed_s": 10.0, "cycle_steps": 1}


def test_the_time_limit_counts_from_each_reset_and_also_marks_a_terminated_step() -> None:
    env = CycleTime(Tape(0.01, ends_at=5), "30ms", time_limit="50ms")
    for _ in range(2):
        assert [step[2:4] for step in run_to_end(env)] == [(False, False), (True, True)]
    env = CycleTime(Tape(0.01), "30ms", time_limit="60ms")
    assert [step[3] for step in run_to_end(env)] == [False, True]
    assert [step[3] for step in run_to_end(CycleTime(Tape(0.01), "30ms", time_limit="10ms"))] == [True]


def test_around_another_cycle_time_it_holds_whole_inner_cycles_and_counts_env_steps() -> None:
    tape = Tape(0.002, ends_at=19)
    env = CycleTime(wrappers.OrderEnforcing(CycleTime(tape, "8ms")), "16ms")
    assert (env.dt, env.env_dt, env.cycle_steps) == (0.016, 0.002, 8)
    steps = run_to_end(env)
    assert [step[4]["cycle_steps"] for step in steps] == [8, 8, 3]
    assert [step[4]["env_steps"] for step in steps] == [8, 16, 19]
    assert [step[4]["agent_steps"] for step in steps] == [1, 2, 3]
    assert steps[-1][4]["elapsed_s"] == 0.038
    with pytest.raises(
        InputError, match=r"20ms is not a whole multiple of .* 8ms: the nearest cycle times are 16ms and 24"
    ):
        CycleTime(CycleTime(tape, "8ms"), "20ms")
    with pytest.raises(InputError, match=r"env_dt is 2ms, but a step of .* lasts 8ms"):
        CycleTime(CycleTime(tape, "8ms"), "16ms", env_dt="2ms")
    assert CycleTime(CycleTime(tape, "8ms"), "16ms", env_dt=0.008).cycle_steps == 8


def test_inner_time_limits_are_compared_in_seconds_through_every_layer() -> None:
    limited = wrappers.TimeLimit(Tape(None), 10)
    twice = CycleTime(wrappers.RepeatAction(CycleTime(limited, "4ms", env_dt="2ms"), 3), "24ms", time_limit="12ms")
    assert twice.cycle_steps == 12
    with pytest.raises(InputError, match=r"time limit 24ms is never reached, since .* after 20ms already"):
        CycleTime(twice, "24ms", time_limit="24ms")


class SkipThree(gym.Wrapper[Any, Any, Any, Any]):
    """Repeats each action three times, and does not say so."""

    def step(self, action: Any) -> Any:  # noqa: ANN401
        for _ in range(3):
            told = self.env.step(action)
        return told


class SkipThreeOpenly(SkipThree):
    """And says so."""

    dt = 0.006


def test_an_inner_time_limit_is_compared_in_seconds_through_a_wrapper_that_publishes_its_step() -> None:
    limited = SkipThreeOpenly(wrappers.TimeLimit(Tape(0.002), 10))
    with pytest.raises(InputError, match=r"time limit 24ms is never reached, since .* after 20ms already"):
        CycleTime(limited, "12ms", time_limit="24ms")


def test_a_frame_skip_between_two_cycles_is_counted_where_it_is_published_and_noticed_where_not() -> None:
    env = CycleTime(SkipThreeOpenly(CycleTime(Tape(0.001), "2ms")), "12ms")
    env.reset()
    assert env.step(1.0)[4]["env_steps"] == env.cycle_steps == 12
    hidden = CycleTime(SkipThree(CycleTime(Tape(0.001), "2ms")), "4ms")
    hidden.reset()
    with pytest.raises(InputError, match=r"lasted 12 environment steps, and 4ms are 4: a wrapper inside repeats steps"):
        hidden.step(1.0)


def test_around_a_task_with_its_own_cycle_time_only_multiples_fit() -> None:
    with pytest.raises(InputError, match=r"Reacher-v0 has a cycle time of its own: set that one, as in gymnasium.make"):
        CycleTime(gym.make("cycletime.tasks:cycletime/Reacher-v0"), "8ms")


def test_around_another_cycle_time_only_multiples_fit_and_the_message_tells_of_it() -> None:
    with pytest.raises(InputError, match=r"4ms and 8ms. It is around a CycleTime of 4ms already: set the cycle time"):
        CycleTime(CycleTime(Tape(0.002), "4ms"), "2ms")


@pytest.mark.parametrize(
    ("dt", "limit", "sentence"),
    [
        ("9ms", None, "9ms is not a whole multiple .* 2ms: the nearest cycle times are 8ms and 10ms"),
        ("1ms", None, "1ms is not a whole multiple .* 2ms: the nearest cycle times are 2ms and 4ms"),
        ("8ms", "1.001s", "time limit 1.001s is not a whole multiple .* 2ms: the nearest are 1s and 1.002s"),
        ("8ms", "1ms", "time limit 1ms is not a whole multiple .* 2ms: the nearest are 2ms and 4ms"),
        ("soon", None, "'soon' is not a time span"),
        (0, None, "0 is not a time span"),
        ("8ms", -1, "-1 is not a time span"),
    ],
)
def test_spans_that_do_not_fit_are_refused(dt: str | int, limit: str | int | None, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        CycleTime(Tape(0.002), dt, time_limit=limit)


def test_a_time_step_is_never_guessed() -> None:
    with pytest.raises(InputError, match=r"CartPole-v1.* publishes no time step .*env_dt='20ms'"):
        CycleTime(gym.make("CartPole-v1"), "40ms")  # although its render_fps is 50
    with pytest.raises(InputError, match=r"publishes dt = <bound method .*no time step: give it"):
        CycleTime(Tape(Tape().render), "40ms")
    with pytest.raises(InputError, match=r"publishes dt = 0.0, no time step"):
        CycleTime(Tape(0.0), "40ms")


def test_what_resets_by_itself_is_refused_inside_and_works_outside() -> None:
    with pytest.raises(InputError, match="put Autoreset around CycleTime"):
        CycleTime(wrappers.Autoreset(Tape()), "8ms")
    tape = Tape(0.002, ends_at=6)
    env = wrappers.Autoreset(CycleTime(tape, "8ms"))
    env.reset()
    env.step(1)
    assert env.step(2)[2]
    assert env.step(3)[4]["env_steps"] == 0
    env.step(4)
    assert tape.actions == [4, 4, 4, 4]
    vector = gym.make_vec("Pendulum-v1", 2, "sync")
    with pytest.raises(InputError, match="give it to gymnasium"):
        CycleTime(vector, "100ms")  # type: ignore[arg-type]
    vector.close()


def test_seeds_and_options_reach_the_environment() -> None:
    tape = Tape()
    CycleTime(tape, "8ms").reset(seed=5, options={"far": True})
    assert tape.resets == [(5, {"far": True})]


@pytest.mark.parametrize("arguments", [{"dt": "100ms"}, {"dt": 0.3, "env_dt": "1/20", "time_limit": Fraction(3, 2)}])
def test_the_specification_survives_json_and_makes_the_same_environment(arguments: dict[str, Any]) -> None:
    env = CycleTime(gym.make("Pendulum-v1"), **arguments)
    assert env.spec is not None
    read = EnvSpec.from_json(env.spec.to_json())
    again = gym.make(read)
    assert isinstance(again, CycleTime)
    assert again.spec == env.spec == read
    assert (again.dt, again.env_dt, again.cycle_steps) == (env.dt, env.env_dt, env.cycle_steps)
    push = np.ones(1, np.float32)
    for one, other in zip(run_to_end(env, push), run_to_end(again, push), strict=True):
        assert one[1:] == other[1:]


def test_metadata_shows_the_new_frame_rate_and_leaves_the_class_alone() -> None:
    env = CycleTime(Tape(), "16ms")
    assert env.metadata == {"render_modes": ["rgb_array"], "render_fps": 62}
    assert Tape.metadata["render_fps"] == 30
    assert CycleTime(Tape(), "4s").metadata["render_fps"] == 1
    assert env.unwrapped.get_wrapper_attr("dt") == 0.002


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@pytest.mark.parametrize("limit", [None, "5s"])
def test_gymnasium_finds_no_fault(limit: str | None) -> None:
    check_env(CycleTime(gym.make("Acrobot-v1"), "400ms", time_limit=limit), skip_render_check=True)


def test_statistics_count_cycles_outside_and_env_steps_inside() -> None:
    outside = wrappers.RecordEpisodeStatistics(CycleTime(wrappers.TimeLimit(Tape(), 10), "8ms"))
    inside = CycleTime(wrappers.RecordEpisodeStatistics(wrappers.TimeLimit(Tape(), 10)), "8ms")
    (*_, last_outside), (*_, last_inside) = run_to_end(outside), run_to_end(inside)
    assert (last_outside[4]["episode"]["l"], last_outside[4]["episode"]["r"]) == (3, 10.0)
    assert (last_inside[4]["episode"]["l"], last_inside[4]["episode"]["r"]) == (10, 10.0)


def test_a_time_limit_outside_counts_cycles() -> None:
    steps = run_to_end(wrappers.TimeLimit(CycleTime(Tape(), "8ms"), 3))
    assert [step[4]["env_steps"] for step in steps] == [4, 8, 12]
    assert steps[-1][3]


def test_frames_are_collected_per_env_step_inside_and_per_cycle_outside() -> None:
    inside = CycleTime(wrappers.RenderCollection(Tape(ends_at=6)), "8ms")
    outside = wrappers.RenderCollection(CycleTime(Tape(ends_at=6), "8ms"))
    for env, counts in ((inside, [0, 1, 2, 3, 4, 5, 6]), (outside, [0, 4, 6])):
        run_to_end(env)
        frames: Any = env.render()
        assert [int(frame[0, 0, 0]) for frame in frames] == counts


def test_videos_play_in_the_time_of_the_cycles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written = []

    class Clip:
        def __init__(self, frames: list[Any], fps: float) -> None:
            written.append((len(frames), fps))

        def write_videofile(self, path: str, logger: object) -> None:
            assert path.endswith(".mp4")

    for name in ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["moviepy.video.io.ImageSequenceClip"], "ImageSequenceClip", Clip, raising=False)
    for inner in (Tape(ends_at=6), wrappers.RenderCollection(Tape(ends_at=6))):
        env = wrappers.RecordVideo(CycleTime(inner, "8ms"), str(tmp_path / str(len(written))), lambda episode: True)
        run_to_end(env)
        env.close()  # type: ignore[no-untyped-call]
    assert written == [(3, 125.0), (3, 125.0)]


def test_around_a_task_that_holds_actions_itself_the_simulation_s_own_steps_are_counted() -> None:
    env = CycleTime(gym.make("cycletime/Reacher-v0", dt="64ms"), "128ms")
    assert (env.env_dt, env.cycle_steps) == (0.002, 64)
    last = run_to_end(env, np.zeros(2, np.float32))[-1]
    assert last[4] == {"env_steps": 1200, "agent_steps": 19, "elapsed_s": 2.4, "cycle_steps": 48}


def test_a_time_limit_that_the_environment_never_reaches_is_refused() -> None:
    with pytest.raises(InputError, match=r"time limit 20s is never reached, since .* ends episodes after 10s already"):
        CycleTime(gym.make("Pendulum-v1"), "500ms", time_limit="20s")
    CycleTime(gym.make("Pendulum-v1", max_episode_steps=-1), "500ms", time_limit="20s")


def test_a_cycle_that_is_too_short_gets_a_hint_at_retiming() -> None:
    hint = "Shorter ones need retime with env_dt=..., if it knows the id; register_retiming describes one of your own."
    with pytest.raises(InputError) as refused:
        CycleTime(gym.make("Pendulum-v1"), "25ms")
    assert str(refused.value).endswith(f"50ms and 100ms. {hint}")
    assert with_option_names(hint, TaskOptions(env="Pendulum-v1")) == hint.replace("env_dt=...", "--env-dt")


@pytest.mark.parametrize("spans", [{"dt": 40}, {"dt": "40s", "env_dt": 20}, {"dt": "40ms", "time_limit": 20}])
def test_a_number_of_a_second_or_more_needs_its_unit(spans: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"'[24]0' has no unit: write '[24]0ms' for milliseconds"):
        CycleTime(gym.make("MountainCarContinuous-v0"), **spans)
