"""The learning curve of a run's folder: `curve.parquet`, one row for each episode."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import RunError
from cycletime.training.learning_curve import Episodes

if TYPE_CHECKING:  # machines that train for a study need not have it
    import pyarrow as pa


@cache
def _curve_schema() -> pa.Schema:
    """Steps and seconds of the environment's time at each episode's end, its undiscounted return, and its length."""
    import pyarrow as pa

    steps, numbers = pa.int64(), pa.float64()
    return pa.schema(
        {"env_steps": steps, "agent_steps": steps, "seconds": numbers, "return": numbers, "length_s": numbers}
    )


def write_curve(path: Path, episodes: Episodes, env_dt: Duration) -> None:
    """Write `curve.parquet`, one row for each episode; the same episodes give the same bytes."""
    import pyarrow.parquet as pq

    with path.open("wb") as file:  # pyarrow takes no path that is not UTF-8
        pq.write_table(curve_table(episodes, env_dt), file)


def curve_table(episodes: Episodes, env_dt: Duration) -> pa.Table:
    """The episodes as a table."""
    import pyarrow as pa

    columns = [
        episodes.env_steps,
        episodes.agent_steps,
        _seconds(episodes.env_steps, env_dt),
        episodes.returns,
        _seconds(episodes.length_steps, env_dt),
    ]
    return pa.table(columns, schema=_curve_schema())


def read_curve(path: Path, env_dt: Duration) -> Episodes:
    """The episodes of a `curve.parquet`."""
    table = _curve_in(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    with np.errstate(invalid="ignore"):  # of lengths that are none
        length_steps = np.rint(columns["length_s"] / float(env_dt)).astype(np.int64)
    return Episodes(columns["env_steps"], columns["agent_steps"], columns["return"], length_steps)


def read_env_dt(path: Path) -> Duration | None:
    """The environment's time step, as a curve tells it: seconds over steps at its end; None where no episode ended."""
    table = _curve_in(path)
    if not len(table):
        return None
    return Duration(table["seconds"][-1].as_py() / table["env_steps"][-1].as_py())


def _curve_in(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            return pq.read_table(file, schema=_curve_schema())
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{path} cannot be read as a learning curve: {str(error).rstrip('.')}.") from error


def _seconds(steps: NDArray[np.int64], env_dt: Duration) -> NDArray[np.float64]:
    numerator, denominator = env_dt.exact_s.as_integer_ratio()
    # Python's whole numbers, since the product may have more than 64 bits.
    return np.array([each * numerator / denominator for each in steps.tolist()], np.float64)
