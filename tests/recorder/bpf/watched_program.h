#ifndef CLEW_TESTS_RECORDER_BPF_WATCHED_PROGRAM_H_
#define CLEW_TESTS_RECORDER_BPF_WATCHED_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "recorder/bpf/input_recording.h"
#include "recorder/bpf/input_source.h"

namespace clew::recorder::bpf {

// Programs that the tests watch, and what was seen of them.

struct SeenWrite {
  uint64_t addr = 0;
  std::vector<std::byte> bytes;
};
struct SeenCall {
  uint64_t number = 0;
  std::array<uint64_t, 6> args = {};
  std::optional<int64_t> result;
  std::vector<SeenWrite> writes;
  std::string path;    // InputCall::file
  uint64_t inode = 0;  // 0: none
  std::optional<uint64_t> output_digest;
  uint64_t output_bytes = 0;
  Causes unknown;
  uint64_t lost_before = 0;  // units
};

struct SeenSignal {
  InputSignal signal;  // without its frame
  std::vector<SeenWrite> frame;
};

// Keeps everything, by thread.
class KeepingSink final : public InputSink {
 public:
  struct Thread {
    std::vector<SeenCall> calls;
    std::vector<SeenSignal> signals;
    uint64_t lost = 0;       // in all
    uint64_t lost_last = 0;  // behind the last call
    bool ended = false;
    uint64_t units() const { return calls.size() + signals.size() + lost; }
  };
  Status OnCall(const InputCall& call) override;
  Status OnSignal(const InputSignal& signal) override;
  Status OnLoss(const InputLoss& loss) override;
  Status OnThreadEnd(const ThreadName& who) override;

  std::map<int32_t, Thread> threads;
  Causes causes;  // of all losses

 private:
  static std::vector<SeenWrite> Kept(std::span<const MemoryPiece> pieces);
};

// A child that waits to execute a program. Killed and reaped when destroyed.
class WaitingProgram {
 public:
  explicit WaitingProgram(std::vector<std::string> command);
  WaitingProgram(const WaitingProgram&) = delete;
  WaitingProgram& operator=(const WaitingProgram&) = delete;
  ~WaitingProgram();

  int32_t process() const { return process_; }
  void Go();
  // True once it has ended; its wait status is then in status().
  bool Ended();
  int status() const { return status_; }

 private:
  int32_t process_ = 0;
  int start_fd_ = -1;
  int status_ = -1;
  bool ended_ = false;
};

struct Watched {
  KernelInputCounts counts;
  int status = -1;
};

// Runs `command` to its end, watched with `options`; `drain` is called until
// then (default: wait 10 ms, drain).
[[nodiscard]] Result<Watched> Watch(const std::vector<std::string>& command,
                                    InputOptions options, InputSink& sink);

// Lets `program` go, whose inputs are recorded from its execve on, to `path`.
[[nodiscard]] Result<InputRecording> RecordProgram(WaitingProgram& program,
                                                   const std::string& path,
                                                   InputOptions options);

// A new folder below the temporary one; removed when destroyed.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Built beside the tests.
std::string TraceeProgram(const std::string& name);

// Why nothing can be watched here; empty: it can.
const std::string& WhyNot();

}  // namespace clew::recorder::bpf

// At the beginning of a test that needs the kernel.
#define CLEW_NEEDS_BPF()                             \
  do {                                               \
    if (!clew::recorder::bpf::WhyNot().empty()) {    \
      GTEST_SKIP() << clew::recorder::bpf::WhyNot(); \
    }                                                \
  } while (false)

#endif  // CLEW_TESTS_RECORDER_BPF_WATCHED_PROGRAM_H_
