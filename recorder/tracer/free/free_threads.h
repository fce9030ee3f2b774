#ifndef CLEW_RECORDER_TRACER_FREE_FREE_THREADS_H_
#define CLEW_RECORDER_TRACER_FREE_FREE_THREADS_H_

#include <signal.h>
#include <sys/user.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/result.h"
#include "recorder/native/native_state.h"
#include "recorder/native/ran_code.h"
#include "recorder/tracer/free/free_thread.h"
#include "recorder/tracer/free/legs.h"
#include "recorder/tracer/path_reader.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// The threads of a program that runs free: those that have a slot in the shared
// memory. Each gets a core of the trace, which another one has once it is gone.
// A process that the program made is one as long as it has the program's
// memory.
class FreeThreads {
 public:
  // How a thread is stopped in the program.
  enum class Stopped : uint8_t {
    kNot,
    kParked,    // it waits in the runtime (runtime/park.h)
    kInCall,    // by ptrace(2), in a call which has not returned
    kAtSignal,  // likewise, with the program's registers: one ends it there
  };
  struct Thread {
    uint32_t slot = 0;
    recorder::NativeThread* native = nullptr;
    std::unique_ptr<FreeThread> log;
    Stopped stopped = Stopped::kNot;
    bool is_child = false;  // of another process, which is not traced
    bool leaves = false;    // it makes exit(2)
    bool is_read = false;   // all of it was taken, and its slot is not its own
    uint64_t gone_tsc = 0;  // it had ended by then; 0: it has not
    // An instruction raised a signal that ends the program: what it had in its
    // registers, until it is stopped.
    std::optional<user_regs_struct> interrupted = {};
    siginfo_t raised = {};
  };

  // Both are borrowed.
  FreeThreads(recorder::NativeState& state, SharedMemory& shared)
      : state_(state),
        shared_(shared),
        index_(shared_),
        code_(state.code),
        legs_(shared, code_, state.code) {}

  // Takes what they have logged.
  [[nodiscard]] Status Read();
  // Whether there was anything since this was asked last.
  bool TakeNews() { return std::exchange(has_news_, false); }
  // The thread has ended: what the kernel does then is done.
  [[nodiscard]] Status NoteGone(Tid tid, uint64_t tsc);

  // Notes the call that the thread is in, or is about to make, and returns it.
  recorder::SyscallCall NoteCall(Thread& thread);

  // nullptr: it has not begun.
  Thread* Find(Tid tid) {
    const auto found = threads_.find(tid);
    return found == threads_.end() ? nullptr : &found->second;
  }
  // Whether one is of another process, which has the program's memory.
  bool HasChild() const;
  // Those that are not gone.
  std::map<Tid, Thread>& all() { return threads_; }
  ThreadSlot& SlotOf(const Thread& thread) { return shared_.slot(thread.slot); }
  ThreadState& StateOf(const Thread& thread) { return SlotOf(thread).state; }

 private:
  [[nodiscard]] Status ReadSlot(uint32_t slot);
  [[nodiscard]] Result<Thread*> OfSlot(uint32_t slot);
  [[nodiscard]] Result<uint32_t> TakeCore(uint64_t since);
  [[nodiscard]] Status CloseIfGone(Tid tid, Thread& thread);
  [[nodiscard]] Status EndChild(Tid tid, Thread& thread);

  recorder::NativeState& state_;
  SharedMemory& shared_;
  FragmentIndex index_;
  recorder::RanCode code_;
  Legs legs_;
  std::map<Tid, Thread> threads_;
  // Of threads that are gone, and when their last one was.
  std::map<uint32_t, uint64_t> free_cores_;
  uint32_t cores_used_ = 0;
  bool has_news_ = false;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_FREE_THREADS_H_
