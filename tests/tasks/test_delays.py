"""Delays: written-out sequences on an environment that gives back what it was given."""

from decimal import Decimal
from fractions import Fraction
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

from cycletime.errors import InputError
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.delays import ActionDelay, ObservationDelay, RealTime

UNCHECKED = pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")


class Echo(gym.Env[NDArray[np.float32], Any]):
    """Observes its step count and the action that it got, in one array that it reuses; 10 ms per step."""

    observation_space = spaces.Box(-100, 1000, (2,), np.float32)
    action_space: spaces.Space[Any] = spaces.Box(-100, 100, (1,), np.float32)
    dt = 0.01

    def __init__(self, ends_at: int | None = None) -> None:
        self.ends_at = ends_at
        self.applied: list[Any] = []
        self.drawn: list[float] = []
        self.seen = np.zeros(2, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.applied = []
        self.seen[:] = 0
        return self.seen, {"options": options}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        self.applied.append(np.asarray(action).tolist())
        self.drawn.append(self.np_random.random())
        value = float(np.ravel(action)[0])
        self.seen[:] = len(self.applied), value
        return self.seen, value, len(self.applied) == self.ends_at, False, {"count": len(self.applied)}


class Switch(Echo):
    action_space = spaces.Discrete(3, start=5)


class Panel(Echo):
    action_space = spaces.Dict(turn=spaces.Box(1, 2, (2,)), press=spaces.Discrete(2))

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        return super().step(action["turn"])


def play(env: gym.Env[Any, Any], actions: int, seed: int | None = 0) -> list[Any]:
    """What env observes at a reset and at the actions 1, 2, 3 ..."""
    observation, _ = env.reset(seed=seed)
    seen = [observation.tolist()]
    action = np.zeros(1, np.float32)  # one array for all, as agents do it
    for number in range(1, actions + 1):
        action[0] = number
        seen.append(env.step(action)[0].tolist())
    return seen


def counts(seen: list[Any]) -> list[int]:
    return [int(observation[0]) for observation in seen]


def applied(seen: list[Any]) -> list[int]:
    return [int(observation[1]) for observation in seen[1:]]


def test_a_fixed_action_delay_of_three_steps() -> None:
    env = ActionDelay(Echo(), "30ms")
    for _ in range(2):  # nothing is left of the first episode in the second
        assert applied(play(env, 6)) == [0, 0, 0, 1, 2, 3]


def test_another_action_may_be_applied_at_first() -> None:
    assert applied(play(ActionDelay(Echo(), "20ms", initial_action=[-7]), 4)) == [-7, -7, 1, 2]


def test_a_fixed_observation_delay_of_two_steps() -> None:
    env = ObservationDelay(Echo(), 0.02)
    for _ in range(2):
        assert play(env, 5) == [[0, 0], [0, 0], [0, 0], [1, 1], [2, 2], [3, 3]]


def test_both_delays_add_up() -> None:
    env = ObservationDelay(ActionDelay(Echo(), "20ms"), "10ms")
    assert play(env, 5) == [[0, 0], [0, 0], [1, 0], [2, 0], [3, 1], [4, 2]]


def test_rewards_ends_and_info_are_not_delayed() -> None:
    env = ObservationDelay(Echo(ends_at=3), "20ms")
    env.reset(seed=0)
    steps = [env.step(np.array([number], np.float32)) for number in (1, 2, 3)]
    assert [(reward, terminated, info["count"]) for _, reward, terminated, _, info in steps] == [
        (1, False, 1),
        (2, False, 2),
        (3, True, 3),
    ]
    assert steps[-1][0].tolist() == [1, 1]


def test_truncation_in_between_leaves_nothing_under_way() -> None:
    env = wrappers.TimeLimit(ObservationDelay(ActionDelay(Echo(), "30ms"), "20ms"), 4)
    first, second = play(env, 4), play(env, 4)
    assert first == second == [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]]


@pytest.mark.parametrize(
    "zero",
    [
        0,
        0.0,
        "0",
        "0ms",
        "0.000 s",
        "0s",
        ".0us",
        "0 µs",
        "0e3ms",
        "0/5s",
        "+0.0min",
        Fraction(0),
        Decimal(0),
        ("0ms", 0),
    ],
)
@pytest.mark.parametrize("wrapper", [ActionDelay, ObservationDelay])
def test_no_delay_is_the_environment_itself(wrapper: Any, zero: Any) -> None:  # noqa: ANN401
    assert play(wrapper(Echo(), zero), 4) == play(Echo(), 4) == [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]


