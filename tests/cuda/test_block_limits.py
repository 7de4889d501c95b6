"""Launches of kernels that run in blocks, which a grid of a GPU does not hold: with a driver that is simulated."""


def test_a_launch_has_no_more_blocks_than_a_grid(run_with):
    script = """
        from types import SimpleNamespace
        import anabranch as ab

        @ab.kernel
        def rows(index, x: ab.Out):
            ab.block(2, 4)

        # In place of what the compiler would make.
        image = (
            b".version 8.0\\n.target sm_90\\n.address_size 64\\n"
            b".visible .entry rows(.param .u64 m, .param .u64 n, .param .u64 x) { ret; }\\n\\0")
        rows.compile_cuda = lambda signature, target: SimpleNamespace(
            image=image, symbol="rows", slots=(0,), across=False, places=(), block=(2, 4))
        x = ab.zeros(4, device="cuda:0")
        for dim in (2 * 65535, 4), (2 * 65536, 4), (2, 4 * (2**31 - 1)), (2, 2**33), (3, 4):
            try:
                ab.launch(rows, dim, x)
                print(dim)
            except ValueError as error:
                print(error)
        ab.synchronize("cuda:0")
        """
    assert run_with(script).splitlines() == [
        "(131070, 4)",
        "kernel 'rows': 65536 blocks along axis 0; cuda:0 runs at most 65535 there",
        "(2, 8589934588)",
        "kernel 'rows': 2147483648 blocks along axis 1; cuda:0 runs at most 2147483647 there",
        "kernel 'rows' runs in blocks of (2, 4) indices, and dim (3, 4) is no whole number of them: launch it over "
        "(4, 4), and compare the index in the kernel",
    ]
