#include "daemon/control/late_answers.h"

namespace clew::daemon {

LateAnswers::~LateAnswers() {
  while (!waiting_.empty()) {
    Forget(waiting_.begin()->first);
  }
}

void LateAnswers::Add(ConnectionId connection, Fd until, Answer answer) {
  Forget(connection);
  Waiting& waiting = waiting_[connection];
  waiting.until = std::move(until);
  waiting.answer = std::move(answer);
  waiting.timer =
      loop_.After(kWaitMs, [this, connection] { Send(connection); });
  // Without events: epoll reports a hang-up in any case. If it cannot, the
  // timer does.
  (void)loop_.Watch(waiting.until.get(), 0,
                    [this, connection](uint32_t) { Send(connection); });
}

void LateAnswers::Send(ConnectionId connection) {
  Answer answer = std::move(waiting_.at(connection).answer);
  Forget(connection);
  send_(connection, std::move(answer));
}

void LateAnswers::Forget(ConnectionId connection) {
  const auto at = waiting_.find(connection);
  if (at == waiting_.end()) {
    return;
  }
  loop_.Cancel(at->second.timer);
  loop_.Forget(at->second.until.get());
  waiting_.erase(at);
}

}  // namespace clew::daemon
