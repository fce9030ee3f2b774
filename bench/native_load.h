#ifndef CLEW_BENCH_NATIVE_LOAD_H_
#define CLEW_BENCH_NATIVE_LOAD_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace clew::bench {

// What a client asks for, again and again.
struct Request {
  std::string text;
  // How an answer ends; empty: the server closes the connection.
  std::string answer_end;
};

// Clients of a server on a socket in the file system, one thread each, while
// this lives: each asks, awaits the answer, and asks again.
class Load {
 public:
  Load(std::string socket_path, Request request, int clients);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Waits until there are `answers` altogether; false: not within a minute.
  bool Await(uint64_t answers) const;

 private:
  void Ask();

  const std::string socket_path_;
  const Request request_;
  std::atomic<bool> is_over_ = false;
  std::atomic<uint64_t> answers_ = 0;
  std::vector<std::thread> clients_;
};

}  // namespace clew::bench

#endif  // CLEW_BENCH_NATIVE_LOAD_H_
