#ifndef CLEW_RECORDER_NATIVE_RAN_CODE_H_
#define CLEW_RECORDER_NATIVE_RAN_CODE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "common/x86/branch.h"
#include "recorder/native/known_code.h"
#include "recorder/native/leaps.h"
#include "recorder/pt_encoder/core_encoder.h"

namespace clew::recorder {

// What a trace has to know of a stretch that ran.
struct RanStretch {
  struct Branch {
    uint32_t insns = 0;  // up to it, with it
    uint32_t end = 0;    // behind it, in bytes from the start
    x86::BranchClass branch_class = x86::BranchClass::kNone;
  };
  uint64_t start = 0;
  std::vector<Branch> branches;
  std::vector<uint16_t> ends;  // of all instructions, likewise
  uint64_t version = 0;        // the latest of NativeInsn::version
  uint64_t changes = 0;        // KnownCode::changes(), when it was decoded

  // How many instructions a stretch of so many bytes has that begins so.
  size_t CountInsns(size_t bytes) const;
};

// The last instruction of a stretch that ran, of which it is not known yet what
// followed.
struct LastInsn {
  x86::BranchClass branch_class = x86::BranchClass::kNone;
  TraceeAddr fall_through;
};

// Encodes the branches of a stretch, but for one that is its last instruction.
// `before` is called with each before it. Returns how many instructions it has,
// and the last one if it has any. REQUIRES: `ran` is its, or begins so.
template <class Before>
std::pair<size_t, LastInsn> EncodeStretch(const CodeStretch& stretch,
                                          const RanStretch& ran,
                                          CoreEncoder& encoder, Before before) {
  const size_t bytes = stretch.code.size();
  const TraceeAddr end(stretch.start + bytes);
  for (const RanStretch::Branch& branch : ran.branches) {
    if (branch.end == bytes) {
      return {branch.insns, {branch.branch_class, end}};
    }
    if (branch.end > bytes) {
      break;
    }
    before(branch);
    const TraceeAddr next(stretch.start + branch.end);
    encoder.Branch(branch.branch_class, next, next);
  }
  return {ran.CountInsns(bytes), {x86::BranchClass::kNone, end}};
}

// The stretches that leaps told of, each decoded once. Memory: some bytes for
// each instruction of the code that has numbers.
class RanCode {
 public:
  // `code`, which is borrowed, learns of each instruction.
  explicit RanCode(KnownCode& code) : code_(code) {}

  // A stretch that ran, the first instruction of it at `now`; or one that
  // begins so. Holds until the next call. kCorruptInput: it has what is no
  // instruction.
  [[nodiscard]] Result<const RanStretch*> Find(const CodeStretch& stretch,
                                               uint64_t now);

 private:
  [[nodiscard]] Status Decode(const CodeStretch& stretch, uint64_t now,
                              RanStretch& ran);

  KnownCode& code_;
  std::vector<RanStretch> by_number_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_RAN_CODE_H_
