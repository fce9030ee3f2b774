#include "collector/web/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "collector/socket.h"
#include "collector/web/workers.h"

namespace clew::collector::web {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// How long a client may take to read the last answer and to hang up.
constexpr Milliseconds kDrainTime{1000};
// How long nothing is accepted after the system had no descriptor to give.
constexpr Milliseconds kAcceptPause{100};

enum class State : uint8_t { kReading, kAnswering, kSending, kDraining };

struct Connection {
  Fd fd;
  State state = State::kReading;
  Clock::time_point since;     // in this state, or the head's first byte
  Clock::time_point deadline;  // of this state; none while kAnswering
  std::string in;              // not yet a whole head; at most head_bytes_max
  std::string out;             // not yet sent: from `sent` on
  size_t sent = 0;
  size_t requests = 0;
  bool keep_alive = false;  // after this answer
};

// An answer on its way from a worker to the loop.
struct Done {
  uint64_t id;
  bool keep_alive;
  std::string text;
};

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

class Listener::Loop {
 public:
  Loop(Fd listening, Fd wake, uint16_t port, const Options& options,
       Answer answer)
      : listening_(std::move(listening)),
        wake_(std::move(wake)),
        port_(port),
        limits_(options.limits),
        answer_(std::move(answer)),
        workers_(std::make_unique<Workers>(options.threads)),
        thread_([this] { Run(); }) {}

  ~Loop() { Stop(); }

  uint16_t port() const { return port_; }

  void Stop() {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
    Wake();
    if (thread_.joinable()) {
      thread_.join();
    }
    workers_.reset();
  }

 private:
  using Connections = std::map<uint64_t, Connection>;
  using Iterator = Connections::iterator;

  void Wake() {
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);  // full: it wakes anyway
  }

  void Run() {
    while (!stopping_) {
      Wait();
      TakeAnswers();
      Serve();
      CloseLate();
    }
    connections_.clear();
    listening_ = Fd();
  }

  // Fills polled_: the wake-up, the listener, then connections by polled_ids_.
  void Wait() {
    const auto now = Clock::now();
    polled_ = {{wake_.get(), POLLIN, 0}, {listening_.get(), 0, 0}};
    polled_ids_.clear();
    Clock::time_point first = Clock::time_point::max();
    for (const auto& [id, connection] : connections_) {
      if (connection.state == State::kAnswering) {
        continue;
      }
      const short events =
          connection.state == State::kSending ? POLLOUT : POLLIN;
      polled_.push_back({connection.fd.get(), events, 0});
      polled_ids_.push_back(id);
      first = std::min(first, connection.deadline);
    }
    if (now < accept_again_) {
      first = std::min(first, accept_again_);
    } else if (!IsFull() ||
               !polled_ids_.empty()) {  // there is, or can be, room
      polled_[1].events = POLLIN;
    }
    int timeout_ms = -1;
    if (first != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<Milliseconds>(first - now);
      timeout_ms =
          static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
    }
    if (poll(polled_.data(), polled_.size(), timeout_ms) < 0) {
      // EINTR, or no memory: nothing is ready.
      std::ranges::for_each(polled_, [](pollfd& p) { p.revents = 0; });
    }
  }

  void TakeAnswers() {
    if (polled_[0].revents != 0) {
      uint64_t count = 0;
      (void)!read(wake_.get(), &count, sizeof count);
    }
    std::vector<Done> done;
    {
      const std::lock_guard lock(done_mutex_);
      done.swap(done_);
    }
    for (Done& one : done) {
      const auto found = connections_.find(one.id);
      if (found != connections_.end()) {
        StartSending(found, std::move(one.text), one.keep_alive);
      }
    }
  }

  void Serve() {
    for (size_t i = 0; i < polled_ids_.size(); ++i) {
      if (polled_[i + 2].revents == 0) {
        continue;
      }
      const auto found = connections_.find(polled_ids_[i]);
      if (found == connections_.end()) {
        continue;
      }
      switch (found->second.state) {
        case State::kReading:
          Read(found);
          break;
        case State::kSending:
          Send(found);
          break;
        case State::kDraining:
          Drain(found);
          break;
        case State::kAnswering:
          break;
      }
    }
    if (polled_[1].revents != 0) {
      Accept();
    }
  }

