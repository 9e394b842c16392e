"""`cycletime paper claims`: what the data say of the paper's claims."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.cli.paper.options import FromResults


@dataclass(frozen=True, kw_only=True)
class PaperClaims(FromResults):
    """Judge the paper's claims by the results at hand."""

    json: bool = False
    """Print JSON: a list with an object for each claim."""

    def run(self) -> int:
        """Print them."""
        from cycletime.paper.claims import CLAIMS

        data = self.data()
        if self.json:
            from json import dumps

            from cycletime.paper.claims import claims_as_json

            print(dumps(claims_as_json(CLAIMS, data), indent=2, allow_nan=False))
        else:
            from cycletime.paper.page import claims_in_words

            print(claims_in_words(data), end="")
        return 0
