#ifndef CLEW_RECORDER_TRACER_RUNTIME_CODE_ENCODE_H_
#define CLEW_RECORDER_TRACER_RUNTIME_CODE_ENCODE_H_

#include <cstdint>

#include "recorder/tracer/runtime/code/arena.h"

// Instructions that copies need besides the program's.
// Source: Intel SDM vol. 2, "Instruction Set Reference".

namespace clew::tracer {

enum Register : uint8_t {
  kRax = 0,
  kRcx = 1,
  kRdx = 2,
  kRbx = 3,
  kRsp = 4,
  kRsi = 6,
  kRdi = 7,
  kNoRegister = kRsp,  // of those that a copy may use
};

constexpr uint32_t StateOffset(Register gpr) { return 8u * gpr; }

// mov gs:[offset], gpr; mov gpr, gs:[offset]
inline void StoreInState(Code& code, Register gpr, uint32_t offset) {
  code.Bytes({0x65, 0x48, 0x89, static_cast<uint8_t>(4 | gpr << 3), 0x25});
  code.Word(offset);
}
inline void LoadFromState(Code& code, Register gpr, uint32_t offset) {
  code.Bytes({0x65, 0x48, 0x8b, static_cast<uint8_t>(4 | gpr << 3), 0x25});
  code.Word(offset);
}
inline void Save(Code& code, Register gpr) {
  StoreInState(code, gpr, StateOffset(gpr));
}
inline void Restore(Code& code, Register gpr) {
  LoadFromState(code, gpr, StateOffset(gpr));
}

inline void Jump(Code& code, uint64_t target) {
  code.Byte(0xe9);
  code.Relative(target);
}

// mov gpr, value
inline void LoadNumber(Code& code, Register gpr, uint64_t value) {
  code.Bytes({0x48, static_cast<uint8_t>(0xb8 | gpr)});
  code.Long(value);
}

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_CODE_ENCODE_H_
