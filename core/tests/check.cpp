#include "check.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace anabranch::check {
namespace {

struct Test {
  std::string name;
  void (*body)();
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

bool wanted(const std::string& name, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&name](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

int run(const std::vector<std::string>& parts, int rounds, bool verbose) {
  std::map<Outcome, int> count;
  for (int round = 0; round < rounds; ++round) {
    for (const Test& test : tests()) {
      if (!wanted(test.name, parts)) continue;
      if (verbose) std::printf("%s\n", test.name.c_str());
      ++count[outcome(test)];
    }
  }
  std::printf("%d passed, %d failed, %d skipped\n", count[Outcome::passed], count[Outcome::failed],
              count[Outcome::skipped]);
  if (count[Outcome::failed] != 0) return 1;
  if (count[Outcome::passed] != 0) return 0;
  return count[Outcome::skipped] != 0 ? all_skipped : 1;
}

}  // namespace

bool add(const char* name, void (*body)()) {
  tests().push_back({name, body});
  return true;
}

void fail(const char* file, int line, const char* what) {
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

// NAME-TEST [-v] [-r ROUNDS] [PART-OF-A-NAME...]: -v tells each test as it begins, so that one that hangs is known.
int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bool verbose = false;
  int rounds = 1;
  std::vector<std::string> parts;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "-v") {
      verbose = true;
    } else if (argument == "-r" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (!argument.empty()) {
      parts.push_back(argument);
    }
  }
  return anabranch::check::run(parts, rounds, verbose);
}
