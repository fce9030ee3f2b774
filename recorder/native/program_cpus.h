#ifndef CLEW_RECORDER_NATIVE_PROGRAM_CPUS_H_
#define CLEW_RECORDER_NATIVE_PROGRAM_CPUS_H_

#include <sched.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/units.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// The CPUs that the threads of a program see. In truth all run on one, together
// with the thread that steps them: then a step costs a third.
//
// A program that is launched sees virtual cores, as many as the scheduler has;
// which of them a thread chooses is told, and the scheduler takes no notice of
// it. One that was attached to sees the CPUs that it had, and gets them back.
class ProgramCpus {
 public:
  // Of a program that is about to be launched (TraceeLaunch::host_cpu); `cores`
  // is 1 to CPU_SETSIZE.
  static ProgramCpus OfLaunched(uint32_t cores);
  // Binds the threads of a process that runs, and the calling one, to a CPU
  // that all may run on. Where there is none they stay as they are: a slower
  // recording is one, too.
  static ProgramCpus OfAttached(const std::vector<Tid>& threads);

  // The thread or process `child` sees what `thread` does, which made it; one
  // that nobody made, all there are.
  void Inherit(Tid thread, Tid child);
  // `thread` is about to make `call`. Returns its result if the kernel is not
  // to make it.
  [[nodiscard]] std::optional<int64_t> Begin(Tid thread,
                                             const SyscallCall& call,
                                             const GuestMemory& memory);
  // Likewise, and the kernel has made it; `core` is where the scheduler has
  // `thread`. Corrects what the program sees.
  void End(Tid thread, uint32_t core, const SyscallCall& call, int64_t result,
           const GuestMemory& memory);
  // Lets a thread that is traced no longer run where it would without the
  // recorder.
  void Release(Tid thread) const;

 private:
  // Of sched_setaffinity(2) and sched_getaffinity(2): whose; nullopt: none of
  // the program's.
  std::optional<Tid> Meant(Tid thread, const SyscallCall& call) const;
  const cpu_set_t& SeenBy(Tid thread) const;
  // The kernel has given `thread` other CPUs.
  void Rebind(Tid thread);

  bool is_launched_ = false;
  cpu_set_t all_ = {};
  cpu_set_t recorders_ = {};           // launched: before it bound itself
  std::optional<cpu_set_t> one_ = {};  // attached: that they are bound to
  std::map<int32_t, cpu_set_t> seen_ = {};
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_PROGRAM_CPUS_H_