def test_around_a_cycle_a_step_is_the_cycle_and_inside_it_is_the_environments_step() -> None:
    outside = ActionDelay(CycleTime(Echo(), "40ms"), "40ms")
    play(outside, 3)
    assert outside.unwrapped.get_wrapper_attr("applied") == [[0]] * 4 + [[1]] * 4 + [[2]] * 4
    inside = CycleTime(ActionDelay(Echo(), "10ms"), "40ms")
    play(inside, 3)
    assert inside.unwrapped.get_wrapper_attr("applied") == [[0]] + [[1]] * 4 + [[2]] * 4 + [[3]] * 3
    with pytest.raises(InputError, match=r"delay 10ms is not a whole multiple .* 40ms: the nearest are 0s and 40ms"):
        ActionDelay(CycleTime(Echo(), "40ms"), "10ms")
    deep = CycleTime(ObservationDelay(CycleTime(Echo(), "20ms"), "20ms"), "40ms")
    assert counts(play(deep, 2)) == [0, 2, 6]


@given(low=st.integers(0, 4), more=st.integers(0, 4), seed=st.integers(0, 10**6))
def test_random_ages_stay_in_the_range_and_time_never_goes_back(low: int, more: int, seed: int) -> None:
    high = low + more
    env = ObservationDelay(Echo(), (Fraction(low, 100), Fraction(high, 100)))
    frames = np.array(counts(play(env, 40, seed)))
    ages = np.arange(41) - frames
    assert (np.diff(frames) >= 0).all()
    assert (ages[high:] >= low).all()
    assert (ages <= high).all()
    late = ActionDelay(Echo(), (Fraction(low, 100), Fraction(high, 100)))
    orders = np.array(applied(play(late, 40, seed)))
    ages = np.arange(1, 41) - orders
    assert (np.diff(orders) >= 0).all()
    assert (ages[high:] >= low).all()
    assert (ages <= high).all()


def test_each_delay_of_the_range_is_drawn_alike() -> None:
    env = ActionDelay(Echo(), ("10ms", "40ms"))
    env.reset(seed=3)
    drawn = [round(100 * env.step(np.zeros(1, np.float32))[4]["action_delay_s"]) for _ in range(4000)]
    values, numbers = np.unique(drawn, return_counts=True)
    assert values.tolist() == [1, 2, 3, 4]
    assert abs(numbers - 1000).max() < 4 * np.sqrt(4000 * 3 / 16)  # four standard deviations


def test_what_is_overtaken_is_dropped_and_what_arrived_stays() -> None:
    env = ActionDelay(Echo(), ("0ms", "30ms"))
    env.reset(seed=1)
    newest, expected, got = 0, [], []
    arrivals: dict[int, int] = {}
    for number in range(1, 60):
        observation, *_, info = env.step(np.array([number], np.float32))
        arrivals[number] = number + round(100 * info["action_delay_s"])
        newest = max([newest, *(sent for sent, arrives in arrivals.items() if arrives <= number)])
        expected.append(newest)
        got.append(int(observation[1]))
    assert got == expected
    assert len(set(got)) < len(got)


@pytest.mark.parametrize("wrapper", [ActionDelay, ObservationDelay])
def test_a_delay_may_be_drawn_once_per_episode(wrapper: Any) -> None:  # noqa: ANN401
    env = wrapper(Echo(), ("0ms", "50ms"), redraw="episode")
    key = "action_delay_s" if wrapper is ActionDelay else "observation_delay_s"
    drawn = []
    for episode in range(30):
        env.reset(seed=7 if episode == 0 else None)
        delays = {env.step(np.zeros(1, np.float32))[4][key] for _ in range(8)}
        assert len(delays) == 1
        drawn.append(round(100 * delays.pop()))
    assert set(drawn) == {0, 1, 2, 3, 4, 5}


def test_seeds_reproduce_and_later_episodes_differ() -> None:
    def two_episodes(seed: int) -> list[Any]:
        env = ObservationDelay(ActionDelay(Echo(), ("0ms", "40ms")), ("0ms", "40ms"))
        return [play(env, 30, seed), play(env, 30, None)]

    assert two_episodes(5) == two_episodes(5) != two_episodes(6)
    assert two_episodes(5)[0] != two_episodes(5)[1]


