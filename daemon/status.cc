#include "daemon/status.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace clew::daemon {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Of this process: proc(5), statm.
uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t CpuMs() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000 +
           static_cast<uint64_t>(time.tv_usec) / 1000;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

Json SourceJson(const DaemonStatus& status) {
  return {{"kind", status.source_kind},
          {"error", status.source_error},
          {"cores", status.source.cores},
          {"ring_bytes", status.source.ring_bytes},
          {"lost_records", status.source.lost_records},
          {"saves", status.source.saves},
          {"first_byte_us", status.times.first_byte_us},
          {"first_byte_us_max", status.times.first_byte_us_max},
          {"saved_us", status.times.saved_us},
          {"saved_us_max", status.times.saved_us_max}};
}

Json SpoolJson(const DaemonStatus& status) {
  Json json = {
      {"bytes", status.spool_bytes},
      {"bytes_max", status.spool_bytes_max},
      {"disk_free_bytes", status.disk_free_bytes},
      {"recording", status.writing.size()},
      {"junk",
       {{"entries", status.junk.bundles}, {"bytes", status.junk.bytes}}}};
  for (const auto& [stage, use] : status.spool) {
    json[std::string(FolderOf(stage))] = {{"bundles", use.bundles},
                                          {"bytes", use.bytes}};
  }
  return json;
}

// Of as many as a reply has room for; "spool" counts them all.
Json StuckJson(const DaemonStatus& status) {
  constexpr size_t kShownMax = 64;
  constexpr size_t kWhyBytesMax = 512;
  Json json = Json::array();
  for (const auto& [name, why] : status.stuck) {
    if (json.size() < kShownMax) {
      json.push_back({{"bundle", name}, {"why", why.substr(0, kWhyBytesMax)}});
    }
  }
  return json;
}

Json CounterJson(const Counters& counters) {
  Json json;
#define CLEW_DAEMON_COUNTER(name, meaning) json[#name] = counters.name;
  CLEW_DAEMON_COUNTERS(CLEW_DAEMON_COUNTER)
#undef CLEW_DAEMON_COUNTER
  return json;
}

}  // namespace

std::string FormatStatus(const DaemonStatus& status) {
  return Line({{"ok", true},
               {"state", status.state},
               {"version", status.version},
               {"uptime_s", status.uptime_s},
               {"source", SourceJson(status)},
               {"spool", SpoolJson(status)},
               {"stuck", StuckJson(status)},
               {"units_error", status.units_error},
               {"upload",
                {{"on", status.upload},
                 {"preparing", status.preparing},
                 {"sending", status.uploading},
                 {"retry_in_ms", status.retry_in_ms}}},
               {"counters", CounterJson(status.counters)},
               {"clients_refused", status.clients_refused},
               {"resident_bytes", ResidentBytes()},
               {"cpu_ms", CpuMs()},
               {"last_error",
                {{"at_ns", status.last_error.at_ns},
                 {"message", status.last_error.message}}}});
}

std::string FormatUnits(const std::vector<UnitReport>& watched,
                        const std::vector<std::string>& writing) {
  Json units = Json::array();
  for (const UnitReport& report : watched) {
    const char* state = !report.state          ? "unknown"
                        : report.state->failed ? "failed"
                        : report.state->active ? "active"
                                               : "inactive";
    units.push_back({{"unit", report.watched.name},
                     {"recording", "source"},
                     {"state", state},
                     {"error", report.error},
                     {"hang_s", report.watched.hang_s},
                     {"quiet_s", report.quiet_s}});
  }
  for (const std::string& name : writing) {
    const auto parsed = ParseName(name);
    units.push_back({{"unit", parsed ? parsed->subject : name},
                     {"recording", "software"},
                     {"state", "active"},
                     {"process", parsed ? parsed->process : 0},
                     {"since_ns", parsed ? parsed->at_ns : 0}});
  }
  return Line({{"ok", true}, {"units", units}});
}

}  // namespace clew::daemon
