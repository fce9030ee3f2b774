// What `clew backtrace` takes from strangers: a core dump and an image, which
// libdw unwinds and reads names and lines from. The first four bytes say how
// many of the rest are the dump; its list of files names the image as "/p".

#include "decoder/backtrace.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>

#include "common/check.h"
#include "common/os/file.h"
#include "decoder/failure_signature.h"
#include "proto/bundle.pb.h"

namespace {

using namespace clew;           // NOLINT: a fuzz target is one function
using namespace clew::decoder;  // NOLINT

// A bundle's folder, removed when the program ends.
class Folder {
 public:
  Folder() {
    path_ = std::filesystem::temp_directory_path() / "clew-fuzz-XXXXXX";
    CLEW_CHECK(mkdtemp(path_.data()) != nullptr, "no folder {}", path_);
    std::filesystem::create_directories(path_ + "/images/01");
    pb::Manifest manifest;
    manifest.set_format_version(1);
    manifest.mutable_failure()->set_kind(pb::Failure::KIND_SIGNAL);
    manifest.mutable_failure()->set_signal(11);
    manifest.add_images()->set_path("/p");
    manifest.mutable_images(0)->set_build_id("\x01");
    const std::string bytes = manifest.SerializeAsString();
    Write("/manifest.pb", std::as_bytes(std::span(bytes)));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void Write(const char* name, std::span<const std::byte> bytes) const {
    const auto written = WriteWholeFile(PosixFileSystem(), path_ + name, bytes);
    CLEW_CHECK(written.has_value(), "{}", written.error().message);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  uint32_t core_bytes = 0;
  if (size < sizeof core_bytes) {
    return 0;
  }
  std::memcpy(&core_bytes, data, sizeof core_bytes);
  const std::span<const std::byte> rest =
      std::as_bytes(std::span(data, size)).subspan(sizeof core_bytes);
  const size_t first = std::min<size_t>(core_bytes, rest.size());
  folder.Write("/core", rest.first(first));
  folder.Write("/images/01/p", rest.subspan(first));
  const auto bundle = bundle::Bundle::Open(folder.path());
  CLEW_CHECK(bundle.has_value(), "{}", bundle.error().message);
  const auto backtrace =
      ReadBacktrace(*bundle, {.threads_max = 16,
                              .frames_max = 64,
                              .time_max = std::chrono::milliseconds(2000),
                              .core_bytes_max = uint64_t{1} << 24});
  if (backtrace) {
    for (const ThreadBacktrace& thread : backtrace->threads) {
      CLEW_CHECK(!thread.frames.empty() && thread.frames.size() <= 64,
                 "{} frames", thread.frames.size());
    }
    CLEW_CHECK(!SignatureText(*backtrace).empty(), "no signature");
    (void)FailureTitle(*backtrace);
  }
  return 0;
}