  void CloseLate() {
    const auto now = Clock::now();
    std::erase_if(connections_, [&](const auto& entry) {
      const Connection& connection = entry.second;
      const bool late =
          connection.state != State::kAnswering && connection.deadline <= now;
      if (late) {
        answers_bytes_ -= connection.out.size();
      }
      return late;
    });
  }

  void Accept() {
    // Where there is no room, one at a time, so that nothing is closed for a
    // connection that does not come.
    for (bool first = true; first || !IsFull(); first = false) {
      if (IsFull() && !CloseOldest()) {
        return;
      }
      Fd fd(accept4(listening_.get(), nullptr, nullptr,
                    SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.get() < 0) {
        if (!WouldBlock() && errno != EINTR && errno != ECONNABORTED) {
          accept_again_ = Clock::now() + kAcceptPause;
        }
        return;
      }
      const auto now = Clock::now();
      connections_.emplace(next_id_++,
                           Connection{.fd = std::move(fd),
                                      .since = now,
                                      .deadline = now + limits_.head_time_max,
                                      .in = {},
                                      .out = {}});
    }
  }

  bool IsFull() const { return connections_.size() >= limits_.connections_max; }

  // Makes room: closes the connection that has waited longest for its client;
  // one that is being sent an answer only where there is no other. False: all
  // are being answered.
  bool CloseOldest() {
    auto oldest = connections_.end();
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      if (it->second.state != State::kAnswering &&
          (oldest == connections_.end() ||
           Rank(it->second) < Rank(oldest->second))) {
        oldest = it;
      }
    }
    if (oldest == connections_.end()) {
      return false;
    }
    Close(oldest);
    return true;
  }

  static std::pair<bool, Clock::time_point> Rank(const Connection& connection) {
    return {connection.state == State::kSending, connection.since};
  }

  void Close(Iterator it) {
    answers_bytes_ -= it->second.out.size();
    connections_.erase(it);
  }

  void Read(Iterator it) {
    Connection& connection = it->second;
    std::array<char, 4096> buffer;
    const size_t room =
        std::min(buffer.size(), limits_.head_bytes_max - connection.in.size());
    const ssize_t count = recv(connection.fd.get(), buffer.data(), room, 0);
    if (count <= 0) {
      if (count == 0 || !(WouldBlock() || errno == EINTR)) {
        Close(it);
      }
      return;
    }
    if (connection.in.empty()) {
      StartHead(connection);
    }
    connection.in.append(buffer.data(), static_cast<size_t>(count));
    TakeHead(it);
  }

  void StartHead(Connection& connection) const {
    connection.since = Clock::now();
    connection.deadline = connection.since + limits_.head_time_max;
  }

