// Goal: clewd as a process: says to its supervisor what it does, answers on its
// socket, takes bundles to where they belong with a clew that is a script, gets
// over SIGKILL at any moment, reloads, and saves a core dump.
// Method: the built programs below a folder; a notify socket of the test's; the
// source of sideband, where the kernel lets us.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/digest.h"
#include "common/sanitizer.h"
#include "daemon/control.h"
#include "daemon/spool.h"
#include "proto/bundle.pb.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using nlohmann::json;
using testing::MakeBundle;
using testing::NamesIn;
using testing::Process;
using testing::ReadText;
using testing::Scratch;
using testing::WaitUntil;
using testing::WriteText;

// What systemd would hear.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = testing::SocketAddress(path);
    CLEW_CHECK(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)) == 0,
               "cannot bind {}", path);
  }
  // Everything that was said so far.
  const std::string& Heard() {
    std::array<char, 4096> bytes = {};
    for (ssize_t count = 0;
         (count = recv(fd_.get(), bytes.data(), bytes.size(), 0)) > 0;) {
      heard_.append(bytes.data(), static_cast<size_t>(count)) += '\n';
    }
    return heard_;
  }
  size_t Times(const std::string& line) {
    size_t times = 0;
    for (size_t at = Heard().find(line); at != std::string::npos;
         at = heard_.find(line, at + 1)) {
      ++times;
    }
    return times;
  }

 private:
  Fd fd_;
  std::string heard_;
};

class ClewdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (getenv("CLEW_BINARY_DIR") == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_BINARY_DIR";
    }
    // A clew that takes its time and notes what it was asked for; it fails to
    // send while there is a file "down". Checking, it notes in the bundle which
    // files of others it could use, and as whom.
    WriteText(At("clew"),
              "#!/bin/sh\nif [ $1 = check ]; then\n"
              "  echo \"check ${PWD##*/}\" > asked\n"
              "  read line < " +
                  At("secret") + " && echo read >> asked\n  echo x >> " +
                  At("shared") + " && echo wrote >> asked\n" +
                  "  exec id -u > user\nfi\n"
                  "echo \"$1 ${4##*/}\" >> " +
                  At("asked") + "\nsleep 0.02\n" + "[ ! -e " + At("down") +
                  " ] || exit 3\nexit 0\n");
    chmod(At("clew").c_str(), 0755);
    WriteText(At("secret"), "secret\n");
    WriteText(At("shared"), "");
    chmod(At("secret").c_str(), 0644);
    chmod(At("shared").c_str(), 0666);
    // Whoever parses bundles gets at the program.
    chmod(scratch_.root().c_str(), 0711);
    Configure(
        "upload = yes\nupload_retry = 1s\nrate_failure = 1000\n"
        "rate_all = 1000\n");
  }
  std::string At(const std::string& name) const { return scratch_.Path(name); }
  std::string Spool(const std::string& name) const {
    return At("var/lib/clew/spool/" + name);
  }
  void Configure(const std::string& text) const {
    WriteText(At("etc/clew/clewd.conf"),
              "clew = " + At("clew") + "\nredaction = " + At("rules") +
                  "\ndisk_free_bytes = 0\nreport_period = 0\n" + text);
    WriteText(At("rules"), "# the core dumps here are none\n");
  }
  void Start(const std::vector<std::string>& environment = {}) {
    clewd_ = std::make_unique<Process>(
        std::vector<std::string>{testing::Program("clewd"), "--root",
                                 scratch_.root()},
        At("log"), environment);
    ASSERT_TRUE(WaitUntil([&] {
      return Ask(At("run/clew/clewd.sock"), StatusRequest(), 1000).has_value();
    })) << ReadText(At("log"));
  }
  json Status() const {
    const auto reply = Ask(At("run/clew/clewd.sock"), StatusRequest(), 2000);
    CLEW_CHECK(reply.has_value(), "{}", reply.error().message);
    return json::parse(*reply);
  }
  Scratch scratch_;
  std::unique_ptr<Process> clewd_;
};

