#include "machine/registers.h"

#include <algorithm>
#include <span>

#include "common/digest.h"

namespace clew::machine {
namespace {

// Structured bindings name every field: one more in the struct, and this does
// not compile until it is digested too.
class RegisterDigest {
 public:
  void Add(uint64_t word) {
    digest_ = MixBits(digest_ * 0x9e3779b97f4a7c15u + word);
  }
  void Add(const Vec128& value) {
    const auto& [q] = value;
    AddAll(q);
  }
  // What is all zeros, as upper halves and what only EVEX can name mostly are,
  // is one word.
  void Add(const VecLane& lane) {
    const std::span all(lane);
    AddUnlessZero(all.first<kLowVecRegisters>());
    AddUnlessZero(all.subspan<kLowVecRegisters>());
  }
  void Add(const Float80& value) {
    const auto& [significand, sign_exponent] = value;
    Add(significand);
    Add(sign_exponent);
  }
  void Add(const X87& x87) {
    const auto& [regs, control, status, tag, in_use] = x87;
    AddAll(regs);
    Add(control);
    Add(status);
    Add(tag);
    Add(in_use);
  }
  void Add(const Registers& registers) {
    const auto& [gpr, rip, rflags, fs_base, gs_base, vec, opmask, mxcsr,
                 mxcsr_mask, avx_in_use, opmask_in_use, zmm_in_use,
                 high_zmm_in_use, x87] = registers;
    AddAll(gpr);
    Add(rip);
    Add(rflags);
    Add(fs_base);
    Add(gs_base);
    AddAll(vec);
    AddAll(opmask);
    Add(mxcsr);
    Add(mxcsr_mask);
    Add(avx_in_use);
    Add(opmask_in_use);
    Add(zmm_in_use);
    Add(high_zmm_in_use);
    Add(x87);
  }

  uint64_t value() const { return digest_; }

 private:
  void AddUnlessZero(std::span<const Vec128> values) {
    const bool used = std::ranges::any_of(
        values, [](const Vec128& value) { return value != Vec128(); });
    Add(uint64_t{used});
    if (used) {
      AddAll(values);
    }
  }
  void AddAll(const auto& values) {
    for (const auto& value : values) {
      Add(value);
    }
  }

  uint64_t digest_ = 0;
};

}  // namespace

uint64_t DigestOf(const Registers& registers) {
  RegisterDigest digest;
  digest.Add(registers);
  return digest.value();
}

}  // namespace clew::machine
