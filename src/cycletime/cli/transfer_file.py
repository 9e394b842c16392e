"""`cycletime transfer FILE_OR_FOLDER`: a whole configuration of another library at another cycle time."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from cycletime.cli.options import NO_NAMES, Count, NameListOption, OwnRulesFile, RuleOption, Text, select_rule
from cycletime.errors import InputError
from cycletime.rules.hyperparameters import align_columns, explain_values, transfer_as_json

if TYPE_CHECKING:
    from cycletime.libraries.carry_configuration import CarriedConfiguration, Change


@dataclass(frozen=True, kw_only=True)
class TransferFile:
    """Carry a whole configuration of another library. Short: cycletime transfer FILE_OR_FOLDER --to TIME.

    A run folder of Isaac Lab or mjlab; a file of rsl_rl, skrl, rl_games, brax, MuJoCo Playground, LeRobot, CleanRL or
    the RL Zoo; or Stable-Baselines3's model.zip.
    """

    path: Annotated[Positional[Path], arg(metavar="FILE_OR_FOLDER")]
    """The configuration. Its library is recognised by what is in it."""
    to_dt: Annotated[Text, arg(name="to", metavar="TIME", help_behavior_hint="(required without --to-num-envs)")] = None
    """The cycle time to carry it to."""
    from_dt: Annotated[Text, arg(name="from", metavar="TIME", help_behavior_hint="(default: what it says)")] = None
    """The cycle time that it is for, where it does not say that itself: 40ms, 0.04, 25Hz."""
    env: Annotated[Text, arg(metavar="ID", help_behavior_hint="(no default)")] = None
    """The environment's entry in an RL Zoo file."""
    library: Annotated[Text, arg(metavar="LIBRARY", help_behavior_hint="(default: recognised)")] = None
    """Whose settings they are."""
    algorithm: Annotated[Text, arg(metavar="ALGORITHM", help_behavior_hint="(default: recognised)")] = None
    """Which algorithm they are for: ppo, sac, a2c, tqc, td3 or ddpg."""
    n_envs: Annotated[Count, arg(name="num-envs", help_behavior_hint="(default: what it says)")] = None
    """The number of parallel environments."""
    to_num_envs: Annotated[Count, arg(help_behavior_hint="(default: as many as before)")] = None
    """The number of parallel environments to go to, with the same batch in samples."""
    rule: RuleOption = None
    """The rule for the agent's values."""
    also: NameListOption = NO_NAMES
    """Carry as well: parts of the algorithm, as for ppo and sac."""
    action_size: Annotated[Count, arg(help_behavior_hint="(no default)")] = None
    """The number of action dimensions, for --also target-entropy."""
    own_rules: OwnRulesFile = None
    """A TOML file with tables [own_rules.NAME], such as a study's, for a --rule of your own."""
    form: Annotated[Literal["changes", "overrides", "yaml", "json", "diff"], arg(name="as")] = "changes"
    """Print the changes with reasons; overrides for a command line; whole files; or a diff that 'patch' takes."""
    to_file: Annotated[Text, arg(metavar="PATH", help_behavior_hint="(no default)")] = None
    """Write the files there, which must not exist yet: a file, or for a folder a new folder."""
    explain: bool = False
    """Print also where each formula comes from, and what the other rules give."""
    json: bool = False
    """Print a report in JSON."""

    def run(self) -> int:
        from cycletime.libraries.carry_configuration import carry_configuration
        from cycletime.libraries.configuration import read_configuration

        read = read_configuration(self.path, library=self.library, algorithm=self.algorithm, env_id=self.env)
        carried = carry_configuration(
            read,
            self.to_dt,
            from_dt=self.from_dt,
            rule=select_rule(self.rule, self.own_rules),
            also=self.also,
            n_envs=self.n_envs,
            to_num_envs=self.to_num_envs,
            action_size=self.action_size,
        )
        printed, notes = self._printed(carried)
        if self.to_file:
            texts, notes = carried.texts()
            _write_new(Path(self.to_file), self.path, texts)
            notes = (*notes, f"Written to {self.to_file}.")
        if self.json:
            print(json.dumps(_as_json(carried, notes), indent=2))
            return 0
        if printed:
            # As bytes, since standard output would change the line ends on some systems.
            sys.stdout.buffer.write(printed.encode())
            sys.stdout.flush()
        print(_explained(carried, notes, self.explain), file=sys.stderr if printed else sys.stdout)
        return 0

    def _printed(self, carried: CarriedConfiguration) -> tuple[str, tuple[str, ...]]:
        """What is asked for instead of the changes, and notes on how it was written."""
        from cycletime.libraries.config_edit import as_yaml, is_editable

        if self.form == "overrides":
            words, notes = carried.overrides()
            return "\n".join([*words, ""]), notes
        if self.form == "json" or (self.form == "yaml" and carried.before.files[0].kind != "yaml"):
            documents = {path.name: each for path, each in carried.documents().items()}
            whole = next(iter(documents.values())) if len(documents) == 1 else documents
            return (json.dumps(whole, indent=2) + "\n" if self.form == "json" else as_yaml(whole)), ()
        if self.form == "changes" and not all(is_editable(file) for file in carried.before.files):
            return "", ()
        texts, notes = carried.texts()  # also where only changes are shown: what cannot be written is refused
        if self.form == "yaml":
            names = [f"--- # {path.name}\n" if len(texts) > 1 else "" for path in texts]
            return "".join(name + text for name, text in zip(names, texts.values(), strict=True)), notes
        if self.form == "diff":
            root = Path.cwd() if self.path.resolve().is_relative_to(Path.cwd()) else self.path.resolve()
            root = root.parent if root.is_file() else root
            names = [path.resolve().relative_to(root).as_posix() for path in texts]  # 'patch' refuses others
            diffs = [_diff(carried, *each) for each in zip(texts, names, texts.values(), strict=True)]
            elsewhere = (f"Apply it with: patch -d {root} -p0.",) if root != Path.cwd() else ()
            return "".join(diffs), (*notes, *elsewhere)
        return "", notes


