"""RTDE's output variables: the type of each, and its value; what is not simulated is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.registers import INPUT_TYPES, OUTPUT_TYPES
from cycletime.robots.ur.wire.codes import robot_status_bits, safety_status_bits
from cycletime.robots.ur.wire.recipes import Value

Reader: TypeAlias = Callable[[Controller], Value]
_JOINT_RUNNING = 253
"""The mode of a joint that holds or moves."""

_SIMULATED: dict[str, tuple[str, Reader]] = {
    "timestamp": ("DOUBLE", lambda it: it.state.time_s),
    "actual_q": ("VECTOR6D", lambda it: it.state.q),
    "actual_qd": ("VECTOR6D", lambda it: it.state.qd),
    "target_q": ("VECTOR6D", lambda it: it.state.target_q),
    "target_qd": ("VECTOR6D", lambda it: it.state.target_qd),
    "robot_mode": ("INT32", lambda it: it.safety.robot_mode),
    "safety_mode": ("INT32", lambda it: it.safety.safety_mode),
    "safety_status": ("INT32", lambda it: it.safety.safety_mode),
    "runtime_state": ("UINT32", lambda it: it.state.runtime_state),
    "speed_scaling": ("DOUBLE", lambda it: it.state.speed_scaling),
    "target_speed_fraction": ("DOUBLE", lambda it: it.state.speed_scaling),
    "joint_mode": ("VECTOR6INT32", lambda it: (_JOINT_RUNNING,) * 6),
    "actual_TCP_pose": ("VECTOR6D", lambda it: it.pose_at(it.arm.q)),
    "target_TCP_pose": ("VECTOR6D", lambda it: it.pose_at(it.arm.target_q)),
    "safety_status_bits": ("UINT32", lambda it: safety_status_bits(it.safety.safety_mode)),
    "robot_status_bits": (
        "UINT32",
        lambda it: robot_status_bits(it.safety.robot_mode, program_running=it.runs_program),
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
    kind = OUTPUT_TYPES.get(name) or (INPUT_TYPES.get(name) if "_register" in name else None)
    if kind is not None:
        return kind, lambda it: it.registers[name]
    of = next((of for of, names in _ZERO_BY_TYPE.items() if name in names.split()), None)
    return None if of is None else (of, lambda it: _ZEROS.get(of, 0))
