#include "recorder/whole_file.h"

#include <google/protobuf/message_lite.h>

#include <limits>
#include <memory>

namespace clew::recorder {
namespace {

constexpr size_t kMessageBytesMax = std::numeric_limits<int32_t>::max();

bool Parse(std::span<const std::byte> bytes,
           google::protobuf::MessageLite& message) {
  // protobuf writes what it finds wrong to stderr; our caller has an Error for
  // that.
  static const auto silenced = google::protobuf::SetLogHandler(nullptr);
  (void)silenced;
  return bytes.size() <= kMessageBytesMax &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

Status ReadMessage(const std::string& path,
                   google::protobuf::MessageLite& message) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  if (!Parse(file.bytes(), message)) {
    return CorruptInput(
        "{}: its {} bytes are no {} message; 'clew info' says where", path,
        file.bytes().size(), message.GetTypeName());
  }
  return {};
}

Status ReplaceFile(FileSystem& files, const std::string& folder,
                   const std::string& name, std::span<const std::byte> bytes) {
  const std::string path = folder + "/" + name;
  const std::string partial = path + ".partial";
  CLEW_ASSIGN_OR_RETURN(file, files.Create(partial));
  CLEW_RETURN_IF_ERROR(file->Append(bytes));
  CLEW_RETURN_IF_ERROR(file->Sync());
  file.reset();
  CLEW_RETURN_IF_ERROR(files.Rename(partial, path));
  return files.SyncDirectory(folder);
}

Status ReplaceMessage(FileSystem& files, const std::string& folder,
                      const std::string& name,
                      const google::protobuf::MessageLite& message) {
  std::string bytes;
  const std::unique_ptr<google::protobuf::MessageLite> again(message.New());
  if (message.ByteSizeLong() > kMessageBytesMax ||
      !message.SerializeToString(&bytes) ||
      !Parse(std::as_bytes(std::span(bytes)), *again)) {
    return InvalidArgument(
        "{}/{}: what is to be written could not be read again: a string is "
        "not UTF-8, or the whole too large; nothing was changed",
        folder, name);
  }
  return ReplaceFile(files, folder, name, std::as_bytes(std::span(bytes)));
}

}  // namespace clew::recorder
