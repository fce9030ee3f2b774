#ifndef CLEW_TESTS_TRANSFER_CUTTING_PROXY_H_
#define CLEW_TESTS_TRANSFER_CUTTING_PROXY_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <random>
#include <thread>

#include "common/os/fd.h"

namespace clew::transfer {

// Passes TCP connections on to a port of this host, and cuts each after a
// number of bytes that its generator chooses, with a reset: what was under way
// in either direction is lost. An end that comes from one side before that
// reaches the other behind all that was sent; a reset stays a reset.
class CuttingProxy {
 public:
  // Connections carry 1 to 2 * `mean_bytes` bytes; 0: they are never cut.
  CuttingProxy(uint16_t to_port, uint64_t mean_bytes, uint64_t seed);
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;
  ~CuttingProxy();  // resets what is left

  uint16_t port() const { return port_; }
  uint64_t connections() const { return connections_; }
  uint64_t cuts() const { return cuts_; }

 private:
  struct Passer {
    std::atomic<bool> done = false;
    std::thread thread;
  };
  void Accept();
  void Pass(Fd client, uint64_t bytes);
  void ForgetPassers(bool all);  // of acceptor_ until it has ended

  const uint16_t to_port_;
  const uint64_t mean_bytes_;
  std::mt19937_64 random_;
  uint16_t port_ = 0;
  Fd listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> connections_ = 0;
  std::atomic<uint64_t> cuts_ = 0;
  std::list<Passer> passers_;
  std::thread acceptor_;
};

}  // namespace clew::transfer

#endif  // CLEW_TESTS_TRANSFER_CUTTING_PROXY_H_
