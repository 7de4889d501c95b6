// The workers of a CPU device.
#include "cpu/pool.hpp"

#include <atomic>
#include <ctime>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"
#include "threads.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// Pools are never destroyed, since their threads are never joined.
Pool& make_pool(int workers) {
  static auto* const all = new std::vector<Pool*>;
  all->push_back(new Pool("test", workers));
  return *all->back();
}

class Call final : public Job {
 public:
  explicit Call(std::function<void()> function, bool urgent = false) : Job(urgent), function_(std::move(function)) {}
  void run() noexcept override {
    function_();
    over_ = true;
  }
  bool over() const { return over_; }

 private:
  std::function<void()> function_;
  std::atomic<bool> over_{false};
};

// Keeps a worker busy until it is let go.
class Hold {
 public:
  explicit Hold(Pool& pool)
      : job_([this] {
          running_.count_down();
          released_.wait();
        }) {
    pool.ready(job_);
    running_.wait();
  }
  ~Hold() { release(); }
  void release() {
    if (!std::exchange(let_go_, true)) released_.count_down();
    eventually([this] { return job_.over(); });
  }

 private:
  std::latch running_{1};
  std::latch released_{1};
  bool let_go_ = false;
  Call job_;
};

TEST(no_thread_starts_before_the_first_job) {
  const auto before = count_threads();
  Pool& pool = make_pool(3);
  CHECK_EQUAL(count_threads(), before);
  Call job([] {});
  pool.ready(job);
  CHECK(eventually([&] { return job.over(); }));
  CHECK_EQUAL(count_threads(), before + 3);
}

TEST(jobs_run_oldest_first_and_urgent_ones_before_all) {
  Pool& pool = make_pool(1);
  std::vector<int> order;  // touched by the one worker only, until all is over
  std::vector<std::unique_ptr<Call>> jobs;
  {
    Hold hold(pool);
    for (int i = 0; i < 6; ++i) {
      jobs.push_back(std::make_unique<Call>([&order, i] { order.push_back(i); }, i % 2 == 1));
      pool.ready(*jobs.back());
    }
    CHECK(pool.contended(false));
    CHECK(!pool.contended(true));
    CHECK(pool.waiting());
  }
  CHECK(eventually([&] { return jobs[4]->over(); }));
  CHECK(order == (std::vector{1, 3, 5, 0, 2, 4}));
  CHECK(!pool.contended(false));
  CHECK(!pool.waiting());
}

TEST(jobs_run_on_all_workers) {
  Pool& pool = make_pool(4);
  std::latch all_there(4);
  std::vector<std::unique_ptr<Call>> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(std::make_unique<Call>([&all_there] { all_there.arrive_and_wait(); }));
    pool.ready(*jobs.back());
  }
  for (const auto& job : jobs) CHECK(eventually([&] { return job->over(); }));
}

TEST(every_job_runs_once) {
  Pool& pool = make_pool(3);
  constexpr int posters = 4;
  constexpr int each = 2000;
  std::vector<std::atomic<int>> runs(posters * each);
  std::vector<std::unique_ptr<Call>> jobs;
  for (auto& count : runs) jobs.push_back(std::make_unique<Call>([&count] { ++count; }, jobs.size() % 5 == 0));
  std::vector<std::thread> threads;
  for (int p = 0; p < posters; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < each; ++i) pool.ready(*jobs[static_cast<std::size_t>(p * each + i)]);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& job : jobs) CHECK(eventually([&] { return job->over(); }));
  for (const auto& count : runs) CHECK_EQUAL(count.load(), 1);
}

TEST(a_pool_that_stops_waits_for_what_runs) {
  Pool& pool = make_pool(4);
  std::atomic<bool> finished{false};
  std::latch running(1);
  Call job([&] {
    running.count_down();
    while (!pool.stopping()) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    finished = true;
  });
  pool.ready(job);
  running.wait();
  // The other workers come and go, which must not be taken for the end of the job that runs.
  for (int i = 0; i < 100; ++i) {
    Call other([] {});
    pool.ready(other);
    CHECK(eventually([&] { return other.over(); }));
  }
  pool.stop(std::chrono::minutes(1));
  CHECK(finished);
}

TEST(a_pool_that_stops_does_not_wait_for_ever) {
  Pool& pool = make_pool(2);
  Hold hold(pool);
  static Call never([] { std::abort(); });
  pool.stop(std::chrono::milliseconds(1));
  pool.ready(never);
  hold.release();
  CHECK(!never.over());
}

TEST(idle_workers_use_no_time) {
  Pool& pool = make_pool(4);
  for (int i = 0; i < 100; ++i) {
    Call job([] {});
    pool.ready(job);
    CHECK(eventually([&] { return job.over(); }));
  }
  const auto used = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(used() - before < std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace anabranch::cpu
