#pragma once

#include <cstddef>

namespace anabranch::cpu {

// Memory for tasks. One thread makes them and another one deletes them, many at a time: malloc would give the pages
// back to the system after each burst, and ask for them again in the next, with one lock for all threads of the
// process. What was needed once is kept. Any thread.
void* take_task_memory(std::size_t bytes);
void give_task_memory(void* memory) noexcept;

}  // namespace anabranch::cpu
