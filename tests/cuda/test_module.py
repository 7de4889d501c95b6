"""Modules and launches with blocks. What needs no device comes first."""

import pickle

import numpy as np
import pytest

import anabranch as ab
from anabranch.kernels._cpp import declaration
from anabranch.kernels._cpp.parameter import access_codes, from_source
from anabranch.kernels._cuda import ptx

SOURCE = """
// __global__ void commented(int);
template <typename T> struct Pair { T a, b; };
extern "C" __global__ void saxpy(float alpha, const float* __restrict__ x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + y[i];
}
template <typename T, int N = (3 > 2)> __global__ void __launch_bounds__(256, 2) scale(const T* x, T* y, T a /* , */) {
  y[threadIdx.x] = N * a * x[threadIdx.x];
}
__global__ void plain(int* y) { y[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void kinds(bool b, signed char c, unsigned short s, long long l, double d, float2 pair,
                                 double* y) {
  y[0] = b; y[1] = c; y[2] = s; y[3] = l; y[4] = d; y[5] = pair.x; y[6] = pair.y;
}
extern "C" __global__ void reverse(const int* x, int* y) {
  extern __shared__ int kept[];
  kept[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void meet(unsigned* arrived, int* y) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1);
  while (*(volatile unsigned*)arrived < gridDim.x) {}
  y[blockIdx.x] = 1;
}
extern "C" __global__ void clusters(int* y) {
#if __CUDA_ARCH__ >= 900
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) y[blockIdx.x] = rank;
#endif
}
extern "C" __global__ void write_only(int* y) { y[threadIdx.x] = 1; }
"""

# Without a device


def declared(source, *arguments):
    (kernel,) = declaration.kernels(source)
    return kernel.read(arguments)


def test_the_kernels_of_a_source_are_found():
    names = [kernel.name for kernel in declaration.kernels(SOURCE)]
    assert names == ["saxpy", "scale", "plain", "kinds", "reverse", "meet", "clusters", "write_only"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("const float* x", ("x", True, True, "float32")),
        ("float const * __restrict__ x", ("x", True, True, "float32")),
        ("float* const x", ("x", True, False, "float32")),
        ("const float* const x", ("x", True, True, "float32")),
        ("const float** x", ("x", True, False, None)),
        ("const float* const* x", ("x", True, True, None)),
        ("const double x[]", ("x", True, True, "float64")),
        ("std::size_t n", ("n", False, False, "uint64")),
        ("unsigned long long n", ("n", False, False, "uint64")),
        ("unsigned", ("", False, False, "uint32")),
        ("std::size_t", ("", False, False, "uint64")),
        ("const V<V<const int, 3>*, 4>* v", ("v", True, True, None)),
        ("V<const int*> v", ("v", False, False, None)),
        ("int n = f(1, 2)", ("n", False, False, "int32")),
        ("const void* p", ("p", True, True, None)),
        ("thrust::complex<float>* z", ("z", True, False, "complex64")),
    ],
)
def test_a_parameter_is_read(text, expected):
    assert [tuple(parameter) for parameter in declared(f"__global__ void k({text}) {{}}")] == [expected]


def test_comments_strings_and_directives_hide_nothing():
    source = """
    #define KERNEL(x) __global__ void x(int a)
    const char* text = "__global__ void no(int)"; /* __global__ void no(int) */
    extern "C" __global__ __launch_bounds__(64) void f(const float* x /* , int */, // ,
                                                       float* y) {}
    """
    assert [(p.name, p.const) for p in declared(source)] == [("x", True), ("y", False)]


def test_the_parameters_of_a_template_are_those_of_its_arguments():
    source = "template <typename T, class U = int, int N = (1 < 2)> __global__ void k(const T* x, U n) {}"
    assert [p.dtype for p in declared(source, "float", "long long")] == ["float32", "int64"]
    assert declaration.expression_parts("a::scale<Pair<int, 3>, 4>") == ("scale", ("Pair<int, 3>", "4"))


PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry saxpy(
    .param .f32 saxpy_param_0,
    .param .u64 saxpy_param_1, // x
    .param .u64 .ptr .align 1 saxpy_param_2,
    .param .align 8 .b8 saxpy_param_3[24]
)
.maxntid 256, 1, 1
{
    ld.param.u64 %rd1, [saxpy_param_1];
    ret;
}
.entry none()
{
    ret;
}
"""


def test_ptx_tells_its_parameters():
    found = ptx.entries(PTX)
    assert [(p.kind, p.size, p.pointer) for p in found["saxpy"]] == [
        ("f", 4, False), ("u", 8, False), ("u", 8, True), ("struct", 24, False),
    ]  # fmt: skip
    assert found["none"] == []


def test_known_parameters_are_folded_into_ptx():
    text, kept = ptx.fold_parameters(PTX, "saxpy", {1: 7}, 1)
    assert "mov.b64 %rd1, 7;" in text
    assert kept == [0]
    assert [p.name for p in ptx.entries(text)["saxpy"]] == ["saxpy_param_0"]


def parameters_of(source):
    kinds = [ptx.PtxParameter("p", "u", 8, False)] * 2 + [ptx.PtxParameter("p", "u", 4, False)]
    return from_source(declared(source), kinds)


def test_access_is_what_const_says_or_the_caller():
    parameters = parameters_of("__global__ void k(const float* x, float* y, int n) {}")
    assert access_codes("k", parameters, None) == ([1, 0, None], ())
    assert access_codes("k", parameters, ["in", "out"]) == ([1, 2, None], ())
    assert access_codes("k", parameters, {"y": "out"}) == ([1, 2, None], ())
    assert access_codes("k", parameters, "in")[0] == [1, 1, None]
    with pytest.raises(ValueError, match=r"2 arrays \(x, y\).* 3 entries"):
        access_codes("k", parameters, ["in", "out", "in"])
    with pytest.raises(ValueError, match="'z'"):
        access_codes("k", parameters, {"z": "in"})
    with pytest.raises(ValueError, match="'read'"):
        access_codes("k", parameters, "read")


def test_a_launch_config_is_a_value():
    config = ab.LaunchConfig(4, (16, 16), shared_memory=1000, cluster=2, cooperative=True)
    assert (config.grid, config.block, config.cluster) == ((4, 1, 1), (16, 16, 1), (2, 1, 1))
    assert repr(ab.LaunchConfig(4, 32)) == "LaunchConfig(grid=(4, 1, 1), block=(32, 1, 1))"
    assert config == pickle.loads(pickle.dumps(config)) != ab.LaunchConfig(4, (16, 16))
    assert len({config, ab.LaunchConfig((4, 1), (16, 16, 1), 1000, (2,), True)}) == 1
    with pytest.raises(AttributeError):
        config.grid = 3


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ((0, 1), ValueError, "grid"), ((1, 0), ValueError, "block"), ((1, 1025), ValueError, "block"),
        ((1, (32, 64)), ValueError, "1024"), ((1, (1, 1, 65)), ValueError, "block"),
        (((1, 65536), 1), ValueError, "grid"),
        (((1, 1, 1, 1), 1), ValueError, "grid"), (("a", 1), TypeError, "grid"), ((1, 1.5), TypeError, "block"),
        ((1, 1, -1), ValueError, "shared_memory"), ((1, 1, 1.5), TypeError, "shared_memory"),
        ((3, 1, 0, 2), ValueError, "cluster"), ((32, 1, 0, 32), ValueError, "cluster"),
        ((1, 1, 0, None, 1), TypeError, "cooperative"),
    ],
)  # fmt: skip
def test_a_launch_config_refuses_what_no_device_has(arguments, error, name):
    with pytest.raises(error, match=name):
        ab.LaunchConfig(*arguments)


def test_a_module_takes_text_or_code():
    with pytest.raises(TypeError, match="options"):
        ab.Module(SOURCE, options="-DN=4")
    with pytest.raises(ValueError, match="empty"):
        ab.Module("")
    with pytest.raises(ValueError, match="options"):
        ab.Module(PTX, options=["-DN=4"])


# On a device


@pytest.fixture
def cuda():
    found = ab.devices("cuda")
    if not found:
        pytest.skip("there is no CUDA device")
    with found[0]:
        yield found[0]


@pytest.fixture(scope="module")
def module():
    if not ab.devices("cuda"):
        pytest.skip("there is no CUDA device")
    return ab.Module(SOURCE, options=["--std=c++17"])


def run_saxpy(kernel, device):
    x, y = np.arange(1000, dtype="float32"), ab.ones(1000, device=device)
    ab.launch(kernel, ab.LaunchConfig(4, 256), 2.0, ab.array(x, device=device), y, 1000)
    np.testing.assert_array_equal(y.numpy(), 2 * x + 1)


def test_a_kernel_of_cuda_cpp_runs(cuda, module):
    kernel = module.get_kernel("saxpy")
    assert [p.access for p in kernel.parameters] == [None, "in", "inout", None]
    run_saxpy(kernel, cuda)


def test_ptx_cubin_and_ltoir_run(cuda):
    from anabranch._launch.loaded import architecture
    from anabranch.kernels._cpp import nvrtc

    source = SOURCE.partition("template <typename T, int N")[0]
    program = nvrtc.compile_source(source, [], [], architecture(cuda))
    run_saxpy(ab.Module(program.image).get_kernel("saxpy", access=["in", "inout"]), cuda)
    run_saxpy(ab.Module(program.ptx).get_kernel("saxpy"), cuda)
    run_saxpy(ab.Module(program.ptx.encode()).get_kernel("saxpy"), cuda)
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(arch=f"sm_{architecture(cuda)}", link_time_optimization=True)
    run_saxpy(ab.Module(bytes(Program(source, "c++", options).compile("ltoir").code)).get_kernel("saxpy"), cuda)


@pytest.mark.parametrize(("expression", "dtype"), [("scale<float>", "float32"), ("scale<double, 1>", "float64")])
def test_a_template_is_found_by_a_name_expression(cuda, module, expression, dtype):
    kernel = module.get_kernel(expression)
    x, y = ab.ones(32, dtype, device=cuda), ab.zeros(32, dtype, device=cuda)
    ab.launch(kernel, ab.LaunchConfig(1, 32), x, y, 3.0)
    np.testing.assert_array_equal(y.numpy(), np.full(32, 3.0))
    with pytest.raises(TypeError, match="'x'"):
        ab.launch(kernel, ab.LaunchConfig(1, 32), ab.ones(32, "int64", device=cuda), y, 3.0)


def test_a_function_without_c_linkage_is_found_by_its_name(cuda, module):
    y = ab.zeros(8, "int32", device=cuda)
    ab.launch(module.get_kernel("plain"), ab.LaunchConfig(1, 8), y)
    np.testing.assert_array_equal(y.numpy(), np.arange(8))


@pytest.mark.usefixtures("cuda")
def test_what_a_module_lacks_is_named(module):
    with pytest.raises(ab.CompileError, match=r"no kernel 'nowhere'; it has saxpy, scale"):
        module.get_kernel("nowhere")


@pytest.mark.usefixtures("cuda")
def test_a_wrong_source_is_refused_with_its_line():
    with pytest.raises(ab.CompileError, match="line 1"):
        ab.Module('extern "C" __global__ void f() { nowhere(); }')


def test_scalars_arrive_as_the_kernel_declares_them(cuda, module):
    y = ab.zeros(7, "float64", device=cuda)
    pair = np.complex64(5 + 6j)
    ab.launch(
        module.get_kernel("kinds"),
        ab.LaunchConfig(1, 1),
        True,
        -3,
        np.uint16(65535),
        -(2**40),
        np.float32(0.5),
        pair,
        y,
    )
    np.testing.assert_array_equal(y.numpy(), [1, -3, 65535, -(2**40), 0.5, 5, 6])


def test_arguments_are_checked_by_name(cuda, module):
    saxpy, kinds = module.get_kernel("saxpy"), module.get_kernel("kinds")
    x, y, one = ab.ones(4, device=cuda), ab.zeros(4, device=cuda), ab.LaunchConfig(1, 4)
    refused = [
        (TypeError, "missing n", (2.0, x, y)),
        (TypeError, "1 too many", (2.0, x, y, 4, 5)),
        (TypeError, "'alpha'", (x, x, y, 4)),
        (TypeError, "'alpha'", (2j, x, y, 4)),
        (TypeError, "'x'.*float64", (2.0, ab.ones(4, "float64", device=cuda), y, 4)),
        (TypeError, "'x'", (2.0, 3, y, 4)),
        (TypeError, "'x'.*asarray", (2.0, np.ones(4), y, 4)),
        (TypeError, "'n'", (2.0, x, y, 4.0)),
        (ValueError, "'n'.*fit", (2.0, x, y, 2**31)),
        (ab.DeviceError, "'x'", (2.0, ab.ones(4, device="cpu"), y, 4)),
    ]
    for error, match, arguments in refused:
        with pytest.raises(error, match=match):
            ab.launch(saxpy, one, *arguments, stream=ab.Stream(cuda))
    with pytest.raises(TypeError, match="8 bytes"):
        ab.launch(kinds, one, True, 1, 1, 1, 1.0, b"1234", ab.zeros(7, "float64", device=cuda))
    with pytest.raises(TypeError, match="LaunchConfig"):
        ab.launch(saxpy, 4, 2.0, x, y, 4)
    with pytest.raises(TypeError, match="block"):
        ab.launch(saxpy, one, 2.0, x, y, 4, block=32)
    assert not y.numpy().any()


def test_dynamic_shared_memory_may_pass_48_kib(cuda, module):
    kernel = module.get_kernel("reverse")
    x, y = ab.array(np.arange(64, dtype="int32"), device=cuda), ab.zeros(64, "int32", device=cuda)
    most = kernel.attributes(cuda).max_shared_memory
    for size in 1024, 64 * 1024, most:
        if size > most:
            continue
        ab.launch(kernel, ab.LaunchConfig(1, 64, shared_memory=size), x, y)
        np.testing.assert_array_equal(y.numpy(), np.arange(64)[::-1])
    with pytest.raises(ValueError, match="shared memory"):
        ab.launch(kernel, ab.LaunchConfig(1, 64, shared_memory=most + 1), x, y)


def test_a_cooperative_launch_runs_all_blocks_at_once(cuda, module):
    kernel = module.get_kernel("meet")
    arrived, y = ab.zeros(1, "uint32", device=cuda), ab.zeros(16, "int32", device=cuda)
    ab.launch(kernel, ab.LaunchConfig(16, 32, cooperative=True), arrived, y)
    np.testing.assert_array_equal(y.numpy(), np.ones(16))


def test_clusters_are_of_the_size_asked_for(cuda, module):
    kernel = module.get_kernel("clusters")
    if kernel.attributes(cuda).binary_version < 90:
        pytest.skip("clusters need compute capability 9.0")
    y = ab.zeros(8, "int32", device=cuda)
    ab.launch(kernel, ab.LaunchConfig(8, 32, cluster=4), y)
    np.testing.assert_array_equal(y.numpy(), [0, 1, 2, 3] * 2)


def test_occupancy_falls_with_shared_memory(cuda, module):
    kernel = module.get_kernel("saxpy")
    few = kernel.occupancy(256, 40_000, device=cuda)
    assert 1 <= few < kernel.occupancy(256, device=cuda)
    assert kernel.occupancy((16, 16)) == kernel.occupancy(256)
    assert kernel.attributes(cuda).registers > 0


def test_a_block_of_too_many_threads_is_refused(cuda):
    source = 'extern "C" __global__ void __launch_bounds__(128) k(int* y) { y[threadIdx.x] = 1; }'
    with pytest.raises(ValueError, match="128"):
        ab.launch(ab.Module(source).get_kernel("k"), ab.LaunchConfig(1, 256), ab.zeros(256, "int32", device=cuda))


def test_launches_with_blocks_are_in_the_order_of_their_stream(cuda, module):
    kernel, stream = module.get_kernel("write_only", access=["out"]), ab.Stream(cuda)
    y = ab.zeros(32, "int32", stream=stream)
    with ab.testing.Gate(stream):
        assert ab.launch(kernel, ab.LaunchConfig(1, 32), y, stream=stream) is None
        ab.fill(y, 5, stream=stream)
        ab.launch(kernel, ab.LaunchConfig(1, 16), y, stream=stream)
    np.testing.assert_array_equal(y.numpy(), [1] * 16 + [5] * 16)


def test_a_module_kernel_runs_on_every_device(module):
    kernel = module.get_kernel("saxpy")
    for device in ab.devices("cuda"):
        run_saxpy(kernel, device)
