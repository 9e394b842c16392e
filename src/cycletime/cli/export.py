"""`cycletime export`: a run's policy for computers without JAX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from cycletime.cli.of_one_run import OfOneRun
from cycletime.cli.options import Text
from cycletime.errors import InputError, printable

FORMATS = ("onnx", "numpy")


@dataclass(frozen=True, kw_only=True)
class Export(OfOneRun):
    """Export a run's policy, as it was at the last checkpoint, to ONNX or to a folder that needs NumPy alone.

    For example: cycletime export runs/reacher-ppo-16ms-seed0-1f0c7c38a2 --to onnx
    """

    to: Annotated[str, arg(metavar="FORMAT")]
    """onnx: one file. numpy: a folder with the weights and a program that acts with them."""
    out: Annotated[Text, arg(metavar="PATH", help_behavior_hint="(default: policy.onnx or numpy/ in the run)")] = None
    """The file, or for numpy the folder, to write."""
    force: bool = False
    """Replace what is there."""

    def run(self) -> int:
        """Export, compare with the JAX policy, and say how far it is from it."""
        if self.to not in FORMATS:
            raise InputError(f"{self.to!r} is not a format: give --to onnx or --to numpy.")
        from cycletime.engines.devices import prepare_jax

        prepare_jax("cpu")  # a GPU is of no use here, and someone may be training on it
        from cycletime.runs.policies.travel import NUMPY_FILES, OBSERVATIONS, TOLERANCE, export_numpy, export_onnx
        from cycletime.studies.store.folder import open_run, policy_of

        path = self.folder
        policy = policy_of(open_run(path))
        if self.out is None and not path.exists():
            raise InputError(f"--out is missing: {path.name} is in the store of its study, and has no folder.")
        out = Path(self.out) if self.out else path / ("policy.onnx" if self.to == "onnx" else "numpy")
        written = [out] if self.to == "onnx" else [out / name for name in NUMPY_FILES]
        self._refuse_to_replace(out, written)
        worst = export_onnx(policy, out) if self.to == "onnx" else export_numpy(policy, out)
        network = policy.network
        print(f"{policy.world} at {policy.dt}, trained for {policy.env_steps:,} environment steps")
        print(f"observations of {network.observation_size} numbers, actions of {network.action_size}")
        for path in written:
            print(f"wrote {printable(str(path))} ({path.stat().st_size:,} bytes)")
        print(
            f"worst difference from the JAX policy: {worst:.1e} ({OBSERVATIONS:,} observations, limit {TOLERANCE:.0e})"
        )
        return 0

    def _refuse_to_replace(self, out: Path, written: list[Path]) -> None:
        if self.to == "onnx" and out.is_dir():
            raise InputError(f"{str(out)!r} is a folder: give the name of a file, such as --out policy.onnx.")
        if self.to == "numpy" and out.exists() and not out.is_dir():
            raise InputError(f"{str(out)!r} is a file: give the name of a folder.")
        if self.force:
            return
        for path in written:
            if path.exists():
                raise InputError(f"{str(path)!r} exists already: add --force to replace it, or give another --out.")