TEST_F(ClewdTest, TellsItsSupervisorWhatItDoes) {
  NotifySocket notify(At("notify"));
  Start({"NOTIFY_SOCKET=" + At("notify"), "WATCHDOG_USEC=200000"});
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("READY=1") == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("WATCHDOG=1") > 3; }));
  EXPECT_GE(notify.Times("STATUS=off, 0 bundles waiting"), 1u);
  clewd_->Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("RELOADING=1") == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("READY=1") == 2; }));
  clewd_->Signal(SIGSTOP);
  usleep(100'000);
  const size_t fed = notify.Times("WATCHDOG=1");
  usleep(400'000);
  EXPECT_EQ(notify.Times("WATCHDOG=1"), fed) << "fed while it hangs";
  clewd_->Signal(SIGCONT);
  clewd_->Signal(SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("STOPPING=1") == 1; }));
  ASSERT_TRUE(clewd_->EndsWithin(5000));
  EXPECT_EQ(clewd_->Wait(), 0);
}

TEST_F(ClewdTest, ABundleThatArrivesIsCheckedAndSent) {
  Start();
  MakeBundle(Spool("incoming/a.service~1~77.clew"), 6);
  EXPECT_TRUE(WaitUntil([&] { return NamesIn(Spool("uploaded")).size() == 1; }))
      << ReadText(At("log"));
  EXPECT_EQ(ReadText(At("asked")), "upload a.service~1~77.clew\n");
  const json status = Status();
  EXPECT_EQ(status["counters"]["uploaded"], 1);
  EXPECT_EQ(status["spool"]["uploaded"]["bundles"], 1);
}

