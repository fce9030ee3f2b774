#include "recorder/perf/event_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "bundle/perf_data/own_events.h"
#include "common/text/parse_number.h"
#include "common/x86/page.h"
#include "recorder/perf/sysfs.h"

namespace clew::recorder::perf {
namespace {

constexpr uint32_t kDefaultPeriod = 3;
constexpr unsigned kBitmapBits = 16;  // SDM: CPUID leaf 14H, sub-leaf 1

// The values that a capability like mtc_periods allows: bit N for N.
std::vector<unsigned> Allowed(uint64_t bitmap) {
  std::vector<unsigned> values;
  for (unsigned i = 0; i < kBitmapBits; ++i) {
    if ((bitmap >> i & 1) != 0) {
      values.push_back(i);
    }
  }
  return values;
}

// One of the options that choose from a bitmap.
struct Choice {
  std::string_view option;      // "--mtc-period"
  std::string_view capability;  // "mtc": 1 where the CPU can
  std::string_view bitmap;      // "mtc_periods"
};
constexpr Choice kMtc = {"--mtc-period", "mtc", "mtc_periods"};
constexpr Choice kCyc = {"--cyc-threshold", "psb_cyc", "cycle_thresholds"};

Status CheckChoice(const Pmu& pmu, const Choice& choice, uint32_t wanted) {
  if (pmu.capability(choice.capability) == 0) {
    return Unsupported(
        "intel_pt: {} {}: wanted the capability {:?}, found {}/caps/{} to be "
        "0 or absent: this CPU does not have it; leave the option out",
        choice.option, wanted, choice.capability, pmu.folder(),
        choice.capability);
  }
  const auto allowed = Allowed(pmu.capability(choice.bitmap));
  if (std::ranges::find(allowed, wanted) == allowed.end()) {
    return Unsupported(
        "intel_pt: {} {}: wanted {} among {}/caps/{}, found {}; choose one of "
        "those or leave the option out",
        choice.option, wanted, wanted, pmu.folder(), choice.bitmap,
        fmt::join(allowed, ", "));
  }
  return {};
}

Status SetMtc(const Pmu& pmu, const PtOptions& options, perf_event_attr& attr) {
  std::optional<uint32_t> period = options.mtc_period;
  if (period) {
    CLEW_RETURN_IF_ERROR(CheckChoice(pmu, kMtc, *period));
  } else if (pmu.capability(kMtc.capability) != 0) {
    const auto allowed = Allowed(pmu.capability(kMtc.bitmap));
    const auto next = std::ranges::lower_bound(allowed, kDefaultPeriod);
    if (next != allowed.end()) {
      period = *next;
    }
  }
  if (!period) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(pmu.Set(attr, "mtc", 1));
  return pmu.Set(attr, "mtc_period", *period);
}

Status SetCyc(const Pmu& pmu, const PtOptions& options, perf_event_attr& attr) {
  if (!options.cyc_threshold) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(CheckChoice(pmu, kCyc, *options.cyc_threshold));
  CLEW_RETURN_IF_ERROR(pmu.Set(attr, "cyc", 1));
  return pmu.Set(attr, "cyc_thresh", *options.cyc_threshold);
}

Status CheckBuffer(uint64_t bytes) {
  if (!std::has_single_bit(bytes) || bytes < 2 * kPageBytes) {
    return InvalidArgument(
        "--buffer: wanted a power of two of at least {} bytes, found {}; for "
        "example 4M",
        2 * kPageBytes, bytes);
  }
  return {};
}

Status CheckOutput(const Pmu& pmu) {
  if (pmu.capability("topa_output") == 0 &&
      pmu.capability("single_range_output") == 0) {
    return Unsupported(
        "intel_pt: wanted the capability \"topa_output\" or "
        "\"single_range_output\", found neither in {}/caps: PT cannot write "
        "to memory here; record in software",
        pmu.folder());
  }
  return {};
}

std::optional<uint64_t> ParseAddress(std::string_view text) {
  const bool hex = text.starts_with("0x");
  return ParseNumber<uint64_t>(hex ? text.substr(2) : text, hex ? 16 : 10);
}

struct Filter {
  std::string_view action;
  std::optional<uint64_t> start;
  std::optional<uint64_t> size_bytes;
  std::string_view file;
};

// nullopt: not of the form that FilterText wants.
std::optional<Filter> ParseFilter(std::string_view text) {
  Filter filter;
  const size_t space = text.find(' ');
  filter.action = text.substr(0, space);
  std::string_view range =
      space == std::string_view::npos ? "" : text.substr(space + 1);
  if (const size_t at = range.find('@'); at != std::string_view::npos) {
    filter.file = range.substr(at + 1);
    range = range.substr(0, at);
    if (!filter.file.starts_with('/') ||
        filter.file.find_first_of(" ,\n") != std::string_view::npos) {
      return std::nullopt;
    }
  }
  const size_t slash = range.find('/');
  filter.start = ParseAddress(range.substr(0, slash));
  if (slash != std::string_view::npos) {
    filter.size_bytes = ParseAddress(range.substr(slash + 1));
  }
  const bool is_range = filter.action == "filter";
  const bool is_point = filter.action == "start" || filter.action == "stop";
  const bool size_fits = is_range ? filter.size_bytes.value_or(0) > 0
                                  : slash == std::string_view::npos;
  return (is_range || is_point) && filter.start && size_fits
             ? std::optional(filter)
             : std::nullopt;
}

Status CheckFilter(std::string_view text, const PtOptions& options) {
  const auto filter = ParseFilter(text);
  if (!filter) {
    return InvalidArgument(
        "--filter: wanted \"filter START/SIZE@FILE\", \"start START@FILE\" or "
        "\"stop START@FILE\" with an absolute path, found {:?}",
        text);
  }
  if (filter->file.empty() && !options.kernel) {
    return InvalidArgument(
        "--filter {:?}: wanted a file, since kernel code is not traced; found "
        "none; add @FILE",
        text);
  }
  if (!filter->file.empty() && !options.per_task) {
    return Unsupported(
        "--filter {:?}: wanted a filter by file on whole CPUs, found that the "
        "kernel has these for threads only; record one process instead",
        text);
  }
  return {};
}

}  // namespace

Result<uint64_t> ParseBytes(std::string_view option, std::string_view text) {
  unsigned shift = 0;
  std::string_view digits = text;
  if (!text.empty()) {
    const size_t unit = std::string_view("KMG").find(text.back());
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      digits.remove_suffix(1);
    }
  }
  const auto number = ParseNumber<uint64_t>(digits);
  if (!number || *number > std::numeric_limits<uint64_t>::max() >> shift) {
    return InvalidArgument("{}: wanted a size like 4M, found {:?}", option,
                           text);
  }
  return *number << shift;
}

