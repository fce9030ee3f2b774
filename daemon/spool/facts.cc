#include "daemon/spool/facts.h"

#include <sys/stat.h>

#include <limits>

#include "common/os/file.h"
#include "common/text/path_names.h"
#include "proto/bundle.pb.h"

namespace clew::daemon {

Result<BundleFacts> ReadFacts(const std::string& folder) {
  const std::string path = folder + "/manifest.pb";
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return CorruptInput("{:?} is no file; this is no bundle", path);
  }
  if (static_cast<uint64_t>(info.st_size) > kAdmittedManifestBytesMax) {
    return CorruptInput("{:?} has {} bytes, a manifest has at most {}", path,
                        info.st_size, kAdmittedManifestBytesMax);
  }
  CLEW_ASSIGN_OR_RETURN(bytes, ReadWholeFile(path));
  pb::Manifest manifest;
  if (!manifest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return CorruptInput("{:?} is no manifest", path);
  }
  BundleFacts facts;
  if (manifest.command_size() > 0) {
    const std::string& command = manifest.command(0);
    facts.program = BaseName(command);
  }
  facts.signal = manifest.failure().signal();
  facts.hang = manifest.failure().kind() == pb::Failure::KIND_HANG;
  facts.failed = manifest.failure().kind() != pb::Failure::KIND_NONE;
  if (manifest.has_trigger()) {
    const pb::Trigger& from = manifest.trigger();
    facts.trigger = Trigger{
        .unit = from.unit(), .process = from.process(), .at_ns = from.at_ns()};
  }
  return facts;
}

}  // namespace clew::daemon
