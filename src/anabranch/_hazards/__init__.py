"""Order between accesses to the same memory: added where it is missing, or reported."""
