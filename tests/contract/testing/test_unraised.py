"""Failures of streams that are gone, which whoever waits for the device gets."""

import pytest


@pytest.mark.parametrize("end", ["stream.close()", "del stream", "stream.submit(int); del stream"])
def test_synchronizing_the_device_raises_once_for_a_stream_that_is_gone(end, device, run_python):
    script = f"""
        import anabranch as ab

        device = ab.Device({device.alias!r})
        for name in ("one", "two"):
            stream = ab.Stream(device)
            ab.testing.fail(stream, ab.KernelError(name))
            {end}
        for _ in range(3):
            try:
                device.synchronize()
                print("silent")
            except (ab.KernelError, ab.DriverError) as error:
                print(error)
        """
    assert run_python(script).split() in (["one", "two", "silent"], ["two", "one", "silent"])


@pytest.mark.parametrize("look", ["result", "exception"])
def test_who_asks_a_skipped_function_has_seen_the_failure_of_its_stream(look, device, run_python):
    script = f"""
        import anabranch as ab

        device = ab.Device({device.alias!r})
        stream = ab.Stream(device)
        ab.testing.fail(stream)
        future = stream.submit(int)
        del stream
        try:
            if future.{look}(10) is not None:
                print("raised")
        except (ab.KernelError, ab.DriverError):
            print("raised")
        device.synchronize()
        """
    assert run_python(script).split() == ["raised"]


@pytest.mark.parametrize("end", ["stream.close()", "del stream"])
def test_what_was_raised_is_not_raised_again_for_a_stream_that_is_gone(end, device, run_python):
    script = f"""
        import anabranch as ab

        device = ab.Device({device.alias!r})
        stream, other = ab.Stream(device), ab.Stream(device)
        ab.testing.fail(stream)
        other.wait_stream(stream)
        try:
            other.synchronize()
        except (ab.KernelError, ab.DriverError):
            print("raised")
        del other
        {end}
        device.synchronize()
        """
    assert run_python(script).split() == ["raised"]