TEST_F(ClewdTest, WhatParsesABundleIsConfinedAndNotRoot) {
  Start();
  MakeBundle(Spool("incoming/a.service~1~77.clew"), 6);
  ASSERT_TRUE(WaitUntil([&] { return NamesIn(Spool("uploaded")).size() == 1; }))
      << ReadText(At("log"));
  const std::string bundle = Spool("uploaded/a.service~1~77.clew");
  const std::string user = ReadText(bundle + "/user");
  EXPECT_FALSE(user.empty());
  EXPECT_EQ(user == fmt::format("{}\n", getuid()), getuid() != 0) << user;
  struct stat info = {};
  ASSERT_EQ(stat((bundle + "/user").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid()) << "not ours again";
  if (kAddressSanitizer) {
    GTEST_SKIP() << "not confined under AddressSanitizer";
  }
  EXPECT_EQ(ReadText(bundle + "/asked"), "check a.service~1~77.clew\n");
  EXPECT_EQ(ReadText(At("shared")), "");
}

TEST_F(ClewdTest, AUnitCannotChangeWhatWasChecked) {
  Start();
  const std::string made = Spool("incoming/a.service~1~77.clew.partial");
  MakeBundle(made, 6);
  const Fd held(open((made + "/core").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_GE(held.get(), 0);
  const std::string before = ReadText(made + "/core");
  std::filesystem::rename(made, Spool("incoming/a.service~1~77.clew"));
  ASSERT_TRUE(WaitUntil([&] { return NamesIn(Spool("uploaded")).size() == 1; }))
      << ReadText(At("log"));
  EXPECT_EQ(pwrite(held.get(), "?", 1, 0), 1);
  EXPECT_EQ(ReadText(Spool("uploaded/a.service~1~77.clew/core")), before);
}

TEST_F(ClewdTest, ASecondOneIsRefusedAndAWrongConfigurationIsToldWithItsLine) {
  Start();
  Process second({testing::Program("clewd"), "--root", scratch_.root()},
                 At("second"));
  EXPECT_EQ(WEXITSTATUS(second.Wait()), kExitUsage);
  EXPECT_NE(ReadText(At("second")).find("is clewd running?"),
            std::string::npos);
  Configure("ring = 5\n");
  const auto reply = Ask(At("run/clew/clewd.sock"), ReloadRequest(), 2000);
  ASSERT_FALSE(reply.has_value());
  EXPECT_NE(reply.error().message.find("clewd.conf:5:"), std::string::npos)
      << reply.error().message;
  EXPECT_NE(Status()["last_error"]["message"], "");
  Process check(
      {testing::Program("clewd"), "--check-config", At("etc/clew/clewd.conf")},
      At("second"));
  EXPECT_EQ(WEXITSTATUS(check.Wait()), kExitUsage);
}

// SIGKILL after random times while bundles arrive and the collector comes and
// goes: each is sent in the end, none is in two places, none is lost.
TEST_F(ClewdTest, KilledAtAnyMomentItLosesNothing) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  constexpr int kBundles = 12;
  int arrived = 0;
  for (int life = 0; life < 15; ++life) {
    Start();
    if (random.Below(3) == 0) {
      WriteText(At("down"), "");
    } else {
      std::filesystem::remove(At("down"));
    }
    for (int i = 0; i < 2 && arrived < kBundles; ++i, ++arrived) {
      MakeBundle(Spool(fmt::format("incoming/a~{0}~{0}.clew", arrived)), 6);
    }
    usleep(static_cast<useconds_t>(random.Below(150'000)));
    clewd_->Signal(SIGKILL);
    clewd_->Wait();
    size_t places = 0;
    for (const Stage stage : kStages) {
      for (const std::string& name :
           NamesIn(Spool(std::string(FolderOf(stage))))) {
        places += ParseName(name).has_value() && !name.ends_with(".making");
      }
    }
    EXPECT_EQ(places, static_cast<size_t>(arrived)) << "life " << life;
  }
  std::filesystem::remove(At("down"));
  Start();
  EXPECT_TRUE(WaitUntil(
      [&] { return NamesIn(Spool("uploaded")).size() == kBundles; }, 20'000))
      << ReadText(At("log"));
  for (const std::string& name : NamesIn(Spool("uploaded"))) {
    EXPECT_EQ(ReadText(Spool("uploaded/" + name + "/core")), "cccccccccc");
    pb::Manifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(
        ReadText(Spool("uploaded/" + name + "/manifest.pb"))));
    EXPECT_EQ(manifest.trigger().unit(), "a");
  }
}

TEST_F(ClewdTest, ClewdRunLeavesABundleOrRunsTheProgramAlone) {
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {testing::Program("clewd-run"), "--root",
                                      scratch_.root()};
    words.insert(words.end(), more.begin(), more.end());
    Process process(words, At("out"), {"CLEW=" + At("record")});
    return WEXITSTATUS(process.Wait());
  };
  // No spool: the program runs all the same.
  EXPECT_EQ(run({"a.service", "--", "/bin/sh", "-c", "exit 7"}), 7);
  EXPECT_NE(ReadText(At("out")).find("proceeding anyway"), std::string::npos);
  std::filesystem::create_directories(Spool("incoming"));
  EXPECT_EQ(run({"a.service", "--", "/bin/sh", "-c", "exit 6"}), 6)
      << "no clew";
  WriteText(At("record"), "#!/bin/sh\necho \"$@\" > " + At("recorded") + "\n");
  chmod(At("record").c_str(), 0700);
  EXPECT_EQ(run({"a.service", "--cores", "2", "--seed", "5", "--", "/bin/echo",
                 "--", "x"}),
            0);
  const std::string recorded = ReadText(At("recorded"));
  const std::string begin =
      "record --only-if-failed -o " + Spool("incoming/a.service~");
  EXPECT_TRUE(recorded.starts_with(begin)) << recorded;
  EXPECT_TRUE(
      recorded.ends_with(".clew --cores 2 --seed 5 --size-limit "
                         "2147483648 -- /bin/echo -- x\n"))
      << recorded;
  EXPECT_EQ(run({"a/b", "--", "/bin/true"}), kExitUsage);
  EXPECT_EQ(run({"a.service", "/bin/true"}), kExitUsage);
}

TEST_F(ClewdTest, WithoutASourceATriggerIsRefusedAndCounted) {
  Start();
  const auto reply = Ask(At("run/clew/clewd.sock"),
                         SnapshotRequest{getpid(), "", false, ""}, 2000);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(reply.error().message.find("source = none"), std::string::npos);
  EXPECT_EQ(Status()["counters"]["refused_no_source"], 1);
}

// --- The sideband source: real events of the kernel's, no PT ---

class SidebandTest : public ClewdTest {
 protected:
  void SetUp() override {
    ClewdTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    Configure(
        "source = sideband\nsideband_only = yes\nmerge = 0\n"
        "rate_failure = 1000\nrate_all = 1000\nspool_bytes = 1G\n");
    Start();
    if (Status()["state"] == "off") {
      GTEST_SKIP() << Status()["source"]["error"];
    }
  }
  // Feeds the handler a core dump of `process`, as the kernel would.
  void DumpCore(pid_t process, const std::string& core, int signal) {
    WriteText(At("core"), core);
    const Fd input(open(At("core").c_str(), O_RDONLY));
    Handler(process, signal, input.get()).Wait();
  }
  // As the kernel starts it, with the core dump in `input`.
  Process Handler(pid_t process, int signal, int input) {
    const std::string id = std::to_string(process);
    return Process(
        {testing::Program("clew-core-handler"), "--root", scratch_.root(), id,
         id, id, id, "0", "0", "1", std::to_string(signal), "1700000000",
         "18446744073709551615", "host", "victim"},
        At("handler"), {}, input);
  }
  static bool IsSleep(pid_t process) {
    return ReadText(fmt::format("/proc/{}/comm", process)) == "sleep\n";
  }
  pb::Manifest OnlyReady() {
    EXPECT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 1; }))
        << ReadText(At("log"));
    folder_ = Spool("ready/" + NamesIn(Spool("ready")).at(0));
    pb::Manifest manifest;
    EXPECT_TRUE(manifest.ParseFromString(ReadText(folder_ + "/manifest.pb")));
    return manifest;
  }
  std::string folder_;
};

TEST_F(SidebandTest, ACoreDumpBecomesABundleWithTheTrace) {
  Process victim({"/bin/sleep", "1000"}, At("victim"));
  WaitUntil([&] {
    return std::filesystem::read_symlink(
               fmt::format("/proc/{}/exe", victim.id())) != "";
  });
  const std::string core = "core" + std::string(3'000'000, '\0') + "end";
  DumpCore(victim.id(), core, SIGSEGV);
  const pb::Manifest manifest = OnlyReady();
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_CORE);
  EXPECT_EQ(manifest.trigger().process(), victim.id());
  EXPECT_EQ(manifest.failure().signal(), SIGSEGV);
  EXPECT_EQ(manifest.failure().thread(), victim.id());
  EXPECT_EQ(manifest.command(0), "/bin/sleep");
  EXPECT_GT(manifest.images_size(), 0);
  EXPECT_TRUE(ReadText(folder_ + "/core") == core);
  EXPECT_GT(std::filesystem::file_size(folder_ + "/perf.data"), 1000u);
  const json source = Status()["source"];
  EXPECT_GT(source["first_byte_us"], 0);
  EXPECT_GE(source["saved_us"], source["first_byte_us"]);
}

TEST_F(SidebandTest, WithSourceNoneACoreDumpIsSavedAndNothingElse) {
  Configure("source = none\nmerge = 0\nspool_bytes = 1G\n");
  ASSERT_TRUE(Ask(At("run/clew/clewd.sock"), ReloadRequest{}, 2000));
  Process victim({"/bin/sleep", "1000"}, At("victim"));
  WaitUntil([&] {
    return std::filesystem::read_symlink(
               fmt::format("/proc/{}/exe", victim.id())) != "";
  });
  for (const size_t saved : {1U, 2U}) {
    DumpCore(victim.id(), "core of none", SIGSEGV);
    ASSERT_TRUE(WaitUntil([&] {
      return NamesIn(Spool("ready")).size() == saved;
    })) << ReadText(At("log"));
    EXPECT_EQ(Status()["state"], "off");
  }
  const std::string folder = Spool("ready/" + NamesIn(Spool("ready")).at(1));
  pb::Manifest manifest;
  ASSERT_TRUE(manifest.ParseFromString(ReadText(folder + "/manifest.pb")));
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_CORE);
  EXPECT_EQ(manifest.command(0), "/bin/sleep");
  EXPECT_GT(manifest.images_size(), 0);
  EXPECT_EQ(ReadText(folder + "/core"), "core of none");
  EXPECT_FALSE(Ask(At("run/clew/clewd.sock"),
                   SnapshotRequest{victim.id(), "", false, ""}, 2000));
}

