"""Algorithm 1, which moves data between a task and an agent: compiled, and stepped around any Gymnasium environment."""

from importlib.util import find_spec

from cycletime.loops.compiled import Chunk, CompiledLoop, Position
from cycletime.loops.episodes import Episodes

__all__ = ["Chunk", "CompiledLoop", "Episodes", "Position"]

# The compiled loop also runs on GPU machines that have JAX and NumPy only.
if find_spec("gymnasium"):
    from cycletime.loops.stepped import SteppedChunk as SteppedChunk
    from cycletime.loops.stepped import SteppedLoop as SteppedLoop
    from cycletime.loops.stepped import SteppedPosition as SteppedPosition

    __all__ += ["SteppedChunk", "SteppedLoop", "SteppedPosition"]
