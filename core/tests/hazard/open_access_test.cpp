// Operations while the host is accessing their memory.
#include "anabranch/hazard/submission.hpp"
#include "anabranch/stream/event.hpp"
#include "gate.hpp"
#include "program.hpp"

namespace anabranch {
namespace {

using namespace check;

TEST_IN(Setting, an_access_that_is_not_kept_leaves_nothing_when_it_ends) {
  const Touch touch{x.get(), 0, 64, nullptr, 0, Access::write, false};
  const auto open = make_ref<HostAccess>(program.task, touch, Site{}, false);
  CHECK(!x->accesses().only(*a));
  open->end();
  CHECK(x->accesses().only(*a));
  make_ref<HostAccess>(program.task, touch, Site{}, false);  // dropped without an end
  CHECK(x->accesses().only(*a));
}

TEST_IN(Setting, an_operation_is_refused_where_the_host_has_not_ended_its_access) {
  const Touch touch{x.get(), 0, 64, nullptr, 0, Access::write, false};
  const auto open =
      make_ref<HostAccess>(program.task, Touch{x.get(), 0, 64, nullptr, 0, Access::read, false}, Site{}, false);
  const Touch reading{x.get(), 0, 64, nullptr, 0, Access::read, false};
  CHECK(!Submission(*a, HazardMode::automatic, {&reading, 1}).begin(*program.task, nullptr));
  CHECK(!Submission(*a, HazardMode::off, {&touch, 1}).begin(*program.task, nullptr));
  const auto refusal = Submission(*a, HazardMode::automatic, {&touch, 1}).begin(*program.task, nullptr);
  CHECK(refusal != nullptr);
  CHECK_EQUAL(refusal->races.size(), std::size_t{1});
  open->end();
  CHECK(!Submission(*a, HazardMode::automatic, {&touch, 1}).begin(*program.task, nullptr));
}

}  // namespace
}  // namespace anabranch
