#include "recorder/host_description.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>
#include <cstring>
#include <fstream>

#include "common/text/parse_number.h"
#include "common/x86/features.h"
#include "recorder/perf/sysfs.h"

namespace clew::recorder {
namespace {

using bundle::PtInfo;
using perf::FirstLine;

std::string VendorOf(const x86::CpuidResult& leaf) {
  const std::array<uint32_t, 3> words = {leaf.ebx, leaf.edx, leaf.ecx};
  std::array<char, sizeof(words)> text;
  std::memcpy(text.data(), words.data(), sizeof(words));
  return {text.data(), text.size()};
}

std::string NameOf(const std::string& proc) {
  std::ifstream file(proc + "/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

CpuDescription DescribeCpu(const std::string& proc) {
  CpuDescription cpu;
  cpu.vendor = VendorOf(x86::AskCpuid(0, 0));
  const uint32_t version = x86::AskCpuid(1, 0).eax;
  cpu.stepping = version & 0xf;
  cpu.model = version >> 4 & 0xf;
  cpu.family = version >> 8 & 0xf;
  if (cpu.family == 0xf) {
    cpu.family += version >> 20 & 0xff;
  }
  if (cpu.family >= 6) {
    cpu.model += (version >> 16 & 0xf) << 4;
  }
  cpu.name = NameOf(proc);
  return cpu;
}

// "numerator:denominator"; 0 where the kernel says it is not known.
void SetClockRatio(const std::string& text, PtInfo& info) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return;
  }
  info.tsc_ctc_numerator =
      ParseNumber<uint32_t>(std::string_view(text).substr(0, colon))
          .value_or(0);
  info.tsc_ctc_denominator =
      ParseNumber<uint32_t>(std::string_view(text).substr(colon + 1))
          .value_or(0);
}

uint64_t MaskOf(const perf::Pmu& pmu, std::string_view name) {
  const auto field = pmu.field(name);
  if (!field || field->word != 0) {
    return 0;
  }
  uint64_t mask = 0;
  for (unsigned bit = field->lo; bit <= field->hi; ++bit) {
    mask |= uint64_t{1} << bit;
  }
  return mask;
}

}  // namespace

std::string CpuDescription::PerfId() const {
  return fmt::format("{},{},{},{}", vendor, family, model, stepping);
}

HostDescription DescribeHost(const std::string& proc) {
  utsname name = {};
  uname(&name);
  return {.host_name = name.nodename,
          .os_release = name.release,
          .cpu = DescribeCpu(proc)};
}

PtInfo DescribePt(const perf::Pmu& pmu) {
  PtInfo info;
  info.pmu_type = pmu.type();
  info.tsc_bit = MaskOf(pmu, "tsc");
  info.no_return_compression_bit = MaskOf(pmu, "noretcomp");
  info.mtc_bit = MaskOf(pmu, "mtc");
  info.mtc_period_bits = MaskOf(pmu, "mtc_period");
  info.cyc_bit = MaskOf(pmu, "cyc");
  const auto ratio = FirstLine(pmu.folder() + "/max_nonturbo_ratio");
  info.max_nonturbo_ratio =
      ratio ? ParseNumber<uint64_t>(*ratio).value_or(0) : 0;
  SetClockRatio(FirstLine(pmu.folder() + "/tsc_art_ratio").value_or(""), info);
  if (info.tsc_ctc_numerator == 0 || info.tsc_ctc_denominator == 0) {
    const x86::CpuidResult leaf = x86::AskCpuid(0x15, 0);
    info.tsc_ctc_numerator = leaf.ebx;
    info.tsc_ctc_denominator = leaf.eax;
  }
  return info;
}

}  // namespace clew::recorder
