#ifndef CLEW_RECORDER_NATIVE_KNOWN_CODE_H_
#define CLEW_RECORDER_NATIVE_KNOWN_CODE_H_

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "common/x86/branch.h"
#include "common/x86/input_insn.h"
#include "recorder/native/mapped_files.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/code_list.h"
#include "recorder/qemu/generated_code.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/raw_file.h"
#include "recorder/qemu/tracer.h"

namespace clew::recorder {

// What a stepper has to know of an instruction before it is executed.
struct NativeInsn {
  x86::BranchClass branch_class = x86::BranchClass::kNone;
  x86::InputInsn input = x86::InputInsn::kNone;
  bool is_syscall = false;
  // XSAVE and its kin: EDX:EAX says which state components.
  bool chooses_components = false;
  uint8_t pushes_flags_bytes = 0;  // PUSHF: what it pushes; else 0
  TraceeAddr fall_through;
  uint64_t version = 0;  // GeneratedCode::Look::version
};

// The code of a program: of its files, each address read once; and what it
// made, read whenever it is about to be executed, and recorded when it is
// another.
class KnownCode {
 public:
  // Instructions go to `list`, each sequence of bytes once; code that no file
  // holds to `generated` (recorder/qemu/raw_code.h). `files`, which may be
  // null, holds those that are mapped, and has to outlive it.
  KnownCode(RawFile list, RawFile generated, MappedFiles* files = nullptr)
      : list_(std::move(list)),
        generated_(std::move(generated)),
        files_(files) {}

  void Map(const ExecMapping& mapping);
  // After a call that may have changed what is mapped.
  void Release(const SyscallCall& call, uint64_t result);

  // The instruction at `ip`, which is about to be executed, at time `now`. One
  // that cannot be executed is like any other: it faults.
  NativeInsn At(uint64_t ip, const GuestMemory& memory, uint64_t now);
  // One that was executed then.
  NativeInsn Executed(uint64_t ip, std::span<const uint8_t> insn, uint64_t now);
  // Counts what may have made one of those into another, or changed its
  // version.
  uint64_t changes() const { return cleared_ + code_.latest_version(); }
  // Of NativeInsn::version, the latest.
  uint64_t latest_version() const { return code_.latest_version(); }

  [[nodiscard]] Status Close();

 private:
  void Clear() {
    known_.clear();
    ++cleared_;
  }
  bool IsExecutable(uint64_t ip, int32_t process);
  NativeInsn Look(uint64_t ip, std::span<const uint8_t> insn, uint64_t now);
  void WriteChange(const CodeChange& change, std::span<const std::byte> bytes,
                   uint64_t now);

  CodeListWriter list_;
  RawFile generated_;
  MappedFiles* files_;
  GeneratedCode code_;
  std::unordered_map<uint64_t, NativeInsn> known_;  // of files
  uint64_t cleared_ = 0;                 // how often some was dropped
  std::vector<MemoryRange> executable_;  // by address
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_KNOWN_CODE_H_
