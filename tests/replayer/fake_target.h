#ifndef CLEW_TESTS_REPLAYER_FAKE_TARGET_H_
#define CLEW_TESTS_REPLAYER_FAKE_TARGET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/schedule.h"
#include "machine/memory.h"
#include "replayer/schedule_index.h"
#include "replayer/target.h"
#include "replayer/watch.h"

namespace clew::replayer {

// One instruction of a toy thread: at `ip`, it may add to a 64-bit word, or
// read one, or output a line.
struct ToyInsn {
  enum class Kind : uint8_t { kNop, kAdd, kRead, kOutput };
  uint64_t ip = 0;
  Kind kind = Kind::kNop;
  uint64_t addr = 0;
  uint64_t amount = 0;    // kAdd
  std::string text = {};  // kOutput
};

// A thread that runs its instructions round and round.
struct ToyThread {
  Tid tid;
  std::string name;
  std::vector<ToyInsn> program;
  Position born = 0;  // exists from there on
};

inline constexpr uint64_t kToyCode = 0x401000;
inline constexpr uint64_t kToyData = 0x600000;
inline constexpr uint64_t kToyStack = 0x7ff000;

// A deterministic machine, small enough to be obviously right, for the tests of
// what is above it. rip and rax (instructions retired) change, all else does
// not.
class FakeTarget final : public ReplayTarget {
 public:
  FakeTarget(std::vector<ToyThread> threads,
             const std::vector<ScheduleStep>& steps, Failure failure);

  // From this position on nothing can be retired: Run returns an error.
  void set_diverges_at(Position position) { diverges_at_ = position; }
  // Called at the beginning of each Run with where it begins.
  void set_before_run(std::function<void(Position)> call) {
    before_run_ = std::move(call);
  }
  // Instructions retired by all runs, to see what a command costs.
  uint64_t work() const { return work_; }
  void set_exec(std::string path, std::vector<std::byte> auxv) {
    exec_path_ = std::move(path);
    auxv_ = std::move(auxv);
  }
  machine::Memory& memory() { return now_.memory; }
  // Of every thread.
  void set_fs_base(uint64_t base) { fs_base_ = base; }
  void set_fault(const machine::Fault& fault) { fault_ = fault; }
  void set_cpu_features(x86::FeatureSet features) { features_ = features; }

  Position position() const override { return now_.position; }
  Position end() const override { return index_.end(); }
  std::unique_ptr<State> Save() const override;
  void Load(const State& state) override;
  Result<RunStop> Run(Position until, const StopPoints& points,
                      bool pass_first) override;
  std::optional<Tid> ThreadAt(Position position) const override;
  std::optional<Position> LastBefore(Tid thread,
                                     Position position) const override;
  std::optional<Position> FirstFrom(Tid thread,
                                    Position position) const override;
  std::vector<TargetThread> Threads() const override;
  std::optional<machine::Registers> ReadRegisters(Tid thread) const override;
  size_t ReadMemory(TraceeAddr addr, std::span<std::byte> bytes) const override;
  std::string ExecPath() const override { return exec_path_; }
  std::vector<std::byte> Auxv() const override { return auxv_; }
  x86::FeatureSet cpu_features() const override { return features_; }
  Failure failure() const override { return failure_; }
  std::optional<machine::Fault> FailingFault() const override {
    return position() == end() ? fault_ : std::nullopt;
  }
  void set_output(OutputSink* sink) override { output_ = sink; }

 private:
  struct Now final : State {
    Position position = 0;
    std::map<Tid, uint64_t> retired;
    machine::Memory memory;
  };
  const ToyThread& ThreadOf(Tid tid) const;
  const ToyInsn& NextInsn(Tid tid) const;
  void Execute(Tid tid, WatchMonitor& monitor);

  std::vector<ToyThread> threads_;
  ScheduleIndex index_;
  Failure failure_;
  Now now_;
  std::string exec_path_ = "/gone/toy";
  std::vector<std::byte> auxv_;
  OutputSink* output_ = nullptr;
  std::optional<Position> diverges_at_;
  std::function<void(Position)> before_run_;
  uint64_t work_ = 0;
  uint64_t fs_base_ = 0;
  std::optional<machine::Fault> fault_;
  x86::FeatureSet features_ = x86::kX86_64V2;
};

// Thread i of `count` (tid 1000 + i) runs `insns` instructions from
// kToyCode + 0x100 * i on, four bytes each: the second adds 1 to the word
// kToyData + 8 * i, the third adds 1 to the shared word kToyData + 0x100, the
// fourth reads that, all others do nothing.
std::vector<ToyThread> ToyThreads(size_t count, size_t insns);
inline constexpr uint64_t kToyShared = kToyData + 0x100;

// `runs` runs of 1 to `run_max` instructions of random threads.
std::vector<ScheduleStep> RandomSteps(uint64_t seed, size_t threads,
                                      size_t runs, uint64_t run_max);

}  // namespace clew::replayer

#endif  // CLEW_TESTS_REPLAYER_FAKE_TARGET_H_
