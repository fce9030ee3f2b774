#ifndef CLEW_TESTS_TRANSFER_COLLECTOR_PROCESS_H_
#define CLEW_TESTS_TRANSFER_COLLECTOR_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace clew::transfer {

// A port of this host that was free, and that the kernel gives to no
// connection. Until this process ends, only who listens there with SO_REUSEADDR
// gets it; as long as nobody does, who connects is refused.
uint16_t FreePort();

// The built clew-collector as a child process, on a folder of the test's. Ends
// with the thread that started it.
class CollectorProcess {
 public:
  // `lines` go to its configuration file, behind data and listen; it has a web
  // page if one of them says `web = `. The port stays the same over restarts.
  CollectorProcess(const std::string& folder,
                   const std::vector<std::string>& lines);
  CollectorProcess(const CollectorProcess&) = delete;
  CollectorProcess& operator=(const CollectorProcess&) = delete;
  ~CollectorProcess();  // kills it

  // False, with what it said printed, if it ends before it says that it is
  // ready, or says nothing for a minute.
  bool Start();
  void Kill();  // SIGKILL
  // SIGTERM; its exit status.
  int Stop();
  void Signal(int signal);
  bool running() const { return pid_ > 0; }
  // False: it ended by itself. REQUIRES: running().
  bool Lives();
  pid_t pid() const { return pid_; }

  uint16_t port() const { return port_; }
  std::string address() const;
  std::string data() const { return folder_ + "/data"; }
  std::string config_file() const { return folder_ + "/collector.conf"; }
  std::string log() const;  // all it said
  // VmHWM, of the process that runs.
  uint64_t PeakResidentBytes() const;

 private:
  const std::string folder_;
  const uint16_t port_;
  pid_t pid_ = 0;
  int wait_status_ = 0;  // as Lives() saw it end
};

// The program that CollectorProcess runs.
std::string CollectorBinary();

}  // namespace clew::transfer

#endif  // CLEW_TESTS_TRANSFER_COLLECTOR_PROCESS_H_
