#ifndef CLEW_REPLAYER_GDB_FILE_SERVER_H_
#define CLEW_REPLAYER_GDB_FILE_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "replayer/gdb/packet_hex.h"
#include "replayer/image_files.h"
#include "replayer/target.h"

namespace clew::replayer::gdb {

// Host I/O packets (vFile), read-only and out of the bundle, so that gdb with
// sysroot "target:" finds the recorded program and libraries and nothing else.
//
// Source: "Debugging with GDB", "Host I/O Packets".
class FileServer {
 public:
  // Borrowed. `target` tells which file ld.so means by a name of its own.
  FileServer(ImageFiles& files, const ReplayTarget& target)
      : files_(files), target_(target) {}

  // Returns the reply to "vFile:<request>"; empty for a request that is not
  // known.
  std::string Handle(std::string_view request_untrusted);

 private:
  std::string Open(FieldReader fields);
  std::string Close(FieldReader fields);
  std::string Pread(FieldReader fields);
  std::string Fstat(FieldReader fields);
  std::optional<std::span<const std::byte>> Opened(FieldReader& fields) const;

  static constexpr size_t kOpenMax = 64;
  ImageFiles& files_;
  const ReplayTarget& target_;
  std::map<uint64_t, std::span<const std::byte>> open_;  // by descriptor
  uint64_t next_ = 3;
};

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_FILE_SERVER_H_
