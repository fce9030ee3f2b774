#include "cli/daemon/daemon_status.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/daemon/status_fields.h"
#include "daemon/loop/counters.h"

namespace clew::cli {
namespace {

std::string Bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes)
                   : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

void PrintSource(const Json& source) {
  fmt::print("source        {}, {} CPUs, {} of rings, {} records lost\n",
             Text(source, "kind"), Number(source, "cores"),
             Bytes(Number(source, "ring_bytes")),
             Number(source, "lost_records"));
  if (!Text(source, "error").empty()) {
    fmt::print("              {}\n", Text(source, "error"));
  }
  if (Number(source, "saved_us") > 0) {
    fmt::print(
        "last save     first byte after {:.1f} ms, saved after {:.1f} ms; at "
        "most {:.1f} and {:.1f} ms\n",
        static_cast<double>(Number(source, "first_byte_us")) / 1000,
        static_cast<double>(Number(source, "saved_us")) / 1000,
        static_cast<double>(Number(source, "first_byte_us_max")) / 1000,
        static_cast<double>(Number(source, "saved_us_max")) / 1000);
  }
}

void PrintJunk(const Json& junk) {
  if (Number(junk, "entries") > 0) {
    fmt::print("  {:<10}  {} entries of other names in incoming/, {}\n", "junk",
               Number(junk, "entries"), Bytes(Number(junk, "bytes")));
  }
}

void PrintSpool(const Json& spool) {
  fmt::print("spool         {} of {}, {} free on the disk\n",
             Bytes(Number(spool, "bytes")), Bytes(Number(spool, "bytes_max")),
             Bytes(Number(spool, "disk_free_bytes")));
  for (const char* stage :
       {"incoming", "checking", "ready", "uploaded", "refused", "stuck"}) {
    const Json use = Part(spool, stage);
    fmt::print("  {:<10}  {} bundles, {}\n", stage, Number(use, "bundles"),
               Bytes(Number(use, "bytes")));
  }
  PrintJunk(Part(spool, "junk"));
}

// A reason may quote what a stranger wrote.
void PrintStuck(const Json& stuck) {
  if (!stuck.is_array() || stuck.empty()) {
    return;
  }
  fmt::print("stuck         `clew daemon retry` has them prepared again\n");
  for (const Json& bundle : stuck) {
    fmt::print("  {}\n              {:?}\n", Text(bundle, "bundle"),
               Text(bundle, "why"));
  }
}

void PrintUpload(const Json& upload) {
  if (!Flag(upload, "on")) {
    fmt::print("upload        off: upload = no in clewd.conf\n");
  } else if (Flag(upload, "sending")) {
    fmt::print("upload        sending\n");
  } else if (Number(upload, "retry_in_ms") > 0) {
    fmt::print("upload        tried again in {} s\n",
               Number(upload, "retry_in_ms") / 1000 + 1);
  } else {
    fmt::print("upload        on\n");
  }
}

void PrintCounters(const Json& counters) {
#define CLEW_DAEMON_COUNTER(name, meaning) \
  fmt::print("  {:<18} {:>8}  {}\n", #name, Number(counters, #name), meaning);
  CLEW_DAEMON_COUNTERS(CLEW_DAEMON_COUNTER)
#undef CLEW_DAEMON_COUNTER
}

void PrintLastError(const Json& error) {
  const Json at = Part(error, "at_ns");
  if (!at.is_number_integer() || at.get<int64_t>() == 0) {
    fmt::print("last error    none\n");
    return;
  }
  const std::time_t seconds = at.get<int64_t>() / 1'000'000'000;
  fmt::print("last error    {:%F %T}  {}\n", fmt::localtime(seconds),
             Text(error, "message"));
}

}  // namespace

void PrintDaemonStatus(const Json& status) {
  fmt::print("clewd {}    {}, up {} s, {} resident, {:.1f} s of CPU\n",
             Text(status, "version"), Text(status, "state"),
             Number(status, "uptime_s"),
             Bytes(Number(status, "resident_bytes")),
             static_cast<double>(Number(status, "cpu_ms")) / 1000);
  PrintSource(Part(status, "source"));
  if (!Text(status, "units_error").empty()) {
    fmt::print("units         not watched: {:?}\n",
               Text(status, "units_error"));
  }
  PrintSpool(Part(status, "spool"));
  PrintStuck(Part(status, "stuck"));
  PrintUpload(Part(status, "upload"));
  fmt::print("counters      since the start\n");
  PrintCounters(Part(status, "counters"));
  PrintLastError(Part(status, "last_error"));
}

void PrintDaemonUnits(const Json& units) {
  const Json list = Part(units, "units");
  if (!list.is_array() || list.empty()) {
    fmt::print("no units are watched or recorded\n");
    return;
  }
  for (const Json& unit : list) {
    fmt::print("{:<40} {:<9} {:<9}", Text(unit, "unit"), Text(unit, "state"),
               Text(unit, "recording"));
    if (Number(unit, "hang_s") > 0) {
      fmt::print(" no sign of life for {} of {} s", Number(unit, "quiet_s"),
                 Number(unit, "hang_s"));
    }
    if (Number(unit, "process") > 0) {
      fmt::print(" process {}", Number(unit, "process"));
    }
    if (!Text(unit, "error").empty()) {
      fmt::print(" {:?}", Text(unit, "error"));
    }
    fmt::print("\n");
  }
}

void PrintDaemonRetry(const Json& reply) {
  fmt::print("{} bundles are prepared again\n", Number(reply, "bundles"));
}

void PrintDaemonSnapshot(const Json& reply) {
  fmt::print("{}\n", Text(reply, "bundle"));
}

}  // namespace clew::cli
