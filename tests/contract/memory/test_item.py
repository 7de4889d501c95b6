"""Single elements as Python numbers, and arrays as text."""

import operator

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES, TIMEOUT, held, values, zeros


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_only_element_is_a_python_number(device, dtype):
    data = values((1, 1), dtype)
    array = ab.array(data, device=device)
    assert array.item() == data.item()
    assert type(array.item()) is type(data.item())
    assert complex(array) == complex(data.item())
    assert bool(array) is bool(data.item())
    if not dtype.startswith("complex"):
        assert float(array) == float(data.item())
        assert int(array) == int(data.item())


def test_a_complex_number_is_no_real_one(device):
    with pytest.raises(TypeError):
        float(ab.array(1 + 2j, device=device))


USES = {"item": lambda a: a.item(), "float": float, "int": int, "complex": complex, "bool": bool}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
def test_more_elements_than_one_are_no_number(device, use, shape):
    with pytest.raises(ValueError, match=f"{np.prod(shape)} elements"):
        use(ab.zeros(shape, device=device))


@pytest.mark.parametrize(
    "index", [(0,), (7,), (-1,), (2, 1), ((1, 3),), (np.int64(5),), (12,), (1, 2, 3), (3, 0)], ids=str
)
def test_an_element_has_an_index_as_in_numpy(device, index):
    data = np.arange(12.0).reshape(3, 4)
    array = ab.array(data, device=device)
    try:
        expected = data.item(*index)
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            array.item(*index)
    else:
        assert array.item(*index) == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_integer_of_no_dimension_is_an_index(device, dtype):
    array = ab.array(np.array(2, dtype), device=device)
    if np.dtype(dtype).kind in "iu":
        assert operator.index(array) == 2
        assert "abc"[array] == "c"
    else:
        with pytest.raises(TypeError, match="integer"):
            operator.index(array)
    with pytest.raises(TypeError, match="dimension"):
        operator.index(ab.zeros(1, "int32", device=device))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64"])
def test_elements_become_lists(device, shape, dtype):
    assert ab.array(values(shape, dtype), device=device).tolist() == values(shape, dtype).tolist()


def test_iteration_is_over_the_first_dimension(device):
    array = ab.array(values((3, 2)), device=device)
    assert [row.tolist() for row in array] == values((3, 2)).tolist()
    assert len(array) == 3


def test_an_element_waits_for_the_work_that_writes_it_and_for_no_other(device, in_thread, a, b):
    array = zeros(4, device=device)
    with ab.testing.Gate(a), ab.testing.Gate(b) as gate:
        ab.fill(array[:2], 1, stream=a)
        ab.fill(array[2:3], 2, stream=b)
        assert in_thread(lambda: float(array[3])).result(TIMEOUT) == 0
        reading = in_thread(lambda: array[2].item())
        assert held(reading)
        gate.open()
        assert reading.result(TIMEOUT) == 2


@pytest.mark.parametrize("use", [*USES.values(), lambda a: a.tolist(), operator.index])
def test_an_element_that_captured_work_writes_is_not_there_yet(device, use, stream):
    array = ab.array(np.array(1, "int32"), device=device)

    def captured():
        with ab.capture(stream):
            ab.fill(array, 2)
            use(array)

    with pytest.raises(ab.CaptureError, match="launch"):
        captured()


def test_work_that_failed_is_raised(device, stream):
    array = zeros(1, device=device)
    ab.testing.fail(stream)
    ab.fill(array, 1, stream=stream)
    with pytest.raises(ab.KernelError):
        array.item()


# Text


def test_few_elements_are_shown(device):
    assert repr(ab.array(np.array([1, 2], "int16"), device=device)) == f"<Array (2,) int16 on {device.alias} [1 2]>"
    assert repr(ab.array(np.eye(2, dtype="int8"), device=device)) == (
        f"<Array (2, 2) int8 on {device.alias}\n[[1 0]\n [0 1]]>"
    )
    assert repr(ab.array(np.arange(6.0)[::2], device=device)[1:]) == f"<Array (2,) float64 on {device.alias} [2. 4.]>"


def test_many_elements_are_not_shown(device):
    assert repr(ab.zeros(1000, device=device)) == f"<Array (1000,) float32 on {device.alias}>"


