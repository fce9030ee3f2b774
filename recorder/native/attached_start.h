#ifndef CLEW_RECORDER_NATIVE_ATTACHED_START_H_
#define CLEW_RECORDER_NATIVE_ATTACHED_START_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/tracee/attachment.h"

namespace clew::recorder {

// A process that runs, stopped and described, for others who record it from
// there on at full speed. What was done to it (Attachment, with rseq kept) is
// undone by GiveBack, and when this is destroyed.
//
//   auto start = AttachedStart::Stop(process, path);
//   (recorders begin)
//   start->LetGo();
//   (they end)
//   start->GiveBack();
//
// A recorder that is killed meanwhile leaves the process as it is recorded: the
// functions of its vDSO make calls, which is slower, and does no harm.
//
// All calls must come from one thread, as ptrace(2) wants it. Moves.
class AttachedStart {
 public:
  // Returns once all threads are stopped, where they are to go on, and start.pb
  // is written to `path`. Fails as TracedProcess::Attach and Attachment::Make
  // do, or where the file cannot be written; the process goes on then as it
  // was.
  [[nodiscard]] static Result<AttachedStart> Stop(int32_t process,
                                                  const std::string& path);
  AttachedStart(AttachedStart&& other) noexcept = default;
  AttachedStart& operator=(AttachedStart&&) = delete;
  ~AttachedStart();

  // Of the process, as it is recorded: a whole ELF file.
  const std::vector<std::byte>& vdso() const { return vdso_; }
  [[nodiscard]] Status LetGo();
  // Stops it once more, for a moment. Where it runs another program by now
  // there is nothing to undo.
  [[nodiscard]] Status GiveBack();

 private:
  AttachedStart(TracedProcess process, Attachment attachment)
      : process_(process.process()),
        stopped_(std::make_unique<TracedProcess>(std::move(process))),
        attachment_(std::make_unique<Attachment>(std::move(attachment))) {}
  [[nodiscard]] Status Describe(const std::string& path);
  [[nodiscard]] Status Undo(TracedProcess& process) const;

  int32_t process_;
  std::unique_ptr<TracedProcess> stopped_;  // null once it is let go
  std::unique_ptr<Attachment> attachment_;  // null once it is given back
  std::vector<std::byte> vdso_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_ATTACHED_START_H_
