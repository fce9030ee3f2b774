#ifndef CLEW_RECORDER_STEPPER_STEPPED_PT_H_
#define CLEW_RECORDER_STEPPER_STEPPED_PT_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "bundle/perf_data/perf_data_writer.h"
#include "common/os/file.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "recorder/stepper/stepper.h"

namespace clew::recorder {

// Turns a stepped run into PT of virtual cores, and into a perf.data file. The
// clock counts instructions; thread n runs on core n modulo the cores. Time
// also passes on a switch, so that no two records on a core have the same time.
class SteppedPt final : public StepObserver {
 public:
  // `files` must outlive it. Every core's PT is `encoder`'s; what `config` says
  // of it is set here. kInvalidArgument: a value is out of its range.
  [[nodiscard]] static Result<std::unique_ptr<SteppedPt>> Create(
      FileSystem& files, const std::string& perf_data_path,
      const EncoderConfig& encoder, bundle::PerfDataConfig config = {});

  void OnThread(Tid thread, Tid parent) override;
  void OnSwitchIn(Tid thread) override;
  void OnInsn(const SteppedInsn& insn) override;
  void OnFarTransfer(const SteppedInsn& insn) override;
  void OnInterrupt(TraceeAddr ip) override;
  void OnKernelReturn(TraceeAddr ip) override;
  void OnSwitchOut(bool preempted) override;
  void OnExit(Tid thread) override;
  void OnMaps(const std::string& maps) override;

  // Once the run is over: writes the file. The first error of any call before
  // is returned here.
  [[nodiscard]] Status Finish();

  // The PT of a core, complete after Finish.
  const std::vector<uint8_t>& pt(CoreId core) const {
    return cores_[core.as_int()]->sink.bytes();
  }
  // What each core executed, in order.
  const std::vector<uint64_t>& ips(CoreId core) const {
    return cores_[core.as_int()]->ips;
  }
  // What each thread executed, in order.
  const std::unordered_map<Tid, std::vector<uint64_t>>& thread_ips() const {
    return thread_ips_;
  }

 private:
  struct Core {
    explicit Core(const EncoderConfig& config) : encoder(config, sink) {}
    VectorSink sink;
    CoreEncoder encoder;
    std::vector<uint64_t> ips;
  };
  SteppedPt(FileSystem& files, std::string path, const EncoderConfig& encoder,
            uint32_t core_count, bundle::PerfDataWriter writer);

  bundle::RecordOrigin Origin(Tid thread) const;
  Core& current() { return *cores_[core_.as_int()]; }
  void Retire(TraceeAddr ip);
  void AddMapping(const std::string& line);
  void Keep(Status status);

  FileSystem& files_;
  std::string path_;
  bundle::PerfDataWriter writer_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::unordered_map<Tid, CoreId> core_of_;
  std::unordered_map<Tid, Tid> parent_of_;
  std::unordered_map<Tid, std::vector<uint64_t>> thread_ips_;
  std::set<std::string> mapped_;  // lines of the memory map
  Status status_;
  int32_t process_ = 0;
  uint64_t now_ = 1000;
  Tid thread_;                // running
  CoreId core_;               // it runs here
  bool switched_in_ = false;  // and has not entered user mode since
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_STEPPER_STEPPED_PT_H_
