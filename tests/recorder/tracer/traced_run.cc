#include "tests/recorder/tracer/traced_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/os/exec_arguments.h"
#include "common/os/fd.h"
#include "common/os/process_state.h"
#include "common/os/ptrace.h"
#include "recorder/tracer/path_reader.h"
#include "recorder/tracer/start.h"

namespace clew::tracer {
namespace {

const std::vector<std::string>& Environment() {
  static const std::vector<std::string> variables = {"PATH=/usr/bin:/bin",
                                                     "LC_ALL=C"};
  return variables;
}

// A file that a program writes to, without a name.
class OutputFile {
 public:
  OutputFile() : file_(memfd_create("output", 0)) {}
  // In the child.
  bool BecomeOutput() const { return dup2(file_.get(), 1) == 1; }
  std::string Text() const {
    std::string text(static_cast<size_t>(lseek(file_.get(), 0, SEEK_END)), 0);
    (void)!pread(file_.get(), text.data(), text.size(), 0);
    return text;
  }

 private:
  Fd file_;
};

// Follows the logs of all threads.
class Followers {
 public:
  Followers(SharedMemory& shared, TracedRun& run)
      : shared_(shared), run_(run), index_(shared) {}

  // Reads what there is; false: nothing, and no thread runs any more.
  bool Read() {
    bool goes_on = false;
    for (uint32_t number = 0; number < shared_.slot_count(); ++number) {
      goes_on = ReadSlot(number) || goes_on;
    }
    return goes_on && run_.contradiction.empty();
  }

 private:
  struct Follower {
    size_t path = 0;  // in the run
    PathReader reader;
  };

  bool ReadSlot(uint32_t number) {
    ThreadSlot& slot = shared_.slot(number);
    const SlotUse use = slot.use.load();
    if (use == SlotUse::kFree || slot.tid == 0) {
      return use == SlotUse::kThread;
    }
    if (followers_.size() <= number) {
      followers_.resize(number + 1);
    }
    std::optional<Follower>& follower = followers_[number];
    const bool is_gone = use == SlotUse::kThread && HasEnded(slot.process);
    ReadBatches(slot, follower);
    if (use == SlotUse::kThread && !is_gone) {
      return true;
    }
    ReadRecords(slot, follower, shared_.Unfinished(slot));
    if (follower) {
      End(slot, *follower, use == SlotUse::kEnded);
    }
    follower.reset();
    SharedMemory::Free(slot);
    return true;
  }

  void ReadBatches(ThreadSlot& slot, std::optional<Follower>& follower) {
    const uint32_t written = slot.batches_written.load();
    for (uint32_t read = slot.batches_read.load(); read != written; ++read) {
      const Batch& batch = slot.batches[read % kBatches];
      ReadRecords(slot, follower,
                  std::span(batch.records).first(batch.record_count));
      SharedMemory::FreeBatches(slot, read + 1);
    }
  }

  void ReadRecords(const ThreadSlot& slot, std::optional<Follower>& follower,
                   std::span<const LogRecord> records) {
    if (!follower && !records.empty()) {
      follower.emplace(Follower{run_.threads.size(), {shared_, index_}});
      run_.threads.push_back({.process = slot.process, .tid = slot.tid});
    }
    for (const LogRecord record : records) {
      ThreadPath& path = run_.threads[follower->path];
      ++path.records;
      Note(follower->reader.Read(record, Counting(path)));
    }
  }

  void End(const ThreadSlot& slot, Follower& follower, bool by_itself) {
    ThreadPath& path = run_.threads[follower.path];
    if (!by_itself) {
      return;
    }
    Note(follower.reader.ReadToCall(slot.state.last_call, Counting(path)));
    path.ended = run_.contradiction.empty();
  }

  static PathReader::Sink Counting(ThreadPath& path) {
    return [&path](const StraightRun& straight) {
      path.code_bytes += straight.code.size();
    };
  }

  void Note(const Status& status) {
    if (!status && run_.contradiction.empty()) {
      run_.contradiction = status.error().message;
    }
  }

  static bool HasEnded(int32_t process) {
    const char state = ProcessState(fmt::format("/proc/{}/stat", process));
    return state == '\0' || state == 'Z' || state == 'X';
  }

  SharedMemory& shared_;
  TracedRun& run_;
  FragmentIndex index_;
  std::vector<std::optional<Follower>> followers_;
};

}  // namespace

TracedRun RunTraced(const std::vector<std::string>& command) {
  TracedRun run;
  const OutputFile output;
  auto shared = SharedMemory::Create();
  TraceeLaunch launch;
  launch.program = command[0];
  launch.arguments = command;
  launch.environment = Environment();
  launch.prepare = [&output] { return output.BecomeOutput(); };
  launch.host_cpu = std::nullopt;
  if (!shared) {
    run.contradiction = shared.error().message;
    return run;
  }
  const auto process = StartTraced(launch, *shared);
  if (!process) {
    run.contradiction = process.error().message;
    return run;
  }
  Followers followers(*shared, run);
  while (run.contradiction.empty() && followers.Read()) {
    std::this_thread::yield();
  }
  if (!run.contradiction.empty()) {
    kill(*process, SIGKILL);
  }
  waitpid(*process, &run.status, 0);
  if (run.contradiction.empty()) {
    run.contradiction = shared->FaultText();
  }
  run.output = output.Text();
  return run;
}

TracedRun RunNatively(const std::vector<std::string>& command) {
  TracedRun run;
  const OutputFile output;
  const std::vector<char*> arguments = ExecArguments(command);
  const std::vector<char*> variables = ExecArguments(Environment());
  const int32_t child = fork();
  if (child == 0) {
    output.BecomeOutput();
    execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  waitpid(child, &run.status, 0);
  run.output = output.Text();
  return run;
}

}  // namespace clew::tracer
