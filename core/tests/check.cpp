#include "check.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace anabranch::check {
namespace {

struct Test {
  std::string name;
  std::function<void()> body;
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

enum class Outcome { passed, failed, skipped };

// What CTest takes for a test that did not run.
constexpr int all_skipped = 77;

Outcome outcome(const Test& test) {
  const auto report = [&test](const char* how, const std::string& what) {
    std::printf("%s %s: %s\n", how, test.name.c_str(), what.c_str());
  };
  try {
    test.body();
    return Outcome::passed;
  } catch (const Skipped& skipped) {
    report("skipped", skipped.reason);
    return Outcome::skipped;
  } catch (const Failed& failed) {
    report("FAILED", failed.what);
  } catch (const std::exception& error) {
    report("FAILED", error.what());
  }
  return Outcome::failed;
}

int run(const std::string& wanted, bool verbose) {
  std::map<Outcome, int> count;
  for (const Test& test : tests()) {
    if (test.name.find(wanted) == std::string::npos) continue;
    if (verbose) std::printf("%s\n", test.name.c_str());
    ++count[outcome(test)];
  }
  std::printf("%d passed, %d failed, %d skipped\n", count[Outcome::passed], count[Outcome::failed],
              count[Outcome::skipped]);
  if (count[Outcome::failed] != 0) return 1;
  if (count[Outcome::passed] != 0) return 0;
  return count[Outcome::skipped] != 0 ? all_skipped : 1;
}

}  // namespace

bool add(std::string name, std::function<void()> body) {
  tests().push_back({std::move(name), std::move(body)});
  return true;
}

void fail(const char* file, int line, const std::string& what) {
  throw Failed{std::string(file) + ":" + std::to_string(line) + ": " + what};
}

void skip(const std::string& reason) { throw Skipped{reason}; }

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace anabranch::check

// NAME-TEST [-v] [PART-OF-A-NAME]: -v tells each test as it begins, so that one that hangs is known.
int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool verbose = argc > 1 && std::string(argv[1]) == "-v";
  const int first = verbose ? 2 : 1;
  return anabranch::check::run(argc > first ? argv[first] : "", verbose);
}