def test_the_environments_own_random_numbers_are_left_alone_and_not_reused() -> None:
    plain, delayed = Echo(), Echo()
    play(plain, 20)
    env = ActionDelay(ActionDelay(delayed, ("0ms", "990ms")), ("0ms", "990ms"))
    env.reset(seed=0)
    outer, inner = [], []
    for _ in range(20):
        info = env.step(np.zeros(1, np.float32))[4]
        outer.append(round(100 * info["action_delay_s"]))
        inner.append(env.env.get_wrapper_attr("_under_way")[-1][0])
    assert delayed.drawn == plain.drawn
    own = np.random.default_rng(0).integers(0, 99, 20, endpoint=True).tolist()
    assert outer != own
    assert outer != [arrives - now for now, arrives in enumerate(inner)] != own


@pytest.mark.parametrize(
    ("delay", "sentence"),
    [
        ("15ms", "delay 15ms is not a whole multiple of the environment's step 10ms: the nearest are 10ms and 20ms"),
        ("4ms", "the nearest are 0s and 10ms"),
        (("10ms", "25ms"), "the nearest are 20ms and 30ms"),
        (("40ms", "10ms"), r"The delay is \('40ms', '10ms'\): give one span, .* or a range"),
        (("1s", "2s", "3s"), "or a range"),
        ((), "or a range"),
        ("-10ms", "'-10ms' is not a time span"),
        ("0 moons", "'0 moons' is not a time span"),
        ("0.0.0s", "'0.0.0s' is not a time span"),
        ("0Hz", "'0Hz' is not a time span"),
        (False, "False is not a time span"),
        (None, "None is not a time span"),
    ],
)
@pytest.mark.parametrize("wrapper", [ActionDelay, ObservationDelay])
def test_delays_that_do_not_fit_are_refused(wrapper: Any, delay: Any, sentence: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=sentence):
        wrapper(Echo(), delay)


def test_other_faults_are_refused() -> None:
    with pytest.raises(InputError, match="redraw is 'never': give 'step' or 'episode'"):
        ActionDelay(Echo(), "10ms", redraw="never")  # type: ignore[arg-type]
    for initial in ([1, 2], "left", [200], {"a": 1}):
        with pytest.raises(InputError, match=r"initial_action is .*: give one in the action space Box"):
            ActionDelay(Echo(), "10ms", initial_action=initial)
    with pytest.raises(InputError, match=r"initial_action is 5.5: give one in the action space Discrete"):
        RealTime(Switch(), initial_action=5.5)
    with pytest.raises(InputError, match="publishes no time step"):
        ObservationDelay(gym.make("CartPole-v1"), "20ms")
    for wrapper in (ActionDelay, ObservationDelay):
        with pytest.raises(InputError, match="put Autoreset around"):
            wrapper(wrappers.Autoreset(Echo()), "10ms")
    with pytest.raises(InputError, match="put Autoreset around RealTime"):
        RealTime(wrappers.Autoreset(Echo()))


def test_discrete_and_dict_actions_are_delayed_too() -> None:
    env = ActionDelay(Switch(), "20ms")
    env.reset()
    for action in (6, 7, 6):
        env.step(action)
    assert env.unwrapped.get_wrapper_attr("applied") == [5, 5, 6]  # the action nearest to zero first
    with pytest.raises(InputError, match=r"initial_action is \{'turn': .*: give one in the action space Dict"):
        ActionDelay(Panel(), "10ms", initial_action={"turn": [1.5, 2], "press": 1})
    with pytest.raises(InputError, match=r"initial_action is 1180\d+: give one in the action space Discrete"):
        ActionDelay(Switch(), "10ms", initial_action=2**70)
    panel = ActionDelay(Panel(), "10ms")
    panel.reset()
    panel.step({"turn": np.array([2, 2], np.float32), "press": 0})
    assert panel.unwrapped.get_wrapper_attr("applied") == [[1, 1]]


def test_in_real_time_the_action_comes_one_step_late_and_is_observed() -> None:
    env = RealTime(Echo())
    for _ in range(2):
        assert play(env, 4) == [[0, 0, 0], [1, 0, 1], [2, 1, 2], [3, 2, 3], [4, 3, 4]]


