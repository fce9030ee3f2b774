#include "tests/recorder/perf/pt_kernel.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/check.h"
#include "recorder/perf/events.h"

namespace clew::recorder::perf {
namespace {

constexpr uint64_t kPage = 4096;

// A record with a sample_id of TID | TIME | CPU | IDENTIFIER.
std::vector<std::byte> MakeRecord(uint32_t type, std::span<const uint64_t> body,
                                  uint64_t nanos, CoreId core) {
  perf_event_header header = {};
  header.type = type;
  header.size = static_cast<uint16_t>(sizeof(header) + body.size_bytes() +
                                      bundle::kSampleIdBytes);
  const std::array<uint64_t, 4> id = {0, nanos, core.as_int(), 0};
  std::vector<std::byte> record;
  const auto put = [&record](std::span<const std::byte> bytes) {
    record.insert(record.end(), bytes.begin(), bytes.end());
  };
  put(std::as_bytes(std::span(&header, 1)));
  put(std::as_bytes(body));
  put(std::as_bytes(std::span(id)));
  return record;
}

}  // namespace

Result<Fd> PtKernel::OpenEvent(const perf_event_attr& attr, int32_t, int core) {
  Core& of = cores_[CoreId(static_cast<uint32_t>(core))];
  Event& event = attr.type == PERF_TYPE_SOFTWARE ? of.sideband : of.pt;
  Fd fd(memfd_create("event", MFD_CLOEXEC));
  event = Event{};
  event.fd = fd.get();
  event.id = next_id_++;
  event.backward = attr.write_backward != 0;
  return fd;
}

PtKernel::Event& PtKernel::Find(int fd) {
  for (auto& [core, of] : cores_) {
    if (of.sideband.fd == fd || of.pt.fd == fd) {
      return of.sideband.fd == fd ? of.sideband : of.pt;
    }
  }
  CLEW_CHECK(false, "no event {}", fd);
  __builtin_unreachable();
}

Result<uint64_t> PtKernel::EventId(const Fd& event) {
  return Find(event.get()).id;
}

Result<MappedMemory> PtKernel::Map(const Fd& fd, uint64_t offset, size_t bytes,
                                   bool writable) {
  CLEW_CHECK(ftruncate(fd.get(), static_cast<off_t>(offset + bytes)) == 0,
             "no memory");
  void* begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                     fd.get(), static_cast<off_t>(offset));
  CLEW_CHECK(begin != MAP_FAILED, "no memory");
  auto* const memory = static_cast<std::byte*>(begin);
  Event& event = Find(fd.get());
  if (offset == 0) {
    event.page = static_cast<perf_event_mmap_page*>(begin);
    event.page->data_offset = kPage;
    event.page->data_size = bytes - kPage;
    event.page->cap_user_time_zero = clock_known_ ? 1 : 0;
    event.page->time_mult = 1;
    event.data = memory + kPage;
  } else {
    for (auto& [core, of] : cores_) {
      if (of.pt.fd == fd.get()) {
        of.aux = {memory, bytes};
        of.aux_overwrites = !writable;
      }
    }
  }
  return MappedMemory({memory, bytes});
}

Status PtKernel::Control(const Fd& fd, unsigned long request,
                         unsigned long argument, std::string_view) {
  Event& event = Find(fd.get());
  switch (request) {
    case PERF_EVENT_IOC_ENABLE:
      event.enabled = true;
      return {};
    case PERF_EVENT_IOC_DISABLE:
      event.enabled = false;
      return {};
    case PERF_EVENT_IOC_PAUSE_OUTPUT:
      event.paused = argument != 0;
      return {};
    default:
      return Unsupported("request {:#x}", request);
  }
}

void PtKernel::Put(Event& event, uint64_t at,
                   std::span<const std::byte> bytes) {
  const uint64_t size = event.page->data_size;
  for (size_t i = 0; i < bytes.size(); ++i) {
    event.data[(at + i) & (size - 1)] = bytes[i];
  }
}

