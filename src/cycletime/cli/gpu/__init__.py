"""`cycletime gpu`: what there is to ask of a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from cycletime.cli.options import Text


@dataclass(frozen=True, kw_only=True)
class GpuCommand:
    """Check that the engine cuda computes the right numbers on this machine's GPU; takes about a minute."""

    command: Annotated[Positional[Literal["check"]], arg(metavar="check")]
    """What to do."""
    shared_memory: Annotated[Text, arg(metavar="AMOUNT", help_behavior_hint="(default: all that the card has)")] = None
    """Let a thread block take no more shared memory, such as 99KB: a large card so checks what smaller ones run."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Check it; status 1 if something is wrong."""
        from cycletime.engines.devices import prepare_jax

        prepare_jax("cpu")
        from cycletime.engines.cuda.checking import print_checks
        from cycletime.engines.cuda.forms import shared_bytes_of

        most_bytes = None if self.shared_memory is None else shared_bytes_of(self.shared_memory)
        return print_checks(most_bytes=most_bytes, as_json=self.json)
