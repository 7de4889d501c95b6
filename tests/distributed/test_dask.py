"""Arrays between the workers of a Dask cluster. What is sent how: tests/contract/interop/test_dask.py."""

import numpy as np
import pytest

import anabranch as ab

distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")


@pytest.fixture(scope="module")
def workers(client):
    return sorted(client.scheduler_info()["workers"])


def test_arrays_go_to_workers_between_them_and_back(client, workers):
    first, second = workers
    values = np.arange(12.0).reshape(3, 4)
    doubled = client.submit(lambda x: x * 2, ab.array(values), workers=[first])
    seen = client.submit(lambda x, y: (x.T, y + x.sum(), x[:0]), doubled, ab.array(1.0), workers=[second])
    transposed, total, empty = seen.result()
    np.testing.assert_array_equal(transposed.numpy(), 2 * values.T)
    assert (total.numpy(), total.shape, empty.shape) == (133, (), (0, 4))


def test_a_scattered_array_is_on_the_device_of_each_worker(client, workers):
    x = client.scatter(ab.ones(1000), broadcast=True)
    told = [
        client.submit(lambda x: (x.device.alias, x.sum().item()), x, workers=[each], pure=False) for each in workers
    ]
    assert client.gather(told) == [("cpu:0", 1000.0)] * 2


def test_a_stream_is_one_of_the_worker_s_own_and_comes_home(client, workers):
    stream = ab.Stream("cpu", name="blur")

    def use(stream, x):
        with stream:
            return stream, stream.name, x + 1

    back, name, result = client.submit(use, stream, ab.ones(3), workers=workers[:1]).result()
    assert (back, name) == (stream, "blur")
    np.testing.assert_array_equal(result.numpy(), np.full(3, 2))


# Registration

ROUND_TRIP = """
    x = ab.full((2, 3), 4.0)
    for thing in (x, (lambda: 1, x)):
        header, frames = distributed.protocol.serialize(thing)
        assert header["serializer"] != "error", frames
        again = distributed.protocol.deserialize(header, frames)
    assert (again[1].numpy() == 4).all()
    print([type(each).__name__ for each in sys.meta_path if type(each).__module__.startswith("dask")])
"""
ORDERS = {
    "ours first": "import anabranch as ab; import distributed",
    "ours last": "import distributed; import anabranch as ab",
    "between": "import dask; import anabranch as ab; import distributed",
}


@pytest.mark.parametrize("imports", ORDERS.values(), ids=ORDERS)
def test_serializers_are_there_in_whichever_order_the_two_are_imported(run_python, imports):
    assert run_python(f"\n    import sys; {imports}\n{ROUND_TRIP}") == "[]\n"


def test_neither_imports_the_other(run_python):
    names = "{name.partition('.')[0] for name in sys.modules} & {'dask', 'distributed', 'anabranch'}"
    assert run_python(f"import sys, anabranch; print({names})") == "{'anabranch'}\n"
    assert "anabranch" not in run_python(f"import sys, distributed; print({names})")


def test_a_program_may_have_a_module_of_that_name(run_python, tmp_path):
    (tmp_path / "distributed.py").write_text("answer = 42")
    for imports in ("dask, distributed, anabranch", "anabranch, dask, distributed", "distributed, anabranch, dask"):
        assert run_python(f"import {imports}; print(distributed.answer, anabranch.ones(2).sum().item())") == "42 2.0\n"
