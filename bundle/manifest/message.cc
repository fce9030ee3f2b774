#include "bundle/manifest/message.h"

#include "bundle/manifest/wire_fault.h"
#include "common/os/file.h"

namespace clew::bundle {

bool ParseMessage(std::span<const std::byte> bytes,
                  google::protobuf::MessageLite& message) {
  // protobuf writes what it finds wrong to stderr; our caller has an Error for
  // that.
  static const auto silenced = google::protobuf::SetLogHandler(nullptr);
  (void)silenced;
  return bytes.size() <= kMessageBytesMax &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

std::unexpected<Error> NoMessage(std::span<const std::byte> bytes,
                                 const google::protobuf::Message& wanted,
                                 const std::string& where,
                                 uint64_t base_offset) {
  if (bytes.size() > kMessageBytesMax) {
    return CorruptInput("{}: has {} bytes, wanted at most {}", where,
                        bytes.size(), kMessageBytesMax);
  }
  const auto fault = FindWireFault(bytes, *wanted.GetDescriptor());
  if (!fault) {
    return CorruptInput("{}: offset {:#x}: its {} bytes are no {} message",
                        where, base_offset, bytes.size(), wanted.GetTypeName());
  }
  return CorruptInput("{}: offset {:#x}: {}", where,
                      base_offset + fault->offset, fault->message);
}

Status ReadMessage(const std::string& path,
                   google::protobuf::Message& message) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  if (!ParseMessage(file.bytes(), message)) {
    return NoMessage(file.bytes(), message, path);
  }
  return {};
}

}  // namespace clew::bundle
