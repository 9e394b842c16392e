"""`cycletime gpu`: what there is to ask of a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True, kw_only=True)
class GpuCommand:
    """Check that the engine cuda computes the right numbers on this machine's GPU; takes about a minute."""

    command: Annotated[Positional[Literal["check"]], arg(metavar="check")]
    """What to do."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Check it; status 1 if something is wrong."""
        from cycletime.engines.devices import prepare_jax

        prepare_jax("cpu")
        from cycletime.engines.cuda.checking import print_checks

        return print_checks(as_json=self.json)
