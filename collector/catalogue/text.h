#ifndef CLEW_COLLECTOR_CATALOGUE_TEXT_H_
#define CLEW_COLLECTOR_CATALOGUE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace clew::collector {

// Text of strangers as UTF-8: what is none becomes U+FFFD, one for each byte.
std::string CleanUtf8(std::string_view text_untrusted);

// The same on one line: control characters become U+FFFD, too, and what is
// longer than `bytes_max` is cut between characters and ends in an ellipsis.
// The result is never longer than `bytes_max`. REQUIRES: bytes_max >= 3.
std::string CleanLine(std::string_view text_untrusted, size_t bytes_max);

// The pattern of SQL's LIKE, with the escape '\\', that finds `text` anywhere;
// of a long text the begin.
std::string LikePattern(std::string_view text_untrusted);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_TEXT_H_
