#ifndef CLEW_COLLECTOR_COLLECTOR_H_
#define CLEW_COLLECTOR_COLLECTOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "collector/config.h"
#include "collector/log.h"
#include "common/result.h"

namespace clew::collector {

// All parts of a collector at work: store, catalogue, service, jobs, web page.
class Collector {
 public:
  // Recovers what a crash left, then takes calls. `log` must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<Collector>> Start(
      const CollectorConfig& config, Log& log);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector();  // stops

  uint16_t port() const;
  uint16_t web_port() const;  // 0: none
  // Tokens, authorities and the webhook's secret are read again; what could
  // not be read stays as it was.
  [[nodiscard]] Status Reload();
  // Does not return while the collector is stuck.
  void CheckAlive() const;
  // Lets transfers end for some seconds, and saves. Twice is once.
  void Stop();

 private:
  struct Parts;
  explicit Collector(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// For `clew-collector check` and `remove`: work on the store of a collector
// that does not run. Prints what it finds. kInvalidArgument: it runs.
[[nodiscard]] Status CheckStore(const CollectorConfig& config);
[[nodiscard]] Status RemoveBundle(const CollectorConfig& config,
                                  const std::string& id);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_COLLECTOR_H_
