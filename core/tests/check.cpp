#include "check.hpp"

#include <cstdio>
#include <exception>
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

bool report(const Test& test, const std::string& what) {
  std::printf("FAILED %s: %s\n", test.name.c_str(), what.c_str());
  return false;
}

bool passes(const Test& test) {
  try {
    test.body();
    return true;
  } catch (const Failure& failure) {
    return report(test, failure.what);
  } catch (const std::exception& error) {
    return report(test, error.what());
  }
}

int run(const std::string& wanted) {
  int passed = 0;
  int failed = 0;
  for (const Test& test : tests()) {
    if (test.name.find(wanted) == std::string::npos) continue;
    ++(passes(test) ? passed : failed);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace

bool add(std::string name, std::function<void()> body) {
  tests().push_back({std::move(name), std::move(body)});
  return true;
}

void fail(const char* file, int line, const std::string& what) {
  throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + what};
}

}  // namespace anabranch::check

int main(int argc, char** argv) { return anabranch::check::run(argc > 1 ? argv[1] : ""); }