def _diff(carried: CarriedConfiguration, path: Path, name: str, text: str) -> str:
    """A unified diff, with the reasons before it, where 'patch' passes over them."""
    before = next(file.text for file in carried.before.files if file.path == path)
    changes = [each for each in carried.carried if each.file.path == path]
    reasons = [f"# {each.name}: {_value(each.old)} -> {_value(each.new)}: {each.reason}\n" for each in changes]
    lines = unified_diff(before.splitlines(keepends=True), text.splitlines(keepends=True), name, name)
    return "".join([*reasons, *(line if line.endswith("\n") else f"{line}\n" for line in lines)])


def _explained(carried: CarriedConfiguration, notes: tuple[str, ...], details: bool) -> str:
    read = carried.before
    stated = f" ({read.cycle_time[1]})" if read.cycle_time else ""
    n_envs = read.n_envs.value if read.n_envs else 0
    parts = [read.environment, read.library if read.library != read.environment else None, read.algorithm]
    number = f", {n_envs} environment{'s' if n_envs > 1 else ''}" if n_envs else ""
    what = " ".join(part for part in parts if part)
    title = f"{read.name}: {what} at {carried.from_dt}{stated}{number}"
    blocks = [title]
    if carried.values is not None:
        told = explain_values(carried.values, (), None, details, environment_left=read.environment is None)
        blocks.append(told.replace("give --tuned FILE", f"run 'cycletime transfer {read.algorithm} --tuned FILE'"))
    by_file = {file.path: [each for each in carried.carried if each.file == file] for file in read.files}
    blocks += ["\n".join([str(path), *_rows(rows)]) for path, rows in by_file.items() if rows]
    if not carried.carried:
        blocks.append("Nothing changes.")
    if yours := [each for each in carried.changes if each.treatment == "yours"]:
        blocks.append("\n".join(["NOT carried: set these yourself, if the reason holds", *_rows(yours)]))
    kept: dict[str, dict[str, None]] = {}
    for each in carried.changes:
        if each.treatment == "kept" and each.old:
            kept.setdefault(each.reason, {})[each.name] = None  # once, also where both sides have it
    if kept:
        blocks.append("\n".join(["Kept", *(f"  {reason}: {', '.join(names)}" for reason, names in kept.items())]))
    if all_notes := (*carried.notes, *notes):
        blocks.append("\n".join(f"note: {note}" for note in all_notes))
    return "\n\n".join(blocks)


def _rows(changes: list[Change]) -> list[str]:
    lines = [(str(each.line or ""), each.name, _value(each.old), _value(each.new), each.reason) for each in changes]
    first = 0 if any(line[0] for line in lines) else 1  # zips have no lines
    rows = [line[first:] for line in (("line", "setting", "from", "to", "why"), *lines)]
    return [f"  {line}" for line in align_columns(rows)]


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict) and all(isinstance(each, dict) for each in value.values()):  # a wrapper of the Zoo's
        calls = [(name, ", ".join(f"{key}={each}" for key, each in given.items())) for name, given in value.items()]
        return ", ".join(f"{name.rpartition('.')[2]}({given})" for name, given in calls)
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def _as_json(carried: CarriedConfiguration, notes: tuple[str, ...]) -> dict[str, Any]:
    read = carried.before
    changes = [
        {
            "name": each.name,
            "from": each.old,
            "to": each.new,
            "treatment": {"carried": "carried", "kept": "kept", "yours": "not carried"}[each.treatment],
            "reason": each.reason,
            "file": str(each.file.path),
            "line": each.line,
        }
        for each in carried.changes
    ]
    configuration = {
        "path": read.name,
        "library": read.library,
        "environment": read.environment,
        "n_envs": read.n_envs.value if read.n_envs else None,
        "changes": changes,
    }
    both = (*carried.notes, *notes)
    transfer = transfer_as_json(carried.values, both) if carried.values is not None else {"notes": list(both)}
    return {**transfer, "configuration": configuration}


def _write_new(target: Path, source: Path, texts: dict[Path, str]) -> None:
    """Write the files of a configuration where there is nothing yet, whole or not at all."""
    folder = source.is_dir()
    if folder and target.suffix in {path.suffix for path in texts}:
        instead = f"name a new folder, such as {target.stem}, or print with --as yaml"
        raise InputError(f"--to-file is {target}, and {source} is a folder: {instead}.")
    if not target.parent.is_dir():
        raise InputError(f"--to-file is {target}, and there is no folder {target.parent}: make it first.")
    try:
        if folder:
            target.mkdir()
        for path, text in texts.items():
            file = target / path.relative_to(source) if folder else target
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as opened:
                opened.write(text.encode())
    except FileExistsError:
        raise InputError(f"{target} exists already: give another name with --to-file, or move it away.") from None
    except OSError as error:
        if folder:
            rmtree(target, ignore_errors=True)
        elif target.is_file():
            target.unlink()  # half a file is worse than none
        raise InputError(f"{target} cannot be written: {error.strerror}.") from error
