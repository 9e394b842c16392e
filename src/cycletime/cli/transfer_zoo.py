"""`cycletime transfer --from-zoo`: one environment of an RL Baselines3 Zoo file, every other byte as it was."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from cycletime.bounded import read_text
from cycletime.cli.options import NONE, Count, Parts, Text, chosen_rule
from cycletime.cli.transfer_values import Transfer
from cycletime.errors import InputError
from cycletime.rules import ALGORITHMS
from cycletime.rules.explain import as_json, explain


@dataclass(frozen=True, kw_only=True)
class TransferZoo(Transfer):
    """Carry one environment of an RL Baselines3 Zoo file. Short: cycletime transfer --from-zoo ppo.yml --env ID ...

    Prints the whole file with the new values, every other byte unchanged, and the table on standard error.
    """

    from_dt: Annotated[str, arg(name="from", metavar="TIME")]
    """The cycle time that the values were tuned at: 40ms, 0.04, 25Hz."""
    from_zoo: Annotated[Path, arg(metavar="FILE")]
    """The Zoo's file, such as hyperparams/ppo.yml, or the config.yml that it saves beside a trained agent."""
    env: Annotated[str, arg(metavar="ID")]
    """The environment in it."""
    algorithm: Annotated[Text, arg(metavar="ALGORITHM", help_behavior_hint="(default: the file's name)")] = None
    """The algorithm that the file is for: ppo, sac, a2c, tqc, td3 or ddpg."""
    rule: Annotated[Text, arg(metavar="RULE", help_behavior_hint="(default: as for ppo and sac)")] = None
    """The rule."""
    also: Parts = NONE
    """Keep in seconds as well; as for ppo and sac."""
    action_size: Annotated[Count, arg(help_behavior_hint="(no default)")] = None
    """The number of action dimensions, for --also target-entropy."""
    out: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(default: standard output)")] = None
    """Write the file there, which must not exist yet, and the table to standard output."""

    def run(self) -> int:
        """Carry, and print or write."""
        from cycletime.rules.zoo import MOST_BYTES, transfer_entry

        text = read_text(self.from_zoo, MOST_BYTES, encoding="utf-8")  # whose byte order mark is given back as well
        algorithm = self.algorithm or self.from_zoo.stem
        if algorithm not in ALGORITHMS and not self.algorithm:
            raise InputError(
                f"{self.from_zoo} names no algorithm with a rule: give --algorithm with one of {', '.join(ALGORITHMS)}."
            )
        rule = chosen_rule(self.rule, self.own_rules)
        carried = transfer_entry(text, self.env, algorithm, self.from_dt, self.to_dt, rule, self.also, self.action_size)
        if self.out:
            _write_new_text(Path(self.out), carried.text)
        if self.json:
            zoo = {"file": str(self.from_zoo), "env": self.env, "changed": dict(carried.changed)}
            print(json.dumps({**as_json(carried.values, carried.notes), "zoo": zoo}, indent=2))
            return 0
        if not self.out:
            # As bytes, since standard output would change the line ends on some systems.
            sys.stdout.buffer.write(carried.text.encode())
            sys.stdout.flush()
        changes = ", ".join(f"{key}: {value}" for key, value in carried.changed.items()) or "nothing changes"
        table = explain(carried.values, carried.notes)
        print(f"{table}\n\n{self.env}: {changes}", file=sys.stdout if self.out else sys.stderr)
        return 0


def _write_new_text(path: Path, text: str) -> None:
    try:
        with path.open("xb") as file:
            file.write(text.encode())
    except FileExistsError:
        raise InputError(f"{path} exists already: give another name with --out, or move it away.") from None
    except OSError as error:
        path.unlink(missing_ok=True)  # half a file is worse than none
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