def test_in_real_time_the_history_is_given_in_seconds_oldest_action_first() -> None:
    env = RealTime(CycleTime(Echo(), "40ms"), history="120ms", initial_action=[-1])
    assert play(env, 4) == [
        [0, 0, -1, -1, -1],
        [4, -1, -1, -1, 1],
        [8, 1, -1, 1, 2],
        [12, 2, 1, 2, 3],
        [16, 3, 2, 3, 4],
    ]
    with pytest.raises(
        InputError, match=r"history 100ms is not a whole multiple .* 40ms: the nearest are 80ms and 120ms"
    ):
        RealTime(CycleTime(Echo(), "40ms"), history="100ms")


def test_in_real_time_a_longer_delay_lies_inside() -> None:
    env = RealTime(ActionDelay(Echo(), "10ms"), history="20ms")
    assert play(env, 4) == [[0, 0, 0, 0], [1, 0, 0, 1], [2, 0, 1, 2], [3, 1, 2, 3], [4, 2, 3, 4]]


def test_in_real_time_discrete_actions_are_one_hot() -> None:
    env = RealTime(Switch(), history=0.02)
    assert env.observation_space == spaces.Box(
        np.array([-100, -100, 0, 0, 0, 0, 0, 0], np.float32), np.array([1000, 1000, 1, 1, 1, 1, 1, 1], np.float32)
    )
    env.reset()
    observation = env.step(7)[0]
    assert observation.tolist() == [1, 5, 1, 0, 0, 0, 0, 1]
    assert observation in env.observation_space


def test_in_real_time_no_time_step_is_needed_without_a_history() -> None:
    env = RealTime(gym.make("CartPole-v1"))
    assert env.reset(seed=0)[0] in env.observation_space
    with pytest.raises(InputError, match="publishes no time step"):
        RealTime(gym.make("CartPole-v1"), history="20ms")


def test_in_real_time_other_spaces_are_refused() -> None:
    class Picture(Echo):
        observation_space: Any = spaces.Box(0, 255, (4, 4), np.uint8)

    class Words(Echo):
        action_space = spaces.Sequence(spaces.Discrete(2))

    with pytest.raises(
        InputError, match=r"observations of .* are Box\(0, 255, \(4, 4\), uint8\): .*FlattenObservation"
    ):
        RealTime(Picture())
    flat = RealTime(wrappers.FlattenObservation(Picture()))
    assert flat.observation_space.shape == (17,)
    assert flat.observation_space.dtype == np.float32
    with pytest.raises(InputError, match=r"actions that can be flattened \(Box, Discrete\), not Sequence"):
        RealTime(Words())


WRAPPED = [
    lambda env: ActionDelay(env, ("200ms", "1s"), redraw="episode"),
    lambda env: ActionDelay(env, 0, env_dt="1/5", initial_action=2),
    lambda env: ObservationDelay(env, "400ms"),
    lambda env: ObservationDelay(env, (0, "0.6")),
    lambda env: RealTime(env, history="600ms", initial_action=np.int64(1)),
    lambda env: RealTime(ObservationDelay(CycleTime(env, "400ms"), ("0s", "2s"))),
]


@UNCHECKED
@pytest.mark.parametrize("wrap", WRAPPED)
def test_gymnasium_finds_no_fault(wrap: Any) -> None:  # noqa: ANN401
    check_env(wrap(gym.make("Acrobot-v1")), skip_render_check=True)


@pytest.mark.parametrize("wrap", WRAPPED)
def test_the_specification_survives_json_and_makes_the_same_environment(wrap: Any) -> None:  # noqa: ANN401
    env = wrap(gym.make("Acrobot-v1"))
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec == env.spec
    np.testing.assert_array_equal(env.reset(seed=2)[0], again.reset(seed=2)[0])
    for action in np.random.default_rng(0).integers(0, 3, 50):
        one, other = env.step(action), again.step(action)
        np.testing.assert_array_equal(one[0], other[0])
        assert one[0] in env.observation_space
        assert one[1:] == other[1:]


def test_box_initial_actions_survive_json() -> None:
    for env in (
        ActionDelay(gym.make("Pendulum-v1"), "100ms", initial_action=np.array([0.1], np.float32)),
        RealTime(gym.make("Pendulum-v1"), initial_action=[0.1]),
    ):
        assert env.spec is not None
        again = gym.make(EnvSpec.from_json(env.spec.to_json()))
        assert again.spec == env.spec
        assert again.get_wrapper_attr("_initial") == np.float32(0.1)
