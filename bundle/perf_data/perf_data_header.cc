#include "bundle/perf_data/perf_data_header.h"

#include "bundle/perf_data/own_events.h"

namespace clew::bundle {
namespace {

// As the kernel's events would be set up: of a program that is launched, and
// all of its threads.
perf_event_attr OfLaunched(perf_event_attr attr) {
  attr.read_format = PERF_FORMAT_ID;
  attr.inherit = 1;
  attr.exclude_kernel = 1;
  attr.enable_on_exec = 1;
  return attr;
}

perf_event_attr IntelPtAttr(const PerfDataConfig& config) {
  perf_event_attr attr = OfLaunched(BaseAttr());
  attr.type = kIntelPtType;
  attr.config = config.pt_config;
  return attr;
}

uint64_t EventId(const PerfDataConfig& config, uint64_t event, uint64_t core) {
  return event * config.core_count + core + 1;
}

PerfFileEvent Event(const PerfDataConfig& config, uint64_t number,
                    const perf_event_attr& attr, const char* name) {
  PerfFileEvent event{.attr = attr, .name = name, .ids = {}};
  for (uint64_t core = 0; core < config.core_count; ++core) {
    event.ids.push_back(EventId(config, number, core));
  }
  return event;
}

}  // namespace

uint64_t IntelPtEventId(CoreId core) { return uint64_t{core.as_int()} + 1; }

uint64_t SidebandEventId(const PerfDataConfig& config, CoreId core) {
  return EventId(config, 1, core.as_int());
}

PerfFileHead HeadOf(const PerfDataConfig& config) {
  return {.events = {Event(config, 0, IntelPtAttr(config), "intel_pt//u"),
                     Event(config, 1, OfLaunched(SidebandRecordsAttr()),
                           "dummy:u")},
          .host_name = config.host_name,
          .os_release = config.os_release,
          .version = config.version,
          .cpu_description = config.cpu_description,
          .cpu_id = config.cpu_id,
          .cores_present = config.core_count,
          .cores_online = config.core_count,
          .command = config.command,
          .pt_type = kIntelPtType};
}

ByteBuilder BuildFirstRecords(const PerfDataConfig& config) {
  ByteBuilder out =
      BuildPtInfo({.pmu_type = kIntelPtType,
                   .clock = config.clock,
                   .tsc_bit = 1u << 10,
                   .no_return_compression_bit = 1u << 11,
                   .mtc_bit = 1u << 9,
                   .mtc_period_bits = 0xfu << 14,
                   .tsc_ctc_numerator = config.tsc_ctc_numerator,
                   .tsc_ctc_denominator = config.tsc_ctc_denominator,
                   .cyc_bit = 1u << 1,
                   .max_nonturbo_ratio = config.max_nonturbo_ratio,
                   .filter = {}});
  out.PutBytes(BuildTimeConv(config.clock).bytes());
  return out;
}

}  // namespace clew::bundle
