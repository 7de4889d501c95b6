// What most Cython modules include, which a build reads once: a third of its time goes into reading headers.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ios>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "anabranch/_core/translate.hpp"
#include "anabranch/runtime.hpp"
