"""Scopes and the threads that enter them."""


def test_scopes_that_are_never_left_end_with_their_context(run_python):
    script = """
        import contextvars
        import gc
        import threading
        import anabranch as ab

        def enter(stream):
            for _ in range(50_000):
                stream.__enter__()

        def body():
            contextvars.Context().run(enter, ab.Stream())
            gc.collect()
            print("ended")

        threading.stack_size(256 * 1024)
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        """
    assert run_python(script) == "ended\n"