@pytest.mark.parametrize("mode", ["auto", "check", "off"])
def test_pending_work_is_told_of_and_not_waited_for(device, stream, mode):
    array = zeros(3, device=device)
    with ab.hazards(mode):
        with ab.testing.Gate(stream):
            ab.fill(array[:1], 1, stream=stream)
            where = f"{device.alias}, pending on stream {stream.handle:#x}"
            assert repr(array) == f"<Array (3,) float32 on {where}>"
            assert "[0. 0.]" in repr(array[1:])
            assert "pending" in array._repr_html_()
        stream.synchronize()
        assert "[1. 0. 0.]" in repr(array)


def test_pending_work_has_the_names_of_its_streams(device):
    first, second = ab.Stream(device, name="up"), ab.Stream(device, name="<down>")
    array = zeros(2, device=device)
    with ab.testing.Gate(first), ab.testing.Gate(second), ab.hazards("off"):
        ab.fill(array[:1], 1, stream=first)
        ab.fill(array[1:], 1, stream=second)
        assert ", pending on stream 'up' and '<down>'>" in repr(array)
        assert "pending on stream &#x27;up&#x27; and &#x27;&lt;down&gt;&#x27;" in array._repr_html_()


def test_a_stream_with_several_pending_writes_is_named_once(device):
    first, second = (ab.Stream(device, name="mine") for _ in range(2))
    array = zeros(3, device=device)
    with ab.testing.Gate(first), ab.testing.Gate(second), ab.hazards("off"):
        ab.fill(array[:1], 1, stream=first)
        ab.fill(array[1:2], 1, stream=first)
        assert ", pending on stream 'mine'>" in repr(array)
        ab.fill(array[2:], 1, stream=second)
        assert ", pending on stream 'mine' and 'mine'>" in repr(array)


def test_a_reader_does_not_hide_elements(device, stream):
    array, result = ab.array(values(3), device=device), zeros(3, device=device)
    with ab.testing.Gate(stream):
        ab.copy(result, array, stream=stream)
        assert str(values(3)) in repr(array)
        assert "pending" in repr(result)


def test_looking_at_an_array_is_no_access(device, stream):
    array = zeros(3, device=device)
    with ab.hazards("check"):
        ab.fill(array, 1, stream=stream)
        stream.synchronize()
        repr(array)
        ab.fill(array, 2, stream=stream)


def test_an_array_of_a_capture_is_pending(device, stream):
    array = zeros(3, device=device)
    with ab.capture(stream) as graph:
        ab.fill(array, 1)
        assert "pending" in repr(array)
    graph.launch(stream)
    np.testing.assert_array_equal(array.numpy(), np.ones(3))


def test_failed_work_is_told_of(device, stream):
    array = zeros(3, device=device)
    ab.testing.fail(stream)
    ab.fill(array, 1, stream=stream)
    with pytest.raises(ab.KernelError):
        stream.synchronize()
    assert repr(array) == f"<Array (3,) float32 on {device.alias}, failed>"


def test_a_closed_array_has_a_text(device):
    array = zeros(3, device=device)
    array.close()
    assert repr(array) == f"<Array of {device.alias}, closed>"
    assert "closed" in array._repr_html_()


def test_messages_name_an_array_without_its_elements(device):
    with pytest.raises(ab.DeviceError) as caught:
        ab.fill(zeros(2, device=device), 1, stream=ab.Stream("cpu:1" if device.alias == "cpu:0" else "cpu:0"))
    assert "[0. 0.]" not in str(caught.value)


def test_html_shows_the_elements(device):
    html = ab.array(values(3), device=device)._repr_html_()
    assert f"<code>Array (3,) float32 on {device.alias}</code>" in html
    assert f"<pre>{values(3)}</pre>" in html


def test_a_format_is_that_of_the_only_number(device):
    x = ab.array([1.5, 2.25], device=device)
    assert f"{x[1]:.1f}" == "2.2"
    assert f"{x}" == str(x)
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{x:.1f}"


@pytest.mark.numba
def test_an_array_contains_its_elements_as_in_numpy(device):
    x = np.arange(6.0).reshape(2, 3)
    array = ab.array(x, device=device)
    assert [value in array for value in (0, 5.0, 6)] == [value in x for value in (0, 5.0, 6)] == [True, True, False]