// A process of a stranger's, which maps files executable.
class Stranger {
 public:
  explicit Stranger(const std::vector<std::string>& files) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    id_ = fork();
    if (id_ == 0) {
      const bool mapped = std::ranges::all_of(files, Map);
      (void)!write(ends[1], "m", mapped ? 1 : 0);
      close(ends[1]);
      pause();
      _exit(0);
    }
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "the files cannot be mapped";
    close(ends[0]);
  }
  ~Stranger() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  pid_t id() const { return id_; }

 private:
  static bool Map(const std::string& path) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(),
                0) != MAP_FAILED;
  }
  pid_t id_ = 0;
};

std::string ElfHeader(uint16_t header_count) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phnum = header_count;
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

TEST_F(SidebandTest, APathThatBecameALinkTakesNoOtherFileAlong) {
  // As no program has it, this one neither.
  const std::string secret = fmt::format("of root alone, {}", getpid());
  WriteText(At("lib.so"), ElfHeader(0) + "what was mapped");
  WriteText(At("secret"), ElfHeader(0) + secret);
  WriteText(At("shadow"), secret);
  WriteText(At("other.so"), ElfHeader(0) + "what was mapped, too");
  const Stranger victim({At("lib.so"), At("other.so")});
  for (const auto& [from, to] :
       {std::pair("lib.so", "secret"), std::pair("other.so", "shadow")}) {
    chmod(At(to).c_str(), 0600);
    std::filesystem::remove(At(from));
    std::filesystem::create_symlink(At(to), At(from));
  }
  DumpCore(victim.id(), "core", SIGSEGV);
  OnlyReady();
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder_)) {
    if (entry.is_regular_file()) {
      EXPECT_EQ(ReadText(entry.path()).find(secret), std::string::npos)
          << entry.path();
    }
  }
}

