#ifndef CLEW_SOLVER_DESCRIPTOR_USE_H_
#define CLEW_SOLVER_DESCRIPTOR_USE_H_

#include <cstdint>
#include <vector>

#include "common/inputs.h"

namespace clew::solver {

// What a call does with the number of a descriptor.
struct DescriptorUse {
  uint32_t descriptor = 0;
  // Afterwards the number stands for another file, for none, or for another
  // position in it; otherwise the call uses what it stands for.
  bool changes = false;
};

// Returns nothing for calls of which that is not known. A call that failed
// changes nothing.
std::vector<DescriptorUse> UsesOf(const SyscallInput& call);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_DESCRIPTOR_USE_H_
