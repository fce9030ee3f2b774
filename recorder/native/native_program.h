#ifndef CLEW_RECORDER_NATIVE_NATIVE_PROGRAM_H_
#define CLEW_RECORDER_NATIVE_NATIVE_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "common/result.h"
#include "recorder/native/native_state.h"
#include "recorder/native/tracee/attachment.h"
#include "recorder/qemu/core_file.h"
#include "recorder/qemu/initial_stack.h"

namespace clew::recorder {

// What a recording says of its program as it begins and as it ends.
class NativeProgram {
 public:
  // `state`, which is borrowed, has no threads yet.
  explicit NativeProgram(NativeState& state) : state_(state) {}

  // Of a program at its first instruction. Hides the vDSO from it, so that it
  // asks the kernel for the time, writes start.pb, and adds its thread.
  [[nodiscard]] Status Begin();
  // Of one that was attached to.
  [[nodiscard]] Status Begin(const Attachment& attachment);

  // Writes what a core dump says of it. REQUIRES: every thread is stopped.
  [[nodiscard]] Status WriteCoreDump(const NativeEnd& end);
  // Tells the threads and mappings that there are in the place of events that
  // were dropped: without them the core dump cannot be read.
  [[nodiscard]] Status NameWhatIsThere();
  // The program's memory as it is, where its heap ends at `brk`.
  [[nodiscard]] Result<std::vector<GuestRegion>> RegionsNow(uint64_t brk);
  // Of its initial stack: where argc is.
  uint64_t stack_addr() const { return stack_addr_; }
  // Of the program, once it is begun.
  const std::vector<std::string>& arguments() const { return stack_.arguments; }
  // Tells its threads, and the code in `regions`, to a trace that begins here.
  void TellAnew(const std::vector<GuestRegion>& regions);

 private:
  [[nodiscard]] Result<std::vector<GuestRegion>> Regions() const;
  [[nodiscard]] Result<DumpedThread> Dumped(const NativeThread& thread) const;
  void AddThread(Tid thread, TraceeAddr ip, uint64_t clear_tid_addr);
  void NameThreads();
  void NameMappings(const std::vector<GuestRegion>& regions, uint64_t now);
  [[nodiscard]] Status WriteStartState(StartState& start);

  NativeState& state_;
  InitialStack stack_;
  uint64_t stack_addr_ = 0;
  uint64_t brk_ = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_NATIVE_PROGRAM_H_
