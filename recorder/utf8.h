#ifndef CLEW_RECORDER_UTF8_H_
#define CLEW_RECORDER_UTF8_H_

#include <string>
#include <string_view>

namespace clew::recorder {

// protobuf's strings are UTF-8; each other byte of `text` becomes "?".
std::string Utf8(std::string_view text);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_UTF8_H_
