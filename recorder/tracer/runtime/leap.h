#ifndef CLEW_RECORDER_TRACER_RUNTIME_LEAP_H_
#define CLEW_RECORDER_TRACER_RUNTIME_LEAP_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

// Leaps: how they end, and those that are *counted*, which end behind an exact
// number of instructions: so a thread loses the CPU anywhere, at the
// instruction that a seed says.
//
// Copies do not count. The log of such a leap is full at each record, and the
// runtime, which is entered there, counts what ran since the last one, from the
// numbers of instructions that fragments and edges have. Invariant: a thread
// enters a fragment only if at most as many instructions follow, up to the next
// record at the latest, as are left. Otherwise these are copied to run once, up
// to the next branch (short_block.h), and what ran of them is told as it is.
//
//   left 40   fragment 7: at most 12 up to a record    it runs: 9
//   left 31   fragment 8: at most 35                   short block: 8, a branch
//   left 23   fragment 9: at most 20                   it runs: 20
//   left 3    fragment 7                               short block: 3; the end
//
// Where a leap begins there may be no fragment yet: that is no reason to have
// one there, as leaps begin anywhere. So it is a short block, up to a branch.

namespace clew::tracer {

// Of a leap that is counted: begins it at `addr`.
void BeginCounted(ThreadState& thread, uint64_t addr);
// The log has a record.
void CountRecord(ThreadState& thread);
// The thread is behind this edge, which has no record.
void CountFall(ThreadState& thread, uint32_t edge);
// Likewise at the start of this fragment, whose code has changed; nothing of it
// was dropped yet. Then GoOnChanged, when it is.
void CountUpTo(ThreadState& thread, uint32_t fragment);
void GoOnChanged(ThreadState& thread, uint64_t addr);
// Likewise behind a short block, at `addr`.
void CountShortBlock(ThreadState& thread, uint64_t addr);

// ---- Ends of leaps, of all kinds -------------------------------------------

bool IsInLeaps(ThreadState& thread);

// The thread stops here, until the recorder lets it begin another leap.
[[noreturn]] void EndLeap(ThreadState& thread);
// Likewise at an address of the program. `is_at_step`: the recorder is to step
// what is there.
[[noreturn]] void EndLeapAt(ThreadState& thread, uint64_t addr,
                            bool is_at_step);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_LEAP_H_
