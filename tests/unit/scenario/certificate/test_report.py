"""The page of a certificate: whole in itself, and nothing in it is markup of a stranger's."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree.ElementTree import fromstring

import pytest

from peripety.certification.types import NamedCount, TurnCount
from peripety.errors import Finding
from peripety.scenario.certificate.plots import draw_plots
from peripety.scenario.certificate.report import render_page
from peripety.scenario.rendering.markup import load_style, render_xml, with_style
from support.scenario.batches import certified_alone, contest

if TYPE_CHECKING:
    from peripety.certification.types import Certificate


HOSTILE = "</style><script>alert(1)</script>\"' & \x00\u202e"
PLOTS = {"fail-rates", "survival", "loss-causes", "loss-turns"}


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return certified_alone(contest())


async def test_it_needs_neither_scripts_nor_a_network(certificate: Certificate) -> None:
    text = render_page(certificate, contest()).decode()
    assert "<script" not in text
    assert not re.findall(r"(?:src|href)=|url\(|@import", text)
    assert set(re.findall(r"https?://[^\"]*", text)) == {"http://www.w3.org/2000/svg"}


async def test_the_same_certificate_gives_the_same_bytes(certificate: Certificate) -> None:
    assert render_page(certificate, contest()) == render_page(certificate, contest())


async def test_light_and_dark_are_both_at_hand(certificate: Certificate) -> None:
    assert render_page(certificate, contest()).count(b"prefers-color-scheme: dark") == 2


async def test_style_sheets_arrive_as_they_were_written(certificate: Certificate) -> None:
    text = render_page(certificate, contest()).decode()
    assert load_style("page") in text
    assert load_style("plots") in text
    for svg in draw_plots(certificate).values():
        assert load_style("plots") in render_xml(with_style(svg, load_style("plots"))).decode()


async def test_each_plot_says_what_it_shows_and_has_its_figures_in_a_table(certificate: Certificate) -> None:
    text = render_page(certificate, contest()).decode()
    for name in PLOTS:
        assert f'aria-labelledby="{name}-title {name}-desc"' in text
        assert f'<title id="{name}-title">' in text
        assert f'<desc id="{name}-desc">' in text
    assert len(re.findall(r"<figure>.*?<table>.*?</figure>", text, re.DOTALL)) == len(PLOTS)


async def test_what_a_specification_says_is_text(certificate: Certificate) -> None:
    renamed = tuple(
        replace(
            report,
            losses=(NamedCount(HOSTILE, 3),),
            events=(NamedCount(HOSTILE, 3),),
        )
        for report in certificate.personas
    )
    hostile = replace(
        certificate,
        personas=renamed,
        findings=(Finding("CODE", f"/{HOSTILE}", HOSTILE),),
    )
    text = render_page(hostile, {"name": HOSTILE}).decode()
    assert "<script" not in text
    assert "\x00" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


async def test_drawings_stand_alone(certificate: Certificate) -> None:
    drawn = draw_plots(certificate)
    assert set(drawn) == PLOTS
    for svg in drawn.values():
        root = fromstring(render_xml(with_style(svg, load_style("plots"))))  # noqa: S314 - we wrote it
        assert root.tag.endswith("}svg")
        assert root.find("{http://www.w3.org/2000/svg}style") is not None


async def test_the_curve_falls_where_runs_are_lost(certificate: Certificate) -> None:
    horizon = certificate.options.horizon
    idle, *others = certificate.personas
    lost = (TurnCount(2, 16), TurnCount(4, 32))
    changed = replace(certificate, personas=(replace(idle, loss_turns=lost), *others))
    (path,) = [p for p in draw_plots(changed)["survival"].iter("path") if p.findtext("title") == "idle"]
    places = re.fullmatch(r"M100\.0 (\S+)H(\S+)V(\S+)H(\S+)V(\S+)H700\.0", path.get("d", ""))
    assert horizon == 6
    assert places is not None
    top, second, quarter, fourth, three_quarters = map(float, places.groups())
    assert (second, fourth) == (300.0, 500.0)
    assert (quarter - top, three_quarters - top) == (57.5, 172.5)


async def test_a_certificate_without_losses_can_be_drawn(certificate: Certificate) -> None:
    spared = tuple(
        replace(report, loss_turns=(), losses=tuple(NamedCount(loss.id, 0) for loss in report.losses))
        for report in certificate.personas
    )
    assert b"<svg" in render_page(replace(certificate, personas=spared), contest())
