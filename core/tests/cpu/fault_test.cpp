// Kernels that fail at an index.
#include "anabranch/kernel/fault.hpp"

#include <algorithm>
#include <atomic>

#include "device.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// Fails where an index, doubled, is past an array of `size`, and counts what it writes.
struct Array {
  explicit Array(std::int64_t size) : size(size) {}
  std::int64_t size;
  std::atomic<std::int64_t> written{0};
  std::atomic<std::int64_t> outside{0};
};

std::int64_t write_doubled(std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
  auto& array = **static_cast<Array* const*>(arguments);
  for (std::int64_t i = begin; i < end; ++i) {
    if (2 * i >= array.size) {
      anabranch_fault(-1, 1, -1, 0, 0, nullptr, 0);
      anabranch_fault(0, 0, 0, 2 * i, array.size, nullptr, 0);
      return i;
    }
    array.written.fetch_add(1, std::memory_order_relaxed);
  }
  return end;
}

Ref<Kernel> doubling() {
  return make_ref<Kernel>(
      reinterpret_cast<void*>(&write_doubled), "doubling",
      std::vector<KernelPlace>{{"  File \"a.py\", line 3", "", "'x'", 0, 1}, {"", "never said", "", -1, 0}});
}

std::string failure_of(Stream& stream) {
  try {
    stream.backend().synchronize(stream, stream.issued(), std::chrono::seconds(30));
  } catch (const AsyncError& error) {
    CHECK_EQUAL(error.failure()->site().code, 77U);
    CHECK_EQUAL(error.failure()->site().instruction, 5);
    return error.what();
  }
  return "";
}

TEST(the_lowest_index_that_failed_is_told_whoever_ran_it) {
  for (const int workers : {1, 2, 4}) {
    for (const std::int64_t dim : {4, 1'000, 3'000'000}) {
      CpuBackend& device = make_device(workers);
      const auto a = stream(device);
      Array array(dim);
      const std::uint64_t slots[] = {reinterpret_cast<std::uint64_t>(&array), static_cast<std::uint64_t>(dim), 8, 77,
                                     5};
      device.launch(*a, *doubling(), {1, {dim, 1, 1, 1}}, slots);
      const std::string position = std::to_string(dim / 2);
      CHECK_EQUAL(failure_of(*a), "kernel 'doubling' failed at index " + position + ": index " + std::to_string(dim) +
                                      " is out of bounds for axis 0, of size " + std::to_string(dim) +
                                      ", of 'x', whose shape is (" + std::to_string(dim) +
                                      ",)\n  File \"a.py\", line 3");
      CHECK_EQUAL(array.written.load(), dim / 2);
    }
  }
}

TEST(a_stream_whose_kernel_failed_runs_nothing_more) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  Array small(2);
  Array large(100);
  const std::uint64_t fails[] = {reinterpret_cast<std::uint64_t>(&small), 2, 8, 77, 5};
  const std::uint64_t works[] = {reinterpret_cast<std::uint64_t>(&large), 100, 8, 77, 5};
  const auto kernel = doubling();
  device.launch(*a, *kernel, {2, {2, 2, 1, 1}}, fails);
  device.launch(*a, *kernel, {1, {50, 1, 1, 1}}, works);
  CHECK(failure_of(*a).find("failed at index (0, 1): ") != std::string::npos);
  CHECK_EQUAL(large.written.load(), 0);
}

// Fails in its fourth block, at the index (3, 5) of a launch over (4, 6) in blocks of (2, 3).
std::int64_t fail_in_block(std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
  auto& array = **static_cast<Array* const*>(arguments);
  for (std::int64_t block = begin; block < end; ++block) {
    array.written.fetch_add(1, std::memory_order_relaxed);
    if (block != 3) continue;
    anabranch_fault(0, 0, -1, 0, 0, nullptr, 0);
    anabranch_failed_index(3 * 6 + 5);
    return block;
  }
  return end;
}

TEST(a_kernel_in_blocks_counts_blocks_and_names_the_index) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  Array array(4);
  const auto kernel = make_ref<Kernel>(reinterpret_cast<void*>(&fail_in_block), "in_blocks",
                                       std::vector<KernelPlace>{{"line 3", "wrong", "", -1, 0}}, BlockSizes{2, 3, 0});
  const std::uint64_t slots[] = {reinterpret_cast<std::uint64_t>(&array), 77, 5};
  device.launch(*a, *kernel, {2, {4, 6, 1, 1}}, slots);
  CHECK_EQUAL(failure_of(*a), "kernel 'in_blocks' failed at index (3, 5): wrong\nline 3");
  CHECK_EQUAL(array.written.load(), 4);
}

}  // namespace
}  // namespace anabranch::cpu
