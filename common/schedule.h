#ifndef CLEW_COMMON_SCHEDULE_H_
#define CLEW_COMMON_SCHEDULE_H_

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
    kFlush,  // the oldest store in the thread's buffer becomes visible (TSO,
             // PSO); until_insn is the store's instruction. Not made under SC.
  };
  Kind kind = Kind::kRun;
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

// A total order that the replayer can enforce, and how it was found.
struct Schedule {
  std::vector<ScheduleStep> steps;
  WitnessGrade grade = WitnessGrade::kNone;
  std::string engine;  // which engine found it: guess, search, repair, z3
  uint64_t memory_bytes_compared = 0;  // with the core dump
  uint64_t memory_bytes_equal = 0;
  uint64_t final_memory_digest = 0;  // machine::Memory::digest()
};

}  // namespace clew

#endif  // CLEW_COMMON_SCHEDULE_H_
