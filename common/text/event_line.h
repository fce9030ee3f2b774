#ifndef CLEW_COMMON_TEXT_EVENT_LINE_H_
#define CLEW_COMMON_TEXT_EVENT_LINE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace clew {

// The priority of an event (syslog(3)).
enum class Priority : uint8_t { kError = 3, kWarning = 4, kInfo = 6 };

using EventField = std::pair<std::string_view, std::string>;

// An event as one line of a log, with its newline:
//
//   <4>event=refused host=web1 message="quota exceeded: \"a\""
//
// "<N>", the priority, is there only if `for_journald` (sd-daemon(3)). A value
// that is empty or has '"', '\\', '=' or another byte than printable ASCII is
// quoted as a C string is, so that no value can begin a field or a line.
std::string EventLine(Priority priority, bool for_journald,
                      std::string_view event,
                      std::span<const EventField> fields);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_EVENT_LINE_H_
