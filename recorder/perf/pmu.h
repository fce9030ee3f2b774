#ifndef CLEW_RECORDER_PERF_PMU_H_
#define CLEW_RECORDER_PERF_PMU_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace clew::recorder::perf {

// A field of perf_event_attr's config words, as sysfs tells it: "config:14-17".
struct ConfigField {
  uint8_t word = 0;  // 0: config, 1: config1, 2: config2
  uint8_t lo = 0;    // first bit
  uint8_t hi = 0;    // last bit, at most 63
  bool operator==(const ConfigField&) const = default;
};

// The event source of Intel PT, as the kernel describes it below
// <sys>/bus/event_source/devices/intel_pt: `type`, `format/<field>`,
// `caps/<capability>` (hexadecimal) and `nr_addr_filters`.
//
// Source: Linux, Documentation/ABI/testing/
// sysfs-bus-event_source-devices-format and -caps; Intel SDM vol. 3C, "Intel
// Processor Trace", "Enumeration" for what the capabilities mean.
class Pmu {
 public:
  // `sys` is where sysfs is mounted. kUnsupported: there is no intel_pt.
  // kCorruptInput, with the file: something that is there cannot be understood.
  [[nodiscard]] static Result<Pmu> Discover(const std::string& sys);

  uint32_t type() const { return type_; }  // perf_event_attr::type
  std::optional<ConfigField> field(std::string_view name) const;
  // 0 where the kernel does not tell it: then the CPU does not have it.
  uint64_t capability(std::string_view name) const;
  uint32_t address_filters_max() const { return address_filters_max_; }
  const std::string& folder() const { return folder_; }

  // Stores `value` in the field `name` of `attr`. kUnsupported: no such field.
  // kInvalidArgument: it has too few bits. `attr` is as before then.
  [[nodiscard]] Status Set(perf_event_attr& attr, std::string_view name,
                           uint64_t value) const;

 private:
  std::string folder_;
  uint32_t type_ = 0;
  uint32_t address_filters_max_ = 0;
  std::map<std::string, ConfigField, std::less<>> fields_;
  std::map<std::string, uint64_t, std::less<>> capabilities_;
};

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_PMU_H_
