"""A server of image requests in asyncio: many connections share a few streams, and one thread serves them all.

A request is an image, the answer the same image with more local contrast. Each has a stream and the stream's memory to
itself meanwhile. `await ab.to_host` gives the result, and the thread serves others until it is there. For comparison,
the same service with a thread for each connection, which blocks until the result is there. The clients, in a thread
with an event loop of their own, look at every byte that they get.

A request that fails ends its connection and no other, and the next one gets a new stream.
"""

import asyncio
import contextlib
import queue
import socketserver
import statistics
import threading
import time
import traceback

import numpy as np

import anabranch as ab

SIZE = 256  # pixels each way
BYTES = SIZE * SIZE
RADIUS = 3
CONNECTIONS, REQUESTS = 24, 12  # of each connection
STREAMS = 4


@ab.kernel
def sharpen(index, source: ab.In, target: ab.Out):
    """Move a pixel away from the mean of those around it."""
    row, column = index
    top, bottom = max(row - RADIUS, 0), min(row + RADIUS + 1, SIZE)
    left, right = max(column - RADIUS, 0), min(column + RADIUS + 1, SIZE)
    total = 0
    for i in range(top, bottom):
        for j in range(left, right):
            total += source[i, j]
    mean = total // ((bottom - top) * (right - left))
    target[row, column] = min(max(2 * source[row, column] - mean, 0), 255)


def sharpened(image):
    """Return what the kernel should make of an image."""
    sums = np.zeros((SIZE + 1, SIZE + 1), "int64")
    sums[1:, 1:] = image.cumsum(axis=0, dtype="int64").cumsum(axis=1)
    first, last = np.maximum(np.arange(SIZE) - RADIUS, 0), np.minimum(np.arange(SIZE) + RADIUS + 1, SIZE)
    totals = sums[last][:, last] - sums[first][:, last] - sums[last][:, first] + sums[first][:, first]
    means = totals // np.outer(last - first, last - first)
    return (2 * image.astype("int64") - means).clip(0, 255).astype("uint8")


class Lane:
    """A stream, with memory for one request."""

    def __init__(self, number):
        self.number = number
        self.stream = ab.Stream(name=f"lane {number}")
        # Pinned, so that a GPU copies from there by itself and nobody waits for it.
        self.request = ab.empty((SIZE, SIZE), "uint8", device="cpu", pinned=True)
        self.source = ab.empty((SIZE, SIZE), "uint8", stream=self.stream)
        self.result = ab.empty((SIZE, SIZE), "uint8", stream=self.stream)
        self.done = self.stream.record_event()  # for the next to wait for, since a queue makes no order

    def begin(self, body):
        """Enqueue what a request asks for."""
        with self.request.host(write=True) as image:
            image[:] = np.frombuffer(body, "uint8").reshape(SIZE, SIZE)
        ab.copy(self.source, self.request, stream=self.stream)
        ab.launch(sharpen, (SIZE, SIZE), self.source, self.result, stream=self.stream)

    def end(self):
        """Record that a request is through with the lane."""
        self.stream.record_event(self.done)


async def serve_with_asyncio(lanes, ask):
    """Answer all that `ask(port)` asks for in the thread of this event loop."""
    free = asyncio.Queue()
    for lane in lanes:
        free.put_nowait(lane)

    async def answer(body):
        lane = await free.get()
        try:
            await lane.done
            lane.begin(body)
            result = await ab.to_host(lane.result)
            lane.end()
            return result
        except BaseException:
            lane = Lane(lane.number)  # a stream that has failed does nothing more
            raise
        finally:
            free.put_nowait(lane)

    async def serve(reader, writer):
        try:
            while True:
                result = await answer(await reader.readexactly(BYTES))
                writer.write(result.data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):  # the client has hung up
            pass
        except Exception:  # not to the group, which would end the other connections, too
            traceback.print_exc()
        finally:  # or the client waits for ever
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async with asyncio.TaskGroup() as connections:
        server = await asyncio.start_server(
            lambda *connection: connections.create_task(serve(*connection)), "127.0.0.1", limit=BYTES
        )
        async with server:
            return await asyncio.to_thread(ask, server.sockets[0].getsockname()[1])


def serve_with_threads(lanes, ask):
    """Answer all that `ask(port)` asks for in a thread for each connection."""
    free = queue.SimpleQueue()
    for lane in lanes:
        free.put(lane)

    class Connection(socketserver.StreamRequestHandler):
        def handle(self):
            while len(body := self.rfile.read(BYTES)) == BYTES:
                self.wfile.write(self.answer(body).data)

        def answer(self, body):
            lane = free.get()
            try:
                lane.done.synchronize()
                lane.begin(body)
                result = lane.result.numpy()
                lane.end()
                return result
            except BaseException:
                lane = Lane(lane.number)
                raise
            finally:
                free.put(lane)

    class Server(socketserver.ThreadingTCPServer):
        request_queue_size = CONNECTIONS

    with Server(("127.0.0.1", 0), Connection) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            return ask(server.server_address[1])
        finally:
            server.shutdown()
            serving.join()


random = np.random.default_rng(0)
images = [(127 + 60 * random.normal(size=(SIZE, SIZE))).clip(0, 255).astype("uint8") for _ in range(4)]
expected = {image.tobytes(): sharpened(image).tobytes() for image in images}


async def ask_all(port):
    """Ask over all connections at once; return how long each request took, and all of them together."""
    times = []

    async def ask(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=BYTES)
        try:
            for turn in range(REQUESTS):
                body = images[(number + turn) % len(images)].tobytes()
                begin = time.perf_counter()
                writer.write(body)
                answer = await reader.readexactly(BYTES)
                times.append(time.perf_counter() - begin)
                assert answer == expected[body]
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    begin = time.perf_counter()
    await asyncio.gather(*(ask(number) for number in range(CONNECTIONS)))
    return times, time.perf_counter() - begin


def ask(port):
    """Do the same in an event loop of this thread."""
    return asyncio.run(ask_all(port))


lanes = [Lane(number) for number in range(STREAMS)]
services = {
    "asyncio, 1 stream": lambda: asyncio.run(serve_with_asyncio(lanes[:1], ask)),
    f"asyncio, {STREAMS} streams": lambda: asyncio.run(serve_with_asyncio(lanes, ask)),
    f"threads, {STREAMS} streams": lambda: serve_with_threads(lanes, ask),
}
lanes[0].begin(images[0])  # compiles the kernel
assert lanes[0].result.numpy().tobytes() == expected[images[0].tobytes()]

print(f"{CONNECTIONS} connections, {REQUESTS} requests each, on {ab.current_device().alias}")
print(f"{'':20} requests/s   median ms   slowest ms")
for name, service in services.items():
    times, total = service()
    assert len(times) == CONNECTIONS * REQUESTS
    print(f"{name:20} {len(times) / total:10.0f} {1000 * statistics.median(times):11.1f} {1000 * max(times):12.1f}")
