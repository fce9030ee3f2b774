#ifndef CLEW_COLLECTOR_WEB_LIMITS_H_
#define CLEW_COLLECTOR_WEB_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace clew::collector::web {

// What clients of the web server can cost at most. Where there is no room, the
// connection that has waited longest for its client is closed.
struct WebLimits {
  size_t connections_max = 256;
  size_t head_bytes_max = 16 << 10;     // request line and headers
  size_t answers_bytes_max = 64 << 20;  // of all answers being sent
  size_t requests_per_connection_max = 1000;
  // For a whole request head, from its first byte on.
  std::chrono::milliseconds head_time_max{10'000};
  // For the first byte of the next request.
  std::chrono::milliseconds idle_time_max{30'000};
  // For a whole answer.
  std::chrono::milliseconds answer_time_max{30'000};
};

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_LIMITS_H_