TEST_F(SidebandTest, AFileWithNotesWithoutEndHoldsNothingUp) {
  constexpr uint64_t kFileBytes = uint64_t{1} << 30;
  std::string file = ElfHeader(UINT16_MAX);
  Elf64_Phdr notes = {};
  notes.p_type = PT_NOTE;
  notes.p_offset = sizeof(Elf64_Ehdr) + UINT16_MAX * sizeof notes;
  notes.p_filesz = kFileBytes - notes.p_offset;
  for (int i = 0; i < UINT16_MAX; ++i) {
    file.append(reinterpret_cast<const char*>(&notes), sizeof notes);
  }
  WriteText(At("endless.so"), file);
  std::filesystem::resize_file(At("endless.so"), kFileBytes);
  const Stranger bystander({At("endless.so")});
  const Stranger victim({At("endless.so")});
  DumpCore(victim.id(), "core", SIGSEGV);
  OnlyReady();
}

TEST_F(SidebandTest, AHandlerThatDiesLeavesABundleWithoutACore) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  {
    Process handler = Handler(getpid(), SIGABRT, ends[0]);
    ASSERT_EQ(write(ends[1], "core", 4), 4);
    ASSERT_TRUE(WaitUntil([&] { return Status()["state"] == "saving"; }));
  }  // killed
  OnlyReady();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/core"));
  EXPECT_EQ(Status()["counters"]["cores_cut"], 1);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(SidebandTest, KilledWhileSavingItLeavesNothingHalf) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  Process handler = Handler(getpid(), SIGABRT, ends[0]);
  ASSERT_TRUE(WaitUntil([&] { return Status()["state"] == "saving"; }));
  clewd_->Signal(SIGKILL);
  clewd_->Wait();
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(handler.EndsWithin(5000)) << "it hung with its clewd";
  const auto partial = NamesIn(Spool("incoming"));
  ASSERT_EQ(partial.size(), 1u);
  const timespec old[2] = {{1, 0}, {1, 0}};
  const std::string lock = Spool("incoming/" + partial[0] + "/lock");
  ASSERT_EQ(utimensat(AT_FDCWD, lock.c_str(), old, 0), 0);
  Start();
  EXPECT_TRUE(NamesIn(Spool("incoming")).empty());
  EXPECT_TRUE(NamesIn(Spool("ready")).empty());
}

// Core dumps that never end hold at most half of the saves: those of others go
// on, and what is refused is counted.
TEST_F(SidebandTest, SlowCoreDumpsOfOneUserDoNotHoldUpThoseOfAnother) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to run a program as another user";
  }
  const auto run_as = [&](const std::string& user) {
    return std::make_unique<Process>(
        std::vector<std::string>{"/usr/bin/setpriv", "--reuid", user,
                                 "--clear-groups", "/bin/sleep", "1000"},
        At("victim"));
  };
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd never_ends(ends[0]);
  const Fd writer(ends[1]);
  std::vector<std::unique_ptr<Process>> victims;
  std::vector<std::unique_ptr<Process>> handlers;
  for (uint64_t i = 0; i < 6; ++i) {
    victims.push_back(run_as("65534"));
    ASSERT_TRUE(WaitUntil([&] { return IsSleep(victims.back()->id()); }));
    handlers.push_back(std::unique_ptr<Process>(new Process(
        Handler(victims.back()->id(), SIGSEGV + static_cast<int>(i % 2),
                never_ends.get()))));
    ASSERT_TRUE(WaitUntil([&] {
      const json counters = Status()["counters"];
      return counters["triggers"] == i + 1 || counters["refused_busy"] == i;
    }));
  }
  ASSERT_TRUE(WaitUntil([&] { return Status()["counters"]["triggers"] == 6; }));
  EXPECT_EQ(Status()["counters"]["refused_busy"], 4);
  const auto other = run_as("65533");
  ASSERT_TRUE(WaitUntil([&] { return IsSleep(other->id()); }));
  const auto began = std::chrono::steady_clock::now();
  DumpCore(other->id(), "core of the other", SIGSEGV);
  const pb::Manifest manifest = OnlyReady();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_EQ(manifest.trigger().process(), other->id());
  EXPECT_EQ(ReadText(folder_ + "/core"), "core of the other");
  EXPECT_EQ(Status()["counters"]["refused_busy"], 4);
}

