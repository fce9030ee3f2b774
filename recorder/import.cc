#include "recorder/import.h"

#include <unistd.h>

#include <cerrno>

#include "bundle/manifest/images.h"
#include "bundle/manifest/manifest_writer.h"
#include "common/file.h"

namespace clew::recorder {
namespace {

using bundle::BundleWriter;
using bundle::Manifest;

constexpr size_t kCopyBytes = size_t{1} << 20;

}  // namespace

Result<uint64_t> CopyInto(BundleWriter& bundle, const std::string& name, int fd,
                          const std::string& source, uint64_t total,
                          ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(file,
                        bundle.files().Create(bundle.folder() + "/" + name));
  std::vector<std::byte> buffer(kCopyBytes);
  uint64_t copied = 0;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return SystemError(errno, fmt::format("cannot read {}", source));
    }
    if (got == 0) {
      break;
    }
    const auto bytes = static_cast<size_t>(got);
    CLEW_RETURN_IF_ERROR(file->Append(std::span(buffer).first(bytes)));
    copied += bytes;
    if (progress != nullptr) {
      progress->Update(copied, total);
    }
  }
  CLEW_RETURN_IF_ERROR(file->Sync());
  return copied;
}

Status WriteImport(BundleWriter& bundle, const Manifest& manifest) {
  CLEW_RETURN_IF_ERROR(bundle::CopyImages(bundle, manifest.images, {}));
  return bundle::WriteManifest(bundle, manifest);
}

}  // namespace clew::recorder
