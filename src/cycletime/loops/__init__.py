"""Algorithm 1, which moves data between a task and an agent: compiled, and stepped around any Gymnasium environment."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cycletime.errors import InputError
from cycletime.loops.compiled import Chunk, CompiledLoop, Position
from cycletime.loops.episode_bins import EpisodeBins
from cycletime.loops.episodes import Episodes

__all__ = ["Chunk", "CompiledLoop", "EpisodeBins", "Episodes", "Position"]
_NEED_GYMNASIUM = ["SteppedChunk", "SteppedLoop", "SteppedPosition"]

# The compiled loop also runs on GPU machines that have JAX and NumPy only.
if find_spec("gymnasium"):
    from cycletime.loops.stepped import SteppedChunk as SteppedChunk
    from cycletime.loops.stepped import SteppedLoop as SteppedLoop
    from cycletime.loops.stepped import SteppedPosition as SteppedPosition

    __all__ += _NEED_GYMNASIUM
elif not TYPE_CHECKING:

    def __getattr__(name: str) -> None:
        """Say why the stepped loop is missing."""
        if name in _NEED_GYMNASIUM:
            raise InputError(f"cycletime.loops.{name} needs Gymnasium, which is not installed: pip install gymnasium.")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
