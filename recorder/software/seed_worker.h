#ifndef CLEW_RECORDER_SOFTWARE_SEED_WORKER_H_
#define CLEW_RECORDER_SOFTWARE_SEED_WORKER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/os/fd.h"
#include "common/result.h"
#include "recorder/software/answer.h"
#include "recorder/software/record.h"

namespace clew::recorder {

// A process that records runs, one at a time, each with the seed that it is
// given. Record takes process-wide state (actions of signals, what is waited
// for), so that runs at once need a process each.
//
// It leads a session, which has no terminal: what its programs start is in it,
// unless they leave it by setsid(2). The session ends with the worker. Standard
// input is /dev/null; the outputs are this process's. Where this process dies,
// however it does, the worker and the program that it records die too.
//
// Not thread-safe. Moves.
class SeedWorker {
 public:
  // Runs are recorded as `options` say, with keep_only_if_failed, below the
  // folder options.output. `index` tells workers apart: as far as they suffice,
  // each has a CPU of its own, as a run has that does not use several.
  // `in_child` is called first there. kSystem: no process can be made.
  // REQUIRES: this process has one thread.
  [[nodiscard]] static Result<SeedWorker> Start(
      const RecordOptions& options, size_t index,
      const std::function<void()>& in_child);
  SeedWorker(SeedWorker&& other) noexcept;
  SeedWorker& operator=(SeedWorker&&) = delete;
  SeedWorker(const SeedWorker&) = delete;
  SeedWorker& operator=(const SeedWorker&) = delete;
  ~SeedWorker() { End(); }

  // REQUIRES: the last run was answered.
  void Begin(uint64_t seed);
  // Readable once Receive has something to take.
  int socket() const { return socket_.get(); }
  // What Record returned; nullopt: not all of it is here yet. Does not wait.
  // kSystem: the worker died; the message says with which seed and how.
  [[nodiscard]] std::optional<Result<RecordOutcome>> Receive();
  // Kills all of the session, and returns once they are gone; the run that was
  // begun may leave files below the folder. Again: does nothing.
  void End();

 private:
  SeedWorker(pid_t process, Fd socket)
      : process_(process), socket_(std::move(socket)) {}
  Error HowItDied() const;

  pid_t process_;  // 0: it was ended
  Fd socket_;
  uint64_t seed_ = 0;
  AnswerReader answer_;
};

// Where a worker makes the bundle of that seed's run: below its folder.
std::string BundleOfSeed(uint64_t seed);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_SEED_WORKER_H_
