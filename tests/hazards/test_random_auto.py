"""Random programs under "auto": whatever orders are missing, the result is that of one operation after the other."""

from .program import Program, random_programs


@random_programs(examples=1000, kinds=("cpu", "cuda"))
def test_any_program_does_as_in_its_order(devices, rng):
    Program(rng, devices).run(40)
