"""What a word of another library is called here, for those who type the one that they know."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from cycletime.errors import InputError, did_you_mean
from cycletime.libraries.names import LIBRARIES
from cycletime.libraries.parameters import param_names
from cycletime.rules import ALGORITHMS

_FIELDS_BY_ENTRY = {
    **{each: each for each in ("discount", "trace_decay", "minibatch", "learning_rate", "clip", "noise_std")},
    **dict.fromkeys(("size", "rollout", "unroll", "horizon"), "batch"),
    "tau": "target_smoothing",
    "replay": "replay_capacity",
    "warmup": "warmup_steps",
    "entropy": "target_entropy",
}
"""By what the tables of words call it, our field."""
TRAINING_LENGTHS = ("total_timesteps", "n_timesteps", "num_timesteps", "timesteps", "total_steps", "max_steps")
"""How long to train, in agent steps: what is env_steps here, and counts the environment's."""


class Synonym(NamedTuple):
    library: str
    name: str
    ours: str


def find_synonym(word: str, algorithm: str) -> Synonym | None:
    """The first library that has a word for a value of an algorithm; of a dotted name its end is enough."""
    wanted = word.lower().replace("-", "_")
    for library in LIBRARIES:
        for theirs in _synonyms(library, algorithm if algorithm in ALGORITHMS else "ppo"):
            if wanted in (theirs.name, theirs.name.rpartition(".")[2]) and wanted != theirs.ours:
                return theirs
    return None


def name_hint(name: str, algorithm: str, known: Collection[str]) -> str:
    """The end of a sentence about an unknown name of a value: what it is called here, or the nearest that is known."""
    theirs = find_synonym(name, algorithm)
    if name in TRAINING_LENGTHS and "env_steps" in known:
        return f"; {name} is env_steps here, which counts steps of the environment, dt / env_dt for each action."
    return f"; {name} is {theirs.ours} here." if theirs and theirs.ours in known else did_you_mean(name, known)


def our_fields(library: str, algorithm: str) -> dict[str, str]:
    return {each.name: each.ours for each in _synonyms(library, algorithm)}


def refuse_two_values(
    library: str, algorithm: str, given: Mapping[str, object], said: Mapping[str, object], where: str | None = None
) -> None:
    """Refuse our values and a library's words that say the same one; ours are options of a command without a place."""
    for name, ours in our_fields(library, algorithm).items() if library else ():
        if ours in given and name in said:
            written = "--" + ours.replace("_", "-") if where is None else ours
            theirs = f"{name}={said[name]}{where or ''}"
            raise InputError(f"{written} is {given[ours]}, and {theirs} says it too: leave one out.")


def _synonyms(library: str, algorithm: str) -> Iterator[Synonym]:
    words = LIBRARIES[library].get(algorithm)
    for part in (words, words and words.rates):
        for table_name, ours in _FIELDS_BY_ENTRY.items():
            for name in param_names(getattr(part, table_name, None)):
                yield Synonym(library, name, ours)
