#include "bundle/perf_data/record_type.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace clew::bundle {
namespace {

constexpr std::array<std::string_view, 22> kKernelNames = {"",
                                                           "MMAP",
                                                           "LOST",
                                                           "COMM",
                                                           "EXIT",
                                                           "THROTTLE",
                                                           "UNTHROTTLE",
                                                           "FORK",
                                                           "READ",
                                                           "SAMPLE",
                                                           "MMAP2",
                                                           "AUX",
                                                           "ITRACE_START",
                                                           "LOST_SAMPLES",
                                                           "SWITCH",
                                                           "SWITCH_CPU_WIDE",
                                                           "NAMESPACES",
                                                           "KSYMBOL",
                                                           "BPF_EVENT",
                                                           "CGROUP",
                                                           "TEXT_POKE",
                                                           "AUX_OUTPUT_HW_ID"};
constexpr std::array<std::string_view, 20> kUserNames = {
    "ATTR",           "EVENT_TYPE", "TRACING_DATA",  "BUILD_ID",
    "FINISHED_ROUND", "ID_INDEX",   "AUXTRACE_INFO", "AUXTRACE",
    "AUXTRACE_ERROR", "THREAD_MAP", "CPU_MAP",       "STAT_CONFIG",
    "STAT",           "STAT_ROUND", "EVENT_UPDATE",  "TIME_CONV",
    "FEATURE",        "COMPRESSED", "FINISHED_INIT", "COMPRESSED2"};

}  // namespace

std::string RecordTypeName(uint32_t type) {
  if (type > 0 && type < kKernelNames.size()) {
    return std::string(kKernelNames[type]);
  }
  if (type >= kRecordUserFirst && type - kRecordUserFirst < kUserNames.size()) {
    return std::string(kUserNames[type - kRecordUserFirst]);
  }
  return fmt::format("type {}", type);
}

}  // namespace clew::bundle
