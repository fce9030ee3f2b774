#include "daemon/config/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "common/text/config_file.h"
#include "common/x86/page.h"

namespace clew::daemon {
namespace {

constexpr std::string_view kUnitSection = "unit ";
constexpr std::string_view kServiceSuffix = ".service";
constexpr uint64_t kRingBytesMax = uint64_t{1} << 30;
constexpr uint64_t kSpoolBytesMax = uint64_t{1} << 50;
constexpr uint64_t kDayS = 24 * 3600;

struct Reader {
  ConfigFile& file;
  const std::string& source;

  Status Flag(const char* key, bool* value) const {
    return file.Flag("", key, value);
  }
  Status Bytes(const char* key, uint64_t min, uint64_t max,
               uint64_t* value) const {
    return file.Bytes("", key, min, max, value);
  }
  Status Seconds(const char* key, uint64_t min, uint64_t max,
                 uint64_t* value) const {
    return file.Seconds("", key, min, max, value);
  }
  Status Number(const char* key, uint64_t min, uint64_t max,
                uint64_t* value) const {
    return file.Number("", key, min, max, value);
  }
};

Status ReadSource(const Reader& reader, Config& config) {
  std::string source(ToString(config.source));
  CLEW_RETURN_IF_ERROR(reader.file.Text("", "source", &source));
  for (const SourceKind kind :
       {SourceKind::kNone, SourceKind::kPerf, SourceKind::kSideband}) {
    if (source == ToString(kind)) {
      config.source = kind;
      return {};
    }
  }
  return InvalidArgument("{}: source is {:?}, wanted none, perf or sideband",
                         reader.source, source);
}

Status ReadTracer(const Reader& reader, const std::string& section,
                  WatchedUnit& unit) {
  std::string tracer(ToString(unit.tracer));
  CLEW_RETURN_IF_ERROR(reader.file.Text(section, "tracer", &tracer));
  for (const UnitTracer known :
       {UnitTracer::kTurns, UnitTracer::kFree, UnitTracer::kRing}) {
    if (tracer == ToString(known)) {
      unit.tracer = known;
      return reader.file.Bytes(section, "ring", 1 << 20, kSpoolBytesMax,
                               &unit.ring_bytes);
    }
  }
  return InvalidArgument("{}: [{}]: tracer is {:?}, wanted turns, free or ring",
                         reader.source, section, tracer);
}

Status ReadRing(const Reader& reader, const char* key, uint64_t* value) {
  CLEW_RETURN_IF_ERROR(reader.Bytes(key, 2 * kPageBytes, kRingBytesMax, value));
  if (!std::has_single_bit(*value)) {
    return InvalidArgument("{}: {} is {} bytes, wanted a power of two",
                           reader.source, key, *value);
  }
  return {};
}

Status ReadRecording(const Reader& reader, Config& config) {
  CLEW_RETURN_IF_ERROR(ReadSource(reader, config));
  CLEW_RETURN_IF_ERROR(reader.Flag("sideband_only", &config.sideband_only));
  CLEW_RETURN_IF_ERROR(ReadRing(reader, "pt_buffer", &config.pt_buffer_bytes));
  CLEW_RETURN_IF_ERROR(
      ReadRing(reader, "data_buffer", &config.data_buffer_bytes));
  return reader.Seconds("source_retry", 1, kDayS, &config.source_retry_s);
}

Status ReadLimits(const Reader& reader, Config& config) {
  CLEW_RETURN_IF_ERROR(reader.Bytes("spool_bytes", 1 << 20, kSpoolBytesMax,
                                    &config.spool_bytes));
  CLEW_RETURN_IF_ERROR(reader.Bytes("disk_free_bytes", 0, kSpoolBytesMax,
                                    &config.disk_free_bytes));
  CLEW_RETURN_IF_ERROR(
      reader.Bytes("core_bytes", 0, kSpoolBytesMax, &config.core_bytes));
  CLEW_RETURN_IF_ERROR(reader.Bytes("software_bytes", 1 << 20, kSpoolBytesMax,
                                    &config.software_bytes));
  CLEW_RETURN_IF_ERROR(reader.Bytes("incoming_user_bytes", 1 << 20,
                                    kSpoolBytesMax,
                                    &config.incoming_user_bytes));
  CLEW_RETURN_IF_ERROR(reader.Number("saves", 1, kSavesMax, &config.saves));
  CLEW_RETURN_IF_ERROR(
      reader.Number("rate_failure", 1, 1000, &config.rate_failure));
  CLEW_RETURN_IF_ERROR(reader.Number("rate_all", 1, 1000, &config.rate_all));
  CLEW_RETURN_IF_ERROR(
      reader.Seconds("rate_period", 1, 30 * kDayS, &config.rate_period_s));
  return reader.Seconds("merge", 0, 3600, &config.merge_s);
}

Status ReadPipeline(const Reader& reader, Config& config) {
  CLEW_RETURN_IF_ERROR(reader.file.Text("", "clew", &config.clew));
  CLEW_RETURN_IF_ERROR(reader.file.Text("", "redaction", &config.redaction));
  CLEW_RETURN_IF_ERROR(reader.file.Text("", "journalctl", &config.journalctl));
  CLEW_RETURN_IF_ERROR(reader.Seconds("check_time", 1, kDayS, &config.check_s));
  CLEW_RETURN_IF_ERROR(reader.Bytes("check_memory", 256 << 20, kSpoolBytesMax,
                                    &config.check_memory_bytes));
  CLEW_RETURN_IF_ERROR(reader.Flag("upload", &config.upload));
  CLEW_RETURN_IF_ERROR(
      reader.file.Text("", "upload_config", &config.upload_config));
  CLEW_RETURN_IF_ERROR(
      reader.Seconds("upload_time", 1, 7 * kDayS, &config.upload_s));
  CLEW_RETURN_IF_ERROR(
      reader.Seconds("upload_retry", 1, 3600, &config.upload_retry_s));
  CLEW_RETURN_IF_ERROR(
      reader.Seconds("report_period", 0, kDayS, &config.report_s));
  return reader.Seconds("unit_poll", 1, 3600, &config.unit_poll_s);
}

Status CheckPath(const Reader& reader, const char* key,
                 const std::string& path) {
  if (path.empty() || path.front() == '/') {
    return {};
  }
  return InvalidArgument("{}: {} is {:?}, wanted an absolute path",
                         reader.source, key, path);
}

Status CheckPaths(const Reader& reader, const Config& config) {
  CLEW_RETURN_IF_ERROR(CheckPath(reader, "clew", config.clew));
  CLEW_RETURN_IF_ERROR(CheckPath(reader, "redaction", config.redaction));
  CLEW_RETURN_IF_ERROR(CheckPath(reader, "journalctl", config.journalctl));
  return CheckPath(reader, "upload_config", config.upload_config);
}

// A name that ends in no type of unit, as systemd.unit(5) lists them, is a
// service's for systemctl(1), too.
bool HasUnitType(std::string_view name) {
  constexpr std::array<std::string_view, 11> kTypes = {
      ".service", ".socket", ".device", ".mount", ".automount", ".swap",
      ".target",  ".path",   ".timer",  ".slice", ".scope"};
  return std::ranges::any_of(
      kTypes, [name](std::string_view type) { return name.ends_with(type); });
}

// systemd.unit(5): "name.service", or "name@instance.service".
bool IsService(std::string_view name) {
  if (!name.ends_with(kServiceSuffix)) {
    return false;
  }
  name.remove_suffix(kServiceSuffix.size());
  return !name.empty() && !name.starts_with('@') && !name.ends_with('@');
}

Result<std::string> ReadUnitName(const Reader& reader,
                                 const std::string& section) {
  if (!section.starts_with(kUnitSection) ||
      !IsUnitName(std::string_view(section).substr(kUnitSection.size()))) {
    return InvalidArgument("{}: unknown section [{}], wanted [unit NAME]",
                           reader.source, section);
  }
  std::string name = section.substr(kUnitSection.size());
  if (!HasUnitType(name)) {
    name += kServiceSuffix;
  }
  if (!IsUnitName(name)) {
    return InvalidArgument("{}: section [{}]: the name is too long",
                           reader.source, section);
  }
  return name;
}

// clewd understands only how services fail. A section of another kind does not
// keep the others from being watched: earlier versions accepted such sections.
bool IsWatchable(const Reader& reader, const std::string& section,
                 const WatchedUnit& unit, Config& config) {
  if (IsService(unit.name)) {
    return true;
  }
  config.warnings.push_back(fmt::format(
      "{}: section [{}] is left out: {:?} is no service; write "
      "[unit NAME.service], of a template an instance of it, "
      "[unit NAME@INSTANCE.service], of a timer the service that it starts",
      reader.source, section, unit.name));
  return false;
}

Result<WatchedUnit> ReadUnit(const Reader& reader, const std::string& section) {
  WatchedUnit unit;
  CLEW_ASSIGN_OR_RETURN(name, ReadUnitName(reader, section));
  unit.name = name;
  CLEW_RETURN_IF_ERROR(reader.file.Flag(section, "failure", &unit.on_failure));
  CLEW_RETURN_IF_ERROR(
      reader.file.Seconds(section, "hang", 0, kDayS, &unit.hang_s));
  CLEW_RETURN_IF_ERROR(reader.file.Text(section, "heartbeat", &unit.heartbeat));
  CLEW_RETURN_IF_ERROR(CheckPath(reader, "heartbeat", unit.heartbeat));
  CLEW_RETURN_IF_ERROR(ReadTracer(reader, section, unit));
  return unit;
}

// Whether the section is another name of one that is there as well. Without the
// type of the unit it is valid, with a warning: earlier versions took such
// sections, and a host must not be without clewd for them.
bool IsSecondName(const Reader& reader, const std::string& section,
                  const WatchedUnit& unit, Config& config) {
  const std::string whole = fmt::format("{}{}", kUnitSection, unit.name);
  if (section == whole) {
    return false;
  }
  const auto& sections = reader.file.sections();
  const bool second = std::ranges::find(sections, whole) != sections.end();
  config.warnings.push_back(
      fmt::format("{}: section [{}] is {} [{}], write it so", reader.source,
                  section, second ? "left out for" : "taken for", whole));
  return second;
}

Status ReadUnits(const Reader& reader, Config& config) {
  for (const std::string& section : reader.file.sections()) {
    CLEW_ASSIGN_OR_RETURN(unit, ReadUnit(reader, section));
    if (IsWatchable(reader, section, unit, config) &&
        !IsSecondName(reader, section, unit, config)) {
      config.units.push_back(unit);
    }
  }
  if (config.units.size() > kUnitsMax) {
    return InvalidArgument("{}: {} units, at most {} are watched",
                           reader.source, config.units.size(), kUnitsMax);
  }
  return {};
}

Result<Config> FromFile(ConfigFile& file, const std::string& source) {
  Config config;
  const Reader reader{file, source};
  CLEW_RETURN_IF_ERROR(ReadRecording(reader, config));
  CLEW_RETURN_IF_ERROR(ReadLimits(reader, config));
  CLEW_RETURN_IF_ERROR(ReadPipeline(reader, config));
  CLEW_RETURN_IF_ERROR(ReadUnits(reader, config));
  CLEW_RETURN_IF_ERROR(file.Finish());
  CLEW_RETURN_IF_ERROR(CheckPaths(reader, config));
  return config;
}

}  // namespace

std::string_view ToString(UnitTracer tracer) {
  switch (tracer) {
    case UnitTracer::kTurns:
      return "turns";
    case UnitTracer::kFree:
      return "free";
    case UnitTracer::kRing:
      return "ring";
  }
  return "";
}

std::string_view ToString(SourceKind kind) {
  switch (kind) {
    case SourceKind::kNone:
      return "none";
    case SourceKind::kPerf:
      return "perf";
    case SourceKind::kSideband:
      return "sideband";
  }
  return "";
}

Result<Config> ParseConfig(std::string_view text, const std::string& source) {
  CLEW_ASSIGN_OR_RETURN(file, ConfigFile::Parse(text, source));
  return FromFile(file, source);
}

Result<Config> ReadConfig(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return Config();
  }
  CLEW_ASSIGN_OR_RETURN(file, ConfigFile::Read(path));
  return FromFile(file, path);
}

bool IsUnitName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') ||
                  std::string_view(":_.\\-@").find(c) != std::string_view::npos;
         });
}

}  // namespace clew::daemon
