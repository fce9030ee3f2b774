#ifndef CLEW_COLLECTOR_WEB_LISTENER_H_
#define CLEW_COLLECTOR_WEB_LISTENER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collector/web/http.h"
#include "collector/web/limits.h"
#include "common/result.h"

namespace clew::collector::web {

// Connections of an HTTP server. One thread waits for all of them; only whole
// requests go to the threads that answer, so whoever sends slowly takes a
// place among connections_max and no thread.
//
//     reading -> answering -> sending -> reading ... -> draining -> closed
//
// Thread-safe.
class Listener {
 public:
  struct Options {
    std::string address;  // numeric, IPv4 or IPv6
    uint16_t port = 0;
    size_t threads = 1;
    WebLimits limits;
  };
  // Called from several threads at once; must not block for long.
  // Of a request that was refused: a page that says why.
  using Answer = std::function<Response(const ParsedHead&)>;

  // kInvalidArgument: no numeric address, or no threads. kSystem.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> Start(
      const Options& options, Answer answer);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();  // stops

  uint16_t port() const;
  void Stop();  // twice is once

 private:
  class Loop;
  explicit Listener(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_LISTENER_H_
