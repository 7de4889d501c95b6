"""MPI is started for fewer threads than call it."""

import mpi4py

import anabranch as ab

mpi4py.rc.thread_level = "serialized"
try:
    ab.distributed.init()
except ab.Error as error:
    print(error)
