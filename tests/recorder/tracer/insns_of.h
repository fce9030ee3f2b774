#ifndef CLEW_TESTS_RECORDER_TRACER_INSNS_OF_H_
#define CLEW_TESTS_RECORDER_TRACER_INSNS_OF_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/x86/branch.h"
#include "common/x86/layout.h"
#include "recorder/native/leaps.h"

namespace clew::tracer {

// An instruction that a log tells of.
struct RanInsn {
  uint64_t ip = 0;
  bool repeats = false;  // a REP, which single steps stop in again and again
};

inline std::vector<RanInsn> InsnsOf(const recorder::CodeStretch& stretch) {
  std::vector<RanInsn> insns;
  for (size_t at = 0; at < stretch.code.size();) {
    const auto rest = stretch.code.subspan(at);
    const x86::Layout layout = x86::ScanLayout(rest);
    EXPECT_EQ(layout.status, x86::LayoutStatus::kWhole);
    if (layout.length == 0) {
      break;
    }
    const x86::Branch branch =
        x86::ClassifyBranch(layout.opcode, rest.first(layout.length));
    insns.push_back({stretch.start + at,
                     branch.branch_class == x86::BranchClass::kRepString});
    at += layout.length;
  }
  return insns;
}

}  // namespace clew::tracer

#endif  // CLEW_TESTS_RECORDER_TRACER_INSNS_OF_H_
