#ifndef CLEW_TESTS_RECORDER_PERF_PT_KERNEL_H_
#define CLEW_TESTS_RECORDER_PERF_PT_KERNEL_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/units.h"
#include "recorder/perf/kernel.h"

namespace clew::recorder::perf {

// A kernel with Intel PT in memory: events, pages, data rings and AUX rings as
// perf_event_open and mmap give them, and what kernel/events/ring_buffer.c and
// intel_pt do with heads, tails, LOST and TRUNCATED. The test says which
// records and which trace bytes there are. One thread.
class PtKernel : public PerfKernel {
 public:
  Result<Fd> OpenEvent(const perf_event_attr& attr, int32_t thread,
                       int core) override;
  Result<uint64_t> EventId(const Fd& event) override;
  Result<MappedMemory> Map(const Fd& event, uint64_t offset, size_t bytes,
                           bool writable) override;
  Status Control(const Fd& event, unsigned long request, unsigned long argument,
                 std::string_view what) override;
  Result<Fd> MakePoller() override { return Fd(); }
  Status Watch(const Fd&, const Fd&) override { return {}; }
  Result<bool> Wait(const Fd&, int) override { return true; }
  Status WaitForWriters() override { return {}; }

  // Whether pages say how perf's clock follows from the TSC (here: it is it).
  void SetClockKnown(bool known) { clock_known_ = known; }
  // Writes a record, whose sample_id names the event then, to the sideband's
  // ring of `core`. What finds no room is counted and told by a LOST.
  void WriteRecord(CoreId core, std::vector<std::byte> record);
  // Traces `bytes` at `nanos`, with an AUX record unless the ring is
  // overwritten. Full trace: what finds no room is lost, the record says
  // TRUNCATED, and tracing is off until the reader enables it.
  void Trace(CoreId core, std::span<const std::byte> bytes, uint64_t nanos);
  bool IsTracing(CoreId core) const { return cores_.at(core).pt.enabled; }
  uint64_t AuxRoom(CoreId core) const;

  uint64_t truncations() const { return truncations_; }
  uint64_t lost_records() const { return lost_records_; }

 private:
  struct Event {
    int fd = -1;
    uint64_t id = 0;
    bool enabled = false;
    bool paused = false;
    bool backward = false;
    perf_event_mmap_page* page = nullptr;
    std::byte* data = nullptr;
    uint64_t head = 0;
    uint64_t lost = 0;
  };
  struct Core {
    Event sideband;
    Event pt;
    std::span<std::byte> aux;
    bool aux_overwrites = false;
    uint64_t aux_head = 0;
  };
  Event& Find(int fd);
  void Write(CoreId core, Event& event, std::vector<std::byte> record);
  static void Put(Event& event, uint64_t at, std::span<const std::byte> bytes);

  std::map<CoreId, Core> cores_;
  bool clock_known_ = true;
  uint64_t next_id_ = 100;
  uint64_t truncations_ = 0;
  uint64_t lost_records_ = 0;
};

// A sysfs with `cores` CPUs whose intel_pt has everything, removed at the end.
class PtSysfs {
 public:
  explicit PtSysfs(uint32_t cores);
  PtSysfs(const PtSysfs&) = delete;
  PtSysfs& operator=(const PtSysfs&) = delete;
  ~PtSysfs();
  const std::string& root() const { return root_; }

 private:
  void Put(const std::string& name, const std::string& text);
  std::string root_;
};

}  // namespace clew::recorder::perf

#endif  // CLEW_TESTS_RECORDER_PERF_PT_KERNEL_H_
