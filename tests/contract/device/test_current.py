"""The current stream: through `with`, `use` and the scopes that Warp has."""

import pytest

import anabranch as ab


def current(device):
    """What is current: the device, and the stream of `device`."""
    return ab.current_device(), ab.current_stream(device)


# -- with --


def test_the_first_current_stream_is_the_default_stream(device):
    assert ab.current_stream() == ab.default_stream(device)
    assert ab.current_stream(device) == ab.default_stream(device)


def test_with_makes_a_stream_current_and_restores_the_one_before():
    a, b, before = ab.Stream(), ab.Stream(), ab.current_stream()
    with a:
        assert ab.current_stream() == a
        with b:
            assert ab.current_stream() == b
        assert ab.current_stream() == a
    assert ab.current_stream() == before


def test_with_binds_the_stream():
    stream = ab.Stream()
    with stream as bound:
        assert bound is stream


def test_with_makes_the_device_of_the_stream_current(device, other_device):
    with ab.Stream(other_device) as stream:
        assert ab.current_device() is other_device
        assert ab.current_stream() == stream
    assert ab.current_device() is device


def test_with_restores_stream_and_device_after_an_error(device, other_device):
    before = current(device), current(other_device)
    with pytest.raises(ZeroDivisionError), ab.Stream(), ab.Stream(other_device):
        1 / 0  # noqa: B018
    assert (current(device), current(other_device)) == before


def test_each_device_has_a_current_stream(device, other_device):
    with ab.Stream(device) as one, ab.Stream(other_device) as two:
        assert ab.current_stream(device) == one
        assert ab.current_stream(other_device) == two
        with device:
            assert ab.current_stream() == one
        assert ab.current_stream() == two


def test_a_stream_may_be_entered_again_while_it_is_current(device):
    stream, other = ab.Stream(), ab.Stream()
    before = current(device)
    with stream:
        with stream, other, stream:
            assert ab.current_stream() == stream
        assert ab.current_stream() == stream
    assert current(device) == before


@pytest.mark.parametrize("default", [ab.legacy_stream, ab.per_thread_stream])
def test_a_default_stream_may_be_current(default):
    with ab.Stream() as stream:
        with default():
            assert ab.current_stream() == default()
        assert ab.current_stream() == stream


def test_a_wrapper_may_be_current(device):
    stream = ab.Stream()
    with ab.Stream.from_external(stream.handle, device):
        assert ab.current_stream() == stream


def test_work_goes_to_the_current_stream():
    with ab.Stream() as stream, ab.testing.Gate(stream):
        array = ab.zeros(4)
        ab.fill(array, 1)
        event = ab.Event()
        event.record()
        assert not event.query()
    assert array.numpy().tolist() == [1, 1, 1, 1]


def test_a_current_stream_that_was_closed_is_left_quietly(device):
    before = current(device)
    with ab.Stream() as stream:
        stream.close()
    assert current(device) == before


def test_a_closed_stream_is_restored_and_left_quietly(device):
    before = current(device)
    with ab.Stream() as outer, ab.Stream():
        outer.close()
    assert current(device) == before


def test_a_current_stream_stays_alive():
    with ab.Stream():
        assert ab.current_stream().submit(int).result(10) == 0


# -- use --


def test_use_makes_a_stream_and_its_device_current(device, other_device, in_thread):
    one, two = ab.Stream(device), ab.Stream(other_device)

    def use():
        assert one.use() is None
        first = current(device)
        two.use()
        return first, current(other_device), ab.current_stream(device)

    assert in_thread(use).result(10) == ((device, one), (other_device, two), one)


def test_with_restores_what_was_there_whatever_was_used_inside(device, other_device):
    before = current(device), current(other_device)
    with ab.Stream(), ab.Stream(other_device):
        ab.Stream(other_device).use()
        ab.Stream(device).use()
    assert (current(device), current(other_device)) == before


def test_leaving_a_scope_leaves_the_scopes_in_it(device, other_device):
    before = current(device), current(other_device)
    outer, inner = ab.Stream(device), ab.Stream(other_device)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert (current(device), current(other_device)) == before
    inner.__exit__(None, None, None)
    assert (current(device), current(other_device)) == before


def test_a_stream_in_use_that_was_closed_is_replaced_quietly(device, in_thread):
    def use():
        stream, other = ab.Stream(device), ab.Stream(device)
        stream.use()
        stream.close()
        other.use()
        return ab.current_stream(device) == other

    assert in_thread(use).result(10)


# -- the scopes --


def test_scoped_stream_makes_it_current(device):
    stream, before = ab.Stream(), current(device)
    with ab.ScopedStream(stream):
        assert ab.current_stream() == stream
    assert current(device) == before


def test_scoped_stream_restores_after_an_error(device):
    before = current(device)
    with pytest.raises(ZeroDivisionError), ab.ScopedStream(ab.Stream()):
        1 / 0  # noqa: B018
    assert current(device) == before


def test_scoped_stream_none_does_nothing(device):
    with ab.Stream() as stream:
        with ab.ScopedStream(None), ab.ScopedStream(None, sync_enter=True, sync_exit=True):
            assert ab.current_stream() == stream
        with ab.testing.Gate(stream), ab.ScopedStream(None, sync_enter=False, sync_exit=True):
            assert current(device) == (device, stream)


def test_scoped_stream_waits_for_the_one_it_replaces():
    replaced, stream = ab.Stream(), ab.Stream()
    with replaced, ab.testing.Gate(replaced), ab.ScopedStream(stream):
        assert not stream.query()
    stream.synchronize()


def test_scoped_stream_does_not_wait_if_told_so():
    replaced, stream = ab.Stream(), ab.Stream()
    with replaced, ab.testing.Gate(replaced), ab.ScopedStream(stream, sync_enter=False):
        stream.submit(int).result(10)
        assert not replaced.query()


def test_the_replaced_stream_waits_on_exit_if_told_so():
    replaced, stream = ab.Stream(), ab.Stream()
    with replaced:
        with ab.ScopedStream(stream, sync_exit=True):
            gate = ab.testing.Gate(stream)
            assert replaced.query()
        assert not replaced.query()
    gate.open()
    replaced.synchronize()


def test_the_replaced_stream_does_not_wait_on_exit():
    replaced, stream = ab.Stream(), ab.Stream()
    with replaced:
        with ab.ScopedStream(stream):
            gate = ab.testing.Gate(stream)
        replaced.submit(int).result(10)
        assert not stream.query()
    gate.open()


def test_scoped_streams_nest_and_wait_for_the_one_they_replace():
    a, b, c = (ab.Stream() for _ in range(3))
    with a, ab.testing.Gate(a), ab.ScopedStream(b), ab.ScopedStream(c):
        assert not c.query()
    c.synchronize()


def test_scoped_stream_replaces_the_current_stream_of_its_own_device(device, other_device):
    with other_device, ab.Stream(other_device) as replaced, device, ab.testing.Gate(replaced):
        stream = ab.Stream(other_device)
        with ab.ScopedStream(stream):
            assert ab.current_stream(other_device) == stream
            assert not stream.query()
        assert current(other_device) == (device, replaced)
