#ifndef CLEW_RECORDER_BPF_RAW_EVENT_H_
#define CLEW_RECORDER_BPF_RAW_EVENT_H_

// What inputs.bpf.c and the program that loads it tell each other; compiled as
// C for the one and as C++ for the other. All numbers are little-endian and
// naturally aligned; there is no padding that is not named.

#include "common/linux/raw_rule.h"

#ifdef __cplusplus
namespace clew::recorder::bpf {
#endif

// Why calls, or part of what a call did, are unknown. Bits of RawHead::causes
// and RawCall::unknown are 1 << cause. Their names: CauseName.
enum RawCause {
  kRawRingFull = 0,      // the ring had no room
  kRawBudget = 1,        // more bytes a second than allowed
  kRawTooLong = 2,       // more bytes in one call than allowed
  kRawFault = 3,         // memory of the program could not be read
  kRawNotInTable = 4,    // the table does not say what this call does
  kRawBegunBefore = 5,   // the call was entered before the recording began
  kRawCompat = 6,        // a 32-bit system call
  kRawMappedFile = 7,    // the bytes of a file that was mapped
  kRawSignalFrame = 8,   // what the kernel pushed for a signal handler
  kRawInterrupted = 9,   // how a call that was interrupted went on
  kRawExec = 10,         // another program runs from here on
  kRawThreadLimit = 11,  // more threads than there is room for
  kRawBroken = 12,       // events that contradict each other
  kRawLogLimit = 13,     // the log may not get longer
  kRawCauses = 14
};

enum RawKind {
  kRawPiece = 1,
  kRawCall = 2,
  kRawSignal = 3,
  kRawEnd = 4,
};

// Begins every event. Calls, signals and the end of a thread are its units,
// counted from 1 in its own order; `lost` of them just before this one found no
// way out, for `causes`: sequence == that of the unit before + 1 + lost.
struct RawHead {
  uint32_t kind;
  uint32_t process;
  uint32_t thread;
  uint32_t lost;
  uint32_t causes;
  uint32_t zero;
  uint64_t sequence;
};

enum RawPieceUse {
  kRawWritten = 0,  // the kernel wrote it into the program
  kRawOutput = 1,   // the kernel read it from the program as output
  // Not memory of the program, and at address 0. Of the file that an mmap maps:
  // a name in its path, the file's own first, then that of the folder it is in
  // and so on; then its inode number in 8 bytes. Without that the names are not
  // all.
  kRawFileName = 2,
  kRawFile = 3,
  kRawPieceUses = 4
};

#define CLEW_RAW_PIECE_SMALL 64
#define CLEW_RAW_PIECE_MEDIUM 512
#define CLEW_RAW_PIECE_LARGE 4096

// Memory of the program; the unit with this sequence follows. Behind it are
// CLEW_RAW_PIECE_... bytes, of which the first size_bytes count.
struct RawPiece {
  struct RawHead head;  // lost and causes are 0
  uint64_t addr;
  uint32_t size_bytes;
  uint32_t use;
};

enum { kRawReturned = 1 };

struct RawCall {
  struct RawHead head;
  uint64_t number;
  uint64_t args[6];
  int64_t result;       // as the kernel left it: -512 to -516 ask for a restart
  uint64_t entered_ns;  // CLOCK_MONOTONIC; 0: not seen
  uint64_t left_ns;     // 0 unless kRawReturned
  uint32_t flags;
  uint32_t unknown;  // causes; not 0: writes or output are not whole
  uint32_t pieces;
  uint32_t zero;
};

// What was at hand when a signal was taken.
struct RawTaken {
  uint64_t handler;  // 0: the default action, 1: ignored
  uint64_t sa_flags;
  uint64_t ip;
  uint64_t sp;
  uint64_t ax;
  uint64_t at_ns;
  uint32_t number;
  uint32_t zero;
};

// With which registers the handler begins; the frame is at sp.
struct RawEntry {
  uint64_t ip;
  uint64_t sp;
  uint64_t di;
  uint64_t si;
  uint64_t dx;
  uint64_t ax;
};

// The pieces are the frame.
struct RawSignal {
  struct RawHead head;
  struct RawTaken taken;
  struct RawEntry entry;
  uint32_t unknown;  // causes; not 0: entry and frame are not known
  uint32_t pieces;
};

// The thread ended; `lost` are the last of it.
struct RawEnd {
  struct RawHead head;
};

// Per CPU; the loader adds them up.
struct RawCounts {
  uint64_t units;  // calls and signals of watched threads
  uint64_t reported;
  uint64_t lost[kRawCauses];     // units not reported, by cause
  uint64_t partial[kRawCauses];  // calls reported with `unknown`, by cause
  uint64_t untracked;            // calls of threads for which there was no room
};

// What the program keeps of a thread between its events.
struct RawThread {
  uint64_t number;
  uint64_t args[6];
  uint64_t entered_ns;
  uint64_t sequence;  // of the last unit, lost ones included
  uint32_t process;
  uint32_t lost;
  uint32_t causes;
  uint32_t length_before;  // for kRawLengthAt
  uint32_t in_call;
  uint32_t ended;
  uint32_t restarts;  // the last call may go on as restart_syscall
  uint32_t zero;
  // A signal whose frame is about to be pushed; number 0: none.
  struct RawTaken taken;
};

#ifdef __cplusplus
static_assert(sizeof(RawHead) == 32 && sizeof(RawPiece) == 48 &&
              sizeof(RawCall) == 128 && sizeof(RawSignal) == 144 &&
              sizeof(RawEnd) == 32 && sizeof(RawThread) == 160);
}  // namespace clew::recorder::bpf
#endif

#endif  // CLEW_RECORDER_BPF_RAW_EVENT_H_
