"""Ranks that die, come late or disagree: an error on every living rank, and no hang."""

from __future__ import annotations

import math
import re
import socket
import sys
import time
from types import SimpleNamespace

import pytest

from anabranch.distributed import _init

from .conftest import PROGRAMS, finish, start

pytestmark = pytest.mark.mpi
VERBS = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]


@pytest.mark.parametrize("way", ["exit", "close", "with"])
@pytest.mark.parametrize("kind", ["broadcast", "send"])
def test_a_rank_that_ends_completes_what_it_has_enqueued(ranks, way, kind):
    assert ranks(2, "leaving.py", way, kind).output == "0.0\n"


def test_a_rank_that_has_done_its_part_may_end_while_the_others_go_on(ranks):
    assert ranks(3, "early.py").output == "from 2 2.0\nfrom 1 1.0\nsum 3.0\n"


def test_groups_of_messages(ranks):
    assert ranks(2, "groups.py").output.count("fine") == 2


class Waiting:
    """A communicator whose operation is over, or breaks it, when it was asked for so often."""

    backend, error = "mpi", None

    def __init__(self, asked: float, error: Exception | None) -> None:
        self.left = asked
        self.last = error

    @property
    def is_waiting(self) -> bool:
        self.left -= 1
        if self.left <= 0:
            self.error = self.last
        return self.left > 0


LATE = Exception("recv at main.py:7 cannot complete")


@pytest.mark.parametrize(
    ("in_flight", "asked", "error", "told"),
    [(1, 60, None, ""), (1, 60, LATE, f"anabranch: rank 3: {LATE}\n"), (0, 2, None, ""), (0, math.inf, None, "")],
    ids=["in flight", "fails", "is soon reached", "is never reached"],
)
def test_the_end_of_a_process_waits_for_what_is_in_flight(in_flight, asked, error, told, monkeypatch, capsys):
    monkeypatch.setattr(_init, "_DRAIN", 0.01)
    monkeypatch.setattr(_init._progress, "in_flight", lambda: in_flight)
    process = object.__new__(_init._Process)
    process.communicators = [Waiting(asked, error)]
    process.side = SimpleNamespace(rank=3)
    process._drain()
    assert process.communicators[0].left in (0, math.inf)
    assert capsys.readouterr().err == told


def test_bad_input_is_refused_before_anything_is_enqueued(ranks):
    for number in (1, 3):
        assert ranks(number, "bad_input.py", ANABRANCH_CPU_DEVICES="2").output.count("fine") == number


# Lines of several ranks may come as one.
BOTH = r"rank 0 calls .*?mismatch.py:(\d+) and rank 2 calls .*?mismatch.py:(\d+)"


@pytest.mark.parametrize("kind", ["verb", "dtype", "shape", "op", "root"])
def test_a_mismatch_is_told_on_every_rank_with_both_lines(ranks, kind):
    done = ranks(3, "mismatch.py", kind)
    told = re.findall(rf"rank (\d): \(0, 2\): .*?{BOTH}", done.output)
    assert sorted(rank for rank, *_ in told) == ["0", "1", "2"]
    assert len({tuple(lines) for _, *lines in told}) == 1
    assert done.output.count("True") == 3


def test_a_message_of_another_size_is_an_error_on_every_rank(torchrun):
    # MPI may find out before the ranks have compared it: then that is the reason.
    for rank, done in enumerate(torchrun(3, "mismatch.py", "message")):
        assert re.search(rf"rank {rank}: \(.*?(?:{BOTH}|truncated)", done.output), done
        assert done.code == 0


@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_rank_is_an_error_on_the_others(torchrun, tmp_path, verb):
    *living, dead = torchrun(3, "death.py", verb, "killed", 40, tmp_path)
    assert dead.code == -9
    for rank, done in enumerate(living):
        assert re.search(rf"rank {rank}: CollectiveError \(2,\) after \d s: .*rank 2 has died", done.output), done
        assert "broken" in done.output
        assert (done.code, done.errors) == (0, "")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("send", "recv")])
