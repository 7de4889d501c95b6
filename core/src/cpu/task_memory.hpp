#pragma once

#include <cstddef>

namespace anabranch::cpu {

// Memory for tasks. One thread allocates many of them and another one frees them. With malloc, each burst would return
// its pages to the system, the next would request them again, and all threads of the process would contend for one
// lock. This allocator keeps its memory instead. Any thread may call it.
void* take_task_memory(std::size_t bytes);
void give_task_memory(void* memory) noexcept;

}  // namespace anabranch::cpu
