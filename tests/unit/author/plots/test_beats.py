from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import pytest

from peripety.author.plots.beats import recognize_plot
from peripety.author.plots.plot import list_plots, load_texts
from peripety.session.narration.claims.checker import ClaimChecker
from support.author_plots import document_of, narrated, recorded_narrations, scenario_of, subjects

SUBJECTS = subjects()
WORD = re.compile(r"[^\W\d_]+(?:\u2019[^\W\d_]+)?")
SEEDS = (1, 2, 3)
FAST = ("hold_out", "find_out")
PLOTS = [
    plot if plot in FAST else pytest.param(plot, marks=pytest.mark.slow(reason="plays six runs of each plot"))
    for plot in list_plots()
]


@cache
def runs(plot: str) -> list[list[str]]:
    """Runs on all subjects and seeds, each as the narrations of its turns."""
    return [[*narrated(document_of(reading, plot, seed), seed)] for reading in SUBJECTS[:4] for seed in SEEDS]


def bigrams(text: str) -> list[tuple[str, str]]:
    words = WORD.findall(text.casefold())
    return list(pairwise(words))


@pytest.mark.slow_after(1, reason="plays whole games of each plot")
@pytest.mark.parametrize("plot", PLOTS)
def test_prose_has_no_digit_bracket_or_id(plot: str) -> None:
    texts = load_texts(plot)
    ids = [name for part in ("actions", "events", "losses") for name in texts[part] if "_" in name]
    for told in runs(plot):
        text = "\n".join(told)
        assert not re.search(r"[\d{}\[\]()<>_]", text)
        assert not [name for name in ids if name in text]
        assert all(told)


@pytest.mark.slow_after(2, reason="plays many runs")
@pytest.mark.parametrize("plot", PLOTS)
def test_no_line_is_told_twice_in_a_run(plot: str) -> None:
    for told in runs(plot):
        lines = [line for turn in told for line in re.split(r"(?<=[.!?])\s+", turn) if len(line.split()) > 6]
        assert len(lines) == len(set(lines)), sorted(line for line in lines if lines.count(line) > 1)


@pytest.mark.parametrize("plot", PLOTS)
def test_prose_varies_and_the_player_acts(plot: str) -> None:
    shares = []
    for told in runs(plot):
        pairs = bigrams(" ".join(told))
        shares.append(len(set(pairs)) / len(pairs))
        acting = [turn for turn in told if re.search(r"\b[Yy]ou \w+", turn)]
        assert len(acting) >= 0.4 * len(told)
    assert min(shares) >= 0.8, shares
    assert sum(shares) / len(shares) >= 0.85, shares


@pytest.mark.parametrize("plot", PLOTS)
def test_something_earlier_is_called_back_within_eight_turns(plot: str) -> None:
    texts = load_texts(plot)
    frames = [line for lines in texts["common"]["callbacks"].values() for line in lines]
    starts = [*frames, *texts["callbacks"]]
    patterns = [re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(line))) for line in starts]
    for told in runs(plot):
        if len(told) >= 8:
            text = "\n".join(told[:8]).replace("\n", " ")
            assert any(pattern.search(text) for pattern in patterns), text


@pytest.mark.slow_after(1, reason="plays whole games of each plot")
@pytest.mark.parametrize("plot", PLOTS)
def test_no_beat_contradicts_the_record(plot: str) -> None:
    for reading in SUBJECTS:
        for seed in SEEDS:
            for told, record in recorded_narrations(document_of(reading, plot, seed), seed):
                assert ClaimChecker(record).check(told) == [], told


@pytest.mark.parametrize("plot", list_plots())
def test_the_words_of_the_user_are_read_back_from_the_scenario(plot: str) -> None:
    for reading in SUBJECTS[3:]:
        found = recognize_plot(scenario_of(document_of(reading, plot)))
        assert found is not None
        assert found.plot.id == plot
        needed = {
            slot
            for part in ("actions", "events", "gauges")
            for text in found.texts.get(part, {}).values()
            for lines in text.values()
            for line in ([lines] if isinstance(lines, str) else lines)
            for slot in re.findall(r"\{(\w+)", line)
        }
        assert needed <= found.slots.keys()


@pytest.mark.parametrize("plot", FAST)
def test_an_ending_names_what_decided_it(plot: str) -> None:
    record = load_texts(plot)["common"]["record"]
    lines = [line for kind, row in record.items() if kind not in ("often", "event") for line in row]
    for told in runs(plot):
        text = "\n".join(told[-1:]).replace("\n", " ")
        starts = [re.escape(line.partition("{")[0]) for line in lines]
        is_over = any(ending["message"] in text for ending in load_texts(plot)["losses"].values())
        assert not is_over or any(re.search(start, text) for start in starts), text


def test_a_scenario_of_no_plot_is_not_recognized() -> None:
    assert recognize_plot({"name": "alpha"}) is None
    assert recognize_plot({"wins": [{"id": "plain"}], "events": [{"id": "grow", "name": "Alpha"}]}) is None