Result<uint64_t> ParseBufferBytes(std::string_view text) {
  CLEW_ASSIGN_OR_RETURN(bytes, ParseBytes("--buffer", text));
  CLEW_RETURN_IF_ERROR(CheckBuffer(bytes));
  return bytes;
}

Result<perf_event_attr> PtAttr(const Pmu& pmu, const PtOptions& options) {
  CLEW_RETURN_IF_ERROR(CheckBuffer(options.buffer_bytes));
  CLEW_RETURN_IF_ERROR(CheckOutput(pmu));
  perf_event_attr attr = bundle::BaseAttr();
  attr.type = pmu.type();
  attr.exclude_kernel = options.kernel ? 0 : 1;
  if (!options.snapshot) {
    attr.aux_watermark = static_cast<uint32_t>(
        std::min<uint64_t>(options.buffer_bytes / 4, UINT32_MAX));
  }
  CLEW_RETURN_IF_ERROR(pmu.Set(attr, "tsc", 1));
  // Kernels that can leave out branches have a bit that asks for them.
  for (const std::string_view name : {"pt", "branch"}) {
    if (pmu.field(name)) {
      CLEW_RETURN_IF_ERROR(pmu.Set(attr, name, 1));
    }
  }
  CLEW_RETURN_IF_ERROR(SetMtc(pmu, options, attr));
  CLEW_RETURN_IF_ERROR(SetCyc(pmu, options, attr));
  return attr;
}

Result<std::string> FilterText(const Pmu& pmu, const PtOptions& options) {
  if (options.filters.size() > pmu.address_filters_max()) {
    return Unsupported(
        "--filter: wanted {} address filters, found {}/nr_addr_filters to be "
        "{}; leave some out",
        options.filters.size(), pmu.folder(), pmu.address_filters_max());
  }
  for (const std::string& filter : options.filters) {
    CLEW_RETURN_IF_ERROR(CheckFilter(filter, options));
  }
  return fmt::format("{}", fmt::join(options.filters, ","));
}

perf_event_attr SidebandAttr(const SidebandOptions& options) {
  perf_event_attr attr = bundle::SidebandRecordsAttr();
  attr.inherit = options.inherit ? 1 : 0;
  attr.enable_on_exec = options.enable_on_exec ? 1 : 0;
  attr.write_backward = options.overwrite ? 1 : 0;
  attr.watermark = 1;
  attr.wakeup_watermark = std::max<uint32_t>(options.wakeup_bytes, 1);
  return attr;
}

}  // namespace clew::recorder::perf
