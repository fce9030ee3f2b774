#ifndef CLEW_COMMON_UTF8_H_
#define CLEW_COMMON_UTF8_H_

#include <string>
#include <string_view>

namespace clew {

// protobuf's strings are UTF-8; each other byte of `text` becomes "?".
std::string Utf8(std::string_view text);

}  // namespace clew

#endif  // CLEW_COMMON_UTF8_H_
