#ifndef CLEW_RECORDER_TRACER_FREE_FREE_THREAD_H_
#define CLEW_RECORDER_TRACER_FREE_FREE_THREAD_H_

#include <sys/user.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/result.h"
#include "recorder/native/native_state.h"
#include "recorder/native/ran_code.h"
#include "recorder/tracer/free/legs.h"
#include "recorder/tracer/free/told_stream.h"
#include "recorder/tracer/path_reader.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// A thread that runs free: what it logs becomes the trace of a core of its own,
// and what it tells its inputs.
//
// Times are those of its batches. What a batch tells ran before its time stamp,
// and behind that of the batch before, or the end of the system call between
// them: the trace has the earlier one before it, and the later one behind it.
class FreeThread {
 public:
  // References outlive this. `native` has the core.
  FreeThread(recorder::NativeState& state, recorder::RanCode& code, Legs& legs,
             recorder::NativeThread& native, PathReader reader)
      : state_(state),
        code_(code),
        legs_(legs),
        native_(native),
        reader_(reader),
        ip_(native.ip) {}

  // It began then.
  void Begin(uint64_t tsc, Tid parent);
  [[nodiscard]] Status Take(const Batch& batch);
  // It had ended by then, and all of it was taken.
  [[nodiscard]] Status End(uint64_t tsc);
  // It was in a call at `tsc`, and all of it was taken: what is known of the
  // time before is when it was about to make that, not when the kernel had it.
  void NoteInCall(uint64_t tsc) { tsc_ = std::max(tsc_, tsc); }
  // It is stopped at `ip`, and all of it was taken.
  void StopAt(uint64_t ip);
  // It is stopped in `call`, which it makes once more when it goes on, after
  // `tsc`; and all of it was taken.
  void StopInCall(const recorder::SyscallCall& call, uint64_t tsc);
  // What comes next ran behind `tsc`, and goes to another trace. REQUIRES:
  // StopAt or StopInCall.
  void BeginAnew(uint64_t tsc);

  recorder::NativeThread& native() { return native_; }
  uint64_t last_tsc() const { return tsc_; }

 private:
  [[nodiscard]] Status TakeRecords(const Batch& batch);
  // Takes the first of these records, and returns how many: those whose legs
  // are known, or can be. The others are the reader's to say.
  size_t TakeKnown(std::span<const LogRecord> records);
  [[nodiscard]] Status TakeEnd(const Batch& batch);
  [[nodiscard]] Status TakeTold(const Batch& batch);
  [[nodiscard]] Status TakeCall(const CallItem& item);
  void FollowUp(const recorder::SyscallCall& call, int64_t result,
                const std::string& path);
  [[nodiscard]] Status Follow(const recorder::CodeStretch& stretch);
  void RetireFollowed(uint64_t next_ip);
  void RetireFar(uint64_t next_ip);
  void EnterUserMode(uint64_t ip);
  void LeaveUserMode(uint64_t next_ip);
  void TellTime();
  recorder::CoreEncoder& encoder() { return state_.EncoderOf(native_); }

  recorder::NativeState& state_;
  recorder::RanCode& code_;
  Legs& legs_;
  recorder::NativeThread& native_;
  PathReader reader_;
  ToldStream told_;
  uint64_t tsc_ = 0;         // what comes next ran behind it
  uint64_t told_tsc_ = 0;    // by the trace
  bool is_to_call_ = false;  // StopInCall
  uint64_t begun_tsc_ = 0;   // BeginAnew's, the last
  uint64_t version_ = 0;     // of code that it has shown
  // Where what was taken leads: the thread itself may have stopped elsewhere.
  uint64_t ip_;
  std::optional<recorder::LastInsn> followed_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_FREE_THREAD_H_
