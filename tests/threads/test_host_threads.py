"""The threads that host functions run on, where starting threads is not always possible."""


def test_functions_run_at_the_same_time_after_a_thread_was_refused(run_python):
    script = """
        import threading
        import anabranch as ab

        ab.Stream().submit(int).result()
        start, refused = threading.Thread.start, []

        def refuse_once(thread):
            if not refused:
                refused.append(thread.name)
                raise RuntimeError("can't start new thread")
            start(thread)

        threading.Thread.start = refuse_once
        meet = threading.Barrier(20, timeout=30)
        for _ in range(2):
            futures = [ab.Stream().submit(meet.wait) for _ in range(20)]
            print(sorted(future.result() for future in futures) == list(range(20)), len(refused))
        """
    assert run_python(script) == "True 1\nTrue 1\n"


def test_a_first_call_that_got_no_thread_may_be_repeated(run_python):
    script = """
        import threading
        import anabranch as ab

        start, calls = threading.Thread.start, []

        def refuse_second(thread):
            calls.append(thread.name)
            if len(calls) == 2:
                raise RuntimeError("can't start new thread")
            start(thread)

        threading.Thread.start = refuse_second
        stream = ab.Stream()
        try:
            stream.submit(int)
        except RuntimeError as error:
            print(error)
        print(stream.submit(int, 3).result())
        stream.synchronize()
        print(sum("watch" in thread.name for thread in threading.enumerate()))
        """
    assert run_python(script) == "can't start new thread\n3\n1\n"


def test_what_futures_need_is_imported_with_the_first(run_python):
    script = """
        import sys
        import anabranch as ab

        print("concurrent.futures" in sys.modules)
        ab.Stream().submit(int).result()
        print("concurrent.futures" in sys.modules)
        """
    assert run_python(script) == "False\nTrue\n"
