#include "bundle/bundle.h"

#include <sys/stat.h>

#include <utility>

#include "bundle/convert_inputs.h"
#include "bundle/input_log.h"
#include "bundle/manifest/convert_manifest.h"
#include "bundle/manifest/message.h"
#include "bundle/perf_data/file_kind.h"
#include "common/digest.h"
#include "common/text/shell_quote.h"

namespace clew::bundle {
namespace {

constexpr std::string_view kPartialSuffix = ".partial";

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

}  // namespace

Result<StartState> ReadStart(const std::string& path) {
  pb::Start message;
  CLEW_RETURN_IF_ERROR(ReadMessage(path, message));
  return ToStart(message, path);
}

Result<Bundle> Bundle::Open(const std::string& given) {
  Bundle bundle(WithoutSlash(given));
  const std::string& path = bundle.path_;
  if (path.ends_with(kPartialSuffix)) {
    return InvalidArgument(
        "{:?} is a recording that was not finished; record again", path);
  }
  const std::string manifest_path = path + "/manifest.pb";
  if (!Exists(path)) {
    return InvalidArgument("{:?} is not there", path);
  }
  if (const auto file = MappedFile::Open(path);
      file && IsPerfData(file->bytes())) {
    return InvalidArgument(
        "{:?} is a perf.data of Linux perf, no bundle: 'clew import {} -o "
        "run.clew' makes one of it",
        path, ShellQuote(path));
  }
  if (!Exists(manifest_path)) {
    return InvalidArgument("{:?} is no bundle: it has no manifest.pb", path);
  }
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(manifest_path));
  pb::Manifest message;
  if (!ParseMessage(file.bytes(), message)) {
    return NoMessage(file.bytes(), message, manifest_path);
  }
  CLEW_ASSIGN_OR_RETURN(manifest, ToManifest(message, manifest_path, path));
  bundle.manifest_ = std::move(manifest);
  bundle.manifest_.digest = Digest(file.bytes());
  return bundle;
}

std::string Bundle::ImageOf(const std::string& path) const {
  for (const BundleImage& image : manifest_.images) {
    if (image.path == path) {
      return image.file;
    }
  }
  return {};
}

Result<StartState> Bundle::ReadStart() const {
  return bundle::ReadStart(path_ + "/start.pb");
}

Result<std::unique_ptr<InputSource>> Bundle::OpenInputs() const {
  CLEW_ASSIGN_OR_RETURN(log, InputLog::Open(path_ + "/inputs.pb"));
  return std::unique_ptr<InputSource>(std::move(log));
}

std::string Bundle::core_path() const {
  for (const char* name : {"/core", "/core.zst"}) {
    if (Exists(path_ + name)) {
      return path_ + name;
    }
  }
  return {};
}

Result<std::optional<CoreDump>> Bundle::ReadCore() const {
  const std::string path = core_path();
  if (path.empty()) {
    return std::optional<CoreDump>();
  }
  CLEW_ASSIGN_OR_RETURN(dump, CoreDump::Open(path));
  return std::optional<CoreDump>(std::move(dump));
}

Result<std::optional<Schedule>> Bundle::ReadSchedule() const {
  const std::string path = path_ + "/schedule.pb";
  if (!Exists(path)) {
    return std::optional<Schedule>();
  }
  pb::Schedule message;
  CLEW_RETURN_IF_ERROR(ReadMessage(path, message));
  if (message.manifest_digest() != manifest_.digest) {
    return CorruptInput(
        "{}: manifest_digest is {:#x}, this recording's is {:#x}; solve again",
        path, message.manifest_digest(), manifest_.digest);
  }
  CLEW_ASSIGN_OR_RETURN(schedule, ToSchedule(message, path));
  return std::optional<Schedule>(std::move(schedule));
}

Status Bundle::WriteSchedule(FileSystem& files, const Schedule& schedule,
                             const std::vector<std::string>& notes) const {
  pb::Schedule message = FromSchedule(schedule);
  message.set_manifest_digest(manifest_.digest);
  for (const std::string& note : notes) {
    message.add_notes(note);
  }
  const std::string bytes = message.SerializeAsString();
  const std::string path = path_ + "/schedule.pb";
  const std::string partial = path + std::string(kPartialSuffix);
  CLEW_ASSIGN_OR_RETURN(file, files.Create(partial));
  CLEW_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(bytes))));
  CLEW_RETURN_IF_ERROR(file->Sync());
  file.reset();
  CLEW_RETURN_IF_ERROR(files.Rename(partial, path));
  return files.SyncDirectory(path_);
}

}  // namespace clew::bundle