void PtKernel::Write(CoreId core, Event& event, std::vector<std::byte> record) {
  if (event.lost > 0) {
    const std::array<uint64_t, 2> body = {event.id, event.lost};
    auto lost = MakeRecord(PERF_RECORD_LOST, body, 0, core);
    // As old as the record behind it.
    std::memcpy(lost.data() + lost.size() - 24,
                record.data() + record.size() - 24, 8);
    std::memcpy(lost.data() + lost.size() - 8, &event.id, 8);
    record.insert(record.begin(), lost.begin(), lost.end());
  }
  std::memcpy(record.data() + record.size() - 8, &event.id, 8);
  const uint64_t tail =
      __atomic_load_n(&event.page->data_tail, __ATOMIC_ACQUIRE);
  const bool fits = event.backward ||
                    record.size() < event.page->data_size - (event.head - tail);
  if (event.paused || !fits) {
    ++event.lost;
    ++lost_records_;
    return;
  }
  event.lost = 0;
  if (event.backward) {
    event.head -= record.size();
    Put(event, event.head, record);
  } else {
    Put(event, event.head, record);
    event.head += record.size();
  }
  __atomic_store_n(&event.page->data_head, event.head, __ATOMIC_RELEASE);
}

void PtKernel::WriteRecord(CoreId core, std::vector<std::byte> record) {
  Core& of = cores_.at(core);
  if (of.sideband.enabled) {
    Write(core, of.sideband, std::move(record));
  }
}

uint64_t PtKernel::AuxRoom(CoreId core) const {
  const Core& of = cores_.at(core);
  return of.aux.size() - (of.aux_head - __atomic_load_n(&of.pt.page->aux_tail,
                                                        __ATOMIC_ACQUIRE));
}

void PtKernel::Trace(CoreId core, std::span<const std::byte> bytes,
                     uint64_t nanos) {
  Core& of = cores_.at(core);
  CLEW_CHECK(of.pt.enabled, "core {} does not trace", core);
  const uint64_t fits = of.aux_overwrites
                            ? bytes.size()
                            : std::min<uint64_t>(bytes.size(), AuxRoom(core));
  for (uint64_t i = 0; i < fits; ++i) {
    of.aux[(of.aux_head + i) & (of.aux.size() - 1)] = bytes[i];
  }
  std::array<uint64_t, 3> body = {of.aux_head, fits, 0};
  if (fits < bytes.size()) {
    body[2] = PERF_AUX_FLAG_TRUNCATED;
    of.pt.enabled = false;
    ++truncations_;
  }
  of.aux_head += fits;
  if (!of.aux_overwrites) {
    Write(core, of.pt, MakeRecord(PERF_RECORD_AUX, body, nanos, core));
  }
  // intel_pt tells the place alone where it overwrites.
  __atomic_store_n(
      &of.pt.page->aux_head,
      of.aux_overwrites ? of.aux_head & (of.aux.size() - 1) : of.aux_head,
      __ATOMIC_RELEASE);
}

PtSysfs::PtSysfs(uint32_t cores) {
  std::string pattern =
      std::filesystem::temp_directory_path() / "clew-ptsys-XXXXXX";
  root_ = mkdtemp(pattern.data());
  Put("devices/system/cpu/online", fmt::format("0-{}", cores - 1));
  const std::string pmu = "bus/event_source/devices/intel_pt/";
  Put(pmu + "type", "8");
  Put(pmu + "max_nonturbo_ratio", "10");
  Put(pmu + "tsc_art_ratio", "40:1");
  for (const auto& [name, bits] :
       std::map<std::string, std::string>{{"pt", "config:0"},
                                          {"cyc", "config:1"},
                                          {"mtc", "config:9"},
                                          {"tsc", "config:10"},
                                          {"noretcomp", "config:11"},
                                          {"branch", "config:13"},
                                          {"mtc_period", "config:14-17"}}) {
    Put(fmt::format("{}format/{}", pmu, name), bits);
  }
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"topa_output", "1"}, {"mtc", "1"}, {"mtc_periods", "249"}}) {
    Put(fmt::format("{}caps/{}", pmu, name), value);
  }
}

PtSysfs::~PtSysfs() { std::filesystem::remove_all(root_); }

void PtSysfs::Put(const std::string& name, const std::string& text) {
  std::filesystem::create_directories(
      std::filesystem::path(root_ + "/" + name).parent_path());
  std::ofstream(root_ + "/" + name) << text << "\n";
}

}  // namespace clew::recorder::perf
