"""What a stream keeps of the memory freed in it: with a driver that is simulated, which tells what it is asked."""

import pytest

from .simulated import BEGIN

CALLS = """
    MEMORY = "cuMemAllocFromPoolAsync", "cuMemFreeAsync"

    def join(thread):
        # Its streams end with the system's thread, for which Python 3.12 and older do not wait.
        thread.join()
        pause = threading.Event()
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):
            pause.wait(0.001)
"""


@pytest.fixture
def run(run_with):
    return lambda script, **settings: run_with(BEGIN + CALLS + script, **settings)


def test_memory_freed_in_a_stream_is_the_next_of_its_size_there(run):
    script = """
    first = ab.empty(1000, stream=stream)
    pointer = first.ptr
    print(made(lambda: globals().pop("first"), *MEMORY))
    print(made(lambda: globals().update(second=ab.empty(1000, stream=stream)), *MEMORY), second.ptr == pointer)
    """
    assert run(script) == "[0, 0]\n[0, 0] True\n"


def test_the_block_that_was_freed_last_comes_first(run):
    script = """
    arrays = [ab.empty(1000, stream=stream) for _ in range(3)]
    pointers = [array.ptr for array in arrays]
    while arrays:
        arrays.pop(0)
    again = [ab.empty(1000, stream=stream) for _ in range(3)]
    print([array.ptr for array in again] == pointers[::-1])
    """
    assert run(script) == "True\n"


@pytest.mark.parametrize(
    "how",
    ["1000, stream=other", "1001, stream=stream", "1000, stream=ab.legacy_stream(device)"],
    ids=["another stream", "another size", "the legacy stream"],
)
def test_nothing_else_gets_it(run, how):
    script = f"""
    for _ in range(2):
        ab.empty(1000, stream=stream)
    print(made(lambda: globals().update(array=ab.empty({how})), *MEMORY))
    """
    assert run(script) == "[1, 0]\n"


def test_sizes_that_take_the_same_words_are_one(run):
    script = """
    ab.empty(1001, "uint8", stream=stream)
    print(made(lambda: ab.empty(1003, "uint8", stream=stream), *MEMORY))
    """
    assert run(script) == "[0, 0]\n"


def test_few_are_kept_and_the_oldest_goes(run):
    script = """
    arrays = [ab.empty(size, stream=stream) for size in (10, 20, 30, 40, 50)]
    def drop():
        while arrays:
            arrays.pop(0)
    print(made(drop, *MEMORY))
    for size in (50, 40, 30, 20, 10):
        print(made(lambda: globals().update(array=ab.empty(size, stream=stream)), *MEMORY))
    """
    # Each array that replaces `array` is there before the one that it replaces goes, which is kept in turn.
    assert run(script) == "[0, 1]\n[0, 0]\n[0, 0]\n[0, 0]\n[0, 0]\n[1, 0]\n"


@pytest.mark.parametrize(("bytes_", "calls"), [(64 << 10, [0, 0]), ((64 << 10) + 1, [1, 1])])
def test_large_blocks_are_not_kept(run, bytes_, calls):
    script = f"""
    ab.empty({bytes_}, "uint8", stream=stream)
    print(made(lambda: ab.empty({bytes_}, "uint8", stream=stream), *MEMORY))
    """
    assert run(script) == f"{calls}\n"


def test_memory_that_another_stream_used_is_not_kept(run):
    script = """
    def work():
        array = ab.zeros(1000, stream=stream)
        ab.fill(array, 1, stream=other)
    work()
    print(made(work, "cuMemAllocFromPoolAsync"))
    """
    # The other stream may keep it, if the first one is through.
    assert run(script) == "[1]\n"


def test_memory_freed_behind_a_gate_is_not_kept(run):
    script = """
    array = ab.zeros(1000, stream=stream)
    gate = ab.testing.Gate(stream)
    ab.fill(array, 1, stream=stream)
    del array
    print(made(lambda: (gate.open(), stream.synchronize()), "cuMemFreeAsync"))
    """
    assert run(script) == "[1]\n"


