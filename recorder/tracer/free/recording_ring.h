#ifndef CLEW_RECORDER_TRACER_FREE_RECORDING_RING_H_
#define CLEW_RECORDER_TRACER_FREE_RECORDING_RING_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "recorder/native/native_program.h"
#include "recorder/native/native_state.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/tracer/free/memory_copy.h"

namespace clew::tracer {

// A recording of which the end is kept, in a ring of two halves:
//
//   half 0      half 1      half 2
//   |===========|===========|=======>  the program ends
//    dropped     the bundle begins here
//
// Each half has as much of trace and inputs as half the ring, and begins with a
// start state of its own: the threads' registers, and a copy of the memory that
// a process keeps (MemoryCopy). When one is full, all threads stop for a moment
// and the next one begins; then the one before it is dropped. So a bundle has
// between half of the ring and all of it, whenever the program ends.
//
//   raw/         what is recorded from the program's start on, or from where it
//                was attached to: half 0
//   raw/half.N/  what is recorded of half N
//   raw/first.N/ what is told besides if N is the first half of the bundle:
//                which threads and mappings there are
class RecordingRing {
 public:
  // Both are borrowed. `bytes` are those of both halves.
  RecordingRing(recorder::NativeState& state, recorder::NativeProgram& program,
                uint64_t bytes)
      : state_(state), program_(program), half_bytes_(bytes / 2), halves_(1) {}

  // The half that is written has its share.
  bool IsFull() const { return HasShares(1); }
  // It has many times that: nothing can begin.
  bool IsOverdue() const { return HasShares(kSharesMax); }

  struct Thread {
    recorder::NativeThread* native = nullptr;  // while it begins
    StartThread start = {};  // at its SYSCALL if it is in a call
    // That it is in: it makes it once more.
    std::optional<recorder::SyscallCall> call = {};
  };
  // What a half begins with.
  struct Start {
    std::vector<Thread> threads;  // that have not ended
    uint64_t tsc = 0;             // all before has run by then
    uint64_t brk = 0;
    std::vector<recorder::GuestRegion> regions;
    MemoryCopy memory;
  };
  // Begins one: what is recorded from here on goes there. REQUIRES: all that
  // ran before `start` is encoded, with the trace of each thread off.
  [[nodiscard]] Status BeginHalf(Start start);

  // Drops them all, with the processes that keep memory.
  [[nodiscard]] Status DropAll();

  // Makes one recording of the halves. REQUIRES: all raw files are closed.
  [[nodiscard]] Status Join(recorder::Outcome& outcome);

 private:
  static constexpr uint64_t kSharesMax = 8;
  bool HasShares(uint64_t count) const {
    return !state_.limit->dropped() &&
           state_.limit->bytes() - begun_bytes_ >= count * half_bytes_;
  }

  // What is in raw/half.N.
  struct Half {
    uint64_t number = 0;
    std::optional<Start> start = {};  // nullopt: the recording's own
    uint64_t insns = 0;
    uint64_t switches = 0;
    uint64_t inputs_unknown = 0;
  };

  std::string FolderOf(uint64_t half) const;
  std::string FirstFolderOf(uint64_t half) const;
  [[nodiscard]] Status EndHalf();
  [[nodiscard]] Status Drop(uint64_t half);
  [[nodiscard]] Status OpenTrace(const std::string& folder, uint32_t cores);
  [[nodiscard]] Status TellFirst(const Start& start);
  [[nodiscard]] Status WriteStart(const Start& start);

  recorder::NativeState& state_;
  recorder::NativeProgram& program_;
  uint64_t half_bytes_;
  uint64_t begun_bytes_ = 0;  // SizeLimit::bytes() when the last one began
  std::deque<Half> halves_;   // one or two, the last one is written
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_RECORDING_RING_H_
