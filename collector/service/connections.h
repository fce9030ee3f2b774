#ifndef CLEW_COLLECTOR_SERVICE_CONNECTIONS_H_
#define CLEW_COLLECTOR_SERVICE_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/os/fd.h"
#include "common/result.h"

namespace clew::collector {

struct ConnectionLimits {
  size_t total_max = 4096;
  size_t address_max = 256;  // of one address; of IPv6, of one /64
};

// Accepts connections and hands them on, so many and no more: of one address,
// and in all. Where there are too many in all, the oldest makes way of those
// that have not said who they are; so strangers push out strangers. What is
// handed on is closed by whoever got it; a number that has another file since
// is known by its inode. Thread-safe.
class Connections {
 public:
  // Takes the descriptor.
  using Take = std::function<void(Fd fd)>;

  // `listening` does not block. Accepts nothing before Begin. kSystem.
  [[nodiscard]] static Result<std::unique_ptr<Connections>> Make(
      Fd listening, const ConnectionLimits& limits, Take take);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  ~Connections();  // stops
  // Accepts from here on: whoever is handed a connection may call this. Once.
  void Begin();
  // Accepts no more; what was handed on stays. Twice is once.
  void Stop();

  // The connection of `peer`, as gRPC names it ("ipv4:127.0.0.1:80"), is of
  // somebody who is known.
  void Identified(const std::string& peer);

 private:
  struct Connection {
    int fd = -1;
    ino_t inode = 0;
    std::string network;  // what address_max is for
    uint64_t number = 0;  // ascending
    bool identified = false;
  };
  using Entries = std::map<std::string, Connection>;  // by peer

  Connections(Fd listening, Fd stop, const ConnectionLimits& limits, Take take);
  void Run();
  void AcceptAll();
  // False: it is refused.
  bool Enter(const Fd& fd);
  void ForgetClosed();
  size_t CountOf(const std::string& network) const;
  // Of that network, "": of all. False: all are identified.
  bool EndOldestStranger(const std::string& network);
  Entries::iterator Forget(Entries::iterator at);

  const Fd listening_;
  const Fd stop_;
  const ConnectionLimits limits_;
  const Take take_;
  std::mutex mutex_;
  Entries connections_;
  std::map<std::string, size_t> by_network_;
  uint64_t next_number_ = 0;
  std::thread thread_;  // last: uses all above
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_CONNECTIONS_H_
