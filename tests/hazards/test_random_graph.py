"""Random programs, captured and replayed with changed inputs: each replay does what the program does in its order."""

from .graph_program import GraphProgram
from .parts import random_programs


@random_programs(examples=300, kinds=("cpu", "cuda"))
def test_each_replay_does_as_the_program_in_its_order(devices, rng):
    GraphProgram(rng, devices).run(40)
