#include "tests/recorder/tracer/traced_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/os/exec_arguments.h"
#include "common/os/fd.h"
#include "common/os/process_state.h"
#include "common/os/scratch_folder.h"
#include "recorder/tracer/inject.h"

namespace clew::tracer {
namespace {

const std::vector<std::string>& Environment() {
  static const std::vector<std::string> variables = {"PATH=/usr/bin:/bin",
                                                     "LC_ALL=C"};
  return variables;
}

// An empty folder that a program runs in, and a file that it writes to.
class Room {
 public:
  Room()
      : folder_(ScratchFolder::Make("traced")),
        file_(memfd_create("output", 0)) {}
  // In the child.
  bool Enter() const {
    return folder_ && chdir(folder_->path().c_str()) == 0 &&
           dup2(file_.get(), 1) == 1;
  }
  std::string Text() const {
    std::string text(static_cast<size_t>(lseek(file_.get(), 0, SEEK_END)), 0);
    (void)!pread(file_.get(), text.data(), text.size(), 0);
    return text;
  }

 private:
  Result<ScratchFolder> folder_;
  Fd file_;
};

// Follows the logs of all threads.
class Followers {
 public:
  Followers(SharedMemory& shared, TracedRun& run, const SeeCode& see_code,
            int32_t process)
      : shared_(shared),
        run_(run),
        see_code_(see_code),
        process_(process),
        index_(shared) {}

  // Reads what there is; false: nothing, and no thread runs any more.
  bool Read() {
    bool goes_on = false;
    for (uint32_t number = 0; number < shared_.slot_count(); ++number) {
      goes_on = ReadSlot(number) || goes_on;
    }
    return goes_on && run_.contradiction.empty();
  }

 private:
  static constexpr std::chrono::minutes kBeginLimit{1};
  struct Follower {
    size_t path = 0;  // in the run
    PathReader reader;
  };

