#include "daemon/pipeline/software_units.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/spool/process_facts.h"

namespace clew::daemon {

std::optional<std::string> SoftwareUnits::Find(
    const SnapshotRequest& request) const {
  const auto writing = spool_.Writing();
  const auto found =
      std::ranges::find_if(writing, [&](const std::string& name) {
        const auto parsed = ParseName(name);
        return parsed &&
               (request.unit.empty() ? parsed->process == request.process
                                     : parsed->subject == request.unit);
      });
  return found == writing.end() ? std::nullopt : std::optional(*found);
}

Result<std::string> SoftwareUnits::End(const std::string& partial) {
  const BundleName name = ParseName(partial).value_or(BundleName());
  // Written at the program's first instruction; before that nobody would turn
  // the signal into a bundle.
  const std::string begun =
      spool_.Path(Stage::kIncoming, partial) + "/start.pb";
  if (access(begun.c_str(), F_OK) != 0) {
    return LimitReached("the program of {} is being started; try again",
                        name.subject);
  }
  // Whoever writes to incoming/ may name any process.
  if (spool_.OwnerOf(Stage::kIncoming, partial) !=
      ReadProcessFacts(proc_, name.process).user) {
    return InvalidArgument("process {} is not of the user who records {}",
                           name.process, partial);
  }
  const auto programs = LivingChildren(proc_, name.process);
  if (programs.size() != 1) {
    return InvalidArgument("process {} of {} runs {} recorded programs, not 1",
                           name.process, name.subject, programs.size());
  }
  if (kill(programs.front(), SIGABRT) != 0) {
    return SystemError(errno,
                       fmt::format("cannot end process {}", programs.front()));
  }
  pipeline_.ExpectRequested(name.process);
  log_.Write(Priority::kInfo, "ended", {{"unit", name.subject}});
  return partial.substr(0, partial.rfind(".partial"));
}

}  // namespace clew::daemon
