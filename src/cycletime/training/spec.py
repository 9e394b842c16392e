"""A run's spec, all that decides its numbers, and its identity, the hash of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from cycletime.agents import ActorCriticAgent, Agent, PPOAgent, SACAgent
from cycletime.agents.checks import check_choice, check_choices, check_counts, check_env_steps, check_rows
from cycletime.agents.exploration import Exploration, OrnsteinUhlenbeck, Pink
from cycletime.duration import DurationField, cycle_steps, refuse_longer_than
from cycletime.errors import InputError
from cycletime.training.external import ExternalAgent
from cycletime.training.worlds import ClosedFormWorld, ForeignEnv, World, world_as_json, world_from_json

LearnerName: TypeAlias = Literal["inline", "background"]
"""Who learns while the robot moves: the loop, within the cycle, or a thread beside it."""


RESULT_VERSION = 1
"""Raised whenever a change of the code changes the numbers of runs, so that old runs are not taken for new ones."""
ENGINE_VERSIONS: Mapping[str, int] = MappingProxyType({"stepped": 2})
"""By an engine's name, where it is not 1: raised whenever a change of that engine changes the numbers of its runs. From
version 2 on the stepped loop acts in NumPy, which rounds in other places than JAX."""
AGENTS = MappingProxyType({"actor-critic": ActorCriticAgent, "ppo": PPOAgent, "sac": SACAgent})
EXPLORATIONS: Mapping[str, type[Exploration]] = MappingProxyType(
    {"ornstein-uhlenbeck": OrnsteinUhlenbeck, "pink": Pink}
)


@dataclass(frozen=True)
class EngineSpec:
    """What computes the run. Engines differ in the last bits, so they are part of a run's identity."""

    name: str = "compiled"
    """One of `cycletime.training.engine`, which knows what each takes."""
    device: str = "cpu"
    width: int = 1
    version: int = 0
    """Of the numbers that the engine gives; 0 stands for the newest, which is all that can be computed."""
    learner: LearnerName = "inline"

    def __post_init__(self) -> None:
        if not self.version:
            object.__setattr__(self, "version", self.newest_version)
        check_counts(self, "version")
        check_choice(self, "device", ("cpu", "gpu"))
        check_counts(self, "width")
        check_choices(self)

    def as_json(self) -> dict[str, Any]:
        """What spec.json holds; without what engines had before there was a choice."""
        usual = {"version": 1, "learner": "inline"}
        return {name: value for name, value in vars(self).items() if value != usual.get(name)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EngineSpec:
        if "matmul" in data:
            raise InputError(f"matmul is {data['matmul']!r}, a choice that no engine has any more: train the run anew.")
        return cls(**{"version": 1, **data})

    @property
    def newest_version(self) -> int:
        return ENGINE_VERSIONS.get(self.name, 1)


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    world: World
    agent: Agent | ExternalAgent
    dt: DurationField = DurationField()
    env_steps: int
    seed: int
    num_envs: int = 1
    """The environments that the agent learns from side by side; the budget and the batch are of all together."""
    engine: EngineSpec = EngineSpec()
    exploration: Exploration | None = None
    """Noise that is coherent in time, in seconds; None is white noise."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """How the hyper-parameters came about: the rule, and the values and the cycle time that they were tuned at. Not
    part of the identity, since it changes no number: where two rules agree, one run serves both."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What the rule says of the values, for whoever asked for the run; not kept on disk."""

    def __post_init__(self) -> None:
        check_env_steps(self)
        check_counts(self, "seed", least=0)
        if self.seed >= 2**32:
            raise InputError(f"seed is {self.seed}: it must be below 2**32.")
        if isinstance(self.agent, ExternalAgent) and self.num_envs != 1:
            raise InputError(f"num_envs is {self.num_envs}: a trainer has its own, so give it in [trainer].")
        if type(self.agent) not in (*AGENTS.values(), ExternalAgent):
            raise InputError(f"{self.agent!r} is not an agent whose runs can be kept: give one of {', '.join(AGENTS)}.")
        if self.agent.exploration is not None:
            remedy = "give the run its exploration in seconds instead, such as exploration=OrnsteinUhlenbeck('100ms')"
            raise InputError(f"The agent has an exploration at a cycle time: {remedy}.")
        if not isinstance(self.agent, ExternalAgent):
            check_rows(self.agent, self.num_envs)
        if self.exploration is not None and not isinstance(self.exploration, Exploration):
            raise InputError(f"exploration is {self.exploration!r}: give noise such as OrnsteinUhlenbeck('100ms').")
        if self.world.env_dt is not None and not isinstance(self.world, ForeignEnv):
            cycle_steps(self.dt, self.world.env_dt)
        if isinstance(self.world, ClosedFormWorld):
            refuse_longer_than(self.world.task.time_limit, self.dt)

    @property
    def algorithm(self) -> str:
        if isinstance(self.agent, ExternalAgent):
            return self.agent.algorithm
        return next(name for name, kind in AGENTS.items() if isinstance(self.agent, kind))

    @property
    def label(self) -> str:
        """For progress bars, without the seed."""
        return f"{self.world.name} {self.algorithm} {self.dt}"

    @property
    def own_agent(self) -> Agent:
        assert not isinstance(self.agent, ExternalAgent), "only its trainer has it"
        return self.agent

    @property
    def bound_agent(self) -> Agent:
        if self.exploration is None:
            return self.own_agent
        bound: Agent = replace(self.own_agent, exploration=self.exploration.at(self.dt))  # type: ignore[type-var]
        return bound

    @cached_property
    def identity(self) -> str:
        """64 hexadecimal digits that two runs share only if all their numbers are the same."""
        return sha256(self.identity_text().encode()).hexdigest()

    def identity_text(self) -> str:
        data = {**self.as_json(), "result_version": RESULT_VERSION}
        del data["origin"]
        if isinstance(self.agent, ExternalAgent):
            data["agent"]["trainer"].pop("home", None)
        return json.dumps(data, sort_keys=True, separators=(",", ":"))

    @property
    def name(self) -> str:
        """A name for its folder: readable, and different for different runs."""
        readable = f"{self.world.name}-{self.algorithm}-{self.dt.shortest}-seed{self.seed}"
        return re.sub(r"[^A-Za-z0-9.]+", "-", f"{readable}-{self.identity[:10]}").lstrip("-.")

    def as_json(self) -> dict[str, Any]:
        noise, exploration = self.exploration, None
        if noise is not None:
            name = next(name for name, kind in EXPLORATIONS.items() if isinstance(noise, kind))
            exploration = {"noise": name, **{each.name: getattr(noise, each.name).shortest for each in fields(noise)}}
        return {
            "world": world_as_json(self.world),
            "algorithm": self.algorithm,
            "agent": _agent_as_json(self.agent),
            "dt": self.dt.shortest,
            "env_steps": int(self.env_steps),
            "seed": int(self.seed),
            # Only where there are several: runs had one before there was a choice.
            **({} if self.num_envs == 1 else {"num_envs": int(self.num_envs)}),
            "engine": self.engine.as_json(),
            "exploration": exploration,
            "origin": dict(self.origin),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """The spec that spec.json holds; a KeyError, TypeError or ValueError where it holds none."""
        exploration = data["exploration"] and dict(data["exploration"])
        return cls(
            world=world_from_json(data["world"]),
            agent=_agent_from_json(data["algorithm"], data["agent"]),
            dt=data["dt"],
            env_steps=data["env_steps"],
            seed=data["seed"],
            num_envs=data.get("num_envs", 1),
            engine=EngineSpec.from_json(data["engine"]),
            exploration=None if exploration is None else EXPLORATIONS[exploration.pop("noise")](**exploration),
            origin=data["origin"],
        )


def _agent_as_json(agent: Agent | ExternalAgent) -> dict[str, Any]:
    if isinstance(agent, ExternalAgent):
        return agent.as_json()
    own = ((name, getattr(agent, name), rate, usual) for name, rate, usual in _own_fields(type(agent)))
    return {name: _plain(value, rate) for name, value, rate, usual in own if value is not usual}


def _agent_from_json(algorithm: str, data: Mapping[str, Any]) -> Agent | ExternalAgent:
    if "trainer" in data:
        return ExternalAgent.from_json(algorithm, data)
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    agent: Agent = AGENTS[algorithm](**values)
    return agent


@cache
def _own_fields(agent: type[Any]) -> list[tuple[str, bool, Any]]:
    """The agent's fields but for its exploration, which the spec keeps in seconds; and whether each is a rate.

    The third is the value with which a field is left out, since identities are older than it.
    """
    own = [each for each in fields(agent) if each.name != "exploration"]
    optional = {each.name: each.default for each in own if each.metadata.get("option")}
    return [(each.name, "float" in str(each.type), optional.get(each.name, MISSING)) for each in own]


def _plain(value: Any, is_rate: bool) -> Any:  # noqa: ANN401 - any field
    """A value as JSON has it, the same for 1 and 1.0 where the field is a rate."""
    if isinstance(value, tuple):
        return [int(each) for each in value]
    if value is None or isinstance(value, str | bool):
        return value
    return float(value) if is_rate else int(value)
