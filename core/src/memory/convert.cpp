#include <array>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "anabranch/memory/layout.hpp"
#include "half.hpp"
#include "walk.hpp"

namespace anabranch {
namespace {

struct Boolean {
  std::uint8_t byte;
};

template <class T>
struct Complex {
  T real, imaginary;
};

// In the order of `ElementType`, without `raw`.
using Types = std::tuple<Boolean, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                         std::uint32_t, std::uint64_t, Half, float, double, Complex<float>, Complex<double>>;
constexpr std::size_t types = std::tuple_size_v<Types>;

template <class T>
constexpr bool is_complex = std::is_same_v<T, Complex<float>> || std::is_same_v<T, Complex<double>>;

// The number to calculate with.
template <class T>
auto value_of(T item) noexcept {
  if constexpr (std::is_same_v<T, Boolean>) {
    return static_cast<std::uint8_t>(item.byte != 0);
  } else if constexpr (std::is_same_v<T, Half>) {
    return float_of(item);
  } else {
    return item;
  }
}

// Towards zero, and then the low bits, which is what NumPy does with a number that fits 64 bits. C++ leaves other
// numbers undefined; here they become the nearest that fits, and NaN becomes 0.
template <class To>
To whole_of(double value) noexcept {
  if (value != value) return 0;
  if (std::is_same_v<To, std::uint64_t> && value >= 0) {
    return static_cast<To>(value < 0x1p64 ? static_cast<std::uint64_t>(value) : ~std::uint64_t{0});
  }
  if (value < -0x1p63) value = -0x1p63;
  return static_cast<To>(value < 0x1p63 ? static_cast<std::int64_t>(value) : INT64_MAX);
}

template <class To, class Value>
To real_as(Value value) noexcept {
  if constexpr (std::is_same_v<To, Boolean>) {
    return {static_cast<std::uint8_t>(value != 0)};
  } else if constexpr (std::is_same_v<To, Half>) {
    // NumPy rounds integers to single precision first.
    if constexpr (std::is_integral_v<Value>) return half_of(static_cast<float>(value));
    return half_of(static_cast<double>(value));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Value>) {
    return whole_of<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
To converted(From item) noexcept {
  if constexpr (std::is_same_v<To, Boolean> && is_complex<From>) {
    return {static_cast<std::uint8_t>(item.real != 0 || item.imaginary != 0)};
  } else if constexpr (is_complex<To> && is_complex<From>) {
    using Part = decltype(To::real);
    return {static_cast<Part>(item.real), static_cast<Part>(item.imaginary)};
  } else if constexpr (is_complex<To>) {
    return {static_cast<decltype(To::real)>(value_of(item)), 0};
  } else {
    return real_as<To>(value_of(item));
  }
}

using Run = void (*)(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
                     std::int64_t count) noexcept;

template <class To, class From>
void convert_run(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
                 std::int64_t count) noexcept {
  const auto each = [&](std::int64_t to, std::int64_t from) {
    for (std::int64_t i = 0; i < count; ++i) {
      From item;
      std::memcpy(&item, src + i * from, sizeof item);
      const To result = converted<To>(item);
      std::memcpy(dst + i * to, &result, sizeof result);
    }
  };
  // Constant strides compile to wide loads and stores.
  if (dst_stride == sizeof(To) && src_stride == sizeof(From)) return each(sizeof(To), sizeof(From));
  each(dst_stride, src_stride);
}

// The callers refuse what would drop an imaginary part.
template <std::size_t Pair>
constexpr Run run_of_pair() noexcept {
  using To = std::tuple_element_t<Pair / types, Types>;
  using From = std::tuple_element_t<Pair % types, Types>;
  if constexpr (is_complex<From> && !is_complex<To> && !std::is_same_v<To, Boolean>)
    return nullptr;
  else
    return &convert_run<To, From>;
}

template <std::size_t... Pairs>
constexpr std::array<Run, sizeof...(Pairs)> make_runs(std::index_sequence<Pairs...>) noexcept {
  return {run_of_pair<Pairs>()...};
}

constexpr auto runs = make_runs(std::make_index_sequence<types * types>());

std::size_t place_of(ElementType type) noexcept { return static_cast<std::size_t>(type) - 1; }

}  // namespace

void convert_elements(const Elements& dst, const Elements& src, std::int64_t count) noexcept {
  walk_together(dst, src, count, runs[place_of(dst.type) * types + place_of(src.type)]);
}

}  // namespace anabranch
