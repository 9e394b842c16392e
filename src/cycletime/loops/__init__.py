"""Algorithm 1, which moves data between a task and an agent: compiled, stepped around an environment, in real time."""

from typing import TYPE_CHECKING

from cycletime.extras import lazily

if TYPE_CHECKING:
    from cycletime.loops.compiled import CompiledChunk as CompiledChunk
    from cycletime.loops.compiled import CompiledLoop as CompiledLoop
    from cycletime.loops.compiled import Position as Position
    from cycletime.loops.episodes import EpisodeBins as EpisodeBins
    from cycletime.loops.episodes import Episodes as Episodes
    from cycletime.loops.real_time.loop import RealTimeLoop as RealTimeLoop
    from cycletime.loops.stepped import SteppedChunk as SteppedChunk
    from cycletime.loops.stepped import SteppedLoop as SteppedLoop
    from cycletime.loops.stepped_agent import SteppedPosition as SteppedPosition
else:
    # The compiled loop also runs on GPU machines that have JAX and NumPy only, without Gymnasium.
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "CompiledChunk": "cycletime.loops.compiled",
            "CompiledLoop": "cycletime.loops.compiled",
            "EpisodeBins": "cycletime.loops.episodes",
            "Episodes": "cycletime.loops.episodes",
            "Position": "cycletime.loops.compiled",
            "RealTimeLoop": "cycletime.loops.real_time.loop",
            "SteppedChunk": "cycletime.loops.stepped",
            "SteppedLoop": "cycletime.loops.stepped",
            "SteppedPosition": "cycletime.loops.stepped_agent",
        },
    )
