"""``python -m tests.fuzz --seconds 60``: runs random kernels, and prints each whose results differ."""

from __future__ import annotations

import argparse
import sys
import time

from .kernels import EMULATED, difference


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first kernel")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--device", default=EMULATED, help="a GPU, or its code on the host")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    seed, differing = options.seed, 0
    while time.monotonic() < end:
        if found := difference(seed, options.device):
            differing += 1
            print(f"-- seed {seed}\n{found}", flush=True)
        seed += 1
    print(f"{seed - options.seed} kernels, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
