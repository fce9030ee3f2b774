#ifndef CLEW_COLLECTOR_CATALOGUE_HOST_TABLE_H_
#define CLEW_COLLECTOR_CATALOGUE_HOST_TABLE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/sqlite.h"
#include "common/result.h"
#include "transfer/host_report.h"

namespace clew::collector {

// Where there are more, the one that said nothing for longest is forgotten.
inline constexpr uint64_t kHostsMax = 10'000;
// A host that said nothing for so long is silent.
inline constexpr int64_t kSilentAfter_s = 24 * 60 * 60;

// Of a version, a state, a source.
inline constexpr size_t kWordBytesMax = 40;

// How a host does, by what it said last. Higher wants more attention.
enum class HostHealth : uint8_t {
  kFine,
  kTrouble,  // its source or units have an error, a bundle is stuck or was lost
  kSilent,
};
inline constexpr size_t kHostHealths = 3;
std::string_view ToString(HostHealth health);  // "fine", "trouble", "silent"
std::optional<HostHealth> HealthNamed(std::string_view name);

struct HostRow : transfer::HostReport {
  std::string host;
  int64_t seen_s = 0;
  HostHealth health = HostHealth::kFine;
};

struct HostQuery {
  uint64_t offset = 0;
  uint64_t limit = 50;
  // In the host's name, whatever the case of ASCII letters; empty: all.
  std::string text{};
  std::optional<HostHealth> health{};
};

struct HostCounts {
  uint64_t by_health[kHostHealths] = {};  // index: HostHealth
};

// What each host said of itself last, in the catalogue's file. Words are cut at
// kWordBytesMax, errors at kLineBytesMax. Thread-safe. Every call: kSystem;
// kCorruptInput.
class HostTable {
 public:
  // REQUIRES: Catalogue::Open has made the file.
  [[nodiscard]] static Result<std::unique_ptr<HostTable>> Open(
      const std::string& path, uint64_t hosts_max = kHostsMax);

  [[nodiscard]] Status Put(const std::string& host,
                           const transfer::HostReport& report, int64_t now_s);
  // Silent ones first, then those in trouble; of equals that seen last first.
  [[nodiscard]] Result<ListPage<HostRow>> Hosts(const HostQuery& query,
                                                int64_t now_s);
  [[nodiscard]] Result<HostCounts> Counts(int64_t now_s);

 private:
  HostTable(Database database, uint64_t hosts_max)
      : database_(std::move(database)), hosts_max_(hosts_max) {}
  [[nodiscard]] Status ForgetBeyondMax();

  std::mutex mutex_;
  Database database_;
  const uint64_t hosts_max_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_HOST_TABLE_H_
