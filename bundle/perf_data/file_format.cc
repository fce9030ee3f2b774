#include "bundle/perf_data/file_format.h"

#include <array>
#include <utility>

#include "bundle/perf_data/features.h"

namespace clew::bundle {
namespace {

constexpr uint64_t kHeaderBytes = 104;
constexpr uint64_t kFileAttrBytes = PERF_ATTR_SIZE_VER7 + 16;

void PutAttr(ByteBuilder& out, perf_event_attr attr) {
  static_assert(sizeof attr >= PERF_ATTR_SIZE_VER7);
  attr.size = PERF_ATTR_SIZE_VER7;
  out.PutBytes(std::as_bytes(std::span(&attr, 1)).first(PERF_ATTR_SIZE_VER7));
}

void PutIds(ByteBuilder& out, const PerfFileEvent& event) {
  for (const uint64_t id : event.ids) {
    out.Put(id);
  }
}

uint64_t IdBytes(const PerfFileHead& head) {
  uint64_t ids = 0;
  for (const PerfFileEvent& event : head.events) {
    ids += event.ids.size();
  }
  return ids * sizeof(uint64_t);
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

ByteBuilder CountsFeature(const PerfFileHead& head) {
  ByteBuilder out;
  out.Put(head.cores_present).Put(head.cores_online);
  return out;
}

ByteBuilder CommandFeature(const PerfFileHead& head) {
  ByteBuilder out;
  out.Put(static_cast<uint32_t>(head.command.size()));
  for (const std::string& argument : head.command) {
    PutText(out, argument);
  }
  return out;
}

ByteBuilder EventsFeature(const PerfFileHead& head) {
  ByteBuilder out;
  out.Put(static_cast<uint32_t>(head.events.size()));
  out.Put(static_cast<uint32_t>(PERF_ATTR_SIZE_VER7));
  for (const PerfFileEvent& event : head.events) {
    PutAttr(out, event.attr);
    out.Put(static_cast<uint32_t>(event.ids.size()));
    PutText(out, event.name);
    PutIds(out, event);
  }
  return out;
}

ByteBuilder PmusFeature(const PerfFileHead& head) {
  ByteBuilder out;
  out.Put(uint32_t{head.pt_type == 0 ? 1u : 2u});
  out.Put(uint32_t{PERF_TYPE_SOFTWARE});
  PutText(out, "software");
  if (head.pt_type != 0) {
    out.Put(head.pt_type);
    PutText(out, "intel_pt");
  }
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
std::vector<std::pair<PerfFeature, ByteBuilder>> Features(
    const PerfFileHead& head, std::span<const uint64_t> auxtrace_offsets) {
  std::vector<std::pair<PerfFeature, ByteBuilder>> features;
  features.emplace_back(kFeatureHostName, TextFeature(head.host_name));
  features.emplace_back(kFeatureOsRelease, TextFeature(head.os_release));
  features.emplace_back(kFeatureVersion, TextFeature(head.version));
  features.emplace_back(kFeatureArch, TextFeature("x86_64"));
  features.emplace_back(kFeatureCpuCounts, CountsFeature(head));
  features.emplace_back(kFeatureCpuDescription,
                        TextFeature(head.cpu_description));
  features.emplace_back(kFeatureCpuId, TextFeature(head.cpu_id));
  features.emplace_back(kFeatureCommand, CommandFeature(head));
  features.emplace_back(kFeatureEvents, EventsFeature(head));
  features.emplace_back(kFeaturePmus, PmusFeature(head));
  if (head.pt_type != 0) {
    features.emplace_back(kFeatureAuxtrace, AuxtraceFeature(auxtrace_offsets));
  }
  return features;
}

uint64_t FeatureBits(const PerfFileHead& head) {
  uint64_t bits = 0;
  for (const auto& [feature, bytes] : Features(head, {})) {
    bits |= uint64_t{1} << feature;
  }
  return bits;
}

ByteBuilder BuildRecord(uint32_t type, const ByteBuilder& body) {
  ByteBuilder out;
  out.Put(type).Put(uint16_t{0});
  out.Put(static_cast<uint16_t>(sizeof(perf_event_header) + body.size()));
  out.PutBytes(body.bytes());
  return out;
}

}  // namespace

ByteBuilder BuildHead(const PerfFileHead& head, uint64_t data_bytes) {
  const uint64_t attrs_offset = kHeaderBytes + IdBytes(head);
  const uint64_t attrs_bytes = head.events.size() * kFileAttrBytes;
  ByteBuilder out;
  out.PutBytes(std::as_bytes(std::span(std::string_view("PERFILE2"))));
  out.Put(kHeaderBytes).Put(kFileAttrBytes);
  out.Put(attrs_offset).Put(attrs_bytes);
  out.Put(attrs_offset + attrs_bytes).Put(data_bytes);
  out.PutZeros(16);  // event types, no longer used
  out.Put(FeatureBits(head)).PutZeros(24);
  for (const PerfFileEvent& event : head.events) {
    PutIds(out, event);
  }
  uint64_t ids_offset = kHeaderBytes;
  for (const PerfFileEvent& event : head.events) {
    const uint64_t id_bytes = event.ids.size() * sizeof(uint64_t);
    PutAttr(out, event.attr);
    out.Put(ids_offset).Put(id_bytes);
    ids_offset += id_bytes;
  }
  return out;
}

ByteBuilder BuildFeatures(const PerfFileHead& head, uint64_t data_end,
                          std::span<const uint64_t> auxtrace_offsets) {
  const auto features = Features(head, auxtrace_offsets);
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

ByteBuilder BuildPtInfo(const PtInfo& info) {
  constexpr uint32_t kAuxtraceInfo = 70;  // PERF_RECORD_AUXTRACE_INFO
  constexpr uint32_t kAuxtraceIntelPt = 1;
  const TscConversion clock =
      info.clock.value_or(TscConversion{.shift = 0, .mult = 0, .zero = 0});
  ByteBuilder filter;
  if (!info.filter.empty()) {
    filter.PutPaddedText(info.filter, 8);
  }
  const std::array<uint64_t, 17> values = {info.pmu_type,
                                           clock.shift,
                                           clock.mult,
                                           clock.zero,
                                           info.clock ? 1u : 0u,
                                           info.tsc_bit,
                                           info.no_return_compression_bit,
                                           info.have_sched_switch,
                                           info.snapshot ? 1u : 0u,
                                           1,  // one buffer per core
                                           info.mtc_bit,
                                           info.mtc_period_bits,
                                           info.tsc_ctc_numerator,
                                           info.tsc_ctc_denominator,
                                           info.cyc_bit,
                                           info.max_nonturbo_ratio,
                                           filter.size()};
  ByteBuilder body;
  body.Put(kAuxtraceIntelPt).Put(uint32_t{0});
  for (const uint64_t value : values) {
    body.Put(value);
  }
  body.PutBytes(filter.bytes());
  return BuildRecord(kAuxtraceInfo, body);
}

ByteBuilder BuildTimeConv(const TscConversion& clock) {
  constexpr uint32_t kTimeConv = 79;  // PERF_RECORD_TIME_CONV
  ByteBuilder body;
  body.Put(uint64_t{clock.shift}).Put(uint64_t{clock.mult}).Put(clock.zero);
  body.PutZeros(16);                 // time_cycles, time_mask: not needed
  body.Put(uint8_t{1}).PutZeros(7);  // cap_user_time_zero
  return BuildRecord(kTimeConv, body);
}

ByteBuilder BuildAuxtraceHead(const AuxtraceHead& head) {
  constexpr uint32_t kAuxtrace = 71;  // PERF_RECORD_AUXTRACE
  ByteBuilder body;
  body.Put(head.bytes).Put(head.aux_offset).Put(head.reference);
  body.Put(head.core).Put(int32_t{-1}).Put(head.core).Put(uint32_t{0});
  return BuildRecord(kAuxtrace, body);
}

}  // namespace clew::bundle
