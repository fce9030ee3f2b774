#include "recorder/native/attached_start.h"

#include "recorder/native/shown_cpu.h"
#include "recorder/native/start_description.h"
#include "recorder/native/tracee/interrupted_call.h"

namespace clew::recorder {
namespace {

Status DetachAll(TracedProcess& process) {
  for (const Tid thread : process.Threads()) {
    CLEW_RETURN_IF_ERROR(process.Detach(thread, 0));
  }
  return {};
}

}  // namespace

Result<AttachedStart> AttachedStart::Stop(int32_t process,
                                          const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(traced, TracedProcess::Attach(process));
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(process));
  CLEW_ASSIGN_OR_RETURN(
      attachment, Attachment::Make(traced, memory, Attachment::RseqIs::kKept));
  AttachedStart start(std::move(traced), std::move(attachment));
  CLEW_RETURN_IF_ERROR(start.Describe(path));
  return start;
}

AttachedStart::~AttachedStart() {
  if (!attachment_) {
    return;
  }
  if (stopped_) {
    (void)Undo(*stopped_);  // whose end lets it go
  } else {
    (void)GiveBack();  // or it has ended
  }
}

Status AttachedStart::Describe(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(process_));
  CLEW_ASSIGN_OR_RETURN(vdso, attachment_->vdso().Image(memory));
  vdso_ = std::move(vdso);
  CLEW_ASSIGN_OR_RETURN(start, DescribeAttached(*stopped_, *attachment_));
  start.told_cpu = HostCpu();
  CLEW_ASSIGN_OR_RETURN(regions,
                        ListRegionsOf(process_, start.initial_stack.as_int(),
                                      start.brk.as_int()));
  return WriteDescription(path, start, process_, std::move(regions), memory);
}

Status AttachedStart::LetGo() {
  CLEW_RETURN_IF_ERROR(DetachAll(*stopped_));
  stopped_.reset();
  return {};
}

Status AttachedStart::GiveBack() {
  CLEW_ASSIGN_OR_RETURN(process, TracedProcess::Attach(process_));
  for (const Tid thread : process.Threads()) {
    CLEW_RETURN_IF_ERROR(RewindInterruptedCall(process, thread, true));
  }
  CLEW_RETURN_IF_ERROR(Undo(process));
  attachment_.reset();
  return DetachAll(process);
}

Status AttachedStart::Undo(TracedProcess& process) const {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(process_));
  return attachment_->vdso().IsIn(process, memory)
             ? attachment_->Undo(process, memory)
             : Status();
}

}  // namespace clew::recorder
