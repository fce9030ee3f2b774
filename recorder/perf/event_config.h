#ifndef CLEW_RECORDER_PERF_EVENT_CONFIG_H_
#define CLEW_RECORDER_PERF_EVENT_CONFIG_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "recorder/perf/pmu.h"

namespace clew::recorder::perf {

// What the options of a hardware recording mean. Absent: see each.
struct PtOptions {
  // --buffer: bytes of PT per CPU, a power of two of at least two pages. Full
  // trace: how much may be written before the recorder has to come back.
  // Snapshot: how far back a snapshot reaches.
  uint64_t buffer_bytes = 4 << 20;
  bool snapshot = false;
  // --mtc-period N: an MTC packet every 2^N ticks of the core crystal clock;
  // a smaller N tells times more exactly and makes more bytes. Absent: 3 or the
  // next one that the CPU has; no MTC where it has none.
  std::optional<uint32_t> mtc_period = {};
  // --cyc-threshold N: a CYC packet at least 2^(N-1) cycles after the last one,
  // for N = 0 as often as possible. Absent: no CYC packets.
  std::optional<uint32_t> cyc_threshold = {};
  // --filter: as FilterText wants them. Absent: everything.
  std::vector<std::string> filters = {};
  // Kernel code too. The default is user code alone.
  bool kernel = false;
  // The events follow threads, not whole CPUs.
  bool per_task = false;
};

// "4M" and the like: bytes, with K, M or G for powers of 1024. `option` is for
// the message. kInvalidArgument: no such size.
[[nodiscard]] Result<uint64_t> ParseBytes(std::string_view option,
                                          std::string_view text);
// The same of --buffer. kInvalidArgument: also not what PtOptions::buffer_bytes
// wants.
[[nodiscard]] Result<uint64_t> ParseBufferBytes(std::string_view text);

// perf_event_attr for PT. kUnsupported where the CPU or kernel lacks what the
// options want, kInvalidArgument where they contradict each other; the message
// names capability, what was wanted, what was found, and what to do.
[[nodiscard]] Result<perf_event_attr> PtAttr(const Pmu& pmu,
                                             const PtOptions& options);

// What PERF_EVENT_IOC_SET_FILTER takes, from filters of the forms
//
//   filter START/SIZE@FILE    trace only in there
//   start START@FILE          begin to trace there
//   stop START@FILE           stop tracing there
//
// START, an offset in the file, and SIZE are decimal or 0x...; FILE is an
// absolute path; without @FILE it is an address of the kernel's. Empty if there
// are none. Errors as for PtAttr.
//
// Source: Linux, kernel/events/core.c, "Address range filtering": at most
// nr_addr_filters of them, files only for events that follow threads.
[[nodiscard]] Result<std::string> FilterText(const Pmu& pmu,
                                             const PtOptions& options);

// SidebandRecordsAttr with a ring and the threads that it follows.
struct SidebandOptions {
  bool inherit = false;         // children of the thread, too
  bool enable_on_exec = false;  // REQUIRES: inherit
  bool overwrite = false;       // RingMode::kOverwrite
  uint32_t wakeup_bytes = 0;    // wake the reader after so many; 0: at each
};
perf_event_attr SidebandAttr(const SidebandOptions& options);

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_EVENT_CONFIG_H_
