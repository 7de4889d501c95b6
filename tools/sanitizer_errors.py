"""A plugin of pytest under compute-sanitizer: an error that the tool reports fails the test that ends next.

The tool tells no test, and writes into `$SANITIZER_LOGS/<process>`: its option `--log-file` with `%p` for the number.
An error of work that a test leaves behind may fail the test after it.
"""

import os
from pathlib import Path

import pytest

_log = Path(os.environ["SANITIZER_LOGS"], str(os.getpid()))
_read = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    global _read
    result = yield
    if _log.exists():
        with _log.open() as log:
            log.seek(_read)
            said = log.read()
            _read = log.tell()
        if " at " in said or " access " in said:
            pytest.fail(said, pytrace=False)
    return result
