"""`cycletime horizons`: the search for a rule that keeps horizons in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, arg, subcommand


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Where results are."""

    results: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="FOLDER", help_behavior_hint="(default: those that come with cycletime)"),
    ] = None
    """Results, as 'cycletime horizons collect' keeps them."""

    @property
    def folder(self) -> Path:
        """That of the results."""
        from cycletime.paper.results import shipped_results

        return shipped_results("horizons") if self.results is None else self.results


@dataclass(frozen=True, kw_only=True)
class _KeptOfOne(_Kept):
    """Results of an algorithm."""

    algorithm: Annotated[Literal["ppo", "sac"], arg(metavar="ALGORITHM")] = "ppo"
    """Whose rules: ppo or sac."""


@dataclass(frozen=True, kw_only=True)
class PackHorizons(_KeptOfOne):
    """Pack the studies of a stage for a machine with a GPU that has JAX, NumPy and CuPy."""

    stage: Annotated[Positional[Literal["tuning", "search", "trial-tuning", "trial"]], arg(metavar="STAGE")]
    """tuning; search, which needs tuning's results; trial-tuning, which needs the frozen list; trial, which needs the
    results of that too."""
    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as tuning.zip."""

    def run(self) -> int:
        """Write it."""
        from cycletime.cli.study.pack import print_packed
        from cycletime.horizons.results import studies_of
        from cycletime.studies.packing.pack import pack_studies

        studies = studies_of(self.stage, self.folder, self.algorithm)
        print_packed(pack_studies(studies, self.output, in_folders=True), self.output)
        print("Then bring OUT back, and: cycletime horizons collect OUT")
        return 0


@dataclass(frozen=True, kw_only=True)
class CollectHorizons(_Kept):
    """Keep what came of studies, small enough to go with the code."""

    out: Annotated[Positional[Path], arg(metavar="OUT")]
    """The folder that a pack filled."""

    def run(self) -> int:
        """Keep it."""
        from cycletime.engines.devices import prepare_jax

        prepare_jax("cpu")
        from cycletime.horizons.results import collect_stages

        for path in collect_stages(self.out, self.folder):
            print(f"{path}, {path.stat().st_size / 1024:,.0f} KiB")
        return 0


@dataclass(frozen=True, kw_only=True)
class RankHorizons(_KeptOfOne):
    """Print how the rules of the search compare."""

    def run(self) -> int:
        """Print it."""
        from cycletime.horizons.evidence import Evidence
        from cycletime.horizons.telling import ranking_in_words

        print(ranking_in_words(Evidence(self.folder, self.algorithm).search))
        return 0


@dataclass(frozen=True, kw_only=True)
class FreezeHorizons(_KeptOfOne):
    """Write the list of candidates that go to the trial, with what is predicted of them."""

    def run(self) -> int:
        """Write it."""
        from cycletime.horizons.evidence import Evidence
        from cycletime.horizons.freezing import frozen, write_frozen

        comparison = Evidence(self.folder, self.algorithm).search
        for name, why in frozen(comparison).items():
            print(f"{name}: {why}")
        print(write_frozen(comparison, self.folder))
        return 0


@dataclass(frozen=True, kw_only=True)
class JudgeHorizons(_KeptOfOne):
    """Print what the trial says of the candidates, and of what was predicted of them."""

    def run(self) -> int:
        """Print it."""
        from cycletime.horizons.evidence import Evidence
        from cycletime.horizons.telling import ranking_in_words, verdicts_in_words

        evidence = Evidence(self.folder, self.algorithm)
        print(ranking_in_words(evidence.trial.comparison))
        print(verdicts_in_words(evidence.trial, evidence.predictions))
        return 0


@dataclass(frozen=True, kw_only=True)
class HorizonsPage(_Kept):
    """Fill the tables and figures of a page from the results."""

    page: Annotated[Positional[Path], arg(metavar="PAGE")]
    """The page, such as docs/horizons.md, whose parts between <!-- made: NAME --> and <!-- end --> are made; its
    figures go to figures/horizons beside it."""

    def run(self) -> int:
        """Write it."""
        from cycletime.horizons.evidence import every_evidence
        from cycletime.horizons.page import write_page

        for path in write_page(self.page, every_evidence(self.folder)):
            print(path)
        return 0


@dataclass(frozen=True)
class HorizonsCommand:
    """Search for a rule that keeps horizons in seconds, try what was found, and see what came of it."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[PackHorizons, subcommand("pack")]
            | Annotated[CollectHorizons, subcommand("collect")]
            | Annotated[RankHorizons, subcommand("ranking")]
            | Annotated[FreezeHorizons, subcommand("freeze")]
            | Annotated[JudgeHorizons, subcommand("verdicts")]
            | Annotated[HorizonsPage, subcommand("page")]
        ]
    ]
