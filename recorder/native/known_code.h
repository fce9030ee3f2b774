#ifndef CLEW_RECORDER_NATIVE_KNOWN_CODE_H_
#define CLEW_RECORDER_NATIVE_KNOWN_CODE_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "common/x86/branch.h"
#include "recorder/qemu/code_list.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/insn_effects.h"
#include "recorder/qemu/tracer.h"

namespace clew::recorder {

// What a stepper has to know of an instruction before it is executed.
struct NativeInsn {
  x86::BranchClass branch_class = x86::BranchClass::kNone;
  InputInsn input = InputInsn::kNone;
  bool is_syscall = false;
  // XSAVE and its kin: EDX:EAX says which state components.
  bool chooses_components = false;
  uint8_t pushes_flags_bytes = 0;  // PUSHF: what it pushes; else 0
  TraceeAddr fall_through;
};

// The code of a program: that of its files, each address read once.
class KnownCode {
 public:
  // Instructions go to `list`, each sequence of bytes once.
  explicit KnownCode(RawFile list) : list_(std::move(list)) {}

  void Map(const ExecMapping& mapping);
  // Mappings have changed: `addr` to `addr + size_bytes` is what was mapped
  // last there, or nothing.
  void Unmap(uint64_t addr, uint64_t size_bytes);

  // One that cannot be executed is like any other: it faults. kUnsupported: it
  // is in no file's code.
  [[nodiscard]] Result<NativeInsn> At(uint64_t ip, const GuestMemory& memory);

  RawFile& file() { return list_.file(); }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  bool IsOfFile(uint64_t ip) const;

  CodeListWriter list_;
  std::vector<Range> ranges_;
  std::unordered_map<uint64_t, NativeInsn> known_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_KNOWN_CODE_H_
