#ifndef CLEW_RECORDER_QEMU_CALLS_SYSCALL_EFFECTS_H_
#define CLEW_RECORDER_QEMU_CALLS_SYSCALL_EFFECTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/linux/syscall_reads.h"
#include "common/linux/syscall_table.h"
#include "common/result.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/input_writer.h"

namespace clew::recorder {

// A call with what must be known from before it ran.
struct SyscallCall {
  const SyscallRow* row = nullptr;
  uint64_t number = 0;
  std::array<uint64_t, 6> args = {};
  uint32_t length_before = 0;  // for Extent::kLengthAt
  TscTicks entered_tsc;        // 0: not to be recorded
  std::optional<uint64_t> read_digest = {};
};

// The call as the log has it, not returned yet.
inline SyscallInput InputOf(const SyscallCall& call) {
  SyscallInput input;
  input.number = call.number;
  input.args = call.args;
  input.entered_tsc = call.entered_tsc;
  input.read_digest = call.read_digest;
  return input;
}

// At the call. kUnsupported: the recorder does not know the call, or not this
// use of it (a child process in the same memory, ...).
[[nodiscard]] Result<SyscallCall> BeginSyscall(
    uint64_t number, const std::array<uint64_t, 6>& args,
    const GuestMemory& memory);

// What the call is given to read, as the program has it at the call.
struct SyscallReads {
  std::vector<MemoryRange> ranges;
  std::optional<uint64_t> digest;  // DigestOfReads
};
SyscallReads ReadsOf(const SyscallCall& call, const GuestMemory& memory);

// True if the call makes a process of its own and not a thread: it returns 0
// there.
bool MakesProcess(const SyscallCall& call);

// Whether the call sets a timer, which may end what another one waits for.
bool StartsTimer(const SyscallCall& call);

// Of exit and exit_group.
inline int32_t ExitStatusOf(const SyscallCall& call) {
  return static_cast<int32_t>(call.args[0] & 0xff);
}

struct SyscallEffects {
  std::vector<MemoryRange> writes;  // by the kernel, into the program
  std::vector<MemoryRange> output;  // read by the kernel as output
  bool has_output = false;
};

// After the call returned `result` (negative: -errno). kUnsupported: its
// effects are not known; the message names the call.
[[nodiscard]] Result<SyscallEffects> EffectsOf(const SyscallCall& call,
                                               int64_t result,
                                               const GuestMemory& memory);

// Sets output_digest and output_bytes of `input`.
void NoteOutput(const SyscallEffects& effects, const GuestMemory& memory,
                SyscallInput& input);

// True if the call may wait, so that others have to run meanwhile. Looks at the
// descriptor where that decides.
bool MayBlock(const SyscallCall& call, const GuestMemory& memory);

// What a futex call does to sleepers (linux/futex.h).
struct FutexCall {
  // kLock, kOwner: of a lock with priority inheritance, which may be waited
  // for, and which is not.
  enum class Kind : uint8_t {
    kWait,
    kWake,
    kRequeue,
    kWakeOp,
    kLock,
    kOwner,
    kOther
  };
  Kind kind = Kind::kOther;
  uint64_t addr = 0;
  uint64_t addr2 = 0;
  uint32_t value = 0;
  uint32_t value2 = 0;
  uint32_t bitset = UINT32_MAX;
  bool timed = false;       // may end by itself
  bool is_private = false;  // its sleepers are of this process
};
FutexCall ParseFutex(const std::array<uint64_t, 6>& args);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_SYSCALL_EFFECTS_H_
