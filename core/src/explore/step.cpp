#include "step.hpp"

namespace anabranch::explore {

bool Step::conflicts(const Step& other) const noexcept {
  if (asked.index != 0 && asked == other.id) return true;
  if (other.asked.index != 0 && other.asked == id) return true;
  for (const MemoryUse& one : uses) {
    for (const MemoryUse& two : other.uses) {
      if (one.block == two.block && (writes(one.access) || writes(two.access)) && one.where.overlaps(two.where))
        return true;
    }
  }
  return false;
}

bool Step::same(const Step& other) const noexcept {
  return id == other.id && asked == other.asked &&
         std::equal(uses.begin(), uses.end(), other.uses.begin(), other.uses.end(),
                    [](const MemoryUse& one, const MemoryUse& two) {
                      return one.block == two.block && one.access == two.access &&
                             one.where.bytes() == two.where.bytes();
                    });
}

}  // namespace anabranch::explore
