#ifndef CLEW_COMMON_SCHEDULE_H_
#define CLEW_COMMON_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/units.h"

namespace clew {

// One step of a schedule: `thread` runs until it has retired `until_insn`
// instructions since its first recorded one (cumulative, so a step can be
// checked on its own). A system call is one instruction, and so is a REP string
// instruction with all its iterations.
struct ScheduleStep {
  enum class Kind : uint8_t {
    kRun,
    // The thread's buffer takes a step: its stores up to that of instruction
    // `until_insn`, which is counted in, become visible, the oldest first. Not
    // made under sequential consistency.
    kFlush,
  };
  // Of the numbers that `queue` may have: all queues of the buffer together.
  static constexpr uint16_t kAllQueues = 0;
  Kind kind = Kind::kRun;
  // kFlush: the queue of the buffer that takes the step, from 1.
  uint16_t queue = kAllQueues;
  Tid thread;
  uint64_t until_insn = 0;
  bool operator==(const ScheduleStep&) const = default;
};

// `thread` runs on until it has retired `until_insn`: a step more, or the last
// one goes on if that is a run of the thread.
inline void AppendRun(std::vector<ScheduleStep>& steps, Tid thread,
                      uint64_t until_insn) {
  if (!steps.empty() && steps.back().kind == ScheduleStep::Kind::kRun &&
      steps.back().thread == thread) {
    steps.back().until_insn = until_insn;
  } else {
    steps.push_back({.kind = ScheduleStep::Kind::kRun,
                     .thread = thread,
                     .until_insn = until_insn});
  }
}

enum class WitnessGrade : uint8_t {
  kNone,         // no witness
  kPathExact,    // every recorded path, system call and the failure
  kMemoryExact,  // and the core dump: memory, byte for byte, and registers
};

// Returns `steps`, which are runs, as the same order under any memory model: no
// store is still to be seen when another thread runs.
inline std::vector<ScheduleStep> FlushedAfterEachRun(
    const std::vector<ScheduleStep>& steps) {
  std::vector<ScheduleStep> flushed;
  flushed.reserve(2 * steps.size());
  for (const ScheduleStep& step : steps) {
    flushed.push_back(step);
    flushed.push_back({.kind = ScheduleStep::Kind::kFlush,
                       .thread = step.thread,
                       .until_insn = step.until_insn});
  }
  return flushed;
}

// Who may take a step: a thread, or a queue in which its stores wait.
struct Actor {
  ScheduleStep::Kind kind = ScheduleStep::Kind::kRun;
  size_t thread = 0;   // index
  uint32_t queue = 0;  // kFlush, from 0
  bool operator==(const Actor&) const = default;
};

// How stores wait (machine/memory_models.h). Numbered as in proto/bundle.proto.
enum class MemoryModelKind : uint8_t {
  kSc = 0,
  kTso = 1,
  kPso = 2,
};

// A total order that the replayer can enforce, and how it was found.
struct Schedule {
  std::vector<ScheduleStep> steps;
  MemoryModelKind model = MemoryModelKind::kSc;  // under which it is one
  WitnessGrade grade = WitnessGrade::kNone;
  std::string engine;  // which engine found it: guess, search, repair, z3
  uint64_t memory_bytes_compared = 0;  // with the core dump
  uint64_t memory_bytes_equal = 0;
  uint64_t final_memory_digest = 0;  // machine::Memory::digest()
};

}  // namespace clew

#endif  // CLEW_COMMON_SCHEDULE_H_
