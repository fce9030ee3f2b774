#ifndef CLEW_COMMON_INPUTS_H_
#define CLEW_COMMON_INPUTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "common/x86/cpuid_table.h"
#include "common/x86/features.h"

// What came into the traced process from outside, as plain values. The bundle's
// inputs.pb and start.pb carry them (proto/bundle.proto is the specification).

namespace clew {

struct MemoryWrite {
  TraceeAddr addr;
  std::vector<std::byte> bytes;
};

// One system call, from its SYSCALL instruction to the return to user mode.
struct SyscallInput {
  uint64_t number = 0;
  std::array<uint64_t, 6> args = {};  // rdi, rsi, rdx, r10, r8, r9
  // rax afterwards; absent if the call never returned (exit, blocked for good).
  std::optional<int64_t> result;
  std::vector<MemoryWrite> writes;  // what the kernel wrote into the process
  // What the call read from the process as output (write, send, ...): its size
  // and Digest(). Absent for calls that output nothing.
  std::optional<uint64_t> output_digest;
  uint64_t output_bytes = 0;
  // DigestOfReads() (common/linux/syscall_reads.h) of the memory that the call
  // was given to read, when it was entered. Absent: it is not known.
  std::optional<uint64_t> read_digest;
  // Of one that mapped memory shared (mmap, shmat): which file or segment.
  // Equal numbers are one memory; 0: that is not known, or it is a new one.
  uint64_t shared_memory = 0;
  // Of one that wrote its output to that file: from where on. The program may
  // have it mapped, and nothing says so in `writes`.
  std::optional<uint64_t> written_offset;
  // When the kernel was entered and left: SYSCALL retired at or before the
  // first, the thread's next instruction after the second. 0: not known.
  TscTicks entered_tsc;
  TscTicks left_tsc;
};

// Whether other threads may have run between the call's entry and its return.
inline bool TookTime(const SyscallInput& call) {
  return call.left_tsc > call.entered_tsc;
}

// Whom a call of the process itself sent a signal to.
enum class SentTo : uint8_t {
  kUnknown,  // it came from elsewhere, or that is not known
  kThread,   // tkill, tgkill, rt_tgsigqueueinfo
  kProcess,  // kill, rt_sigqueueinfo
};

// A signal handler was entered.
struct SignalInput {
  int32_t number = 0;
  TraceeAddr interrupted_ip;
  TraceeAddr handler_ip;
  // Registers on entry to the handler.
  uint64_t rsp = 0;
  uint64_t rdi = 0;
  uint64_t rsi = 0;
  uint64_t rdx = 0;
  uint64_t rax = 0;
  std::vector<MemoryWrite> writes;  // the signal frame
  SentTo sent_to = SentTo::kUnknown;
};

// The results of an instruction whose outcome user mode cannot compute: CPUID,
// RDTSC, RDTSCP, XGETBV, RDRAND, RDSEED. Registers it does not write hold what
// they held.
struct InsnInput {
  TraceeAddr ip;
  uint64_t rax = 0;
  uint64_t rbx = 0;
  uint64_t rcx = 0;
  uint64_t rdx = 0;
  uint64_t rflags = 0;  // arithmetic flags afterwards (RDRAND, RDSEED)
};

// Calls and signals of which not everything was recorded: a gap. The thread
// must not be followed past it.
struct UnknownInput {
  uint64_t count = 1;
  std::string cause;  // for people
  // The call's, where it is one and known.
  std::optional<uint64_t> call_number = {};
};

using InputRecord =
    std::variant<SyscallInput, SignalInput, InsnInput, UnknownInput>;

// Inputs of each thread, in its program order. Not thread-safe.
class InputSource {
 public:
  virtual ~InputSource() = default;
  // nullopt after the thread's last one.
  [[nodiscard]] virtual Result<std::optional<InputRecord>> Next(Tid thread) = 0;
};

inline constexpr uint32_t kProtRead = 1;  // as in mmap(2)
inline constexpr uint32_t kProtWrite = 2;
inline constexpr uint32_t kProtExec = 4;

// A stretch of memory at the first recorded instruction. Bytes past
// bytes.size() are zero.
struct StartSegment {
  TraceeAddr addr;
  uint64_t size_bytes = 0;     // a multiple of the page size
  uint32_t prot = 0;           // kProt...
  std::string name;            // "[stack]", "[heap]", the file mapped, or empty
  uint64_t file_offset = 0;    // where a file or a segment is mapped
  uint64_t shared_memory = 0;  // as SyscallInput's; 0: it is private
  std::vector<std::byte> bytes;
};

// Index of each general register in gpr arrays: the encoding's own numbers.
enum Gpr : uint8_t {
  kRax = 0,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
};

// A thread at the beginning of a recording, in user mode.
struct StartThread {
  Tid thread;
  std::array<uint64_t, 16> gpr = {};
  TraceeAddr rip;
  uint64_t rflags = 0x202;
  uint64_t fs_base = 0;
  uint64_t gs_base = 0;
  // Of a new process.
  uint32_t mxcsr = 0x1f80;
  uint16_t x87_control = 0x37f;
  // All x87 and vector registers, in the place of the above: an XSAVE area in
  // the standard format (Intel SDM vol. 1, "XSAVE Area"), as ptrace(2) reads it
  // (NT_X86_XSTATE). Empty: of a new process.
  std::vector<std::byte> xsave = {};
  // Of the struct rseq that it has registered (rseq(2)), where the kernel
  // writes which CPU the thread is on; 0: none.
  uint64_t rseq_addr = 0;
};

// What the recorded CPU told the program, whenever it asked.
struct ToldCpu {
  x86::CpuidTable cpuid;
  uint64_t xcr0 = 0;  // XGETBV of 0; 0: it has no XGETBV
};

struct StartState {
  StartThread first;                // of the process
  std::vector<StartThread> others;  // that there were besides
  // Where the kernel put argc, argv, environment and auxiliary vector.
  TraceeAddr initial_stack;
  // MXCSR_MASK as FXSAVE of the CPU stores it; 0: QEMU 7.2 stands for the CPU.
  uint32_t mxcsr_mask = 0;
  x86::FeatureSet cpu_features = x86::kX86_64V2;  // of the recorded CPU
  // The input log has no InsnInput: CPUID and XGETBV give what this says, RDTSC
  // and RDTSCP the time of the trace. nullopt: it has one for each.
  std::optional<ToldCpu> told_cpu = {};
  TraceeAddr brk;  // end of the heap
  std::vector<StartSegment> segments;
};

enum class FailureKind : uint8_t {
  kNone,       // the run ended as it should
  kSignal,     // a fatal signal; number in Failure::signal (SIGABRT: abort,
               // assert)
  kExit,       // a status that --fail-on names
  kHang,       // no thread could go on
  kTimeLimit,  // cut off by the recording's time limit
};
// "none", "signal", "exit", "hang", "time limit".
std::string_view ToString(FailureKind kind);
// False where no thread is to blame.
inline bool HasFailingThread(FailureKind kind) {
  return kind == FailureKind::kSignal || kind == FailureKind::kExit;
}

// How the recorded run ended.
struct Failure {
  FailureKind kind = FailureKind::kNone;
  int32_t signal = 0;
  int32_t exit_status = 0;  // also for kNone
  Tid thread;               // the one that failed; 0 where none is to blame
  TraceeAddr ip;            // the failing instruction (after it, for a SYSCALL)
  TraceeAddr addr;          // what SIGSEGV and SIGBUS accessed
  bool operator==(const Failure&) const = default;
};

}  // namespace clew

#endif  // CLEW_COMMON_INPUTS_H_