def test_a_rank_that_is_killed_in_the_middle_is_an_error_on_the_others(torchrun, tmp_path, verb):
    *living, dead = torchrun(3, "death.py", verb, "middle", 40, tmp_path)
    assert dead.code == -9
    for rank, done in enumerate(living):
        # MPI may find out first on one of them, which then gives up.
        told = r"\(2,\) after \d s: .*rank 2 has died|\([01],\) after \d s: .*rank [01] has given up: "
        assert re.search(rf"rank {rank}: CollectiveError ({told})", done.output), done
        assert "broken" in done.output
        assert (done.code, done.errors) == (0, "")


def test_a_killed_rank_zero_is_one_too(torchrun, tmp_path):
    dead, *living = torchrun(3, "death.py", "all_reduce", "killed", 40, tmp_path, ANABRANCH_TEST_DEAD="0")
    assert dead.code == -9
    for done in living:
        assert re.search(r"CollectiveError \(0,\) after \d s: .*rank 0 has died", done.output), done
        assert done.code == 0


@pytest.mark.parametrize("dead", [0, 2])
def test_a_rank_that_an_exception_ends_is_an_error_on_the_others_at_once(torchrun, tmp_path, dead):
    done = torchrun(3, "death.py", "all_reduce", "raises", 40, tmp_path, ANABRANCH_TEST_DEAD=str(dead))
    ended = done.pop(dead)
    assert ended.code == 1
    assert "ValueError: a bad batch" in ended.errors
    for each in done:
        told = rf"CollectiveError \({dead},\) after [01] s: .*rank {dead} has ended with ValueError: a bad batch …"
        assert re.search(told, each.output), each
        assert each.code == 0


def test_a_late_rank_is_named_when_the_time_is_over(torchrun, tmp_path):
    *others, late = torchrun(3, "death.py", "all_reduce", "late", 2, tmp_path)
    for done in others:
        assert re.search(
            r"all_reduce at .*death.py:\d+, enqueued .* its 2 s are over, and rank 2 has not arrived", done.output
        )
    assert "broken" in late.output
    assert [done.code for done in (*others, late)] == [0, 0, 0]


def test_a_call_that_blocks_the_host_has_a_limit_where_a_rank_is_absent(ranks, tmp_path):
    output = ranks(2, "absent.py", tmp_path).output
    for call, text in (("split", "split()"), ("save", "trace.save()")):
        told = rf"{call} after 1 s: CollectiveError: {re.escape(text)} at .*absent.py:\d+: rank 1 has not come"
        assert re.search(told, output), output
    assert "init after 1 s: Error: rank 1 has not called init in 1 s" in output
    # Both ranks write into one pipe: one's line may end within the other's.
    both = r"rank 0 calls split\(\) at \S*absent.py:\d+ and rank 1 calls trace.save\(\) at \S*absent.py:\d+"
    assert len(re.findall(rf"rank [01]: {both}", output)) == 2, output
    assert output.count("fine") == 2


def test_what_rank_0_cannot_write_is_an_error_on_every_rank(ranks, tmp_path):
    assert ranks(2, "target.py", tmp_path).output.count("fine") == 2


def test_after_a_late_call_the_next_ones_are_compared_again(ranks, tmp_path):
    assert ranks(2, "late.py", tmp_path).output.count("fine") == 2


def test_a_call_that_a_signal_ends_is_not_made(ranks, tmp_path):
    assert ranks(2, "interrupted.py", tmp_path).output.count("fine") == 2


def test_a_call_that_is_compared_ends_soon_where_a_rank_has_ended(torchrun):
    begin = time.monotonic()
    *waiting, ended = torchrun(3, "ended.py")
    for done in waiting:
        assert re.search(r"CollectiveError \(2,\): .* rank 2 has ended", done.output), done
    # That one has not waited in MPI for the others, which do not come there.
    assert [(done.code, done.errors) for done in (*waiting, ended)] == 3 * [(0, "")]
    assert time.monotonic() - begin < 40


