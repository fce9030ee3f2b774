#ifndef CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_FORMS_H_
#define CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_FORMS_H_

#include <cstdint>
#include <vector>

#include "tests/recorder/tracer/code_writer.h"
#include "tests/recorder/tracer/random_code_program.h"

// The instructions with a ModRM byte that may stand anywhere: they do not fault
// whatever registers and memory contain, and do not transfer control.
//
// Source: Intel SDM vol. 2, "Instruction Set Reference".

namespace clew::tracer::random_code {

// What is particular to a form. The registers that ModRM.reg, ModRM.rm and vvvv
// name are general ones of the operand size unless stated.
enum FormTrait : uint32_t {
  // Operand size. None: 4 bytes.
  kByte = 1u << 0,
  kSized = 1u << 1,  // 2, 4 or 8 bytes; 4 or 8 with kNo16
  kWide = 1u << 2,   // 8 bytes
  kNo16 = 1u << 3,
  kVector = 1u << 4,  // 16 bytes, 32 or 64 where VEX and EVEX say so

  // Registers.
  kVectorReg = 1u << 5,
  kVectorRm = 1u << 6,
  kMaskReg = 1u << 7,  // of AVX-512
  kWritesReg = 1u << 8,
  kWritesRm = 1u << 9,
  kWritesRcx = 1u << 10,
  kVvvvVector = 1u << 11,
  kVvvv = 1u << 12,  // general
  kWritesVvvv = 1u << 13,

  // ModRM.rm.
  kMemory = 1u << 14,    // never a register
  kRegister = 1u << 15,  // never memory
  kAligned = 1u << 16,   // faults otherwise, or may be slow
  kLocks = 1u << 17,     // may have LOCK
  kNoAccess = 1u << 18,  // an address alone, or a hint

  // What is behind.
  kImm8 = 1u << 19,
  kImm = 1u << 20,  // 2 or 4 bytes
  kImmRegister = 1u << 21,

  // VEX and EVEX.
  kLength256 = 1u << 22,   // never 128 bits
  kLength128 = 1u << 23,   // always 128 bits, or scalar
  kMasked = 1u << 24,      // EVEX: any mask
  kZeroes = 1u << 25,      // EVEX: may zero what the mask leaves out
  kBroadcasts = 1u << 26,  // EVEX: an element of 4 bytes, or 8 if kWide

  kNeedsV2 = 1u << 27,
};

// Any register in ModRM.reg.
inline constexpr int8_t kAnyReg = -1;

struct Form {
  uint32_t traits = 0;
  uint8_t mandatory = 0;  // the prefix 66, F2, F3
  OpcodeMap map = OpcodeMap::kOne;
  uint8_t opcode = 0;
  int8_t reg = kAnyReg;
  uint8_t memory_bytes = 0;  // 0: the operand size
  Scheme scheme = Scheme::kLegacy;

  bool Has(uint32_t trait) const { return (traits & trait) != 0; }
};

// Those that the CPU has, by kind; empty if it has none.
struct Forms {
  std::vector<Form> integer;
  std::vector<Form> sse;
  std::vector<Form> vex;
  std::vector<Form> evex;
};

Forms FormsOf(const Features& features);

}  // namespace clew::tracer::random_code

#endif  // CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_FORMS_H_
