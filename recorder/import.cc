#include "recorder/import.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "bundle/manifest/manifest_writer.h"
#include "common/file.h"
#include "common/hex.h"
#include "common/path_names.h"
#include "common/utf8.h"
#include "recorder/images.h"

namespace clew::recorder {
namespace {

using bundle::BundleImage;
using bundle::BundleWriter;
using bundle::Manifest;

constexpr size_t kCopyBytes = size_t{1} << 20;

Status CopyImages(BundleWriter& bundle,
                  const std::vector<BundleImage>& images) {
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images"));
  std::set<std::string> made;
  for (const BundleImage& image : images) {
    if (image.file.empty()) {
      continue;
    }
    const std::string folder = "images/" + ToHex(image.build_id);
    if (made.insert(folder).second) {
      CLEW_RETURN_IF_ERROR(bundle.MakeFolder(folder));
    }
    const std::string name = folder + "/" + ImageFileName(Utf8(image.path));
    if (!made.insert(name).second) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(image.file));
    const std::vector<uint8_t> id = ImageIdOf(file.bytes());
    if (!std::ranges::equal(std::as_bytes(std::span(id)), image.build_id)) {
      return SystemError(
          EBUSY,
          fmt::format("{:?} was replaced during the import; import again",
                      image.file));
    }
    CLEW_RETURN_IF_ERROR(bundle.Write(name, file.bytes()));
  }
  return {};
}

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
  CLEW_RETURN_IF_ERROR(CopyImages(bundle, manifest.images));
  return bundle::WriteManifest(bundle, manifest);
}

}  // namespace clew::recorder
