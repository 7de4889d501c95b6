# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Streams, events and devices as a user's typed program uses them."""

from concurrent.futures import Future
from typing import assert_type

import anabranch as ab


def choose_devices() -> None:
    assert_type(ab.devices(), list[ab.Device])
    assert_type(ab.devices("cpu"), list[ab.Device])
    assert_type(ab.current_device(), ab.Device)
    device = ab.Device("cpu:1")
    assert_type(device.index, int)
    assert_type(device.alias, str)
    assert_type(ab.devices(device.kind), list[ab.Device])
    assert_type(device.priority_range, tuple[int, int])
    assert_type(device.free_memory, int)
    with device:
        ab.synchronize()
    with ab.ScopedDevice(None), ab.ScopedDevice("cpu"):
        ab.synchronize(device)


def order_streams(stream: ab.Stream) -> None:
    with ab.Stream("cpu", priority=-1, name="upload") as upload:
        assert_type(upload, ab.Stream)
        assert_type(ab.current_stream(), ab.Stream)
    stream.wait_stream(upload)
    event = stream.record_event()
    assert_type(event, ab.Event)
    upload.wait_event(event)
    assert_type(upload.query(), bool)
    assert_type(upload.handle, int)
    assert_type(upload.__cuda_stream__(), tuple[int, int])
    upload.synchronize()
    upload.close()
    for default in (ab.default_stream(), ab.legacy_stream("cpu"), ab.per_thread_stream()):
        default.use()
    with ab.ScopedStream(None), ab.ScopedStream(stream, sync_enter=False, sync_exit=True):
        ab.Stream.from_external(stream.handle, "cpu").close()


def submit_host_functions(stream: ab.Stream) -> None:
    future: Future[tuple[int, int]] = stream.submit(divmod, 7, 2)
    assert_type(future.result(), tuple[int, int])
    assert_type(stream.submit(str.upper, "a").result(), str)


def fork() -> None:
    with ab.fork(3) as branches:
        for branch in branches:
            assert_type(branch, ab.Stream)
    with ab.fork(devices=["cpu:0", ab.Device("cpu:1")]) as (a, b):
        a.wait_stream(b)


def measure(stream: ab.Stream) -> float:
    begin = ab.Event(enable_timing=True)
    end = ab.Event(enable_timing=True, device="cpu")
    begin.record(stream)
    end.record()
    end.wait(stream)
    end.synchronize()
    assert_type(end.query(), bool)
    assert_type(begin.elapsed_time(end), float)
    return begin.elapsed_time(end)


async def wait(stream: ab.Stream, event: ab.Event) -> None:
    await stream
    assert_type(await event, None)
    assert_type(await stream.submit(divmod, 7, 2), tuple[int, int])
    assert_type(await stream.submit(len, "a", reads=[], writes=ab.zeros(3)), int)


def hold(stream: ab.Stream) -> None:
    with ab.testing.Gate(stream) as gate:
        gate.open()
    ab.testing.fail(stream, ValueError("as planned"))


def name_errors() -> list[type[ab.Error]]:
    return [ab.DeviceError, ab.ClosedError, ab.EventError, ab.ForkError, ab.KernelError, ab.CompileError]


def mistakes(stream: ab.Stream, event: ab.Event) -> None:
    stream.wait_event(stream)  # type: ignore[arg-type]
    stream.wait_stream(event)  # type: ignore[arg-type]
    ab.Stream("cpu", -1)  # type: ignore[call-arg]
    ab.Device(0)  # type: ignore[arg-type]
