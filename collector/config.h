#ifndef CLEW_COLLECTOR_CONFIG_H_
#define CLEW_COLLECTOR_CONFIG_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew::collector {

inline constexpr const char* kCollectorConfig = "/etc/clew/collector.conf";

// What /etc/clew/collector.conf says. kConfigHelp explains each key.
struct CollectorConfig {
  std::string data = "/var/lib/clew-collector";
  std::string listen = "127.0.0.1:7790";
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string tokens;
  std::vector<std::string> readers;
  std::vector<std::string> engineers;
  bool insecure_loopback = false;

  std::string web = "127.0.0.1:7791";  // empty: none
  std::vector<std::string> web_names;
  std::string address;  // for command lines on the pages
  std::string web_url;  // of the page, for people; for links to it

  std::string webhook;  // url; empty: none
  std::string webhook_secret;
  std::string webhook_ca;
  std::string webhook_program = "/usr/lib/clew/clew-webhook";
  uint64_t webhook_tries = 12;

  uint64_t store_bytes_max = uint64_t{100} << 30;
  uint64_t disk_free_bytes_min = uint64_t{1} << 30;
  uint64_t host_bytes_per_day = uint64_t{10} << 30;
  uint64_t bundle_bytes_max = uint64_t{8} << 30;
  uint64_t host_bundles_max = 8;
  uint64_t host_streams_max = 4;
  uint64_t threads_max = 32;
  uint64_t memory_bytes_max = uint64_t{64} << 20;
  uint64_t idle_s_max = 60;
  uint64_t chunk_keep_s = 24 * 60 * 60;
  uint64_t scrub_bytes_per_s = uint64_t{8} << 20;  // 0: none
  uint64_t scrub_period_s = 7 * 24 * 60 * 60;
  uint64_t retention_s = 0;      // 0: none
  uint64_t retention_bytes = 0;  // 0: nine tenths of store_bytes_max

  std::string clew = "/usr/bin/clew";
  uint64_t analysers = 1;
  uint64_t solvers = 1;
  uint64_t solve_s_max = 300;
  uint64_t analysis_s_max = 60;
  uint64_t solve_memory_bytes = uint64_t{4} << 30;
};

extern const char* const kConfigHelp;

// kInvalidArgument names file and line. kSystem.
[[nodiscard]] Result<CollectorConfig> ReadCollectorConfig(
    const std::string& path);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CONFIG_H_
