#include "common/x86/cpuid_table.h"

#include <algorithm>
#include <utility>

namespace clew::x86 {
namespace {

constexpr uint32_t kHypervisor = 0x40000000;
constexpr uint32_t kExtended = 0x80000000;
constexpr uint32_t kLeavesMax = 0x40;     // of each of the three
constexpr uint32_t kSubLeavesMax = 0x20;  // XCR0 has bits up to 19

// Whether CPUID looks at ECX, too.
bool HasSubLeaves(uint32_t leaf) {
  constexpr uint32_t kThose[] = {
      0x4,  0x7,  0xb,  0xd,  0xf,        0x10,       0x12,
      0x14, 0x17, 0x18, 0x1a, 0x1b,       0x1d,       0x1e,
      0x1f, 0x20, 0x23, 0x24, 0x8000001d, 0x80000020, 0x80000026};
  return std::ranges::binary_search(kThose, leaf);
}

bool IsNothing(const CpuidResult& told) {
  return (told.eax | told.ebx | told.ecx | told.edx) == 0;
}

std::pair<uint32_t, uint32_t> PlaceOf(const CpuidLeaf& leaf) {
  return {leaf.leaf, leaf.sub_leaf};
}

}  // namespace

CpuidTable::CpuidTable(std::vector<CpuidLeaf> leaves)
    : leaves_(std::move(leaves)) {
  std::ranges::stable_sort(leaves_, {}, PlaceOf);
}

CpuidTable CpuidTable::Ask(
    const std::function<CpuidResult(uint32_t, uint32_t)>& ask) {
  std::vector<CpuidLeaf> leaves;
  for (const uint32_t first : {uint32_t{0}, kHypervisor, kExtended}) {
    const uint32_t last = ask(first, 0).eax;
    if (last < first) {
      continue;
    }
    const uint32_t count = std::min(last - first + 1, kLeavesMax);
    for (uint32_t leaf = first; leaf < first + count; ++leaf) {
      const uint32_t sub_leaves = HasSubLeaves(leaf) ? kSubLeavesMax : 1;
      for (uint32_t sub_leaf = 0; sub_leaf < sub_leaves; ++sub_leaf) {
        const CpuidResult told = ask(leaf, sub_leaf);
        if (!IsNothing(told)) {
          leaves.push_back({.leaf = leaf, .sub_leaf = sub_leaf, .told = told});
        }
      }
    }
  }
  return CpuidTable(std::move(leaves));
}

CpuidResult CpuidTable::Find(uint32_t leaf, uint32_t sub_leaf) const {
  const std::pair wanted(leaf, HasSubLeaves(leaf) ? sub_leaf : 0);
  const auto found = std::ranges::lower_bound(leaves_, wanted, {}, PlaceOf);
  return found != leaves_.end() && PlaceOf(*found) == wanted ? found->told
                                                             : CpuidResult();
}

}  // namespace clew::x86
