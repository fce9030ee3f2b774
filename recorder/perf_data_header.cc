#include "recorder/perf_data_header.h"

#include <linux/perf_event.h>

namespace clew::recorder {
namespace {

constexpr uint64_t kSampleType = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                 PERF_SAMPLE_IDENTIFIER;

perf_event_attr CommonAttr() {
  perf_event_attr attr = {};
  attr.size = PERF_ATTR_SIZE_VER7;
  attr.sample_period = 1;
  attr.sample_type = kSampleType;
  attr.read_format = PERF_FORMAT_ID;
  attr.disabled = 1;
  attr.inherit = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.enable_on_exec = 1;
  attr.sample_id_all = 1;
  return attr;
}

perf_event_attr IntelPtAttr(const PerfDataConfig& config) {
  perf_event_attr attr = CommonAttr();
  attr.type = kIntelPtType;
  attr.config = PerfConfigBits(config.encoder);
  return attr;
}

perf_event_attr SidebandAttr() {
  perf_event_attr attr = CommonAttr();
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.build_id = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.context_switch = 1;
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
                     Event(config, 1, SidebandAttr(), "dummy:u")},
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
  const EncoderConfig& encoder = config.encoder;
  ByteBuilder out =
      BuildPtInfo({.pmu_type = kIntelPtType,
                   .clock = config.clock,
                   .tsc_bit = 1u << 10,
                   .no_return_compression_bit = 1u << 11,
                   .mtc_bit = 1u << 9,
                   .mtc_period_bits = 0xfu << 14,
                   .tsc_ctc_numerator = encoder.tsc_ctc_numerator,
                   .tsc_ctc_denominator = encoder.tsc_ctc_denominator,
                   .cyc_bit = 1u << 1,
                   .max_nonturbo_ratio = encoder.tsc_bus_ratio,
                   .filter = {}});
  out.PutBytes(BuildTimeConv(config.clock).bytes());
  return out;
}

}  // namespace clew::recorder
