import pytest

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.profile import PROFILES, ProfileName, SimulatorSettings
from cycletime.robots.ur.simulator.rtde_session import InputOwners, RtdeSession, output_variable
from cycletime.robots.ur.types import SpeedJ, WireError
from cycletime.robots.ur.wire import rtde
from cycletime.robots.ur.wire.rtde import LOCKSTEP_INPUTS, Frame, FrameParser, FrameType, Recipe, lockstep_values

NAMES = ("timestamp", "actual_q", "actual_qd", "target_q", "target_qd", "safety_mode", "robot_mode", "runtime_state")
# All that ur_rtde's receive interface asks for, as captured from version 1.6.5 with a controller of version 5.12.
RECEIVED_BY_UR_RTDE = [
    "timestamp",
    "target_q",
    "target_qd",
    "target_qdd",
    "target_current",
    "target_moment",
    "actual_q",
    "actual_qd",
    "actual_current",
    "joint_control_output",
    "actual_TCP_pose",
    "actual_TCP_speed",
    "actual_TCP_force",
    "target_TCP_pose",
    "target_TCP_speed",
    "actual_digital_input_bits",
    "joint_temperatures",
    "actual_execution_time",
    "robot_mode",
    "joint_mode",
    "safety_mode",
    "actual_tool_accelerometer",
    "speed_scaling",
    "target_speed_fraction",
    "actual_momentum",
    "actual_main_voltage",
    "actual_robot_voltage",
    "actual_robot_current",
    "actual_joint_voltage",
    "actual_digital_output_bits",
    "runtime_state",
    "standard_analog_input0",
    "standard_analog_input1",
    "standard_analog_output0",
    "standard_analog_output1",
    "robot_status_bits",
    "safety_status_bits",
    "ft_raw_wrench",
    "payload",
    "payload_cog",
    "payload_inertia",
    "output_int_register_2",
]
RECEIVED_BY_UR_RTDE += [f"output_{kind}_register_{number}" for kind in ("int", "double") for number in range(12, 20)]


class Client:
    """Speaks RTDE with a session, without a network."""

    def __init__(self, controller: Controller | None = None, owners: InputOwners | None = None) -> None:
        self.controller = controller or Controller()
        self.session = RtdeSession(self.controller, owners or InputOwners())
        self.parser = FrameParser()
        self.ask(rtde.protocol_version_request())

    def ask(self, data: bytes) -> list[Frame]:
        return self.parser.feed(self.session.receive(data))

    def tick(self) -> list[Frame]:
        self.controller.advance()
        return self.parser.feed(self.session.stream())

    def outputs(self, names: tuple[str, ...] = NAMES, frequency_hz: float = 125.0) -> Recipe:
        (reply,) = self.ask(rtde.output_recipe_request(names, frequency_hz))
        return rtde.read_recipe_reply(reply.payload, names)

    def inputs(self, names: tuple[str, ...]) -> Recipe:
        (reply,) = self.ask(rtde.input_recipe_request(names))
        return rtde.read_recipe_reply(reply.payload, names)

    def start(self) -> bool:
        reply, *_ = self.ask(rtde.encode_frame(FrameType.START))
        return rtde.read_accepted(reply.payload)


@pytest.mark.parametrize(("profile", "version"), [("cb3", (3, 15)), ("e", (5, 12))])
def test_the_handshake_of_both_profiles(profile: ProfileName, version: tuple[int, int]) -> None:
    client = Client(Controller(SimulatorSettings(profile=PROFILES[profile])))
    (reply,) = client.ask(rtde.encode_frame(FrameType.CONTROLLER_VERSION))
    assert rtde.read_controller_version(reply.payload)[:2] == version
    recipe = client.outputs(frequency_hz=500.0)
    assert recipe.types == ("DOUBLE", *["VECTOR6D"] * 4, "INT32", "INT32", "UINT32")
    assert client.start()
    (package,) = client.tick()
    told = recipe.unpack(package.payload)
    period_s = 0.008 if profile == "cb3" else 0.002
    assert (told["timestamp"], told["safety_mode"], told["robot_mode"], told["runtime_state"]) == (period_s, 1, 7, 1)
    assert told["actual_q"] == client.controller.settings.start_q


def test_the_first_package_comes_with_the_start() -> None:
    client = Client()
    recipe = client.outputs()
    _, package = client.ask(rtde.encode_frame(FrameType.START))
    assert recipe.unpack(package.payload)["timestamp"] == 0.0


