#ifndef CLEW_TESTS_MACHINE_VECTOR_X87_FORMS_H_
#define CLEW_TESTS_MACHINE_VECTOR_X87_FORMS_H_

#include <cstdint>
#include <vector>

#include "machine/registers.h"

// Every x87 instruction of machine/insn/x87_*.cc, by its encoding, but for
// those that store or load the whole environment.

namespace clew::machine {

enum class X87Data : uint8_t { kNone, kNumber, kFloat80, kBcd, kControl };

struct X87Form {
  uint8_t opcode;             // 0xd8..0xdf
  uint8_t modrm;              // a register form, or [rsi]
  uint16_t undefined_status;  // condition codes left undefined by the manual
  X87Data data;               // what is in memory
  // More of them left undefined where the result is a NaN.
  uint16_t undefined_if_nan = 0;
};
using X87Forms = std::vector<X87Form>;

// Register forms are listed for each st(i).
X87Forms AllX87Forms();

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_VECTOR_X87_FORMS_H_
