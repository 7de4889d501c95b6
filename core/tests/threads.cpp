#include "threads.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace anabranch::check {

std::ptrdiff_t count_threads() {
  const std::filesystem::path tasks = "/proc/self/task";
  // With the first thread a sanitizer starts one of its own. A thread that was joined is listed for a moment longer.
  pid_t first = 0;
  std::thread([&first] { first = gettid(); }).join();
  eventually([&] { return !std::filesystem::exists(tasks / std::to_string(first)); });
  const std::filesystem::directory_iterator all(tasks);
  return std::distance(begin(all), end(all));
}

void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (auto& thread : threads) thread.join();
}

}  // namespace anabranch::check
