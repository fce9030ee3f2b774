#ifndef CLEW_COLLECTOR_WEB_SERVER_H_
#define CLEW_COLLECTOR_WEB_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/host_table.h"
#include "collector/store/bundle_store.h"
#include "collector/web/limits.h"
#include "collector/web/metrics.h"
#include "common/result.h"

namespace clew::collector::web {

struct WebOptions {
  // Numeric. Anything but a loopback address shows bundles to everybody who
  // reaches it: there is no login and no TLS here (docs/operator-guide.md).
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
  size_t threads = 4;
  // Names, besides localhost and numeric addresses, under which browsers and
  // Prometheus ask for the pages; others are refused, so that no foreign page
  // can read them by a name that it controls (DNS rebinding).
  std::vector<std::string> host_names;
  // What clients need for this collector, in the command lines on the pages:
  // "--collector HOST:PORT ", or empty. As a shell reads it.
  std::string client_options;
  uint64_t store_limit_bytes = 0;  // for /metrics; 0: left out
  WebLimits limits;
  // Reports of hosts about themselves; must outlive the server. nullptr:
  // nothing.
  HostTable* hosts = nullptr;
  // Seconds since 1970; empty: the system's clock.
  std::function<int64_t()> now_s;
};

// The collector's web page, /metrics and /healthz over HTTP/1.1. Reads only:
// there is no request that changes anything. Stranger's requests cost no more
// than WebLimits; a client that is slow, or sends nothing, holds no thread.
class Server {
 public:
  // Listens, and answers until Stop. `more` adds figures to /metrics; it is
  // called from the server's threads, one at a time. `store` and `catalogue`
  // must outlive the server. kInvalidArgument: no numeric address, no threads.
  // kSystem: cannot listen there.
  [[nodiscard]] static Result<std::unique_ptr<Server>> Start(
      const WebOptions& options, const BundleStore& store,
      const Catalogue& catalogue,
      std::function<void(MetricsWriter&)> more = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // stops

  uint16_t port() const;
  // Ends connections, waits for requests at work. Twice is once.
  void Stop();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_SERVER_H_
