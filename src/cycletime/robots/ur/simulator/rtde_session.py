"""RTDE as one client meets it: output variables, the handshake, recipes, data packages in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cycletime.robots.ur.simulator.controller import Controller, Session
from cycletime.robots.ur.types import WireError, robot_status_bits, safety_status_bits, unpack_command
from cycletime.robots.ur.wire import rtde
from cycletime.robots.ur.wire.rtde import IN_USE, NOT_FOUND, Frame, FrameParser, FrameType, Recipe, Value

_REGISTERS = range(48)


def _register_types(direction: str) -> dict[str, str]:
    kinds = {"int": "INT32", "double": "DOUBLE"}
    return {f"{direction}_{name}_register_{each}": kind for name, kind in kinds.items() for each in _REGISTERS}


_INPUT_TYPES = _register_types("input")
_REGISTER_TYPES = _INPUT_TYPES | _register_types("output")


def register_number(controller: Controller, name: str) -> float:
    value = controller.registers.get(name, 0)
    return 0.0 if isinstance(value, tuple) else value


Reader: TypeAlias = Callable[[Controller], Value]
_JOINT_RUNNING = 253
"""The mode of a joint that holds or moves."""

_SIMULATED: dict[str, tuple[str, Reader]] = {
    "timestamp": ("DOUBLE", lambda robot: robot.state.time_s),
    "actual_q": ("VECTOR6D", lambda robot: robot.state.q),
    "actual_qd": ("VECTOR6D", lambda robot: robot.state.qd),
    "target_q": ("VECTOR6D", lambda robot: robot.state.target_q),
    "target_qd": ("VECTOR6D", lambda robot: robot.state.target_qd),
    "robot_mode": ("INT32", lambda robot: robot.safety.robot_mode),
    "safety_mode": ("INT32", lambda robot: robot.safety.safety_mode),
    "safety_status": ("INT32", lambda robot: robot.safety.safety_mode),
    "runtime_state": ("UINT32", lambda robot: robot.state.runtime_state),
    "speed_scaling": ("DOUBLE", lambda robot: robot.state.speed_scaling),
    "target_speed_fraction": ("DOUBLE", lambda robot: robot.state.speed_scaling),
    "joint_mode": ("VECTOR6INT32", lambda robot: (_JOINT_RUNNING,) * 6),
    "actual_TCP_pose": ("VECTOR6D", lambda robot: robot.pose_at(robot.arm.q)),
    "target_TCP_pose": ("VECTOR6D", lambda robot: robot.pose_at(robot.arm.target_q)),
    "safety_status_bits": ("UINT32", lambda robot: safety_status_bits(robot.safety.safety_mode)),
    "robot_status_bits": (
        "UINT32",
        lambda robot: robot_status_bits(robot.safety.robot_mode, program_running=robot.runs_line),
    ),
}
_ZERO_BY_TYPE = {
    "VECTOR6D": (
        "target_qdd target_current target_moment actual_current actual_current_window joint_control_output "
        "actual_TCP_speed actual_TCP_force target_TCP_speed joint_temperatures actual_joint_voltage "
        "joint_position_deviation_ratio payload_inertia ft_raw_wrench actual_current_as_torque"
    ),
    "VECTOR3D": "actual_tool_accelerometer elbow_position elbow_velocity payload_cog",
    "DOUBLE": (
        "actual_execution_time actual_momentum tcp_force_scalar actual_main_voltage actual_robot_voltage "
        "actual_robot_current standard_analog_input0 standard_analog_input1 standard_analog_output0 "
        "standard_analog_output1 tool_analog_input0 tool_analog_input1 tool_output_current tool_temperature "
        "io_current payload"
    ),
    "UINT64": "actual_digital_input_bits actual_digital_output_bits",
    "UINT32": "analog_io_types tool_analog_input_types",
    "INT32": "tool_output_voltage",
}
_ZEROS: dict[str, Value] = {"VECTOR6D": (0.0,) * 6, "VECTOR3D": (0.0,) * 3, "DOUBLE": 0.0, "BOOL": False}


def output_variable(name: str) -> tuple[str, Reader] | None:
    """The type of a variable, and how its value is read; None where there is no such variable."""
    if name in _SIMULATED:
        return _SIMULATED[name]
    if name in _REGISTER_TYPES:
        return _REGISTER_TYPES[name], lambda robot: robot.registers.get(name, 0)
    of = next((of for of, names in _ZERO_BY_TYPE.items() if name in names.split()), None)
    return None if of is None else (of, lambda robot: _ZEROS.get(of, 0))


_MOST_INPUT_RECIPES = 255


class InputOwners:
    """Which client writes which input: no two may write the same."""

    def __init__(self) -> None:
        self._owners: dict[str, object] = {}

    def refuses(self, name: str, client: object) -> bool:
        return self._owners.get(name, client) is not client

    def claim(self, names: tuple[str, ...], client: object) -> None:
        self._owners |= dict.fromkeys(names, client)

    def give_back(self, names: tuple[str, ...]) -> None:
        self._owners = {name: owner for name, owner in self._owners.items() if name not in names}

    def release(self, client: object) -> None:
        self._owners = {name: owner for name, owner in self._owners.items() if owner is not client}


class RtdeSession(Session):
    def __init__(self, controller: Controller, owners: InputOwners) -> None:
        self._controller = controller
        self._owners = owners
        self._parser = FrameParser()
        self._output: Recipe | None = None
        self._readers: tuple[Reader, ...] = ()
        self._every_ticks = 1
        self._inputs: dict[int, Recipe] = {}
        self._started = False
        self._last_sent_message = controller.log[-1][0] if controller.log else 0

    def receive(self, data: bytes) -> bytes:
        return b"".join(self._reply(frame) for frame in self._parser.feed(data))

    def stream(self) -> bytes:
        """What is sent at the end of a tick: the log's new lines, and a data package where one is due."""
        new = [each for each in self._controller.log if each[0] > self._last_sent_message]
        if new:
            self._last_sent_message = new[-1][0]
        said = b"".join(rtde.text_message(message, "cycletime", level) for _, message, level in new)
        due = self._started and self._controller.tick % self._every_ticks == 0
        return said + self._package() if due else said

    def close(self) -> None:
        self._owners.release(self)

    def _reply(self, frame: Frame) -> bytes:
        match frame.kind:
            case FrameType.PROTOCOL_VERSION:
                asked = rtde.read_protocol_version_request(frame.payload)
                return rtde.accepted_reply(FrameType.PROTOCOL_VERSION, accepted=asked == rtde.PROTOCOL_VERSION)
            case FrameType.CONTROLLER_VERSION:
                return rtde.controller_version_reply(self._controller.settings.profile.version)
            case FrameType.OUTPUT_RECIPE:
                return self._output_recipe(frame.payload)
            case FrameType.INPUT_RECIPE:
                return self._input_recipe(frame.payload)
            case FrameType.START:
                return self._start()
            case FrameType.PAUSE:
                self._started = False
                return rtde.accepted_reply(FrameType.PAUSE, accepted=True)
            case FrameType.DATA:
                self._data(frame.payload)
        return b""

    def _output_recipe(self, payload: bytes) -> bytes:
        names, frequency_hz = rtde.read_output_recipe_request(payload)
        found = [output_variable(name) for name in names]
        types = tuple(NOT_FOUND if each is None else each[0] for each in found)
        refused = NOT_FOUND in types or self._started or len(payload) > rtde.MAX_NAME_LIST_BYTES
        recipe = Recipe(int(not refused), names, types)
        if not refused:
            self._output = recipe
            self._readers = tuple(each[1] for each in found if each is not None)
            rate_hz = 1 / self._controller.model.period_s
            self._every_ticks = round(rate_hz / frequency_hz) if 0 < frequency_hz < rate_hz else 1
        return rtde.recipe_reply(FrameType.OUTPUT_RECIPE, recipe)

    def _input_recipe(self, payload: bytes) -> bytes:
        names = rtde.split_names(payload)
        known = {name: _INPUT_TYPES.get(name, NOT_FOUND) for name in names}
        types = tuple(IN_USE if self._owners.refuses(name, self) else kind for name, kind in known.items())
        refused = {NOT_FOUND, IN_USE} & set(types) or len(self._inputs) >= _MOST_INPUT_RECIPES or self._started
        recipe = Recipe(0 if refused else len(self._inputs) + 1, names, types)
        if recipe.id:
            self._inputs[recipe.id] = recipe
            self._owners.claim(names, self)
        return rtde.recipe_reply(FrameType.INPUT_RECIPE, recipe)

    def _start(self) -> bytes:
        """Begin the packages; the first comes at once, so that a client knows the state before anything moves."""
        self._started = self._output is not None or bool(self._inputs)
        reply = rtde.accepted_reply(FrameType.START, accepted=self._started)
        return reply + self._package() if self._started else reply

    def _package(self) -> bytes:
        if self._output is None:
            return b""
        return rtde.data_package(self._output, [read(self._controller) for read in self._readers])

    def _data(self, payload: bytes) -> None:
        recipe = self._inputs.get(payload[0]) if payload else None
        if recipe is None or not self._started:
            raise WireError("A data package has no recipe that the controller knows.")
        values = recipe.unpack(payload)
        self._controller.registers |= values
        if rtde.LOCKSTEP_COMMAND not in values:
            return
        registers = (rtde.LOCKSTEP_COMMAND, *rtde.LOCKSTEP_VALUES)
        kind, *numbers = (register_number(self._controller, name) for name in registers)
        if command := unpack_command(int(kind), numbers):
            self._controller.run_command(command)
