#include "replayer/gdb/file_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "replayer/gdb/gdb_packet.h"
#include "replayer/loaded_library.h"

namespace clew::replayer::gdb {
namespace {

// "Debugging with GDB", "Errno Values".
enum FileError : unsigned {
  kNoEntry = 2,
  kBadDescriptor = 9,
  kInvalid = 22,
  kTooManyOpen = 24,
  kReadOnly = 30,
};

std::string Failed(FileError error) {
  return fmt::format("F-1,{:x}", static_cast<unsigned>(error));
}

// "Debugging with GDB", "struct stat": big-endian, 64 bytes.
constexpr size_t kStatMode = 8;
constexpr size_t kStatLinks = 12;
constexpr size_t kStatSize = 28;
constexpr size_t kStatBlockSize = 36;
constexpr size_t kStatBlocks = 44;
constexpr size_t kStatBytes = 64;
constexpr uint64_t kRegularReadable = 0100444;

void PutBigEndian(std::array<char, kStatBytes>& to, size_t at, size_t bytes,
                  uint64_t value) {
  for (size_t i = 0; i < bytes; ++i) {
    to[at + i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
  }
}

std::string WithData(std::string_view raw) {
  size_t used = 0;
  // "F", up to 16 digits, ";"
  const std::string escaped = Escape(raw, kPacketBytesMax - 18, used);
  return fmt::format("F{:x};", used) + escaped;
}

}  // namespace

std::string FileServer::Handle(std::string_view request_untrusted) {
  FieldReader fields(request_untrusted);
  if (fields.Take("open:")) {
    return Open(fields);
  }
  if (fields.Take("close:")) {
    return Close(fields);
  }
  if (fields.Take("pread:")) {
    return Pread(fields);
  }
  if (fields.Take("fstat:")) {
    return Fstat(fields);
  }
  if (fields.Take("setfs:")) {
    return "F0";  // one file system, whichever process asks
  }
  if (fields.Take("readlink:")) {
    return Failed(kInvalid);  // none of the files is a link
  }
  if (fields.Take("pwrite:") || fields.Take("unlink:")) {
    return Failed(kReadOnly);
  }
  return {};
}

std::string FileServer::Open(FieldReader fields) {
  const auto path = FromHex(fields.TakeUntil(','));
  const auto flags = fields.TakeHex();
  if (!path || !flags) {
    return Failed(kInvalid);
  }
  if (*flags != 0) {  // O_RDONLY
    return Failed(kReadOnly);
  }
  if (open_.size() >= kOpenMax) {
    return Failed(kTooManyOpen);
  }
  const auto contents = files_.Read(*path, LoadedLibraryStart(target_, *path));
  if (!contents) {
    return Failed(kNoEntry);
  }
  open_[next_] = *contents;
  return fmt::format("F{:x}", next_++);
}

std::string FileServer::Close(FieldReader fields) {
  const auto descriptor = fields.TakeHex();
  return descriptor && open_.erase(*descriptor) == 1 ? "F0"
                                                     : Failed(kBadDescriptor);
}

std::optional<std::span<const std::byte>> FileServer::Opened(
    FieldReader& fields) const {
  const auto descriptor = fields.TakeHex();
  const auto found = descriptor ? open_.find(*descriptor) : open_.end();
  if (found == open_.end()) {
    return std::nullopt;
  }
  return found->second;
}

std::string FileServer::Pread(FieldReader fields) {
  const auto contents = Opened(fields);
  if (!contents) {
    return Failed(kBadDescriptor);
  }
  const auto count = fields.TakeCommaHex();
  const auto offset = fields.TakeCommaHex();
  if (!count || !offset) {
    return Failed(kInvalid);
  }
  const auto at = std::min<uint64_t>(*offset, contents->size());
  const auto size =
      std::min({*count, contents->size() - at, uint64_t{kPacketBytesMax}});
  const auto bytes = contents->subspan(at, size);
  return WithData({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string FileServer::Fstat(FieldReader fields) {
  const auto contents = Opened(fields);
  if (!contents) {
    return Failed(kBadDescriptor);
  }
  constexpr uint64_t kBlock = 512;
  std::array<char, kStatBytes> stat = {};
  PutBigEndian(stat, kStatMode, 4, kRegularReadable);
  PutBigEndian(stat, kStatLinks, 4, 1);
  PutBigEndian(stat, kStatSize, 8, contents->size());
  PutBigEndian(stat, kStatBlockSize, 8, kBlock);
  PutBigEndian(stat, kStatBlocks, 8, (contents->size() + kBlock - 1) / kBlock);
  return WithData({stat.data(), stat.size()});
}

}  // namespace clew::replayer::gdb