  bool ReadSlot(uint32_t number) {
    ThreadSlot& slot = shared_.slot(number);
    const SlotUse use = slot.use.load();
    if (use == SlotUse::kFree || slot.tid == 0) {
      return use == SlotUse::kThread && MayBegin();
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
    if (follower || !shared_.Unfinished(slot).empty()) {
      ReadUnfinished(slot, FollowerOf(slot, follower));
      End(slot, *follower, use == SlotUse::kEnded);
    }
    follower.reset();
    SharedMemory::Free(slot);
    return true;
  }

  // A process that was killed before it began never does.
  bool MayBegin() {
    if (!HasEnded(process_)) {
      return true;
    }
    const auto now = std::chrono::steady_clock::now();
    ended_ = ended_.value_or(now);
    if (now - *ended_ < kBeginLimit) {
      return true;
    }
    Note(InvalidArgument("a process that was made has not begun"));
    return false;
  }

  void ReadBatches(ThreadSlot& slot, std::optional<Follower>& follower) {
    Note(SharedMemory::TakeBatches(slot, [&](const Batch& batch) {
      Follower& its = FollowerOf(slot, follower);
      ThreadPath& path = run_.threads[its.path];
      path.records += batch.record_count;
      path.handlers += batch.end == BatchEnd::kInterrupted ? 1 : 0;
      return its.reader.Read(batch, Seeing(path));
    }));
  }

  Follower& FollowerOf(const ThreadSlot& slot,
                       std::optional<Follower>& follower) {
    if (!follower) {
      follower.emplace(
          Follower{run_.threads.size(), {shared_, index_, slot.space}});
      run_.threads.push_back({.process = slot.process, .tid = slot.tid});
    }
    return *follower;
  }

  void ReadUnfinished(const ThreadSlot& slot, Follower& follower) {
    ThreadPath& path = run_.threads[follower.path];
    const std::span<const LogRecord> records = shared_.Unfinished(slot);
    path.records += records.size();
    Note(follower.reader.Read(
        records, static_cast<uint32_t>(slot.state.version), Seeing(path)));
  }

  void End(const ThreadSlot& slot, Follower& follower, bool by_itself) {
    ThreadPath& path = run_.threads[follower.path];
    if (!by_itself) {
      return;
    }
    if (follower.reader.place().has_begun) {
      Note(follower.reader.ReadToCall(slot.state.last_call, Seeing(path)));
    }
    path.ended = run_.contradiction.empty();
  }

  PathReader::Sink Seeing(ThreadPath& path) {
    return [this, &path](const recorder::CodeStretch& straight) {
      path.code_bytes += straight.code.size();
      if (see_code_) {
        see_code_(path, straight);
      }
      return Status();
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
  const SeeCode& see_code_;
  int32_t process_;  // the first one
  // When it was found to have ended.
  std::optional<std::chrono::steady_clock::time_point> ended_ = {};
  FragmentIndex index_;
  std::vector<std::optional<Follower>> followers_;
};

Result<TracedProcess> Start(const TraceeLaunch& launch, SharedMemory& shared) {
  auto process = TracedProcess::Start(launch);
  if (process) {
    CLEW_RETURN_IF_ERROR(Inject(*process, shared));
  }
  return process;
}

}  // namespace

TracedRun RunTraced(const std::vector<std::string>& command, const Drive& drive,
                    const SeeCode& see_code, uint32_t fragments_kept) {
  TracedRun run;
  const Room room;
  auto shared = SharedMemory::Create();
  TraceeLaunch launch;
  launch.program = command[0];
  launch.arguments = command;
  launch.environment = Environment();
  launch.prepare = [&room] { return room.Enter(); };
  launch.host_cpu = std::nullopt;
  if (drive) {
    launch.host_cpu = 0;  // steps are quick
  }
  if (!shared) {
    run.contradiction = shared.error().message;
    return run;
  }
  shared->header().fragments_kept = fragments_kept;
  auto process = Start(launch, *shared);
  if (!process) {
    run.contradiction = process.error().message;
    return run;
  }
  // Beside the drive: a program that found its log full would wait for ever.
  std::jthread reader([&, number = process->process()] {
    Followers followers(*shared, run, see_code, number);
    while (followers.Read()) {
      std::this_thread::yield();
    }
    if (!run.contradiction.empty()) {
      kill(number, SIGKILL);
    }
  });
  const int signal = drive ? drive(*process, *shared) : 0;
  const Status let_go = process->Detach(process->first_thread(), signal);
  reader.join();
  if (!let_go && run.contradiction.empty()) {
    run.contradiction = let_go.error().message;
  }
  waitpid(process->process(), &run.status, 0);
  if (run.contradiction.empty()) {
    run.contradiction = shared->FaultText();
  }
  run.forgotten = shared->header().forgotten.load();
  run.output = room.Text();
  return run;
}

TracedRun RunNatively(const std::vector<std::string>& command) {
  TracedRun run;
  const Room room;
  const std::vector<char*> arguments = ExecArguments(command);
  const std::vector<char*> variables = ExecArguments(Environment());
  const int32_t child = fork();
  if (child == 0) {
    room.Enter();
    execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  waitpid(child, &run.status, 0);
  run.output = room.Text();
  return run;
}

TracedRun ExpectAsNatively(const std::vector<std::string>& command,
                           const SeeCode& see_code) {
  const TracedRun native = RunNatively(command);
  TracedRun traced = RunTraced(command, nullptr, see_code);
  const std::string said = fmt::format("{}", fmt::join(command, " "));
  EXPECT_EQ(traced.contradiction, "") << said;
  EXPECT_EQ(traced.status, native.status) << said;
  EXPECT_EQ(traced.output, native.output) << said;
  return traced;
}

std::string TestProgram(const std::string& name) {
  return fmt::format("{}/tests/recorder/tracer/programs/clew_tracer_{}",
                     std::getenv("CLEW_BINARY_DIR"), name);
}

std::string StaticProgram(const std::string& name) {
  return fmt::format("{}/tests/recorder/programs_static/clew_static_{}",
                     std::getenv("CLEW_BINARY_DIR"), name);
}

}  // namespace clew::tracer
