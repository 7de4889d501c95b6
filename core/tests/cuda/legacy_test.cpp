// The order between the legacy stream and blocking ones, kept by the driver, of operations that are nothing to it.
#include <cstdlib>
#include <functional>

#include "cpu/backend.hpp"
#include "device.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

cpu::CpuBackend& cpu_device() {
  static auto* const made = new cpu::CpuBackend(0, 2, std::size_t{1} << 30, pinned_source());
  return *made;
}

// The simulated driver copies slowly, and more so under a sanitizer.
const std::size_t long_copy = std::size_t{std::getenv("FAKE_DEVICES") != nullptr ? 8U : 64U} << 20;

// A copy that takes the GPU long, in a stream that goes straight to the driver.
class Long {
 public:
  explicit Long(Stream& stream) : stream_(stream), pair_(device(), stream, long_copy) {
    std::memset(pair_.host->pointer(), 7, long_copy);
    finish(stream);
    point_ = pair_.upload(stream);
  }
  bool over() const { return device().query(stream_, point_); }

 private:
  Stream& stream_;
  Pair pair_;
  Point point_ = 0;
};

struct Streams {
  Ref<Stream> legacy = device().default_stream(StreamRole::legacy);
  Ref<Stream> own = device().default_stream(StreamRole::per_thread);
  Ref<Stream> blocking = stream(device(), "blocking", false);
  Ref<Stream> other = stream(device(), "other", false);
};

// Puts an operation into a stream.
using Put = std::function<Point(Stream&)>;

Point wait_for_what_is_over(Stream& stream) {
  const auto target = check::stream(device());
  finish(*target);
  return device().wait(stream, *target, target->issued());
}

Point wait_for_what_is_over_elsewhere(Stream& stream) {
  const auto target = check::stream(cpu_device());
  const Point point = call(*target, [] {});
  finish(*target, point);
  return device().wait(stream, *target, point);
}

Point wait_for_what_is_elsewhere(Stream& stream) {
  const auto target = check::stream(cpu_device());
  Gate gate(*target);
  const Point point = device().wait(stream, *target, gate.point());
  gate.open();
  return point;
}

Point suspend_for_what_is_over(Stream& stream) {
  auto pending = make_ref<HostOperation>();
  pending->complete();
  return device().suspend(stream, std::move(pending));
}

Point record(Stream& stream) {
  Ref<Marker> marker;
  return device().record(stream, {}, marker);
}

void check_that_the_legacy_stream_leads_from_one_stream_to_another(const Put& put) {
  const Streams streams;
  const Long before(*streams.blocking);
  put(*streams.legacy);
  // As long as the legacy stream holds, so does the other one, and is in order by that.
  CHECK(eventually([&] { return static_cast<CudaStream&>(*streams.legacy).takes_frees(); }));
  Pair pair(device(), *streams.other, 64);
  finish(*streams.other, pair.upload(*streams.other));
  CHECK(before.over());
}

void check_that_who_finds_it_over_finds_legacy_work_over(const Put& put) {
  const Streams streams;
  // Twice, since there is new legacy work the second time.
  for (const auto& stream : {streams.blocking, streams.own, streams.blocking}) {
    const Long before(*streams.legacy);
    finish(*stream, put(*stream));
    CHECK(before.over());
  }
}

TEST(a_record_is_in_the_legacy_order) {
  check_that_the_legacy_stream_leads_from_one_stream_to_another(record);
  check_that_who_finds_it_over_finds_legacy_work_over(record);
}

TEST(a_wait_for_what_is_over_is_in_the_legacy_order) {
  check_that_the_legacy_stream_leads_from_one_stream_to_another(wait_for_what_is_over);
  check_that_who_finds_it_over_finds_legacy_work_over(wait_for_what_is_over);
}

TEST(a_wait_for_what_is_over_on_another_kind_of_device_is_in_the_legacy_order) {
  check_that_the_legacy_stream_leads_from_one_stream_to_another(wait_for_what_is_over_elsewhere);
  check_that_who_finds_it_over_finds_legacy_work_over(wait_for_what_is_over_elsewhere);
}

TEST(a_wait_for_another_kind_of_device_is_in_the_legacy_order) {
  check_that_the_legacy_stream_leads_from_one_stream_to_another(wait_for_what_is_elsewhere);
  check_that_who_finds_it_over_finds_legacy_work_over(wait_for_what_is_elsewhere);
}

TEST(something_pending_that_is_over_is_in_the_legacy_order) {
  check_that_the_legacy_stream_leads_from_one_stream_to_another(suspend_for_what_is_over);
  check_that_who_finds_it_over_finds_legacy_work_over(suspend_for_what_is_over);
}

TEST(a_host_function_of_the_legacy_stream_comes_after_blocking_streams) {
  const Streams streams;
  finish(*streams.legacy);
  const Long before(*streams.blocking);
  bool over = false;
  finish(*streams.legacy, call(*streams.legacy, [&] { over = before.over(); }));
  CHECK(over);
}

TEST(a_host_function_of_a_blocking_stream_comes_after_legacy_work) {
  const Streams streams;
  for (const auto& stream : {streams.blocking, streams.own}) {
    finish(*stream);
    const Long before(*streams.legacy);
    bool over = false;
    finish(*stream, call(*stream, [&] { over = before.over(); }));
    CHECK(over);
  }
}

TEST(a_host_function_comes_after_legacy_work_that_came_after_another_one) {
  const Streams streams;
  Pair pair(device(), *streams.legacy, std::size_t{64} << 20);
  finish(*streams.legacy);
  Gate gate(*streams.blocking);
  const Point point = pair.upload(*streams.legacy);
  bool over = false;
  const Point end = call(*streams.blocking, [&] { over = device().query(*streams.legacy, point); });
  gate.open();
  finish(*streams.blocking, end);
  CHECK(over);
}

}  // namespace
}  // namespace anabranch::cuda
