// A line of clewd's control protocol as a stranger sends it, and what a client
// may get for an answer: refused with one line, or a request that survives the
// round trip within its limits.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "daemon/control/protocol.h"
#include "daemon/spool/spool.h"

using clew::daemon::FormatName;
using clew::daemon::FormatRequest;
using clew::daemon::kRequestBytesMax;
using clew::daemon::ParseName;
using clew::daemon::ParseReply;
using clew::daemon::ParseRequest;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = ParseRequest(text);
  if (request) {
    const std::string line = FormatRequest(*request);
    CLEW_CHECK(line.size() <= kRequestBytesMax * 6, "{} bytes", line.size());
    const auto again =
        ParseRequest(std::string_view(line).substr(0, line.size() - 1));
    CLEW_CHECK(again.has_value() && *again == *request,
               "the round trip of {:?} differs", text);
  } else {
    CLEW_CHECK(request.error().message.find('\n') == std::string::npos,
               "a message of two lines: {:?}", request.error().message);
  }
  const auto reply = ParseReply(std::string(text));
  CLEW_CHECK(reply.has_value() || !reply.error().message.empty(),
             "an error that says nothing");
  if (const auto name = ParseName(text)) {
    CLEW_CHECK(text.find('/') == std::string_view::npos,
               "a bundle's name is a path: {:?}", text);
    CLEW_CHECK(ParseName(FormatName(*name)) == name,
               "the round trip of {:?} differs", text);
  }
  return 0;
}
