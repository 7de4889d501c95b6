// The threads of this process.
#pragma once

#include <cstddef>
#include <functional>

namespace anabranch::check {

// How many there are now.
std::ptrdiff_t count_threads();
// Runs the body once for each number below `count`, each in a thread of its own, and waits for all.
void in_threads(int count, const std::function<void(int)>& body);

}  // namespace anabranch::check
