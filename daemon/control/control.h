#ifndef CLEW_DAEMON_CONTROL_CONTROL_H_
#define CLEW_DAEMON_CONTROL_CONTROL_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/os/fd.h"
#include "common/result.h"
#include "daemon/control/protocol.h"
#include "daemon/loop/loop.h"

namespace clew::daemon {

// Who is at the other end, as the kernel says (socket(7), SO_PEERCRED and
// SO_PEERGROUPS).
struct Peer {
  pid_t process = 0;
  uid_t user = 0;
  std::vector<gid_t> groups;
};

struct Answer {
  std::string line;  // with its newline; empty: Send has it later
  Fd descriptor;     // handed over with the line; usually none
  // The connection stays without a time limit until the next request.
  bool hold = false;
};

class ControlHandler {
 public:
  using ConnectionId = uint64_t;
  virtual ~ControlHandler() = default;
  virtual Answer OnRequest(ConnectionId connection, const Peer& peer,
                           const Request& request) = 0;
  // Called when a connection is closed; no more requests come from it.
  virtual void OnClosed(ConnectionId connection) = 0;
};

struct ControlOptions {
  std::string path;
  std::string group = "clew";    // may connect, too; need not exist
  uint64_t patience_ms = 5'000;  // with a client
};

// The control socket. A request that cannot be read is answered with an error,
// then the connection is closed. Removes the socket when destroyed.
class ControlServer {
 public:
  static constexpr size_t kClientsMax = 16;

  // Listens at the socket, whose folder is made if needed. Replaces a socket at
  // which nobody listens. `loop` and `handler` must outlive the server. Fails
  // with kInvalidArgument if somebody listens there or the path is too long,
  // and with kSystem if a system call fails.
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> Open(
      Loop& loop, ControlHandler& handler, ControlOptions options);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  // Sends the answer to a request that OnRequest left without one. Does nothing
  // if the connection is closed.
  void Send(ControlHandler::ConnectionId connection, Answer answer);

  uint64_t refused() const { return refused_; }  // by credentials or number

 private:
  struct Client {
    Fd fd;
    Peer peer;
    std::string input;
    std::string output;
    Fd descriptor;  // goes with the first byte of output
    bool closing = false;
    Loop::TimerId timer = 0;
  };
  ControlServer(Loop& loop, ControlHandler& handler, ControlOptions options)
      : loop_(loop), handler_(handler), options_(std::move(options)) {}
  Status Listen();
  void Accept();
  bool MayTalk(const Peer& peer) const;
  void Ready(uint64_t id, uint32_t events);
  bool Read(Client& client);
  void TakeLines(uint64_t id, Client& client);
  void Reply(uint64_t id, Client& client, Answer answer);
  bool Write(Client& client);
  void Patience(uint64_t id, Client& client, bool hold);
  void Close(uint64_t id);

  Loop& loop_;
  ControlHandler& handler_;
  ControlOptions options_;
  Fd listener_;
  std::optional<gid_t> group_;
  uint64_t last_id_ = 0;
  uint64_t refused_ = 0;
  std::map<uint64_t, Client> clients_;
};

// Sends one request and waits at most `wait_ms` for the reply. Returns its line
// if it says ok, and fails with its error if not. Fails with kSystem if clewd
// is not there; the message says what to do.
[[nodiscard]] Result<std::string> Ask(const std::string& socket,
                                      const Request& request, uint64_t wait_ms);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CONTROL_CONTROL_H_
