#ifndef CLEW_RECORDER_TRACER_SHARED_LAYOUT_H_
#define CLEW_RECORDER_TRACER_SHARED_LAYOUT_H_

#include <linux/futex.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/linux/raw_rule.h"

// The memory that the runtime in a traced process (runtime/) shares with the
// recorder: one file, of which each maps all. Most of it is never touched, and
// takes no memory then.
//
//   SharedHeader | Space[] | Fragment[] | Edge[] | code bytes | InputRules |
//   ThreadSlot[]
//
// The runtime writes, the recorder reads; what the recorder writes is told at
// its field. The traced program can write here, too, if it means to: the
// recorder checks whatever it reads.

namespace clew::tracer {

// ---- What a log says -------------------------------------------------------
//
// A thread's log is a sequence of records of 4 bytes, each of which says where
// the thread went at a transfer that the reader cannot know from the code:
//
//   0x80000000 | edge   it took this edge (a branch that was taken)
//   fragment            it entered this fragment (an indirect jump, a return)
//
// Between two records a thread runs through its fragment, past branches that
// were not taken, and on to the next fragment along edges without a record:
// those that lead forward, behind an unconditional transfer or where a fragment
// was cut. As they lead forward only, every cycle has a record.
//
// Where a handler of a signal begins, or returns, the thread leaves its code at
// an address that the batch has (BatchEnd), and the log begins anew.
//
// Which fragment starts at an address depends on the process, and on when: code
// is replaced by other code. What was dropped of a process counts up its
// *version*. A batch has the version of all its records, and a fragment the one
// that it was made in: a thread at an address runs the latest one of its space
// that is not newer than the batch; if there is none, of the process that it
// was forked from, as of then.
//
// When the tables are nearly full all of them begins anew (runtime/forget.h):
// numbers mean something else from there on. Every batch with such numbers was
// read before.

using LogRecord = uint32_t;
inline constexpr LogRecord kTakenEdge = 0x80000000;

// How a fragment goes on behind its last instruction.
enum class FragmentEnd : uint8_t {
  kFalls,     // at `end_target`, without a record
  kRecorded,  // at `end_target`, by an edge with a record
  kIndirect,  // where the next record says
  kCall,      // a SYSCALL, and then at `end_target`, without a record
  kNowhere,   // its last instruction faults, or is none
};

// A stretch of code that is only entered at its start.
struct Fragment {
  uint64_t start = 0;  // written last; 0 until then
  uint64_t end_target = 0;
  uint32_t space = 0;
  uint32_t version = 0;
  uint32_t code_at = 0;     // of its bytes, in the code bytes
  uint16_t code_bytes = 0;  // as they were when it was translated
  FragmentEnd end = FragmentEnd::kNowhere;
};

// The memory of a process, or of several that share it.
struct Space {
  uint32_t parent = 0;   // that it was forked from: a smaller number
  uint32_t version = 0;  // of the parent's, then
};

// A branch of a fragment.
struct Edge {
  uint64_t target = 0;
  uint32_t fragment = 0;
  uint32_t offset = 0;  // behind the branch, from the start of its fragment
};

// ---- Threads ---------------------------------------------------------------

inline constexpr uint32_t kBatchRecords = 512;
inline constexpr uint32_t kBatchBytes = kBatchRecords * sizeof(LogRecord);

// The general registers by their encodings, then RFLAGS.
inline constexpr uint32_t kRecordedRegisters = 17;
// Where in the records of a batch they are.
inline constexpr uint32_t kRegistersAt = 2;

// What is behind the last record of a batch.
enum class BatchEnd : uint32_t {
  kNothing,      // the log goes on in the next one
  kInterrupted,  // before `addr`: a handler begins
  kCalled,       // behind the SYSCALL at `addr`: the log begins anew
  kChanged,      // before `addr`: code has changed, and the log begins anew
  kRan,          // `code_bytes` from `addr` on ran, which are in `records`
  kTold,         // what came in: `code_bytes` are in `records` (ToldHead)
};

// A part of a log. With SharedHeader::log_registers it has one record, or an
// end; and, at kRegistersAt, the registers behind it.
struct Batch {
  uint64_t tsc = 0;  // behind its last record
  uint32_t record_count = 0;
  BatchEnd end = BatchEnd::kNothing;
  uint64_t addr = 0;
  uint32_t version = 0;
  uint32_t code_bytes = 0;  // of kRan and kTold
  alignas(8) std::array<LogRecord, kBatchRecords> records = {};
};

inline constexpr uint32_t kBatches = 502;  // so that a slot has 1 MiB

// ---- What came in ----------------------------------------------------------
//
// With SharedHeader::tells_inputs a thread of the recorded process tells, among
// its batches, what came into it: a stream of items, each a head and what it
// says behind it. The bytes of batches of kTold, one after another, are the
// stream; an item may be in several. Writes and a path come before the call or
// the signal that they belong to.

enum class ToldKind : uint32_t {
  kWrite = 1,  // an address of 8 bytes, and the bytes that the kernel wrote
  kPath,       // of the file that a call mapped, without a 0 behind it
  kCall,       // ToldCall
  kSignal,     // ToldSignal: a handler begins
  kInsn,       // ToldInsn
};

struct ToldHead {
  ToldKind kind = ToldKind::kWrite;
  uint32_t bytes = 0;  // behind it, kToldBytesMax at most
};
inline constexpr uint32_t kToldBytesMax = 1 << 16;

// Why what a call did is not told whole.
enum class Untold : uint32_t {
  kNothing,     // it is
  kNotInTable,  // nobody knows what it does
  kFault,       // memory could not be read
  kTooLong,     // more than kWritesOfCallMax
  // It is, but others may write the file that it mapped.
  kSharedFile,
};
inline constexpr uint64_t kWritesOfCallMax = 64 << 20;

inline constexpr uint64_t kNotWritten = UINT64_MAX;  // to a file that counts

struct ToldCall {
  uint64_t number = 0;
  std::array<uint64_t, 6> args = {};
  uint64_t result = 0;  // kRestartSys: it was not made, and will be
  uint64_t entered_tsc = 0;
  uint64_t left_tsc = 0;
  uint64_t output_digest = 0;
  uint64_t output_bytes = 0;
  uint64_t shared_memory = 0;             // SyscallInput's
  uint64_t written_offset = kNotWritten;  // likewise
  uint32_t has_returned = 0;
  uint32_t has_output = 0;
  Untold untold = Untold::kNothing;
  uint32_t is_report = 0;  // it put out that it fails
};

// The frame is in the writes.
struct ToldSignal {
  uint64_t number = 0;
  uint64_t interrupted_ip = 0;
  uint64_t handler_ip = 0;
  uint64_t rsp = 0;
  uint64_t rdi = 0;
  uint64_t rsi = 0;
  uint64_t rdx = 0;
  uint64_t rax = 0;
};

// What RDTSC, CPUID and their kin left in the registers.
struct ToldInsn {
  uint64_t ip = 0;
  uint64_t rax = 0;
  uint64_t rbx = 0;
  uint64_t rcx = 0;
  uint64_t rdx = 0;
  uint64_t rflags = 0;
};

// What calls do, as the recorder knows it (common/linux/raw_rule.h).
struct InputRules {
  std::array<RawRule, CLEW_RAW_RULES> calls = {};  // by number
  uint32_t request_count = 0;
  // By number and request.
  std::array<RawRequestRule, CLEW_RAW_REQUESTS> requests = {};
};

// What the kernel has of a thread's signals natively, and not here
// (runtime/signals.h).
struct SignalState {
  // The kernel's mask of signals is not the program's, which is held_mask: one
  // that was sent waits until the thread is at a boundary.
  uint64_t is_holding = 0;
  uint64_t held_mask = 0;
  // Likewise, for as long as the runtime has all signals blocked.
  uint64_t is_blocking = 0;
  uint64_t blocked_mask = 0;
  // The thread is at a boundary: its registers are in the state, and the next
  // instruction is at `boundary`.
  uint64_t is_at_boundary = 0;
  uint64_t boundary = 0;
  // The mask under which signals are let in there.
  uint64_t open_mask = 0;
  // The program's alternate stack, as sigaltstack(2) has it.
  uint64_t alt_stack = 0;
  uint64_t alt_stack_bytes = 0;
  uint32_t alt_stack_flags = 0;
  void* actions = nullptr;  // runtime/signal_actions.h, Actions
};

// Of a leap (SharedHeader::in_leaps). It ends when the queue is full, too.
struct LeapState {
  // It ends behind so many instructions, exactly (runtime/leap.h); or,
  // if `is_counted` is 0, when so many batches are full.
  uint64_t is_counted = 0;
  uint64_t insns_left = 0;
  uint64_t batches_left = 0;
  uint64_t has_ended = 0;  // the recorder clears it
  // Where it ended: the thread is at signals.boundary, and the runtime does not
  // run the next instruction.
  uint64_t is_at_step = 0;
  // Of a counted one: the fragment that was entered last; 0: the log has not
  // begun. Its records are at the start of ThreadSlot::log.
  uint32_t fragment = 0;
  uint32_t records = 0;
  uint64_t is_in_short_block = 0;
};

// Why a thread is parked (ThreadSlot::order).
enum class Parked : uint64_t {
  kNot,
  kAsked,      // SharedHeader::is_stopping
  kExec,       // it is about to make execve(2)
  kExit,       // exit(2)
  kExitGroup,  // exit_group(2)
  kKill,       // kill(2) or its like, with SIGKILL
  kLeaves,     // TellState::is_leaving
};

// Of a thread that tells what comes in.
struct TellState {
  uint64_t is_recorded = 0;
  // It is of another process, which has the recorded one's memory (vfork), and
  // which nobody traces: it stops nowhere.
  uint64_t is_child = 0;
  // Of a parked thread. It is at signals.boundary, with the registers of the
  // state; where it is about to make a call, at that.
  Parked parked = Parked::kNot;
  // In a system call that the kernel has: its registers are in the state, and
  // its arguments in them.
  uint64_t is_in_call = 0;
  // A signal interrupted the call that was to, though nothing handles it. The
  // recorder says so.
  uint64_t is_interrupted = 0;
  // The call was made before, and interrupted for nothing: it has waited since
  // this time of the log. 0: it was not.
  uint64_t wait_began = 0;
  uint64_t clear_tid = 0;  // set_tid_address(2)
  // It is forking a process with memory of its own.
  uint64_t is_forking = 0;
  // It is such a process, which is to go on without the runtime.
  uint64_t is_leaving = 0;
};

// What the GS base of a traced thread points to. Offsets are in entries.S.
struct ThreadState {
  std::array<uint64_t, 16> gpr = {};  // the program's, in the runtime
  uint64_t rflags = 0;
  uint64_t resume = 0;         // where in the cache, or else, to go on
  uint64_t runtime_stack = 0;  // its upper end
  ThreadState* self = nullptr;
  // Where the next record goes, from the end of the log: negative; 0 is full.
  int64_t log_index = 0;
  uint64_t scratch = 0;  // an argument of the entry in `entries.S`
  // Where the last system call was made.
  uint64_t last_call = 0;
  void* runtime = nullptr;  // runtime/runtime.h, Runtime
  uint64_t is_vfork = 0;    // its parent waits, and gives its memory back
  SignalState signals;
  uint64_t version = 0;  // of its log (runtime/versions.h)
  uint64_t is_elsewhere = 0;
  uint64_t log_records = 0;  // that make its log full: kBatchRecords at most
  LeapState leap;
  TellState tell;
};

// Of the system call that a thread makes.
inline std::array<uint64_t, 6> ArgumentsOf(const ThreadState& thread) {
  const std::array<uint64_t, 16>& gpr = thread.gpr;
  return {gpr[7], gpr[6], gpr[2], gpr[10], gpr[8], gpr[9]};
}

// As entries.S has them.
static_assert(offsetof(ThreadState, rflags) == 128 &&
              offsetof(ThreadState, resume) == 136 &&
              offsetof(ThreadState, runtime_stack) == 144 &&
              offsetof(ThreadState, self) == 152 &&
              offsetof(ThreadState, scratch) == 168 &&
              offsetof(ThreadState, signals.is_holding) == 200);

inline constexpr uint64_t kThreadStateBytes = 2048;
// The log of a thread that is not in a batch yet ends here.
inline constexpr uint64_t kLogEnd = kThreadStateBytes + kBatchBytes;

// Who has a slot.
enum class SlotUse : uint32_t {
  kFree,
  kThread,  // a thread that runs
  kEnded,   // a thread that has ended; the recorder frees it when it has read
            // all
};

// What a thread that is parked has to do. It waits in the kernel until this
// changes.
enum class ParkOrder : uint32_t {
  kNotParked,
  kWait,
  kMakeCall,  // ThreadSlot::call; it waits again when that is made
  kGoOn,
};
struct OrderedCall {
  uint64_t number = 0;
  std::array<uint64_t, 6> args = {};
  uint64_t result = 0;  // an error as -errno
};

// A queue with one writer and one reader.
struct alignas(8) ThreadSlot {
  ThreadState state;
  std::array<std::byte, kThreadStateBytes - sizeof(ThreadState)> unused = {};
  std::array<LogRecord, kBatchRecords> log = {};
  std::atomic<uint32_t> batches_written;
  std::atomic<uint32_t> batches_read;  // the recorder writes it, and wakes
  int32_t process = 0;
  int32_t tid = 0;  // 0: the thread has not begun
  uint64_t begun_tsc = 0;
  uint32_t space = 0;
  std::atomic<SlotUse> use;
  // The thread parks, and is not parked any more; the rest is the recorder's.
  std::atomic<ParkOrder> order;
  OrderedCall call;
  std::array<Batch, kBatches> batches = {};
};

inline constexpr uint64_t kSlotBytes = 1 << 20;
static_assert(sizeof(Fragment) == 32);
static_assert(sizeof(Edge) == 16);
static_assert(offsetof(ThreadSlot, log) == kThreadStateBytes);
static_assert(sizeof(ThreadSlot) <= kSlotBytes);

// ---- Entries of the runtime's image ---------------------------------------
//
// The recorder lets a thread go on at one of these. GS points to its state but
// for the first two.

// The first thread of a program. RDI: the shared memory.
inline constexpr uint64_t kStartAt = 0;
// Another one, which began before the runtime was there. RDI: the shared
// memory; RSI: its slot.
inline constexpr uint64_t kJoinAt = 16;
// A leap begins, at signals.boundary, with the registers of the state.
inline constexpr uint64_t kLeapAt = 32;
// A leap is to end that a signal interrupted at the address in RDI. `scratch`
// is the register that the state has of the program then, kNoSavedRegister:
// none.
inline constexpr uint64_t kInterruptedAt = 48;
inline constexpr uint64_t kNoSavedRegister = 16;
// The recorder stepped over a system call that may have changed code: the state
// has the registers that it was made with. Ends a leap.
inline constexpr uint64_t kChangedAt = 64;
// Behind the breakpoint that ends a leap: the next one begins here, too.
inline constexpr uint64_t kLeapEndsAt = 81;
// A thread that is to go on without the runtime gives back what the kernel has
// of it. Ends a leap.
inline constexpr uint64_t kLeaveAt = 96;

// RFLAGS there: the bit that is always set.
inline constexpr uint64_t kClearFlags = 2;

// ---- All -------------------------------------------------------------------

inline constexpr uint32_t kSpacesMax = 1 << 20;  // the first one is 0
inline constexpr uint32_t kFragmentsMax = 1 << 20;
inline constexpr uint32_t kEdgesMax = 4 << 20;
inline constexpr uint32_t kCodeBytesMax = 128 << 20;
inline constexpr uint32_t kThreadsMax = 4096;  // at a time

// Why the runtime ended the program.
enum class Fault : uint32_t {
  kNone,
  kTooManyFragments,  // more code than the tables or the cache have room for
  kTooManyThreads,  // more than kThreadsMax, or the recorder does not free them
  kNoMemory,        // the kernel refused memory; `fault_detail`: its error
  kUnsupportedInsn,   // `fault_detail`: its address
  kTooManyProcesses,  // that were forked
  kRuntime,           // the runtime itself failed at `fault_detail`
};

// Where things are in the traced process; the recorder chooses, so that the
// program's own mappings lie where they lie without it.
struct Places {
  uint64_t shared = 0;  // this file
  uint64_t image = 0;   // the runtime's code
  uint64_t image_bytes = 0;
  uint64_t runtime = 0;  // what it needs besides, kRuntimeBytes
  uint64_t threads = 0;  // kThreadBytes for each
  // Of the code caches, kCacheBytes each: one for the code that lies around
  // it. 0: there is none.
  std::array<uint64_t, 2> caches = {};
};
inline constexpr uint64_t kRuntimeBytes = 256 << 20;
inline constexpr uint64_t kCacheBytes = 256 << 20;
// A thread's slot, and what it needs besides.
inline constexpr uint64_t kThreadBytes = 6 << 20;

struct SharedHeader {
  std::atomic<uint32_t> spaces;     // as many as were made by fork
  std::atomic<uint32_t> fragments;  // the first unused one; the first one is 1
  std::atomic<uint32_t> edges;      // likewise
  std::atomic<uint32_t> code_bytes;
  std::atomic<uint32_t> slots;      // those behind were never used
  std::atomic<uint32_t> forgotten;  // so often all code was
  // The recorder sets these before the runtime begins.
  // With more fragments, all code is forgotten; 0: with as many as there is
  // room for.
  uint32_t fragments_kept = 0;
  uint32_t log_registers = 0;  // each record is a batch of its own, at no time
  // The program runs in leaps: where LeapState says, and before what the
  // runtime leaves to the recorder (system calls, instructions that read more
  // than registers and memory, ...), a thread hands its batch on, and stops by
  // a breakpoint (kLeapEndsAt).
  uint32_t in_leaps = 0;
  // Threads tell what comes in, and stop before what ends the process, but
  // those of processes that have no memory of the first one: a process that it
  // forks goes on without the runtime, and parks where it begins.
  uint32_t tells_inputs = 0;
  // The processes that the recorded one makes are recorded by others: one that
  // vfork made has memory of its own.
  uint32_t hands_over = 0;
  // They are to stop at their next boundary.
  std::atomic<uint32_t> is_stopping;
  // rseq(2) is answered as if it were made: a thread of a program that has it
  // ends the program otherwise.
  uint32_t answers_rseq = 0;
  // The program maps files shared, or did: what it writes to one is told.
  std::atomic<uint32_t> maps_files;
  // Nobody reads the queues any more.
  std::atomic<uint32_t> is_over;
  // Likewise: the recorder was killed (death_mark.h).
  std::atomic<uint32_t> recorder;
  // The recorder waits for a thread to set it to 0, and wake it.
  std::atomic<uint32_t> recorder_sleeps;
  // Of the log's times, as the recorder has measured them; 0: not yet.
  std::atomic<uint64_t> ticks_per_ms;
  Places places;
  std::atomic<uint32_t> fault;
  uint64_t fault_detail = 0;
};

// Whether somebody reads the queues.
inline bool HasReader(const SharedHeader& header) {
  return header.is_over.load() == 0 &&
         (header.recorder.load() & FUTEX_OWNER_DIED) == 0;
}

inline constexpr uint64_t kSpacesAt = 4096;
inline constexpr uint64_t kFragmentsAt = kSpacesAt + kSpacesMax * sizeof(Space);
inline constexpr uint64_t kEdgesAt =
    kFragmentsAt + kFragmentsMax * sizeof(Fragment);
inline constexpr uint64_t kCodeAt = kEdgesAt + kEdgesMax * sizeof(Edge);
inline constexpr uint64_t kRulesAt = kCodeAt + kCodeBytesMax;
inline constexpr uint64_t kThreadsAt = kRulesAt + (1 << 20);
static_assert(sizeof(InputRules) <= 1 << 20);
inline constexpr uint64_t kSharedBytes = kThreadsAt + kThreadsMax * kSlotBytes;
// Behind it, the code of the runtime, for the recorder's process to map.
inline constexpr uint64_t kImageAt = kSharedBytes;

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_SHARED_LAYOUT_H_