  // Hands on a head that is whole, or refuses one that is too long.
  void TakeHead(Iterator it) {
    Connection& connection = it->second;
    const size_t end = connection.in.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (connection.in.size() >= limits_.head_bytes_max) {
        PutToWork(it, {.request = std::nullopt,
                       .refusal = {431, "the request's headers are too long"}});
      }
      return;
    }
    const auto head = std::string_view(connection.in).substr(0, end + 4);
    ParsedHead parsed = ParseHead(head);
    connection.in.erase(0, end + 4);
    PutToWork(it, std::move(parsed));
  }

  void PutToWork(Iterator it, ParsedHead head) {
    Connection& connection = it->second;
    connection.state = State::kAnswering;
    ++connection.requests;
    const bool last =
        connection.requests >= limits_.requests_per_connection_max;
    workers_->Put([this, id = it->first, last, head = std::move(head)] {
      const bool head_only = head.request && head.request->head_only;
      const bool keep_alive = !last && head.request && head.request->keep_alive;
      std::string text = FormatResponse(answer_(head), head_only, keep_alive,
                                        std::time(nullptr));
      {
        const std::lock_guard lock(done_mutex_);
        done_.push_back({id, keep_alive, std::move(text)});
      }
      Wake();
    });
  }

  void StartSending(Iterator it, std::string text, bool keep_alive) {
    Connection& connection = it->second;
    connection.state = State::kSending;
    connection.since = Clock::now();
    connection.deadline = connection.since + limits_.answer_time_max;
    connection.out = std::move(text);
    connection.sent = 0;
    connection.keep_alive = keep_alive;
    answers_bytes_ += connection.out.size();
    while (answers_bytes_ > limits_.answers_bytes_max && CloseSender(it)) {
    }
    Send(it);
  }

  // The connection but `keep` that has been sending longest.
  bool CloseSender(Iterator keep) {
    auto oldest = connections_.end();
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      if (it != keep && it->second.state == State::kSending &&
          (oldest == connections_.end() ||
           it->second.since < oldest->second.since)) {
        oldest = it;
      }
    }
    if (oldest == connections_.end()) {
      return false;
    }
    Close(oldest);
    return true;
  }

  void Send(Iterator it) {
    Connection& connection = it->second;
    while (connection.sent < connection.out.size()) {
      const ssize_t count =
          send(connection.fd.get(), connection.out.data() + connection.sent,
               connection.out.size() - connection.sent, MSG_NOSIGNAL);
      if (count < 0) {
        if (!WouldBlock() && errno != EINTR) {
          Close(it);
        }
        return;
      }
      connection.sent += static_cast<size_t>(count);
    }
    answers_bytes_ -= connection.out.size();
    connection.out = {};
    if (connection.keep_alive && !IsFull()) {
      StartReading(it);
    } else {
      StartDraining(connection);
    }
  }

  void StartReading(Iterator it) {
    Connection& connection = it->second;
    connection.state = State::kReading;
    connection.since = Clock::now();
    connection.deadline = connection.since + limits_.idle_time_max;
    if (!connection.in.empty()) {  // the next request came with the last
      StartHead(connection);
      TakeHead(it);
    }
  }

  // Closing at once would cut off what the client has not read yet, if it has
  // sent something that was not read here.
  static void StartDraining(Connection& connection) {
    connection.state = State::kDraining;
    connection.since = Clock::now();
    connection.deadline = connection.since + kDrainTime;
    (void)shutdown(connection.fd.get(), SHUT_WR);
  }

  void Drain(Iterator it) {
    std::array<char, 4096> buffer;
    const ssize_t count =
        recv(it->second.fd.get(), buffer.data(), buffer.size(), 0);
    if (count == 0 || (count < 0 && !WouldBlock() && errno != EINTR)) {
      Close(it);
    }
  }

  Fd listening_;
  Fd wake_;
  const uint16_t port_;
  const WebLimits limits_;
  const Answer answer_;
  std::atomic<bool> stopping_ = false;
  std::mutex stop_mutex_;

  std::mutex done_mutex_;
  std::vector<Done> done_;

  // Of the loop's thread alone.
  Connections connections_;
  uint64_t next_id_ = 1;
  size_t answers_bytes_ = 0;  // of all `out`
  Clock::time_point accept_again_{};
  std::vector<pollfd> polled_;
  std::vector<uint64_t> polled_ids_;

  std::unique_ptr<Workers> workers_;  // after what they use
  std::thread thread_;
};

Result<std::unique_ptr<Listener>> Listener::Start(const Options& options,
                                                  Answer answer) {
  if (options.threads == 0) {
    return InvalidArgument("the web server has no threads, wanted at least 1");
  }
  CLEW_ASSIGN_OR_RETURN(listening, ListenOn({options.address, options.port}));
  CLEW_ASSIGN_OR_RETURN(port, PortOf(listening));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.get() < 0) {
    return SystemError(errno, "cannot make an eventfd for the web server");
  }
  return std::unique_ptr<Listener>(
      new Listener(std::make_unique<Loop>(std::move(listening), std::move(wake),
                                          port, options, std::move(answer))));
}

Listener::Listener(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Listener::~Listener() = default;
uint16_t Listener::port() const { return loop_->port(); }
void Listener::Stop() { loop_->Stop(); }

}  // namespace clew::collector::web
