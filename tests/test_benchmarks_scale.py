"""The simulated ranks of the heat example do what the model says, and the page shows what they give."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "results" / "scale.json"
PAGE = ROOT / "docs" / "internals" / "scale.md"


@pytest.fixture(scope="module")
def programs():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield {name: import_module(name) for name in ("scale", "scale_model", "scale_plot")}
    for name in ("scale", "scale_model", "scale_plot"):
        del sys.modules[name]


@pytest.fixture(scope="module")
def model(programs):
    return programs["scale_model"]


@pytest.fixture
def machine(model):
    return model.Machine(alpha=50e-6, beta=1e-9, row_bytes=16384, border=10e-6, launch=0.0, row=1e-6, host=0.0)


def test_messages_of_a_rank_leave_it_one_after_the_other(model, machine):
    transport = model.Transport(2, machine._replace(alpha=5.0, beta=2.0))
    assert [transport.send(1.0, 0, 10), transport.send(2.0, 0, 10), transport.send(2.0, 1, 10)] == [26.0, 46.0, 27.0]


@pytest.mark.parametrize("inside", [0.0, 0.25, 0.5, 0.9, 1.5])
@pytest.mark.parametrize("ranks", [2, 16])
def test_what_is_computed_meanwhile_is_hidden(model, machine, ranks, inside):
    # Of two messages the second leaves later, and a rank waits for the first of one neighbour and the other's second.
    exchange = machine.alpha + machine.beta * machine.row_bytes * (1.0 if ranks == 2 else 1.5)
    outcome = model.predict(machine._replace(row=inside * exchange / 10), ranks, 12 * ranks, 200)
    assert outcome.hidden == pytest.approx(min(1.0, inside), abs=0.01 if ranks == 2 else 0.1)
    assert outcome.step == pytest.approx(machine.border + exchange * max(1.0, inside), rel=0.02)


def test_a_late_row_holds_the_neighbours(model, machine):
    late = machine._replace(late=(*[1.0] * 19, 100.0), row=10e-6)
    for ranks in (2, 64):
        in_time = model.predict(machine, ranks, 12 * ranks, 50)
        assert model.predict(late, ranks, 12 * ranks, 50).step > 1.5 * in_time.step
    # The more there are, the sooner one of them is late.
    assert model.predict(late, 64, 12 * 64, 50).hidden < model.predict(late, 2, 24, 50).hidden


def test_the_host_may_be_what_takes_longest(model, machine):
    assert model.predict(machine._replace(host=1.0), 4, 64, 12).step == pytest.approx(1.0, rel=0.01)


def test_one_rank_exchanges_nothing(model, machine):
    outcome = model.predict(machine, 1, 100, 10)
    assert outcome == (0.0, pytest.approx(machine.border + 98 * machine.row))


def test_a_band_has_an_inside(model, machine):
    with pytest.raises(ValueError, match="11 rows are not enough on 4 ranks"):
        model.predict(machine, 4, 11)


@pytest.mark.timeout(30)
def test_4096_ranks_take_seconds_and_come_out_the_same_each_time(model, machine):
    varied = machine._replace(late=(1.0, 1.0, 3.0), slow=(1.0, 1.2))
    assert model.predict(varied, 4096, 8 * 4096, 5) == model.predict(varied, 4096, 8 * 4096, 5)


def test_the_page_shows_what_the_record_gives(programs):
    records = json.loads(RECORD.read_text())
    scale, page = programs["scale"], PAGE.read_text()
    found = scale.outcomes(records[0])
    for table in (scale.constants(records), scale.comparison(records), scale.prediction(found)):
        assert "\n".join(table) in page
    picture = programs["scale_plot"].plot({ranks: [each.hidden for each in both] for ranks, both in found.items()})
    assert PAGE.with_name("scale.svg").read_text() == picture
    assert {record["ranks"] for record in records} == {2, 4}
    assert f"{records[0]['cores']} cores" in page
    for record in records:
        assert f" {record['load']:.1f} before" in page
