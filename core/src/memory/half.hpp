#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace anabranch {

// IEEE half precision, as bits: compilers differ in whether they have the type.
struct Half {
  std::uint16_t bits;
};

inline float float_of(Half half) noexcept {
  const std::uint32_t sign = (half.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (half.bits >> 10) & 0x1FU;
  const std::uint32_t mantissa = half.bits & 0x3FFU;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// Rounds to nearest, ties to even, in one step.
inline Half half_of(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000U);
  const std::uint64_t size = bits & ~(std::uint64_t{1} << 63);
  const auto with_sign = [sign](std::uint64_t rest) { return Half{static_cast<std::uint16_t>(sign | rest)}; };
  if (size > std::bit_cast<std::uint64_t>(HUGE_VAL)) return with_sign(0x7E00);
  if (size >= std::bit_cast<std::uint64_t>(65520.0)) return with_sign(0x7C00);
  if (size < std::bit_cast<std::uint64_t>(0x1p-14)) {
    return with_sign(static_cast<std::uint64_t>(std::nearbyint(std::fabs(value) * 0x1p24)));
  }
  const std::uint64_t rebased = size - (std::uint64_t{1023 - 15} << 52);
  constexpr int dropped = 52 - 10;
  constexpr std::uint64_t tie = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rest = rebased & (2 * tie - 1);
  const std::uint64_t kept = rebased >> dropped;
  return with_sign(kept + (rest > tie || (rest == tie && (kept & 1) != 0) ? 1 : 0));
}

}  // namespace anabranch
