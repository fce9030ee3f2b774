#ifndef CLEW_BUNDLE_MANIFEST_WHOLE_FILE_H_
#define CLEW_BUNDLE_MANIFEST_WHOLE_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "common/os/file.h"
#include "common/result.h"

namespace google::protobuf {
class MessageLite;
}

// Files of a bundle that are written again.

namespace clew::bundle {

// Replaces `folder`/`name`: afterwards, and whatever ends the program, it has
// the old bytes or the new ones, through `name`.partial, synced and renamed.
[[nodiscard]] Status ReplaceFile(FileSystem& files, const std::string& folder,
                                 const std::string& name,
                                 std::span<const std::byte> bytes);
// Does the same with a message. Fails with kInvalidArgument if it could not be
// read again (a string in it is not UTF-8).
[[nodiscard]] Status ReplaceMessage(
    FileSystem& files, const std::string& folder, const std::string& name,
    const google::protobuf::MessageLite& message);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_WHOLE_FILE_H_
