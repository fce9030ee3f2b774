#ifndef CLEW_TESTS_TRANSFER_CUTTING_PROXY_H_
#define CLEW_TESTS_TRANSFER_CUTTING_PROXY_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <random>
#include <thread>

namespace clew::transfer {

// Passes TCP connections on to a port of this host, and cuts each after a
// number of bytes that its generator chooses, with a reset: what was under way
// in either direction is lost.
class CuttingProxy {
 public:
  // Connections carry 1 to 2 * `mean_bytes` bytes; 0: they are never cut.
  CuttingProxy(uint16_t to_port, uint64_t mean_bytes, uint64_t seed);
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;
  ~CuttingProxy();

  uint16_t port() const { return port_; }
  uint64_t connections() const { return connections_; }
  uint64_t cuts() const { return cuts_; }

 private:
  void Accept();
  void Pass(int client, uint64_t bytes);

  const uint16_t to_port_;
  const uint64_t mean_bytes_;
  std::mt19937_64 random_;
  int listen_fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> connections_ = 0;
  std::atomic<uint64_t> cuts_ = 0;
  std::list<std::thread> passers_;  // of acceptor_ until it has ended
  std::thread acceptor_;
};

}  // namespace clew::transfer

#endif  // CLEW_TESTS_TRANSFER_CUTTING_PROXY_H_
