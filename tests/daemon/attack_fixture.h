#ifndef CLEW_TESTS_DAEMON_ATTACK_FIXTURE_H_
#define CLEW_TESTS_DAEMON_ATTACK_FIXTURE_H_

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/os/process_state.h"
#include "daemon/spool/spool.h"
#include "tests/daemon/clewd_fixture.h"

namespace clew::daemon::test {

inline constexpr uid_t kNobody = 65534;
inline constexpr uid_t kOther = 65533;

inline bool MapsCode(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 0) !=
         MAP_FAILED;
}

// A process of nobody's, if we may make one: does its deeds, then waits.
class Stranger {
 public:
  explicit Stranger(const std::function<bool()>& deeds) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    id_ = fork();
    if (id_ == 0) {
      // On a stack of its own: the other one's beginning has the arguments.
      std::thread([&] { Act(deeds, ends[1]); }).join();
    }
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "the attack cannot be made";
    close(ends[0]);
  }
  explicit Stranger(const std::vector<std::string>& files)
      : Stranger([&] { return std::ranges::all_of(files, MapsCode); }) {}
  ~Stranger() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  pid_t id() const { return id_; }

 private:
  [[noreturn]] static void Act(const std::function<bool()>& deeds, int done) {
    const bool can =
        (geteuid() != 0 || setresuid(kNobody, kNobody, kNobody) == 0) &&
        prctl(PR_SET_DUMPABLE, 1) == 0 && deeds();
    (void)!write(done, "m", can ? 1 : 0);
    close(done);
    for (;;) {
      pause();
    }
  }
  pid_t id_ = 0;
};

class AttackTest : public SidebandTest {
 protected:
  // A program of another user's.
  std::unique_ptr<Process> Bystander() const {
    std::vector<std::string> words = {"/bin/sleep", "1000"};
    if (geteuid() == 0) {
      words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid",
                                   std::to_string(kOther), "--clear-groups"});
    }
    auto process = std::make_unique<Process>(words, At("victim"));
    EXPECT_TRUE(WaitUntil([&] { return IsSleep(process->id()); }));
    return process;
  }
  // That in ready/ of this process, or none.
  std::string ReadyOf(pid_t process) const {
    for (const std::string& name : NamesIn(Spool("ready"))) {
      const auto parsed = ParseName(name);
      if (parsed && parsed->process == process) {
        return Spool("ready/" + name);
      }
    }
    return "";
  }
  void ExpectNowhere(const std::string& secret) const {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(Spool(""))) {
      if (entry.is_regular_file() && !entry.is_symlink()) {
        EXPECT_EQ(ReadText(entry.path()).find(secret), std::string::npos)
            << entry.path();
      }
    }
  }
  // home/lib.so is one of home/NAME after the other.
  void SwapForEver(const std::vector<std::string>& names) const {
    for (size_t i = 0;; ++i) {
      const std::string next = At("home/next");
      (void)!link(At("home/" + names[i % names.size()]).c_str(), next.c_str());
      (void)!rename(next.c_str(), At("home/lib.so").c_str());
      unlink(next.c_str());
    }
  }
  // Ends clewd, and starts another one with these options.
  void StartAgain(const std::vector<std::string>& options) {
    Kill();
    options_ = options;
    Start();
  }
  // The crash of another user's program becomes a bundle, with its mappings,
  // and clewd answers meanwhile. How long that took is printed: it says as much
  // of the machine as of clewd.
  void ExpectOthersAreSaved() {
    const auto bystander = Bystander();
    const auto began = std::chrono::steady_clock::now();
    DumpCore(bystander->id(), "core of another", SIGSEGV);
    ASSERT_TRUE(WaitUntil([&] { return !ReadyOf(bystander->id()).empty(); }))
        << ReadText(At("log"));
    PrintSince(began);
    const std::string folder = ReadyOf(bystander->id());
    EXPECT_EQ(ReadText(folder + "/core"), "core of another");
    pb::Manifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(ReadText(folder + "/manifest.pb")));
    EXPECT_GT(manifest.images_size(), 0) << manifest.ShortDebugString();
    EXPECT_TRUE(manifest.command_size() > 0 &&
                manifest.command(0) == "/bin/sleep")
        << manifest.ShortDebugString();
  }
  // The process is killed so long after the beginning: at another point of its
  // save each time, whatever that is.
  void DumpCoreOfOneThatGoes(int after_ms) {
    auto victim = std::make_unique<Stranger>(std::vector<std::string>());
    const pid_t id = victim->id();
    std::thread killer([&] {
      usleep(static_cast<useconds_t>(after_ms) * 1'000);
      victim.reset();
    });
    DumpCore(id, "core", SIGSEGV);
    killer.join();
  }
  // What looked at processes for clewd has ended, and is a zombie at most.
  bool LooksAreOver() const {
    const std::string tasks = fmt::format("/proc/{}/task", clewd_->id());
    return std::ranges::none_of(NamesIn(tasks), [&](const auto& task) {
      std::istringstream children(
          ReadText(fmt::format("{}/{}/children", tasks, task)));
      bool runs = false;
      for (std::string child; children >> child;) {
        const char state = ProcessState("/proc/" + child + "/stat");
        runs = runs || (state != 0 && state != 'Z');
      }
      return runs;
    });
  }
  static void PrintSince(std::chrono::steady_clock::time_point began) {
    fmt::print("the crash of another user was a bundle after {} ms\n",
               std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::steady_clock::now() - began)
                   .count());
  }
};

}  // namespace clew::daemon::test

#endif  // CLEW_TESTS_DAEMON_ATTACK_FIXTURE_H_
