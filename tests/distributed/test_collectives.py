"""Collectives between the ranks of MPI."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.mpi
VERBS = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "messages",
    "reduce",
    "reduce_scatter",
    "scatter",
]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_each_collective_gives_what_numpy_does(ranks, number):
    done = ranks(number, "collectives.py", number, 25)
    assert done.output.count(str(VERBS)) == number


@pytest.mark.numba
@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_program_gives_what_its_simulation_does(ranks, number, seed):
    assert ranks(number, "spmd.py", seed, 80).output.count("equal") == number


@pytest.mark.parametrize("number", [1, 3])
def test_replays_of_a_graph_are_collectives_in_the_order_of_the_program(ranks, number):
    assert ranks(number, "graphs.py").output.count("fine") == number


@pytest.mark.parametrize("number", [1, 2, 4])
def test_collectives_are_operations_of_streams(ranks, number):
    assert ranks(number, "order.py").output.count("fine") == number


def test_communicators_are_given_back(ranks):
    assert "fine" in ranks(1, "reopened.py", 2100).output


def test_communicators_that_were_not_closed_run_out_with_advice(ranks):
    assert "fine" in ranks(1, "dropped.py").output


def test_many_small_collectives_need_no_more_memory(ranks):
    assert ranks(2, "growth.py", 4000).output.count("flat") == 2


def test_graphs_of_collectives_give_memory_back(ranks):
    assert ranks(2, "dropped_graphs.py").output.count("given back") == 2


def test_a_program_of_one_rank_is_explored(ranks):
    assert "fine" in ranks(1, "explored.py").output
