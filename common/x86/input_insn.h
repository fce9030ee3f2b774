#ifndef CLEW_COMMON_X86_INPUT_INSN_H_
#define CLEW_COMMON_X86_INPUT_INSN_H_

#include <cstdint>
#include <span>

namespace clew::x86 {

// Instructions whose result user mode cannot compute. Source: Intel SDM vol. 2.
enum class InputInsn : uint8_t {
  kNone,
  kCpuid,
  kRdtsc,
  kRdtscp,
  kXgetbv,
  kOther,  // RDRAND, RDSEED
};
InputInsn ClassifyInput(std::span<const uint8_t> insn);

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_INPUT_INSN_H_
