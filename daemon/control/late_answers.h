#ifndef CLEW_DAEMON_CONTROL_LATE_ANSWERS_H_
#define CLEW_DAEMON_CONTROL_LATE_ANSWERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "common/os/fd.h"
#include "daemon/control/control.h"
#include "daemon/loop/loop.h"

namespace clew::daemon {

// Answers that wait for something else, so that whoever asked waits, too: the
// kernel's handler lets a process go once it has its answer. Not thread-safe.
class LateAnswers {
 public:
  using ConnectionId = ControlHandler::ConnectionId;
  // A quarter of what the handler waits: a core dump is worth more than the
  // images, and its process mostly lives until all of it is read.
  static constexpr uint64_t kWaitMs = 500;

  // `loop` must outlive it.
  LateAnswers(Loop& loop, std::function<void(ConnectionId, Answer)> send)
      : loop_(loop), send_(std::move(send)) {}
  ~LateAnswers();
  LateAnswers(const LateAnswers&) = delete;
  LateAnswers& operator=(const LateAnswers&) = delete;

  // `answer` is sent when the other end of `until` is closed, or after kWaitMs,
  // from the loop. REQUIRES: `until` is open.
  void Add(ConnectionId connection, Fd until, Answer answer);
  // The connection is gone.
  void Forget(ConnectionId connection);

 private:
  struct Waiting {
    Fd until;
    Answer answer;
    Loop::TimerId timer = 0;
  };
  void Send(ConnectionId connection);

  Loop& loop_;
  std::function<void(ConnectionId, Answer)> send_;
  std::map<ConnectionId, Waiting> waiting_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CONTROL_LATE_ANSWERS_H_
