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

// Lets the threads of a program that is stepped run on their own for a while,
// and tells afterwards what they ran. All threads are stopped but for the one
// that runs.
class Leaps {
 public:
  // Is told of a stretch of code that ran: instructions one after another, of
  // which only the last may lead elsewhere.
  using Sink =
      std::function<Status(uint64_t start, std::span<const uint8_t> code)>;

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

  // Lets a thread run, which is stopped in the program, for some `insns`
  // instructions. The same run is cut at the same places. kUnsupported: the
  // program was ended.
  [[nodiscard]] virtual Result<Leap> Run(Tid thread, uint64_t insns,
                                         const Sink& sink) = 0;
  // A thread was stepped over this call, which succeeded.
  virtual void NoteCall(const SyscallCall& call) = 0;
  // A thread has ended.
  virtual void NoteEnd(Tid thread) = 0;
  // What the program's memory has of it; the program does not know.
  [[nodiscard]] virtual std::vector<MemoryRange> Memory() const = 0;
};

// Of a process at the first instruction of a program.
using LeapsMaker =
    std::function<Result<std::unique_ptr<Leaps>>(TracedProcess& process)>;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_LEAPS_H_
