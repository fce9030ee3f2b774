#ifndef CLEW_RECORDER_QEMU_TRACER_H_
#define CLEW_RECORDER_QEMU_TRACER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/qemu/raw_file.h"

namespace clew::recorder {

struct ExecMapping {
  uint64_t addr = 0;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint32_t prot = 0;
  std::string_view path;
};

// The regions that hold a file's code. Borrows their names.
std::vector<ExecMapping> CodeOfFiles(const std::vector<GuestRegion>& regions);

// The time at a recording's first instruction, in ticks: perf takes a record of
// time 0 for one without a time.
inline constexpr uint64_t kFirstTick = 4096;

// The PT streams of all virtual cores and the events beside them, into raw
// files. An event is one line of text; recorder/software/raw_events.h reads it.
// Not thread-safe: called with the turn or the lock.
class Tracer {
 public:
  // `limit` is borrowed.
  [[nodiscard]] static Result<std::unique_ptr<Tracer>> Create(
      const PluginConfig& config, SizeLimit& limit);

  // One more than there were: returns its number.
  [[nodiscard]] Result<uint32_t> AddCore();
  uint32_t core_count() const { return static_cast<uint32_t>(cores_.size()); }
  CoreEncoder& encoder(uint32_t core) { return *cores_[core].encoder; }

  void SwitchIn(uint32_t core, Tid thread, uint64_t now);
  void SwitchOut(uint32_t core, Tid thread, uint64_t now, bool preempted);
  void Fork(uint32_t core, Tid parent, Tid child, uint64_t now);
  void Exit(uint32_t core, Tid thread, Tid parent, uint64_t now);
  void Comm(uint32_t core, Tid thread, uint64_t now, bool exec,
            std::string_view name);
  void Mmap(uint32_t core, Tid thread, uint64_t now,
            const ExecMapping& mapping);
  // `thread` has the turn from now on; 0: no thread, this is the end.
  void Turn(Tid thread, uint64_t now) {
    if (turns_.has_value()) [[unlikely]] {
      turns_->Append(fmt::format("{} {}\n", thread, now));
    }
  }
  uint64_t switches() const { return switches_; }

  // Drops all that was said of threads and mappings, for them to be said anew.
  [[nodiscard]] Status BeginAnew() { return events_.BeginAnew(); }
  // Writes everything out. Nothing may be called afterwards.
  [[nodiscard]] Status Close();
  // Writes nothing and closes. Nothing may be called afterwards.
  void Abandon();

 private:
  struct Core {
    std::unique_ptr<RawFileSink> sink;
    std::unique_ptr<CoreEncoder> encoder;
  };
  Tracer(const PluginConfig& config, SizeLimit& limit, RawFile events)
      : config_(config), limit_(limit), events_(std::move(events)) {}

  const PluginConfig config_;
  SizeLimit& limit_;
  RawFile events_;
  std::optional<RawFile> turns_;
  std::vector<Core> cores_;
  uint64_t switches_ = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_TRACER_H_
