"""The pages of a report, from Great Expectations' own renderer; they load nothing.

Its own page links styles, fonts, scripts and a logo from half a dozen places on the internet. Ours takes the same
sections with one style sheet inside, and no script; what its scripts fold away is simply shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.model.reporter import figure
from clickjoin.quality.checks import Report

if TYPE_CHECKING:
    from clickjoin.quality.checks import Outcome

SUITES = ("joined", "primary", "foreign", "registry", "signals")
_ORDER = ("failed", "warned", "undecided", "passed")
_SUITE_LINK = "../../../../expectations/{}.html"


def pages(report: Report, results: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """A run's pages by file name, `index.html` last; `results` are Great Expectations' own, by suite."""
    made = {f"{suite}.html": _suite(report, suite, results.get(suite, ())) for suite in _suites(report)}
    return made | {"index.html": overview(report, "")}


def overview(report: Report, base: str) -> str:
    """The page of a run: all checks, those first that did not pass. `base`: where the suites' pages lie from it."""
    checks = sorted(report.outcomes, key=lambda one: (_ORDER.index(one.state), SUITES.index(one.suite), one.check))
    return _render(
        "overview.j2", escape=True, report=report, checks=checks, base=base, suites=_suites(report), number=_number
    )


def _suites(report: Report) -> list[str]:
    """Those of the tables, and of processing where there is any."""
    return [suite for suite in SUITES if suite != "signals" or any(one.suite == suite for one in report.outcomes)]


def _suite(report: Report, suite: str, results: Sequence[Any]) -> str:
    """The page of a suite, in Great Expectations' own sections; undecided checks, which it has not seen, come last."""
    from great_expectations import __version__
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer

    passed = sum(1 for result in results if result.success)
    whole = ExpectationSuiteValidationResult(
        success=passed == len(results),
        results=list(results),
        suite_name=suite,
        suite_parameters={},
        statistics={
            "evaluated_expectations": len(results),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(results) - passed,
            "success_percent": 100 * passed / len(results) if results else 100.0,
        },
        meta={
            "run_id": {"run_name": report.run, "run_time": report.at.isoformat()},
            "great_expectations_version": __version__,
        },
    )
    document = ValidationResultsPageRenderer(run_info_at_end=True).render(whole).to_json_dict()
    open_ = [one for one in report.outcomes if one.suite == suite and one.state == "undecided"]
    text = _render("suite.j2", escape=False, report=report, suite=suite, undecided=open_, **document)
    return text.replace(_SUITE_LINK.format(suite), "index.html")


def _render(name: str, *, escape: bool, **values: Any) -> str:
    """A page. Great Expectations' sections escape what they are given themselves, and must not be escaped again."""
    from great_expectations.render.view.view import DefaultJinjaPageView
    from jinja2 import ChoiceLoader, FileSystemLoader

    view = DefaultJinjaPageView()
    own, theirs = FileSystemLoader(str(Path(__file__).parent / "pages")), view.env.loader
    view.env.loader = ChoiceLoader([own, *([theirs] if theirs else [])])
    view.env.autoescape = escape
    return str(view.env.get_template(name).render(**values))


def _number(one: Outcome) -> str:
    if one.observed is None:
        return ""
    return figure(one.observed) + (" s" if one.expected.startswith("seconds") else "")
