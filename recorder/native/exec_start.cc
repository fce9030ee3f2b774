#include "recorder/native/exec_start.h"

#include <sys/wait.h>

#include <utility>

#include "recorder/native/shown_cpu.h"
#include "recorder/native/start_description.h"

namespace clew::recorder {
namespace {

Status Describe(const TracedProcess& process, const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(process.process()));
  CLEW_ASSIGN_OR_RETURN(start, DescribeProgram(process));
  CLEW_RETURN_IF_ERROR(HideVdso(start, memory));
  start.told_cpu = HostCpu();
  CLEW_ASSIGN_OR_RETURN(
      regions, ListRegionsOf(process.process(), start.initial_stack.as_int(),
                             start.brk.as_int()));
  return WriteDescription(path, start, process.process(), std::move(regions),
                          memory);
}

}  // namespace

Result<std::optional<int>> DescribeAtExec(int32_t process,
                                          const std::function<void()>& go,
                                          const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(traced, TracedProcess::Attach(process));
  go();
  CLEW_ASSIGN_OR_RETURN(stop, traced.RunToExec());
  if (stop.kind != TraceeStop::Kind::kExec) {
    return std::optional(stop.kind == TraceeStop::Kind::kKilled
                             ? W_EXITCODE(0, stop.signal)
                             : W_EXITCODE(stop.exit_status, 0));
  }
  CLEW_RETURN_IF_ERROR(Describe(traced, path));
  CLEW_RETURN_IF_ERROR(traced.Detach(traced.first_thread(), 0));
  return std::optional<int>();
}

}  // namespace clew::recorder
