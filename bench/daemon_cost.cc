// What clewd costs while nothing fails, and how long saving takes: its CPU time
// and memory with the sideband of a busy program of 100 threads (no PT: the
// rings of context switches and mappings alone), then the time from a core
// dump's trigger to the first byte read and to the durable bundle.
//
//   bench_daemon_cost [SECONDS [CORE_MIB]]
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/digest.h"
#include "common/os/exec_arguments.h"
#include "daemon/config/paths.h"
#include "daemon/control/control.h"
#include "daemon/loop/clock.h"

namespace clew::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kThreads = 100;

// 100 threads that work a little and sleep a little: some thousand context
// switches a second.
[[noreturn]] void BeBusy() {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      std::atomic<uint64_t> work = 0;
      for (;;) {
        for (int n = 0; n < 20'000; ++n) {
          work += 1;
        }
        const timespec pause = {0, 1'000'000};
        nanosleep(&pause, nullptr);
      }
    });
  }
  pause();
  std::abort();
}

pid_t Start(const std::vector<std::string>& words, int input, int errors) {
  const std::vector<char*> pointers = ExecArguments(words);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(input, STDIN_FILENO);
    dup2(errors, STDERR_FILENO);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  return child;
}

void End(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Fields 14 and 15 of /proc/PID/stat: user and system time (proc(5)).
double CpuSecondsOf(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  char state = 0;
  unsigned long user = 0;
  unsigned long system = 0;
  std::sscanf(line.c_str() + line.rfind(')') + 2,
              "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state,
              &user, &system);
  return static_cast<double>(user + system) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t KilobytesOf(pid_t process, const std::string& key) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) {
      return std::strtoull(line.c_str() + key.size(), nullptr, 10);
    }
  }
  return 0;
}

uint64_t SwitchesOf(pid_t process) {
  uint64_t switches = 0;
  for (const auto& task :
       fs::directory_iterator(fmt::format("/proc/{}/task", process))) {
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      const size_t at = line.find("ctxt_switches:");
      if (at != std::string::npos) {
        switches += std::strtoull(line.c_str() + at + 14, nullptr, 10);
      }
    }
  }
  return switches;
}

json StatusOf(const Paths& paths) {
  const auto reply = Ask(paths.socket, StatusRequest(), 5000);
  if (!reply) {
    fmt::print(stderr, "daemon_cost: {}\n", reply.error().message);
    std::exit(1);
  }
  return json::parse(*reply);
}

double Seconds() {
  return static_cast<double>(SystemClock().MonotonicNs()) / 1e9;
}

// Bytes that have no holes.
void WriteCore(const std::string& path, uint64_t mebibytes) {
  std::ofstream file(path, std::ios::binary);
  std::vector<uint64_t> words((1 << 20) / 8);
  Random random(1);
  for (uint64_t& word : words) {
    word = random.Next();
  }
  for (uint64_t i = 0; i < mebibytes; ++i) {
    words[0] = i;
    file.write(reinterpret_cast<const char*>(words.data()), 1 << 20);
  }
}

void MeasureQuiet(pid_t clewd, pid_t busy, int seconds) {
  const double cpu = CpuSecondsOf(clewd);
  const double busy_cpu = CpuSecondsOf(busy);
  const uint64_t switches = SwitchesOf(busy);
  const double begin = Seconds();
  sleep(static_cast<unsigned>(seconds));
  const double took = Seconds() - begin;
  fmt::print(
      "busy program        {} threads, {:.0f} context switches/s, {:.2f} "
      "CPUs\n",
      kThreads, static_cast<double>(SwitchesOf(busy) - switches) / took,
      (CpuSecondsOf(busy) - busy_cpu) / took);
  // What the kernel does at each switch is part of the busy program's time.
  fmt::print(
      "clewd CPU           {:.3f} % of one CPU over {:.0f} s, told in "
      "steps of {:.3f} %\n",
      (CpuSecondsOf(clewd) - cpu) / took * 100, took,
      100 / took / static_cast<double>(sysconf(_SC_CLK_TCK)));
  fmt::print("clewd memory        {} KiB resident\n",
             KilobytesOf(clewd, "VmRSS:"));
}