def test_all_ranks_that_are_late_for_a_compared_call_are_named(torchrun, tmp_path):
    for waiting in torchrun(4, "late_of_four.py", tmp_path)[:2]:
        assert re.search(
            r"CollectiveError \(2, 3\): all_reduce.*: ranks 2, 3 have not come to it in 3 s", waiting.output
        ), waiting


def test_a_message_that_a_rank_waits_in_instead_of_a_call_is_told(ranks, tmp_path):
    output = ranks(2, "message_and_call.py", tmp_path).output
    call = r"all_reduce\('sum'\) of 4 float32 at \S*message_and_call.py:\d+: rank 1 has not come to it in 2 s"
    message = r"rank 1 calls recv of 4 float32 from rank 0 at \S*message_and_call.py:\d+"
    assert re.search(rf"CollectiveError \(1,\): {call}: {message}", output), output
    assert output.count("fine") == 2


def test_a_rank_that_is_late_for_a_graph_is_named(torchrun, tmp_path):
    waiting, _ = torchrun(2, "late_graph.py", tmp_path)
    late = r"all_reduce at \S*late_graph.py:\d+, enqueued .* its 3 s are over, and rank 1 has not arrived"
    for stream in ("its", "other"):
        assert re.search(f"rank 0, {stream} stream: {late}", waiting.output), waiting


def test_mpi_for_too_few_threads_is_refused(ranks):
    assert "set mpi4py.rc.thread_level to 'multiple'" in ranks(1, "serialized.py").output


@pytest.mark.parametrize("way", ["call", "graph"])
def test_a_message_that_is_shorter_is_an_error(torchrun, way):
    _, receiver = torchrun(2, "short.py", way)
    assert "a message from rank 0 has 40 bytes, and its recv 64" in receiver.output, receiver


def test_a_failed_stream_is_told_to_the_others(torchrun, tmp_path):
    *others, failed = torchrun(3, "death.py", "all_reduce", "stream", 40, tmp_path)
    assert "KernelError" in failed.output
    for done in others:
        assert re.search(r"CollectiveError \(2,\).* its stream has failed: a kernel that fails", done.output)


def test_torchrun_starts_mpi(torchrun):
    for agent in ("False", "True"):
        done = torchrun(3, "address.py", TORCHELASTIC_USE_AGENT_STORE=agent)
        assert [one.output.split() for one in done] == [[str(rank), "3", str(rank), "6"] for rank in range(3)], done
        assert [(one.code, one.errors) for one in done] == [(0, "")] * 3


def at(address, *ranks, size=2, timeout=3):
    """Run ranks that are told where to meet."""
    command = [sys.executable, str(PROGRAMS / "address.py")]
    processes = [start([*command, str(rank), str(size), address, str(timeout)]) for rank in ranks]
    return [finish(process) for process in processes]


def test_a_rank_that_does_not_come_to_the_address_is_named(free_port):
    (alone,) = at(f"127.0.0.1:{free_port}", 0)
    assert f"Error: rank 1 did not come to 127.0.0.1:{free_port} in 3 s" in alone.errors
    (other,) = at(f"127.0.0.1:{free_port}", 1)
    assert "rank 0 does not listen at" in other.errors


def test_an_address_in_use_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (done,) = at(f"127.0.0.1:{taken.getsockname()[1]}", 0)
    assert "is the port taken?" in done.errors


def test_ranks_that_contradict_each_other_are_told(free_port):
    done = at(f"127.0.0.1:{free_port}", 0, 1, 1, size=3, timeout=60)
    assert all("two processes say that they are rank 1" in one.errors for one in done)
    assert all(one.code == 1 for one in done)


def test_a_forked_child_leaves_the_ranks_alone(ranks):
    for number in (1, 2):
        assert ranks(number, "forked.py").output.count("fine") == number
