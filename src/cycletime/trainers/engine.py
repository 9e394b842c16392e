"""The engine of other libraries' trainers: a child process trains, and the curve that it writes becomes the run's.

It is started in a folder of its own and ended with all that it has started: when it is done, when its budget is spent,
and when the run is stopped or its worker dies. A run that was stopped begins anew, unless its trainer can resume from
its folder; either is noted in its result.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.metadata import Distribution
from pathlib import Path
from time import monotonic
from typing import ClassVar

import numpy as np

from cycletime.duration import Duration
from cycletime.errors import InputError, RunError, printable, shorten
from cycletime.processes import owned_process
from cycletime.trainers.commands import command_words
from cycletime.trainers.curves import CurvePoint, CurveReader
from cycletime.trainers.host import WRONG_INPUT_STATUS
from cycletime.trainers.trainer_run import POINTS_FILE, TrainerRun
from cycletime.training.engine import Arrays, Chunk, Cost, EarlierSessions, Engine, EnvInfo, RunBatch, probe_cost
from cycletime.training.external import ExternalAgent, TrainerSpec
from cycletime.training.learning_curve import Episodes
from cycletime.training.process import HEARTBEAT
from cycletime.training.spec import RunSpec
from cycletime.training.stepped_engine import simulator_of
from cycletime.training.worlds import ActionBounds, ClosedFormWorld, ForeignEnv, make_env, python_path

POLL_S = 0.5
STOP_GRACE_S = 20.0
"""How long a trainer that can resume has to save when it is asked to stop."""
LINGER_S = 60.0
"""How long a trainer may go on without a new point after one at the end of its budget."""
PROBE_S = 5.0
"""How long a run is tried, beyond its first point."""
LEAST_SHARE = 0.5
"""A trainer whose curve ends before this share of its budget has not trained as long as it was asked to."""
SHARE_LEFT = 0.25
"""Nor has one that leaves as much, if two of its points were never half as far apart, nor an episode and a batch."""


@dataclass(frozen=True)
class TrainerEngine(Engine):
    name: ClassVar[str] = "trainer"

    def make_batch(self, specs: Sequence[RunSpec]) -> TrainerBatch:
        return TrainerBatch(self.single_run(specs))

    def jax_device(self, spec: RunSpec) -> str:
        return "cpu"  # the trainer has a process of its own

    def cost(self, spec: RunSpec, try_s: float = PROBE_S) -> Cost:
        """Train until a point that is so long after the first one, in a folder that is removed.

        What fails before any point is refused; later it may be this run's seed or values alone.
        """
        with tempfile.TemporaryDirectory() as folder:
            batch = self.make_batch([spec])
            batch.use_folder(0, Path(folder))
            batch.is_kept = False
            try:
                return probe_cost(batch, try_s)
            except RunError as error:
                if batch.has_points:
                    raise
                raise InputError(str(error)) from error


@dataclass
class TrainerBatch(RunBatch):
    can_save: ClassVar[bool] = False

    spec: RunSpec
    place: Path | None = None
    """The run's folder; the trainer's is in it."""
    is_kept: bool = True
    has_points: bool = False
    sessions: int = 0
    stack: ExitStack = field(default_factory=ExitStack)
    process: subprocess.Popen[bytes] | None = None

    @property
    def agent(self) -> ExternalAgent:
        assert isinstance(self.spec.agent, ExternalAgent), "the engine refuses others"
        return self.spec.agent

    @property
    def trainer(self) -> TrainerSpec:
        return self.agent.trainer

    @cached_property
    def env_infos(self) -> tuple[EnvInfo]:  # type: ignore[override]
        where, simulators, env_dt, longest = self._world()
        return (
            EnvInfo(
                provenance=self.agent.where(where),
                env_dt=env_dt,
                cycle_steps=max(1, round(self.spec.dt / env_dt)),
                longest_episode_steps=longest,
                bounds=ActionBounds.raw(1),
                simulators=simulators,
                card=_versions(self.trainer),
            ),
        )

    def _world(self) -> tuple[str, tuple[str, ...], Duration, int | None]:
        """What simulates the world, its packages, its time step, and the steps of its longest episode."""
        world = self.spec.world
        if isinstance(world, ClosedFormWorld):
            return world.task.where, (), world.env_dt, world.task.limit_steps
        if isinstance(world, ForeignEnv):
            assert world.env_dt is not None, "it has one"
            return "MJX" if self.trainer.name == "brax" else "", (), world.env_dt, None
        with closing(make_env(world, self.spec.dt, discrete=True)) as env:
            longest = env.spec.max_episode_steps if env.spec else None
            return *simulator_of(env), Duration.of_seconds(env.get_wrapper_attr("env_dt")), longest

    def use_folder(self, run: int, folder: Path) -> EarlierSessions | None:
        self.place = folder
        self.sessions = len(list(folder.glob("output-*.txt")))
        if not self.sessions:
            return None
        how = "was resumed by its trainer" if self.trainer.resume else "was stopped and began anew"
        return EarlierSessions(self.sessions, f"it {how}")

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        assert self.place is not None, "the folder is said before"
        folder, output = (self.place / "trainer").absolute(), self.place / f"output-{self.sessions + 1}.txt"
        resumes = self.sessions > 0 and bool(self.trainer.resume)
        if not resumes:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        reader = CurveReader(
            folder,
            self.trainer.curve if self.trainer.command else POINTS_FILE,
            float(self.spec.dt),
            self.trainer.columns,
            self.trainer.num_envs,
            self.agent.period,
        )
        log = self.stack.enter_context(output.open("wb"))
        words, environment = self._command(folder, resumes)
        try:
            process = owned_process(words, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
            self.process = self.stack.enter_context(process)
        except OSError as error:
            raise InputError(f"The command {words[0]!r} cannot be started: {error.strerror}.") from error
        curve = _Curve(self.spec, self.env_infos[0], resumes)
        HEARTBEAT.waits_for = f"{self.trainer.label}, without a new point in {reader.what}: see {output}"
        newest_s = monotonic()
        while True:
            status = self.process.poll()  # before its last points are read
            points = reader.new_points()
            if points:
                HEARTBEAT.tick()
                newest_s, self.has_points = monotonic(), True
            is_full = curve.env_steps(curve.newest) >= self.spec.env_steps
            ended = status is not None or (is_full and monotonic() - newest_s > LINGER_S)
            episodes = curve.add(points, is_whole=ended)
            if status is not None and not curve.is_spent:
                self._check_end(status, output, curve, reader)
            if ended or curve.is_spent:
                yield {0: curve.chunk(episodes, is_last=True)}
                return
            # Without progress there is no chunk, only the occasion to stop: else nobody would notice that it hangs.
            yield {0: curve.chunk(episodes, is_last=False)} if points else {}
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(POLL_S)

    def _command(self, folder: Path, resumes: bool) -> tuple[list[str], dict[str, str]]:
        # A module of one's own is found beside the study file, and what is printed is seen at once.
        environment = {**os.environ, "PYTHONPATH": python_path(self.trainer.home), "PYTHONUNBUFFERED": "1"}
        run = TrainerRun(
            world=self.spec.world,
            algorithm=self.spec.algorithm,
            dt=self.spec.dt,
            values=self.agent.settings,
            num_envs=self.trainer.num_envs,
            seed=self.spec.seed,
            simulated_s=float(self.spec.env_steps * self.env_infos[0].env_dt),
            device=self.spec.engine.device,
            folder=folder,
            resumes=resumes,
        )
        if self.trainer.command:
            return command_words(self.agent, run), environment
        request = folder.with_name("request.json")
        request.write_text(json.dumps({"trainer": self.trainer.name, "run": run.as_json()}))
        return [sys.executable, "-m", "cycletime.trainers.host", str(request)], environment

    def _check_end(self, status: int, output: Path, curve: _Curve, reader: CurveReader) -> None:
        last = _last_line(output)
        if status == WRONG_INPUT_STATUS and not self.trainer.command:
            raise InputError(last)
        see = f"{f', last saying {shorten(last)!r}' if last else ''}{f'; see {output}' if self.is_kept else ''}."
        if status:
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"failed with status {status}"
            raise RunError(f"{self.trainer.label} {how}{see}")
        if not curve.newest.seconds:
            seen = f"; there are {', '.join(sorted(reader.tags)[:5])}" if reader.tags else ""
            where = f"in {reader.what} of {{folder}}" if self.trainer.command else "that it yields or reports"
            raise RunError(f"{self.trainer.label} ended without a point {where}{seen}{see}")
        left_s = curve.budget_s - curve.newest.seconds
        longest_s = float(self.env_infos[0].env_dt) * (self.env_infos[0].longest_episode_steps or 0)
        after_s = max(longest_s, curve.longest_gap_s) + float(self.spec.dt) * self.spec.agent.learns_from  # a batch
        stopped = left_s > max(SHARE_LEFT * curve.budget_s, 2 * curve.longest_gap_s, after_s)
        if stopped or curve.newest.seconds < LEAST_SHARE * curve.budget_s:
            share = f"{curve.newest.seconds:,.6g} s of {curve.budget_s:,.6g} s simulated"
            remedy = "give it its budget, or give the study a smaller one"
            raise RunError(f"{self.trainer.label} ended after {share}: {remedy}{see}")

    def close(self) -> None:
        HEARTBEAT.waits_for = ""
        if self.process is not None and self.process.poll() is None and self.trainer.resume:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_GRACE_S)
        self.stack.close()


class _Curve:
    """Points as the episodes of a run: those at one moment are one, with their mean return."""

    def __init__(self, spec: RunSpec, info: EnvInfo, resumes: bool) -> None:
        self.spec, self.env_dt_s, self.resumes = spec, float(info.env_dt), resumes
        self.budget_s = spec.env_steps * self.env_dt_s
        self.newest = CurvePoint(0.0, 0, 0.0)
        self.newest_returns: list[float] = []
        self.last_steps, self.last_agent_steps, self.longest_gap_s = 0, 0, 0.0
        self.is_spent = False
        """Whether there is a point beyond the budget."""

    def add(self, points: Sequence[CurvePoint], *, is_whole: bool) -> Episodes:
        rows: list[tuple[int, int, float, int]] = []
        for point in points:
            steps, newest = self.env_steps(point), self.env_steps(self.newest)
            if steps > self.spec.env_steps:
                self.is_spent = True
                if not (newest or self.resumes):
                    first = f"{point.seconds:,.6g} s of {self.budget_s:,.6g} s simulated"
                    unit = "" if point.seconds < 10 * self.budget_s else "seconds and not milliseconds, or "
                    raise InputError(f"Its first point is at {first}: give {unit}the study a larger budget.")
            elif steps >= max(newest, 1):  # nothing was learned yet at 0
                if steps > newest:
                    rows += self._end_moment()
                    self.longest_gap_s = max(self.longest_gap_s, point.seconds - self.newest.seconds)
                self.newest = point
                self.newest_returns.append(point.mean_return)
            elif steps and not self.resumes:  # what is resumed repeats some points
                back = f"from {self.newest.seconds:,.6g} s to {point.seconds:,.6g} s simulated"
                raise RunError(f"Its curve goes back {back}.")
        if is_whole or self.is_spent:
            rows += self._end_moment()
        return Episodes.of(rows)

    def env_steps(self, point: CurvePoint) -> int:
        return round(point.seconds / self.env_dt_s)

    def _end_moment(self) -> list[tuple[int, int, float, int]]:
        if not self.newest_returns:
            return []
        steps = self.env_steps(self.newest)
        agent_steps = max(self.newest.agent_steps, self.last_agent_steps + 1)
        row = steps, agent_steps, float(np.mean(self.newest_returns)), steps - self.last_steps
        self.last_steps, self.last_agent_steps, self.newest_returns = steps, agent_steps, []
        return [row]

    def chunk(self, episodes: Episodes, *, is_last: bool) -> Chunk:
        whole = max(self.last_agent_steps, round(self.budget_s / float(self.spec.dt)))
        return Chunk(
            env_steps=self.spec.env_steps if is_last else self.last_steps,
            agent_steps=whole if is_last else self.last_agent_steps,
            episodes=episodes,
            metrics={},
            arrays=dict,
            agent_state=lambda: None,  # only its trainer has it
            exact=False,
            is_last=is_last,
        )


def _versions(trainer: TrainerSpec) -> dict[str, str]:
    """The trainer and its library with versions, for the result; a command's where its Python has it."""
    python = Path(trainer.home, *trainer.command[:1])
    path = [str(each) for each in python.parent.parent.glob("lib/python*/site-packages")] if trainer.command else []
    found = {each: list(Distribution.discover(name=each, path=path or sys.path))[:1] for each in trainer.packages}
    own = trainer.command or (f"{trainer.name.partition(':')[0].replace('.', '/')}.py",)
    files = [Path(trainer.home, each) for each in own if each.endswith((".py", ".sh"))]
    scripts = [file.read_bytes() for file in files if file.is_file()]
    code = {"script": sha256(b"".join(scripts)).hexdigest()[:8]} if scripts else {}
    return {"trainer": trainer.label, **code, **{each: known[0].version for each, known in found.items() if known}}


def _last_line(output: Path) -> str:
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - 4096))
        lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return printable(lines[-1].strip()) if lines else ""
