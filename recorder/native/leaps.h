#ifndef CLEW_RECORDER_NATIVE_LEAPS_H_
#define CLEW_RECORDER_NATIVE_LEAPS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "common/units.h"
#include "recorder/qemu/calls/syscall_effects.h"

namespace clew::recorder {

// Code that a thread ran through, from its first byte on: past branches that
// were not taken, up to one that was, or on to what follows.
struct CodeStretch {
  uint64_t start = 0;
  std::span<const uint8_t> code;
  // Of two with the same number, which is not 0, one is how the other begins.
  uint32_t number = 0;
};

// Lets the threads of a program that is stepped run on their own for a while,
// and tells afterwards what they ran. All threads are stopped but for the one
// that runs.
class Leaps {
 public:
  // Is told what ran.
  using Sink = std::function<Status(const CodeStretch&)>;

  struct Leap {
    uint64_t ip = 0;  // where the thread is
    // What is there is to be stepped over: a system call, an instruction that
    // raises a signal or reads more than registers and memory, ...
    bool is_at_step = false;
    int signal = 0;  // that it is about to receive; 0: none
  };

  Leaps() = default;
  Leaps(const Leaps&) = delete;
  Leaps& operator=(const Leaps&) = delete;
  virtual ~Leaps() = default;

  // Lets a thread run, which is stopped in the program, for at most `insns`
  // instructions if these are few, some thousands; for about so many or fewer
  // otherwise. The same run is cut at the same places. kUnsupported: the
  // program was ended.
  [[nodiscard]] virtual Result<Leap> Run(Tid thread, uint64_t insns,
                                         const Sink& sink) = 0;
  // Lets a thread have its registers, as when it is stepped: the next call may
  // be a Run all the same. REQUIRED, after a Run, before it is stepped or
  // looked at.
  [[nodiscard]] virtual Status Settle(Tid thread) = 0;
  // A thread was stepped over this call, which succeeded.
  virtual void NoteCall(const SyscallCall& call) = 0;
  // A thread has ended.
  virtual void NoteEnd(Tid thread) = 0;
  // Takes what it has there out of the memory of `thread`, by calls that this
  // makes: of the program's, or of a process that one of its threads has made.
  // REQUIRES: it is not about to receive a signal; each thread of the process
  // is settled, and stopped in user mode.
  [[nodiscard]] virtual Status Leave(Tid thread) = 0;
  // What the program's memory has of it; the program does not know.
  [[nodiscard]] virtual std::vector<MemoryRange> Memory() const = 0;
};

// Of a process whose threads are all stopped, each in user mode.
using LeapsMaker =
    std::function<Result<std::unique_ptr<Leaps>>(TracedProcess& process)>;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_LEAPS_H_
