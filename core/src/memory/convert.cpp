#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
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
    return std::min(item.byte, std::uint8_t{1});
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

// The same as `value != 0` for numbers of 64 bits, as what SSE2 can do with several: it compares 32 bits at most.
template <class Value>
bool is_true(Value value) noexcept {
  if constexpr (sizeof(Value) < 8) {
    return value != 0;
  } else {
    const auto bits = std::bit_cast<std::uint64_t>(value) << (std::is_floating_point_v<Value> ? 1 : 0);
    return (static_cast<std::uint32_t>(bits) | static_cast<std::uint32_t>(bits >> 32)) != 0;
  }
}

template <class To, class Value>
To real_as(Value value) noexcept {
  if constexpr (std::is_same_v<To, Boolean>) {
    return {static_cast<std::uint8_t>(is_true(value))};
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

// Constant strides compile to wide loads and stores.
template <class To, class From, class Convert>
void convert_each(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
                  std::int64_t count, Convert convert) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    From item;
    std::memcpy(&item, src + i * src_stride, sizeof item);
    const To result = convert(item);
    std::memcpy(dst + i * dst_stride, &result, sizeof result);
  }
}

// The leading 32 bits of a number without its sign, which are in the order of the numbers; those of NaN are the
// largest.
template <class From>
constexpr std::int32_t leading_bits(From value) noexcept {
  if constexpr (sizeof(From) == 4)
    return std::bit_cast<std::int32_t>(value) & 0x7FFFFFFF;
  else
    return static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(value) >> 32) & 0x7FFFFFFF;
}

// Rounds towards zero, with 0 for NaN. False if a number does not fit.
template <class From>
bool round_to_int32(std::int32_t* dst, const std::byte* src, std::int64_t count) noexcept {
  constexpr From limit{0x1p31};
  constexpr std::int32_t least = leading_bits(limit);
  constexpr std::int32_t infinite = leading_bits(std::numeric_limits<From>::infinity());
  std::int32_t beyond = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    From item;
    std::memcpy(&item, src + i * sizeof item, sizeof item);
    dst[i] = static_cast<std::int32_t>(std::fabs(item) < limit ? item : From{0});
    // Negative if `bits` is between the two; comparisons would take longer.
    const std::int32_t bits = leading_bits(item);
    beyond |= (least - 1 - bits) & ~(infinite - bits);
  }
  return beyond >= 0;
}

// Processors convert several floats at once to integers of 32 bits, from which others are made, but one by one to
// integers of 64 bits.
template <class To, class From>
void convert_to_whole(std::byte* dst, const std::byte* src, std::int64_t count) noexcept {
  constexpr std::int64_t most = 512;
  std::int32_t whole[most];
  for (std::int64_t start = 0; start < count; start += most) {
    const std::int64_t some = std::min(most, count - start);
    std::byte* const to = dst + start * sizeof(To);
    const std::byte* const from = src + start * sizeof(From);
    if (round_to_int32<From>(whole, from, some)) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(whole);
      convert_each<To, std::int32_t>(to, sizeof(To), bytes, sizeof(std::int32_t), some, &converted<To, std::int32_t>);
    } else {
      convert_each<To, From>(to, sizeof(To), from, sizeof(From), some, &converted<To, From>);
    }
  }
}

template <class To, class From>
void convert_run(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
                 std::int64_t count) noexcept {
  if (dst_stride != sizeof(To) || src_stride != sizeof(From)) {
    convert_each<To, From>(dst, dst_stride, src, src_stride, count, &converted<To, From>);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    convert_to_whole<To, From>(dst, src, count);
  } else {
    convert_each<To, From>(dst, sizeof(To), src, sizeof(From), count, &converted<To, From>);
  }
}

template <class T, bool Signed>
using WithSign = typename std::conditional_t<Signed, std::type_identity<T>, std::make_unsigned<T>>::type;

// Conversions that give the same bits share their code: to an integer with and without a sign, but for numbers beyond
// all of one; and from one that does not get wider.
template <class To, class From>
constexpr Run shared_run() noexcept {
  constexpr bool to_sign = !std::is_integral_v<To> || (sizeof(To) == 8 && !std::is_integral_v<From>);
  constexpr bool from_sign = !std::is_integral_v<From> || !std::is_integral_v<To> || sizeof(To) > sizeof(From);
  return &convert_run<WithSign<To, to_sign>, WithSign<From, from_sign>>;
}

// The callers refuse what would drop an imaginary part.
template <std::size_t Pair>
constexpr Run run_of_pair() noexcept {
  using To = std::tuple_element_t<Pair / types, Types>;
  using From = std::tuple_element_t<Pair % types, Types>;
  if constexpr (is_complex<From> && !is_complex<To> && !std::is_same_v<To, Boolean>)
    return nullptr;
  else
    return shared_run<To, From>();
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