// CLEW_STORM_CRASHES of them, or 20; 20 a second, and no rate limits them.
TEST_F(SidebandTest, OfAStormNothingIsHalfAndAllIsCounted) {
  const char* wanted = getenv("CLEW_STORM_CRASHES");
  const uint64_t crashes =
      wanted == nullptr ? 20 : strtoull(wanted, nullptr, 10);
  const std::string core = "core" + std::string(2'000'000, 'c') + "end";
  WriteText(At("core"), core);
  std::vector<std::unique_ptr<Process>> all;
  for (uint64_t i = 0; i < crashes; ++i) {
    all.push_back(std::make_unique<Process>(
        std::vector<std::string>{"/bin/sleep", "1000"}, At("victim")));
    const Fd input(open(At("core").c_str(), O_RDONLY));
    ASSERT_TRUE(WaitUntil([&] { return IsSleep(all.back()->id()); }));
    all.push_back(std::unique_ptr<Process>(
        new Process(Handler(all.back()->id(), SIGSEGV, input.get()))));
    usleep(50'000);
  }
  for (size_t i = 1; i < all.size(); i += 2) {
    EXPECT_TRUE(all[i]->EndsWithin(20'000));
  }
  const auto told = [&] {
    const json status = Status();
    const json& counters = status["counters"];
    return counters["saved"].get<uint64_t>() +
           counters["refused_busy"].get<uint64_t>() +
           counters["refused_rate"].get<uint64_t>() +
           counters["refused_budget"].get<uint64_t>() +
           status["clients_refused"].get<uint64_t>();
  };
  EXPECT_TRUE(WaitUntil([&] { return told() == crashes; }, 60'000)) << told();
  const json status = Status();
  RecordProperty("saved", status["counters"]["saved"].dump());
  EXPECT_GT(status["counters"]["saved"], 1);
  EXPECT_EQ(status["counters"]["cores_cut"], 0);
  EXPECT_EQ(status["counters"]["save_failures"], 0);
  EXPECT_TRUE(NamesIn(Spool("incoming")).empty());
  for (const std::string& name : NamesIn(Spool("ready"))) {
    EXPECT_TRUE(ReadText(Spool("ready/" + name) + "/core") == core) << name;
    pb::Manifest manifest;
    EXPECT_TRUE(manifest.ParseFromString(
        ReadText(Spool("ready/" + name) + "/manifest.pb")));
  }
  fmt::print("storm of {}: {}\n", crashes, status["counters"].dump());
}

TEST_F(SidebandTest, ASnapshotAndAHangAreSavedAndAReloadKeepsTheRing) {
  const auto reply = Ask(At("run/clew/clewd.sock"),
                         SnapshotRequest{getpid(), "", false, "why"}, 2000);
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_EQ(OnlyReady().trigger().kind(), pb::Trigger::KIND_REQUEST);
  WriteText(At("alive"), "");
  Configure(
      "source = sideband\nsideband_only = yes\nunit_poll = 1s\n"
      "[unit b.service]\nhang = 1s\nheartbeat = " +
      At("alive") + "\n");
  ASSERT_TRUE(
      Ask(At("run/clew/clewd.sock"), ReloadRequest(), 2000).has_value());
  EXPECT_NE(ReadText(At("log")).find("event=reloaded ring=kept"),
            std::string::npos);
  EXPECT_EQ(Status()["source"]["saves"], 1) << "the source is a new one";
  ASSERT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 2; }))
      << ReadText(At("log"));
  pb::Manifest manifest;
  ASSERT_TRUE(manifest.ParseFromString(ReadText(
      Spool("ready/" + NamesIn(Spool("ready")).at(0) + "/manifest.pb"))));
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_HANG);
  EXPECT_EQ(manifest.trigger().unit(), "b.service");
}

}  // namespace
}  // namespace clew::daemon
