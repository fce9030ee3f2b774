#include "recorder/native/ran_code.h"

#include <algorithm>

#include "common/x86/layout.h"

namespace clew::recorder {

using x86::BranchClass;

size_t RanStretch::CountInsns(size_t bytes) const {
  if (!ends.empty() && ends.back() == bytes) {
    return ends.size();
  }
  const auto behind = std::ranges::lower_bound(ends, bytes);
  return static_cast<size_t>(behind - ends.begin()) +
         (behind != ends.end() && *behind == bytes ? 1 : 0);
}

Result<const RanStretch*> RanCode::Find(const CodeStretch& stretch,
                                        uint64_t now) {
  if (stretch.number >= by_number_.size()) {
    by_number_.resize(stretch.number + 1);
  }
  RanStretch& ran = by_number_[stretch.number];
  // A number may be another stretch's by now.
  const bool is_known =
      stretch.number != 0 && ran.start == stretch.start && !ran.ends.empty() &&
      ran.ends.back() >= stretch.code.size() && ran.changes == code_.changes();
  if (!is_known) {
    CLEW_RETURN_IF_ERROR(Decode(stretch, now, ran));
  }
  return &ran;
}

Status RanCode::Decode(const CodeStretch& stretch, uint64_t now,
                       RanStretch& ran) {
  ran.start = stretch.start;
  ran.branches.clear();
  ran.ends.clear();
  ran.version = 0;
  for (size_t at = 0; at < stretch.code.size();) {
    const auto rest = stretch.code.subspan(at);
    const auto bytes = rest.first(x86::ScanLayout(rest).length);
    if (bytes.empty()) {
      return CorruptInput("the tracer tells of no instruction at {:#x}",
                          stretch.start + at);
    }
    const NativeInsn insn = code_.Executed(stretch.start + at, bytes, now);
    at += bytes.size();
    ran.ends.push_back(static_cast<uint16_t>(at));
    if (insn.branch_class != BranchClass::kNone &&
        insn.branch_class != BranchClass::kRepString) {
      ran.branches.push_back({static_cast<uint32_t>(ran.ends.size()),
                              static_cast<uint32_t>(at), insn.branch_class});
    }
    ran.version = std::max(ran.version, insn.version);
  }
  ran.changes = code_.changes();
  return {};
}

}  // namespace clew::recorder