@pytest.mark.parametrize(("version", "accepted"), [(1, False), (2, True), (3, False)])
def test_version_2_is_spoken_alone(version: int, accepted: bool) -> None:
    (reply,) = Client().ask(rtde.protocol_version_request(version))
    assert rtde.read_accepted(reply.payload) is accepted


def test_all_that_ur_rtde_receives_is_there() -> None:
    assert [name for name in RECEIVED_BY_UR_RTDE if output_variable(name) is None] == []
    client = Client()
    recipe = client.outputs(tuple(RECEIVED_BY_UR_RTDE))
    client.start()
    (package,) = client.tick()
    assert len(recipe.unpack(package.payload)) == len(RECEIVED_BY_UR_RTDE)


def test_a_variable_that_does_not_exist_is_not_found_and_nothing_starts() -> None:
    client = Client()
    recipe = client.outputs(("timestamp", "no_such"))
    assert recipe.refused("NOT_FOUND") == ("no_such",)
    assert not client.start()
    assert client.inputs(("no_such",)).id == 0


@pytest.mark.parametrize(("asked_hz", "packages"), [(125.0, 12), (500.0, 12), (62.5, 6), (10.0, 1), (0.0, 12)])
def test_packages_come_as_often_as_was_asked_for(asked_hz: float, packages: int) -> None:
    client = Client()
    client.outputs(frequency_hz=asked_hz)
    client.start()
    assert sum(len(client.tick()) for _ in range(12)) == packages


def test_recipes_change_only_while_the_packages_pause() -> None:
    client = Client()
    client.outputs(("timestamp",))
    client.start()
    assert client.inputs(("input_int_register_0",)).id == 0
    client.outputs(("actual_q",))
    (package,) = client.tick()
    assert len(package.payload) == 1 + 8
    client.ask(rtde.encode_frame(FrameType.PAUSE))
    assert client.tick() == []
    client.outputs(("actual_q",))
    client.start()
    (package,) = client.tick()
    assert len(package.payload) == 1 + 48


def test_an_input_has_one_client_until_that_is_gone() -> None:
    controller, owners = Controller(), InputOwners()
    first, second = Client(controller, owners), Client(controller, owners)
    assert first.inputs(("input_int_register_0",)).id == 1
    assert first.inputs(("input_int_register_0", "input_double_register_3")).id == 2
    refused = second.inputs(("input_int_register_0", "input_int_register_1"))
    assert (refused.id, refused.refused("IN_USE")) == (0, ("input_int_register_0",))
    assert second.inputs(("input_int_register_1",)).id == 1
    first.session.close()
    assert second.inputs(("input_int_register_0",)).id == 2


def test_inputs_are_written_and_keep_their_values() -> None:
    client = Client()
    recipe = client.inputs(("input_int_register_3", "input_double_register_4"))
    client.start()
    client.ask(rtde.data_package(recipe, (-7, 2.5)))
    assert client.controller.registers == {"input_int_register_3": -7, "input_double_register_4": 2.5}


def test_a_package_without_a_recipe_ends_the_connection() -> None:
    client = Client()
    client.outputs()
    client.start()
    with pytest.raises(WireError, match="no recipe"):
        client.ask(rtde.data_package(Recipe(9, ("a",), ("INT32",)), (1,)))


def test_what_the_log_says_comes_between_packages() -> None:
    client = Client()
    client.outputs()
    client.start()
    client.controller.say("hello", level=2)
    text, package = client.tick()
    assert text.payload == b"\x05hello\x09cycletime\x02"
    assert package.kind == FrameType.DATA
    assert [frame.kind for frame in client.tick()] == [FrameType.DATA]


def test_a_lock_step_package_carries_a_command() -> None:
    client = Client()
    recipe = client.inputs(LOCKSTEP_INPUTS)
    client.start()
    client.ask(rtde.data_package(recipe, lockstep_values(3, SpeedJ((0, 0.1, 0, 0, 0, 0), 2.0, 1.0))))
    for _ in range(3):
        client.tick()
    assert client.controller.state.target_qd[1] == pytest.approx(0.016)
    client.ask(rtde.data_package(recipe, lockstep_values(4)))
    client.tick()
    assert client.controller.state.target_qd[1] == pytest.approx(0.032)
