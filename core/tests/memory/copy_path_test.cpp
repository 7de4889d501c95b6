// Which way a copy travels, between devices that run nothing.
#include "anabranch/memory/copy_path.hpp"

#include "check.hpp"
#include "null/backend.hpp"

namespace anabranch {
namespace {

null::NullBackend& make(int index, bool host_memory) { return *new null::NullBackend(index, 1 << 20, host_memory); }

Backend& cpu() {
  static Backend& made = make(0, true);
  return made;
}
Backend& other_cpu() {
  static Backend& made = make(1, true);
  return made;
}
Backend& gpu() {
  static Backend& made = make(0, false);
  return made;
}
Backend& other_gpu() {
  static Backend& made = make(1, false);
  return made;
}

// Eight elements of four bytes from an address on.
struct Elements8 {
  Layout layout;
  CopySide side;

  Elements8(Backend& device, std::uintptr_t address, MemoryKind kind = MemoryKind::device, std::int64_t stride = 4) {
    const std::int64_t count = 8;
    layout = row_major(1, &count, 4);
    layout.strides[0] = stride;
    side = {&device, kind, reinterpret_cast<const std::byte*>(address), &layout, stride == 4, 0};
  }
  Elements8(const Elements8&) = delete;
};

constexpr std::uintptr_t here = 0x1000;
constexpr std::uintptr_t there = 0x2000;

void expect(CopyPath path, const Elements8& dst, const Elements8& src, Backend& stream) {
  CHECK_EQUAL(static_cast<int>(copy_path(dst.side, src.side, stream)), static_cast<int>(path));
}
void expect_both_ways(CopyPath path, const Elements8& one, const Elements8& other, Backend& stream) {
  expect(path, one, other, stream);
  expect(path, other, one, stream);
}

TEST(within_a_device_one_operation_copies) {
  for (Backend* device : {&cpu(), &gpu()}) {
    expect_both_ways(CopyPath::direct, {*device, here}, {*device, there}, *device);
    expect_both_ways(CopyPath::direct, {*device, here, MemoryKind::device, 8}, {*device, there}, *device);
  }
}

TEST(within_the_host_one_operation_copies_whatever_the_memory) {
  for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::foreign}) {
    expect_both_ways(CopyPath::direct, {cpu(), here, kind}, {cpu(), there}, cpu());
  }
}

TEST(between_cpu_devices_one_operation_copies_strided_views_too) {
  expect_both_ways(CopyPath::direct, {cpu(), here, MemoryKind::device, 8}, {other_cpu(), there}, cpu());
}

TEST(onto_itself_there_is_nothing_to_copy) {
  expect(CopyPath::none, {gpu(), here}, {gpu(), here}, gpu());
  expect(CopyPath::none, {gpu(), here, MemoryKind::device, 8}, {gpu(), here, MemoryKind::device, 8}, gpu());
}

TEST(what_overlaps_goes_through_a_temporary) {
  expect_both_ways(CopyPath::temporary, {gpu(), here}, {gpu(), here + 4}, gpu());
  expect_both_ways(CopyPath::temporary, {gpu(), here}, {gpu(), here + 28}, gpu());
  expect_both_ways(CopyPath::direct, {gpu(), here}, {gpu(), here + 32}, gpu());
  // From the same first element on, in other steps.
  expect_both_ways(CopyPath::temporary, {gpu(), here}, {gpu(), here, MemoryKind::device, 8}, gpu());
  // The same elements, from another one on.
  Elements8 moved(gpu(), here);
  moved.side.offset = 1;
  expect_both_ways(CopyPath::temporary, {gpu(), here}, moved, gpu());
}

TEST(of_another_shape_the_same_memory_goes_through_a_temporary) {
  Elements8 square(gpu(), here);
  const std::int64_t shape[] = {2, 4};
  square.layout = row_major(2, shape, 4);
  expect_both_ways(CopyPath::temporary, {gpu(), here}, square, gpu());
}

TEST(strided_views_that_interleave_do_not_overlap) {
  const Elements8 even(gpu(), here, MemoryKind::device, 8);
  const Elements8 odd(gpu(), here + 4, MemoryKind::device, 8);
  expect_both_ways(CopyPath::direct, even, odd, gpu());
}

TEST(between_a_gpu_and_host_memory_that_is_not_pinned_the_host_copies) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::foreign}) {
    for (Backend* stream : {&cpu(), &gpu()}) {
      expect_both_ways(CopyPath::host, {cpu(), here, kind}, {gpu(), there}, *stream);
    }
  }
}

TEST(between_a_gpu_and_pinned_memory_a_stream_of_the_gpu_copies) {
  expect_both_ways(CopyPath::direct, {cpu(), here, MemoryKind::pinned}, {gpu(), there}, gpu());
  expect_both_ways(CopyPath::beside, {cpu(), here, MemoryKind::pinned}, {gpu(), there}, cpu());
}

TEST(of_host_memory_and_a_gpu_only_the_host_side_has_to_be_pinned) {
  expect_both_ways(CopyPath::host, {cpu(), here}, {gpu(), there, MemoryKind::pinned}, gpu());
}

TEST(between_gpus_runs_of_bytes_travel) {
  for (Backend* stream : {&gpu(), &other_gpu()}) {
    expect_both_ways(CopyPath::direct, {gpu(), here}, {other_gpu(), there}, *stream);
    expect_both_ways(CopyPath::packed, {gpu(), here, MemoryKind::device, 8}, {other_gpu(), there}, *stream);
  }
  expect_both_ways(CopyPath::packed, {gpu(), here, MemoryKind::device, 8}, {other_gpu(), there, MemoryKind::device, 8},
                   gpu());
}

}  // namespace
}  // namespace anabranch