def test_what_is_kept_counts_as_free_once_its_last_use_is_over(run):
    script = """
    free = device.free_memory
    array = ab.empty(1024, "uint8", stream=stream)
    print(free - device.free_memory)
    ab.fill(array, 1, stream=stream)
    del array
    print(stream.synchronize(), free - device.free_memory)
    array = ab.empty(1024, "uint8", stream=stream)
    print(free - device.free_memory)
    """
    assert run(script) == "1024\nNone 0\n1024\n"


def test_what_a_stream_keeps_goes_with_it(run):
    script = """
    third = ab.Stream(device)
    with third:
        ab.empty(10), ab.empty(20)
    print(made(lambda: globals().pop("third"), *MEMORY))
    # The record is used again, with nothing kept.
    fourth = ab.Stream(device)
    print(made(lambda: ab.empty(10, stream=fourth), *MEMORY))
    """
    assert run(script) == "[0, 2]\n[1, 0]\n"


@pytest.mark.parametrize("of", ["legacy", "per_thread"])
def test_default_streams_keep_memory_too(run, of):
    script = f"""
    default = ab.{of}_stream(device)
    ab.empty(10, stream=default)
    print(made(lambda: ab.empty(10, stream=default), *MEMORY))
    """
    assert run(script) == "[0, 0]\n"


def test_what_a_per_thread_stream_keeps_goes_with_its_thread(run):
    script = """
    import os, threading
    stop, ready = threading.Event(), threading.Event()

    def work():
        ab.empty(10, stream=ab.per_thread_stream(device))
        ready.set()
        stop.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    print(made(lambda: (stop.set(), join(thread)), *MEMORY))
    """
    assert run(script) == "[0, 1]\n"


def test_another_thread_gives_nothing_of_a_per_thread_stream_back(run):
    # The handle of those streams would mean its own.
    script = """
    import os, threading
    block = 64 << 10
    stop, ready = threading.Event(), threading.Event()

    def work():
        ab.empty(block, "uint8", stream=ab.per_thread_stream(device))
        ready.set()
        stop.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        ab.empty(device.total_memory, "uint8", stream=stream)
    except ab.OutOfMemoryError:
        print(calls("cuMemFreeAsync"))
    stop.set()
    join(thread)
    print(ab.empty(device.total_memory, "uint8", stream=stream).nbytes == device.total_memory)
    """
    assert run(script) == "[0]\nTrue\n"


def test_what_streams_keep_is_given_back_before_memory_is_exhausted(run):
    # As many streams that each keep as much as they may as it takes to leave no room.
    script = """
    block = 64 << 10
    streams = [ab.Stream(device) for _ in range(64)]
    for each in streams:
        arrays = [ab.empty(block, "uint8", stream=each) for _ in range(4)]
        del arrays
    rest = ab.empty(device.total_memory - 128 * block, "uint8", stream=stream)
    print(made(lambda: 0, *MEMORY), rest.nbytes == device.total_memory - 128 * block, calls("cuCtxSynchronize"))
    """
    assert run(script) == "[0, 0] True [1]\n"


def test_nothing_is_kept_where_a_tool_looks_for_accesses_to_freed_memory(run):
    script = """
    ab.empty(1000, stream=stream)
    print(made(lambda: ab.empty(1000, stream=stream), *MEMORY))
    """
    assert run(script, ANABRANCH_CUDA_SANITIZER="1") == "[1, 1]\n"


def test_a_device_that_has_failed_gives_no_memory_that_was_kept(run):
    script = """
    import os
    ab.empty(1000, stream=stream)
    os.environ["FAKE_FAILS"] = "cuStreamQuery:700"
    for use in (stream.synchronize, lambda: ab.empty(1000, stream=stream)):
        try:
            use()
        except ab.DriverError as error:
            print(error.code)
    """
    assert run(script) == "700\n700\n"


def test_threads_that_share_a_stream_never_get_the_same_block(run):
    script = """
    import threading
    barrier, wrong = threading.Barrier(4), []

    def work(number):
        barrier.wait()
        for _ in range(200):
            mine = [ab.full(16, number, "int64", stream=stream) for _ in range(3)]
            if any((array.numpy() != number).any() for array in mine):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(wrong)
    """
    assert run(script) == "[]\n"
