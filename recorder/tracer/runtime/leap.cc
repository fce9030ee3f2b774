#include "recorder/tracer/runtime/leap.h"

#include <algorithm>
#include <span>

#include "recorder/tracer/runtime/log.h"
#include "recorder/tracer/runtime/short_block.h"
#include "recorder/tracer/runtime/translate.h"
#include "recorder/tracer/runtime/versions.h"

extern "C" {
[[gnu::visibility("hidden")]] void tracer_end_leap();
}

namespace clew::tracer {
namespace {

// As many as a step of a leap, and its end, may hand on.
constexpr uint32_t kBatchesOfStep = 4;

void Count(ThreadState& thread, uint64_t insns) {
  thread.leap.insns_left -= std::min(insns, thread.leap.insns_left);
}

// How many instructions follow from the start of a fragment up to a record, at
// most; or more than `enough`.
uint64_t InsnsAhead(Runtime& runtime, uint32_t fragment, uint64_t enough) {
  uint64_t insns = 0;
  while (fragment != 0 && insns <= enough) {
    insns += runtime.translations[fragment].program_insns;
    fragment =
        runtime.fragment(fragment).end == FragmentEnd::kFalls
            ? KnownFragmentAt(runtime, runtime.fragment(fragment).end_target)
            : 0;
  }
  return insns;
}

// How many instructions ran from the start of `fragment` on, over those that it
// falls to, in which no branch was taken, until `is_last`. Returns that in the
// number of the fragment.
template <class IsLast>
uint64_t InsnsUntil(Runtime& runtime, uint32_t& fragment, IsLast is_last) {
  uint64_t insns = 0;
  while (!is_last(fragment)) {
    insns += runtime.translations[fragment].program_insns;
    fragment = KnownFragmentAt(runtime, runtime.fragment(fragment).end_target);
    if (fragment == 0) {
      Stop(runtime, Fault::kRuntime, insns);
    }
  }
  return insns;
}

// What ran since a fragment was entered, up to an edge.
void CountTo(ThreadState& thread, uint32_t edge) {
  Runtime& runtime = RuntimeOf(thread);
  const uint32_t last = runtime.edge(edge).fragment;
  uint32_t fragment = thread.leap.fragment;
  const uint64_t before = InsnsUntil(
      runtime, fragment, [last](uint32_t each) { return each == last; });
  Count(thread, before + runtime.ways[edge].insns);
}

void AddRecord(ThreadState& thread, LogRecord record) {
  SlotOf(thread).log[thread.leap.records++] = record;
  if (thread.leap.records == kBatchRecords - 1) {
    Flush(thread);
  }
}

// What ran is told up to `addr`: the log is to begin anew.
void StopLog(ThreadState& thread, uint64_t addr) {
  LeapState& leap = thread.leap;
  if (leap.is_in_short_block != 0) {
    leap.is_in_short_block = 0;
    const ShortBlock& block = RuntimeOf(thread).short_block;
    const uint64_t ran =
        std::min<uint64_t>(addr - block.start, block.code_bytes);
    if (ran != 0) {
      FlushCode(thread, block.start, std::span(block.code).first(ran));
    }
  } else if (leap.fragment != 0) {
    Flush(thread, BatchEnd::kInterrupted, addr);
  }
  leap.fragment = 0;
}

// Lets the thread go on at `addr`.
void GoOnCounted(ThreadState& thread, uint64_t addr, bool is_behind_branch) {
  LeapState& leap = thread.leap;
  if (leap.insns_left == 0 || !HasRoom(thread, kBatchesOfStep)) {
    EndLeapAt(thread, addr, false);
  }
  Runtime& runtime = RuntimeOf(thread);
  uint32_t fragment = 0;
  bool is_short = false;
  {
    const Locked locked(runtime.lock);
    fragment = is_behind_branch ? FragmentAt(runtime, addr)
                                : KnownFragmentAt(runtime, addr);
    is_short =
        (fragment == 0 ||
         InsnsAhead(runtime, fragment, leap.insns_left) > leap.insns_left) &&
        WriteShortBlock(runtime, addr, leap.insns_left);
    if (!is_short && fragment == 0) {
      fragment = FragmentAt(runtime, addr);
    }
  }
  if (is_short) {
    StopLog(thread, addr);
    leap.is_in_short_block = 1;
    thread.resume = runtime.short_block.entry;
    return;
  }
  if (fragment == 0) {
    EndLeapAt(thread, addr, true);
  }
  if (leap.fragment == 0) {
    AddRecord(thread, fragment);
  }
  leap.fragment = fragment;
  thread.log_index = -int64_t{sizeof(LogRecord)};
  thread.resume = runtime.translations[fragment].entry;
}

}  // namespace

void BeginCounted(ThreadState& thread, uint64_t addr) {
  EnterProgram(thread);
  TakeVersion(thread);
  thread.leap.fragment = 0;
  thread.leap.records = 0;
  thread.leap.is_in_short_block = 0;
  GoOnCounted(thread, addr, false);
}

void CountRecord(ThreadState& thread) {
  Runtime& runtime = RuntimeOf(thread);
  const uint64_t addr = AddrOfLastRecord(thread);
  const LogRecord record = SlotOf(thread).log.back();
  if ((record & kTakenEdge) != 0) {
    CountTo(thread, (record & ~kTakenEdge) % kEdgesMax);
  } else {
    uint32_t fragment = thread.leap.fragment;
    const uint64_t before =
        InsnsUntil(runtime, fragment, [&runtime](uint32_t each) {
          return runtime.fragment(each).end == FragmentEnd::kIndirect;
        });
    Count(thread, before + runtime.translations[fragment].program_insns);
  }
  AddRecord(thread, record);
  GoOnCounted(thread, addr, true);
}

void CountFall(ThreadState& thread, uint32_t edge) {
  CountTo(thread, edge);
  GoOnCounted(thread, RuntimeOf(thread).edge(edge).target, true);
}

void CountUpTo(ThreadState& thread, uint32_t fragment) {
  uint32_t first = thread.leap.fragment;
  Count(thread, InsnsUntil(RuntimeOf(thread), first, [fragment](uint32_t each) {
          return each == fragment;
        }));
}

void GoOnChanged(ThreadState& thread, uint64_t addr) {
  StopLog(thread, addr);
  TakeVersion(thread);
  GoOnCounted(thread, addr, true);
}

void CountShortBlock(ThreadState& thread, uint64_t addr) {
  const ShortBlock& block = RuntimeOf(thread).short_block;
  Count(thread, block.insn_count);
  const bool is_behind_branch = block.ends_with_branch;
  FlushCode(thread, block.start, std::span(block.code).first(block.code_bytes));
  thread.leap.is_in_short_block = 0;
  GoOnCounted(thread, addr, is_behind_branch);
}

bool IsInLeaps(ThreadState& thread) {
  return RuntimeOf(thread).shared->in_leaps != 0;
}

void EndLeap(ThreadState& thread) {
  thread.leap.has_ended = 1;
  tracer_end_leap();
  __builtin_unreachable();
}

void EndLeapAt(ThreadState& thread, uint64_t addr, bool is_at_step) {
  if (thread.leap.is_counted != 0) {
    StopLog(thread, addr);
  } else {
    Flush(thread, BatchEnd::kInterrupted, addr);
  }
  LeaveProgram(thread);
  thread.signals.boundary = addr;
  thread.leap.is_at_step = is_at_step ? 1 : 0;
  EndLeap(thread);
}

}  // namespace clew::tracer