void MeasureSave(const Paths& paths, const std::string& handler,
                 const std::string& root, pid_t busy, int errors,
                 uint64_t mebibytes, int round) {
  const std::string path = root + "/core";
  const int input = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string id = std::to_string(busy);
  const uint64_t saved = StatusOf(paths)["counters"]["saved"];
  const double begin = Seconds();
  const pid_t child = Start(
      {handler, "--root", root, id, id, id, id, "0", "0", "1",
       std::to_string(round + 1), "1", "18446744073709551615", "host", "busy"},
      input, errors);
  waitpid(child, nullptr, 0);
  const double handled = Seconds() - begin;
  close(input);
  for (int tries = 0; StatusOf(paths)["counters"]["saved"] == saved; ++tries) {
    if (tries > 3000) {
      fmt::print(stderr, "daemon_cost: no bundle: {}\n",
                 StatusOf(paths)["last_error"]["message"].get<std::string>());
      std::exit(1);
    }
    usleep(20'000);
  }
  const json source = StatusOf(paths)["source"];
  fmt::print(
      "core of {:4} MiB     first byte {:.1f} ms, saved {:.0f} ms, "
      "handler {:.0f} ms ({:.0f} MiB/s)\n",
      mebibytes, source["first_byte_us"].get<double>() / 1000,
      source["saved_us"].get<double>() / 1000, handled * 1000,
      static_cast<double>(mebibytes) / handled);
}

int Main(int seconds, uint64_t mebibytes) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string programs =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path().string() +
      "/bin/";
  std::string root =
      (fs::temp_directory_path() / "daemon_cost-XXXXXX").string();
  if (mkdtemp(root.data()) == nullptr) {
    return 1;
  }
  const Paths paths(root);
  fs::create_directories(root + "/etc/clew");
  std::ofstream(paths.config)
      << "source = sideband\nsideband_only = yes\nmerge = 0\n"
         "clew = /bin/true\nspool_bytes = 20G\ndisk_free_bytes = 0\n"
         "rate_all = 1000\nredaction = "
      << root << "/rules\n";
  std::ofstream(root + "/rules") << "# the core is random bytes, no ELF file\n";
  const int log = open((root + "/log").c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const pid_t busy = Start({"/proc/self/exe", "--busy"}, STDIN_FILENO, log);
  const pid_t clewd =
      Start({programs + "clewd", "--root", root}, STDIN_FILENO, log);
  for (int tries = 0; tries < 300 && !Ask(paths.socket, StatusRequest(), 5000);
       ++tries) {
    usleep(100'000);
  }
  const json status = StatusOf(paths);
  fmt::print("source              {}, {} CPUs, {} KiB of rings {}\n",
             status["source"]["kind"].get<std::string>(),
             status["source"]["cores"].get<int>(),
             status["source"]["ring_bytes"].get<uint64_t>() / 1024,
             status["source"]["error"].get<std::string>());
  if (status["state"] == "recording") {
    MeasureQuiet(clewd, busy, seconds);
    // A process whose core is dumped does not run any more.
    kill(busy, SIGSTOP);
    WriteCore(root + "/core", mebibytes);
    for (int round = 0; round < 3; ++round) {
      MeasureSave(paths, programs + "clew-core-handler", root, busy, log,
                  mebibytes, round);
    }
    fmt::print("clewd memory then   {} KiB resident, {} KiB at most\n",
               KilobytesOf(clewd, "VmRSS:"), KilobytesOf(clewd, "VmHWM:"));
  }
  End(clewd);
  End(busy);
  fs::remove_all(root);
  return 0;
}

}  // namespace
}  // namespace clew::daemon

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--busy") == 0) {
    clew::daemon::BeBusy();
  }
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 20;
  const long mebibytes = argc > 2 ? std::atol(argv[2]) : 1024;
  if (seconds < 1 || mebibytes < 1) {
    fmt::print(stderr, "usage: bench_daemon_cost [SECONDS [CORE_MIB]]\n");
    return 2;
  }
  return clew::daemon::Main(seconds, static_cast<uint64_t>(mebibytes));
}
