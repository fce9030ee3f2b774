#ifndef CLEW_COMMON_X86_CPUID_TABLE_H_
#define CLEW_COMMON_X86_CPUID_TABLE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/x86/features.h"

namespace clew::x86 {

// What CPUID tells in one leaf, or in one sub-leaf of it.
struct CpuidLeaf {
  uint32_t leaf = 0;
  uint32_t sub_leaf = 0;  // 0 of a leaf that has none
  CpuidResult told;
};

// All that CPUID tells, as values. What a core tells of itself (its APIC id) is
// that of the core that was asked. Source: Intel SDM vol. 2, "CPUID"; AMD64 APM
// vol. 3, appendix E.
class CpuidTable {
 public:
  CpuidTable() = default;
  // In any order; of two of the same sub-leaf the first counts.
  explicit CpuidTable(std::vector<CpuidLeaf> leaves);

  // Asks for every leaf, as a program may: of the basic ones, of a hypervisor's
  // and of the extended ones as many as the first of them says that there are.
  static CpuidTable Ask(
      const std::function<CpuidResult(uint32_t leaf, uint32_t sub_leaf)>& ask);

  // Returns what CPUID tells for these EAX and ECX; zeros where there is
  // nothing.
  CpuidResult Find(uint32_t leaf, uint32_t sub_leaf) const;
  // By leaf, then by sub-leaf. None is all zeros.
  const std::vector<CpuidLeaf>& leaves() const { return leaves_; }

 private:
  std::vector<CpuidLeaf> leaves_;
};

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_CPUID_TABLE_H_
