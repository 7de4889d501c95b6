"""`ab.trace`, where several threads use the same graph."""

import pytest

import anabranch as ab

FIRST = [device.alias for device in ab.devices() if device.index == 0]


@pytest.mark.parametrize("alias", FIRST)
@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_others_may_launch_a_graph_whenever_a_trace_runs_python_code(mode, alias, run_python):
    # In a process of its own: threads that wait for each other there would hold the interpreter lock.
    script = f"""
        import threading
        import anabranch as ab
        from anabranch._trace.recording import correlate

        ab.Device({alias!r}).__enter__()
        streams = [ab.Stream() for _ in range(2)]
        array = ab.zeros(4)
        with ab.capture() as graph:
            ab.fill(array, 1)
        told = []

        def launch():
            with ab.hazards({mode!r}):
                graph.launch(streams[1])

        def tell(number):
            if threading.current_thread() is not threading.main_thread() or len(told) == 8:
                return
            told.append(number)
            thread = threading.Thread(target=launch)
            thread.start()
            thread.join()

        ab.synchronize()
        with ab.hazards({mode!r}), ab.trace() as trace, ab.testing.Gate(streams[1]):
            correlate(tell)
            while len(told) < 8:
                graph.launch(streams[1])
                graph.launch(streams[0])
            correlate(None)
        replays = [operation for operation in trace.operations if operation.kind == "graph"]
        print(len(replays) == graph.replays)
        """
    assert run_python(script) == "True\n"
