#include "recorder/perf_data_header.h"

#include <linux/perf_event.h>

#include <array>
#include <utility>

namespace clew::recorder {
namespace {

constexpr uint64_t kHeaderBytes = 104;
constexpr uint64_t kFileAttrBytes = PERF_ATTR_SIZE_VER7 + 16;
constexpr uint64_t kEventCount = 2;

// tools/perf/util/header.h, HEADER_...
enum Feature : unsigned {
  kFeatureHostName = 3,
  kFeatureOsRelease = 4,
  kFeatureVersion = 5,
  kFeatureArch = 6,
  kFeatureNrCpus = 7,
  kFeatureCpuDesc = 8,
  kFeatureCpuId = 9,
  kFeatureCmdLine = 11,
  kFeatureEventDesc = 12,
  kFeaturePmuMappings = 16,
  kFeatureAuxtrace = 18,
};

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

void PutAttr(ByteBuilder& out, const perf_event_attr& attr) {
  static_assert(sizeof attr >= PERF_ATTR_SIZE_VER7);
  out.PutBytes(std::as_bytes(std::span(&attr, 1)).first(PERF_ATTR_SIZE_VER7));
}

uint64_t EventId(const PerfDataConfig& config, uint64_t event, uint64_t core) {
  return event * config.core_count + core + 1;
}

uint64_t IdBytesPerEvent(const PerfDataConfig& config) {
  return uint64_t{config.core_count} * sizeof(uint64_t);
}

uint64_t HeadBytes(const PerfDataConfig& config) {
  return kHeaderBytes +
         kEventCount * (IdBytesPerEvent(config) + kFileAttrBytes);
}

void PutIds(ByteBuilder& out, const PerfDataConfig& config, uint64_t event) {
  for (uint64_t core = 0; core < config.core_count; ++core) {
    out.Put(EventId(config, event, core));
  }
}

void PutText(ByteBuilder& out, std::string_view text) {
  constexpr size_t kNameAlign = 64;  // tools/perf/util/header.c, NAME_ALIGN
  ByteBuilder padded;
  padded.PutPaddedText(text, kNameAlign);
  out.Put(static_cast<uint32_t>(padded.size())).PutBytes(padded.bytes());
}

ByteBuilder TextFeature(std::string_view text) {
  ByteBuilder out;
  PutText(out, text);
  return out;
}

ByteBuilder CountsFeature(const PerfDataConfig& config) {
  ByteBuilder out;
  out.Put(config.core_count).Put(config.core_count);  // present, online
  return out;
}

ByteBuilder CommandFeature(const PerfDataConfig& config) {
  ByteBuilder out;
  out.Put(static_cast<uint32_t>(config.command.size()));
  for (const std::string& argument : config.command) {
    PutText(out, argument);
  }
  return out;
}

ByteBuilder EventsFeature(const PerfDataConfig& config) {
  ByteBuilder out;
  out.Put(static_cast<uint32_t>(kEventCount));
  out.Put(static_cast<uint32_t>(PERF_ATTR_SIZE_VER7));
  const std::array<std::pair<perf_event_attr, std::string_view>, kEventCount>
      events = {
          {{IntelPtAttr(config), "intel_pt//u"}, {SidebandAttr(), "dummy:u"}}};
  for (uint64_t event = 0; event < kEventCount; ++event) {
    PutAttr(out, events[event].first);
    out.Put(config.core_count);
    PutText(out, events[event].second);
    PutIds(out, config, event);
  }
  return out;
}

ByteBuilder PmusFeature() {
  ByteBuilder out;
  out.Put(uint32_t{2}).Put(uint32_t{PERF_TYPE_SOFTWARE});
  PutText(out, "software");
  out.Put(kIntelPtType);
  PutText(out, "intel_pt");
  return out;
}

// Where the AUXTRACE records are. perf takes it for the sign that samples made
// from them may have fields that the events have not.
ByteBuilder AuxtraceFeature(std::span<const uint64_t> offsets) {
  ByteBuilder out;
  out.Put(uint64_t{offsets.size()});
  for (const uint64_t offset : offsets) {
    out.Put(offset).Put(kAuxtraceHeadBytes);
  }
  return out;
}

// In the order of their numbers, as their table is.
std::vector<std::pair<Feature, ByteBuilder>> Features(
    const PerfDataConfig& config, std::span<const uint64_t> auxtrace_offsets) {
  std::vector<std::pair<Feature, ByteBuilder>> features;
  features.emplace_back(kFeatureHostName, TextFeature(config.host_name));
  features.emplace_back(kFeatureOsRelease, TextFeature(config.os_release));
  features.emplace_back(kFeatureVersion, TextFeature(config.version));
  features.emplace_back(kFeatureArch, TextFeature("x86_64"));
  features.emplace_back(kFeatureNrCpus, CountsFeature(config));
  features.emplace_back(kFeatureCpuDesc, TextFeature(config.cpu_description));
  features.emplace_back(kFeatureCpuId, TextFeature(config.cpu_id));
  features.emplace_back(kFeatureCmdLine, CommandFeature(config));
  features.emplace_back(kFeatureEventDesc, EventsFeature(config));
  features.emplace_back(kFeaturePmuMappings, PmusFeature());
  features.emplace_back(kFeatureAuxtrace, AuxtraceFeature(auxtrace_offsets));
  return features;
}

uint64_t FeatureBits(const PerfDataConfig& config) {
  uint64_t bits = 0;
  for (const auto& [feature, bytes] : Features(config, {})) {
    bits |= uint64_t{1} << feature;
  }
  return bits;
}

// tools/perf/util/intel-pt.h, the order of the values in AUXTRACE_INFO. Masks
// are those of perf_event_attr::config.
void PutIntelPtInfo(ByteBuilder& out, const PerfDataConfig& config) {
  const EncoderConfig& encoder = config.encoder;
  const std::array<uint64_t, 17> values = {
      kIntelPtType,
      config.clock.shift,
      config.clock.mult,
      config.clock.zero,
      1,         // cap_user_time_zero
      1u << 10,  // TSC
      1u << 11,  // no return compression
      2,         // threads are told by PERF_RECORD_SWITCH
      0,         // no snapshot
      1,         // one buffer per core
      1u << 9,   // MTC
      0xfu << 14,
      encoder.tsc_ctc_numerator,
      encoder.tsc_ctc_denominator,
      1u << 1,  // CYC
      encoder.tsc_bus_ratio,
      0,  // no address filter
  };
  for (const uint64_t value : values) {
    out.Put(value);
  }
}

void PutRecordHeader(ByteBuilder& out, uint32_t type, size_t bytes) {
  out.Put(type).Put(uint16_t{0}).Put(static_cast<uint16_t>(bytes));
}

}  // namespace

uint64_t IntelPtEventId(CoreId core) { return uint64_t{core.as_int()} + 1; }

uint64_t SidebandEventId(const PerfDataConfig& config, CoreId core) {
  return EventId(config, 1, core.as_int());
}

ByteBuilder BuildHead(const PerfDataConfig& config, uint64_t data_bytes) {
  const uint64_t id_bytes = IdBytesPerEvent(config);
  const uint64_t attrs_offset = kHeaderBytes + kEventCount * id_bytes;
  ByteBuilder out;
  out.PutBytes(std::as_bytes(std::span(std::string_view("PERFILE2"))));
  out.Put(kHeaderBytes).Put(kFileAttrBytes);
  out.Put(attrs_offset).Put(kEventCount * kFileAttrBytes);
  out.Put(HeadBytes(config)).Put(data_bytes);
  out.PutZeros(16);  // event types, no longer used
  out.Put(FeatureBits(config)).PutZeros(24);
  PutIds(out, config, 0);
  PutIds(out, config, 1);
  PutAttr(out, IntelPtAttr(config));
  out.Put(kHeaderBytes).Put(id_bytes);
  PutAttr(out, SidebandAttr());
  out.Put(kHeaderBytes + id_bytes).Put(id_bytes);
  return out;
}

ByteBuilder BuildFeatures(const PerfDataConfig& config, uint64_t data_end,
                          std::span<const uint64_t> auxtrace_offsets) {
  const auto features = Features(config, auxtrace_offsets);
  ByteBuilder table;
  ByteBuilder contents;
  const uint64_t contents_offset = data_end + features.size() * 16;
  for (const auto& [feature, bytes] : features) {
    table.Put(contents_offset + contents.size());
    table.Put(uint64_t{bytes.size()});
    contents.PutBytes(bytes.bytes());
  }
  table.PutBytes(contents.bytes());
  return table;
}

ByteBuilder BuildFirstRecords(const PerfDataConfig& config) {
  constexpr uint32_t kAuxtraceInfo = 70;  // PERF_RECORD_AUXTRACE_INFO
  constexpr uint32_t kTimeConv = 79;      // PERF_RECORD_TIME_CONV
  constexpr uint32_t kAuxtraceIntelPt = 1;
  ByteBuilder out;
  PutRecordHeader(out, kAuxtraceInfo, 8 + 8 + 17 * 8);
  out.Put(kAuxtraceIntelPt).Put(uint32_t{0});
  PutIntelPtInfo(out, config);
  PutRecordHeader(out, kTimeConv, 8 + 6 * 8);
  out.Put(uint64_t{config.clock.shift}).Put(uint64_t{config.clock.mult});
  out.Put(config.clock.zero);
  out.PutZeros(16);                 // time_cycles, time_mask: not needed
  out.Put(uint8_t{1}).PutZeros(7);  // cap_user_time_zero
  return out;
}

}  // namespace clew::recorder
