#include "bundle/manifest/whole_file.h"

#include <google/protobuf/message_lite.h>

#include <memory>

#include "bundle/manifest/message.h"

namespace clew::bundle {
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
      !ParseMessage(std::as_bytes(std::span(bytes)), *again)) {
    return InvalidArgument(
        "{}/{}: what is to be written could not be read again: a string is "
        "not UTF-8, or the whole too large; nothing was changed",
        folder, name);
  }
  return ReplaceFile(files, folder, name, std::as_bytes(std::span(bytes)));
}

}  // namespace clew::bundle
