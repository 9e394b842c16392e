"""The general-purpose registers of RTDE: what clients write, and what programs on the controller write."""

from __future__ import annotations

from cycletime.robots.ur.wire.recipes import Value

COUNT = 48
_NUMBERED = {"int": "INT32", "double": "DOUBLE"}


def register_types(direction: str) -> dict[str, str]:
    """The names of all registers of a direction, 'input' or 'output', with their types."""
    types = {f"{direction}_{kind}_register_{number}": of for kind, of in _NUMBERED.items() for number in range(COUNT)}
    bits = {f"{direction}_bit_registers0_to_31": "UINT32", f"{direction}_bit_registers32_to_63": "UINT32"}
    return types | bits | {f"{direction}_bit_register_{number}": "BOOL" for number in range(64, 128)}


INPUT_TYPES = register_types("input") | {
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "standard_digital_output_mask": "UINT8",
    "standard_digital_output": "UINT8",
    "configurable_digital_output_mask": "UINT8",
    "configurable_digital_output": "UINT8",
    "tool_digital_output_mask": "UINT8",
    "tool_digital_output": "UINT8",
    "standard_analog_output_mask": "UINT8",
    "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE",
    "standard_analog_output_1": "DOUBLE",
    "external_force_torque": "VECTOR6D",
}
"""All that a client may write; what is not a register is taken and has no effect."""
OUTPUT_TYPES = register_types("output")


class Registers:
    """Values by name; each is zero until it is written, and keeps what was written last."""

    def __init__(self) -> None:
        """All zero, as after the controller has started."""
        self._values: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        """The value of a register."""
        return self._values.get(name, 0)

    def __setitem__(self, name: str, value: Value) -> None:
        """Write a register."""
        self._values[name] = value

    def number(self, name: str) -> float:
        """The value of a register that holds one number."""
        value = self._values.get(name, 0)
        return 0.0 if isinstance(value, tuple) else value

    def whole(self, number: int) -> int:
        """An input register for whole numbers."""
        return int(self.number(f"input_int_register_{number}"))

    def doubles(self, start: int, end: int) -> tuple[float, ...]:
        """A range of input registers for numbers."""
        return tuple(float(self.number(f"input_double_register_{number}")) for number in range(start, end))

    def tell_int(self, number: int, value: int) -> None:
        """Write an output register for whole numbers."""
        self._values[f"output_int_register_{number}"] = value

    def tell_doubles(self, values: tuple[float, ...]) -> None:
        """Write the first output registers for numbers."""
        self._values |= {f"output_double_register_{number}": value for number, value in enumerate(values)}
