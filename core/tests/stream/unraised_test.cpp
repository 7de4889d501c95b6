// The failures of streams that are gone.
#include "anabranch/stream/unraised.hpp"

#include <string>

#include "check.hpp"

namespace anabranch {
namespace {

using namespace check;

TEST(failures_are_taken_from_the_oldest) {
  UnraisedFailures unraised;
  CHECK(!unraised.take());
  for (const char* message : {"one", "two"}) unraised.add(make_ref<Failure>(message));
  CHECK_EQUAL(unraised.take()->message(), "one");
  CHECK_EQUAL(unraised.take()->message(), "two");
  CHECK(!unraised.take());
}

TEST(a_failure_that_several_streams_had_is_kept_once) {
  UnraisedFailures unraised;
  const Ref<Failure> failure = make_ref<Failure>("shared");
  for (int i = 0; i < 3; ++i) unraised.add(failure);
  CHECK(unraised.take() == failure);
  CHECK(!unraised.take());
}

TEST(what_was_raised_is_not_kept) {
  UnraisedFailures unraised;
  const Ref<Failure> before = make_ref<Failure>("before"), meanwhile = make_ref<Failure>("meanwhile");
  before->note_told();
  unraised.add(before);
  unraised.add(meanwhile);
  meanwhile->note_told();
  CHECK(!unraised.take());
}

TEST(a_failure_of_the_driver_fails_the_device_and_is_not_kept) {
  UnraisedFailures unraised;
  unraised.add(make_ref<Failure>(DriverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "bad")));
  unraised.add(nullptr);
  CHECK(!unraised.take());
}

TEST(the_oldest_failures_are_kept) {
  UnraisedFailures unraised;
  for (std::size_t i = 0; i < 2 * UnraisedFailures::most; ++i) unraised.add(make_ref<Failure>(std::to_string(i)));
  for (std::size_t i = 0; i < UnraisedFailures::most; ++i) CHECK_EQUAL(unraised.take()->message(), std::to_string(i));
  CHECK(!unraised.take());
}

}  // namespace
}  // namespace anabranch
