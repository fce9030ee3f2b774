#ifndef CLEW_COLLECTOR_WEB_FORMAT_H_
#define CLEW_COLLECTOR_WEB_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace clew::collector::web {

// "512 B", "4.0 KiB", "1.2 MiB", ... up to EiB.
std::string FormatBytes(uint64_t bytes);
// "12,345".
std::string FormatCount(uint64_t count);
// "1 host", "12,345 hosts".
std::string Plural(uint64_t count, std::string_view one, std::string_view many);
// "2026-11-20 12:08:54" of seconds since 1970, in UTC; of a year that has more
// than four digits, the number itself.
std::string FormatTime(int64_t time_s);
// "2026-11-20T12:08:54Z", for machines.
std::string FormatTimeIso(int64_t time_s);
// "just now", "5 min ago", "3 h ago", "12 days ago", "in 2 h".
std::string FormatAge(int64_t time_s, int64_t now_s);
// "0.40 s", "95 s", "12 min".
std::string FormatSeconds(double seconds);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_FORMAT_H_
