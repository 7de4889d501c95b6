"""`ANABRANCH_HAZARDS`: with which mode threads start."""

import pytest

MODE = """
import sys
import threading
import anabranch as ab

def mode(expected):
    a, b = ab.Stream(), ab.Stream()
    x = ab.array([1.0])
    with ab.testing.Gate(a):
        ab.fill(x, 1, stream=a)
        try:
            ab.fill(x, 2, stream=b)
        except ab.RaceError:
            return "check"
        done = threading.Event()
        b.submit(done.set)
        # Long enough for a loaded machine; a stream that waits takes a moment of it only where one is expected to.
        return "off" if done.wait(20 if expected == "off" else 0.05) else "auto"
"""


@pytest.mark.parametrize(
    ("value", "mode"), [(None, "auto"), ("", "auto"), ("auto", "auto"), ("check", "check"), ("off", "off")]
)
def test_threads_start_with_the_mode_of_the_environment(run_python, value, mode):
    program = f"""
print(mode({mode!r}))
thread = threading.Thread(target=lambda: print(mode({mode!r})))
thread.start()
thread.join()
print(ab.Stream().submit(mode, {mode!r}).result(20))
with ab.hazards("auto"):
    print(mode("auto"))
print(mode({mode!r}))
"""
    env = {"ANABRANCH_HAZARDS": value, "ANABRANCH_DEVICE": "cpu"}
    assert run_python(MODE + program, env=env).split() == [mode, mode, mode, "auto", mode]


@pytest.mark.parametrize("value", ["sometimes", " ", "AUTO"])
def test_a_mode_that_is_none_is_refused_at_first_use(run_python, value):
    program = """
    import anabranch as ab

    for _ in range(2):
        try:
            ab.zeros(3, device="cpu")
        except ValueError as error:
            print(error)
    """
    first, second = run_python(program, env={"ANABRANCH_HAZARDS": value}).splitlines()
    assert first == second
    assert "ANABRANCH_HAZARDS" in first
    assert repr(value) in first


def test_a_thread_begins_with_what_its_creator_knew(run_python):
    program = """
import threading
import anabranch as ab

x = ab.zeros(8)
ab.synchronize()

def fill():
    with ab.Stream():
        ab.fill(x, 1.0)
    print("filled")

for _ in range(3):
    thread = threading.Thread(target=fill)
    thread.start()
    thread.join()
    ab.synchronize()
"""
    found = run_python(program, env={"ANABRANCH_HAZARDS": "check", "ANABRANCH_DEVICE": "cpu"})
    assert found.split() == ["filled"] * 3
