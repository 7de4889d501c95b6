"""Scripts for a simulated driver."""

# How many calls a piece of work makes, and two streams for it.
BEGIN = """
    import ctypes
    import anabranch as ab

    device = ab.Device("cuda:0")
    driver = ctypes.CDLL("libcuda.so.1")

    def calls(*names):
        return [driver.calls(name.encode()) for name in names]

    def made(work, *names):
        before = calls(*names)
        work()
        return [now - then for now, then in zip(calls(*names), before)]

    stream, other = ab.Stream(device), ab.Stream(device)
"""
