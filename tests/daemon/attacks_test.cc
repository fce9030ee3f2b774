// Goal: nothing that a user without rights does beside a root clewd gets it at
// a file that is not theirs, ends or hangs it, or holds up the saves of others.
// Method: the built programs; attackers are processes of the user nobody, where
// the test is root; each attack is followed by the crash of somebody else,
// which must be a bundle within 2 s.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/control.h"
#include "daemon/spool.h"
#include "proto/bundle.pb.h"
#include "tests/daemon/clewd_fixture.h"
#include "tests/daemon/silent_files.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using testing::json;
using testing::NamesIn;
using testing::Process;
using testing::ReadText;
using testing::SilentFiles;
using testing::WaitUntil;
using testing::WriteText;
using Clock = std::chrono::steady_clock;

constexpr uid_t kNobody = 65534;
constexpr uid_t kOther = 65533;
constexpr std::chrono::seconds kOthersWaitMax{2};

bool MapsCode(const std::string& path) {
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

class AttackTest : public testing::SidebandTest {
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
  // Those in ready/ that are of the program sleep.
  std::vector<std::string> ReadySleeps() const {
    auto names = NamesIn(Spool("ready"));
    std::erase_if(names, [](const std::string& name) {
      return !name.starts_with("sleep~");
    });
    return names;
  }
  // The crash of another user's program becomes a bundle in time, with its
  // mappings, and clewd answers meanwhile.
  void ExpectOthersAreSaved() {
    const auto bystander = Bystander();
    const size_t before = ReadySleeps().size();
    const auto began = Clock::now();
    DumpCore(bystander->id(), "core of another", SIGSEGV);
    ASSERT_TRUE(WaitUntil([&] { return ReadySleeps().size() > before; }))
        << ReadText(At("log"));
    EXPECT_LT(Clock::now() - began, kOthersWaitMax);
    const std::string folder = Spool("ready/" + ReadySleeps().back());
    EXPECT_EQ(ReadText(folder + "/core"), "core of another");
    pb::Manifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(ReadText(folder + "/manifest.pb")));
    EXPECT_GT(manifest.images_size(), 0) << manifest.ShortDebugString();
    EXPECT_TRUE(manifest.command_size() > 0 &&
                manifest.command(0) == "/bin/sleep")
        << manifest.ShortDebugString();
  }
};

std::string ElfHeader(uint16_t header_count) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phnum = header_count;
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

TEST_F(AttackTest, APathThatBecameALinkTakesNoOtherFileAlong) {
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

TEST_F(AttackTest, AFileWithNotesWithoutEndHoldsNothingUp) {
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

// Its mapped file is of a file system that never answers, and so is the memory
// that has its arguments.
class SilentAttackTest : public AttackTest {
 protected:
  void SetUp() override {
    AttackTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    silent_ = std::make_unique<SilentFiles>(At("silent"));
    if (!silent_->ok()) {
      GTEST_SKIP() << "needs /dev/fuse and the right to mount";
    }
  }
  // Arguments are where the kernel put them, at the stack's beginning.
  bool MapsSilence() const {
    const Fd fd(open(silent_->file().c_str(), O_RDONLY | O_CLOEXEC));
    const auto page =
        reinterpret_cast<uintptr_t>(program_invocation_name) & ~uintptr_t{4095};
    return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(),
                0) != MAP_FAILED &&
           mmap(reinterpret_cast<void*>(page), 4096, PROT_READ,
                MAP_PRIVATE | MAP_FIXED, fd.get(), 0) != MAP_FAILED;
  }
  std::unique_ptr<SilentFiles> silent_;
};

TEST_F(SilentAttackTest, ABystanderHoldsNobodyUp) {
  const Stranger stranger([&] { return MapsSilence(); });
  for (int i = 0; i < 3; ++i) {
    ExpectOthersAreSaved();
  }
}

TEST_F(SilentAttackTest, ItsOwnCrashHoldsNobodyUp) {
  const Stranger stranger([&] { return MapsSilence(); });
  DumpCore(stranger.id(), "core of a stranger", SIGSEGV);
  const auto asked = Clock::now();
  EXPECT_EQ(Status()["ok"], true);
  EXPECT_LT(Clock::now() - asked, std::chrono::seconds(1));
  ExpectOthersAreSaved();
  // It has a bundle, too, without what could not be known.
  ASSERT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 2; }))
      << ReadText(At("log"));
  clewd_->Signal(SIGTERM);
  EXPECT_TRUE(clewd_->EndsWithin(5000)) << "it cannot end";
}

// Core dumps that never end hold at most half of the saves: those of others go
// on, and what is refused is counted.
TEST_F(AttackTest, SlowCoreDumpsOfOneUserDoNotHoldUpThoseOfAnother) {
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
TEST_F(AttackTest, OfAStormNothingIsHalfAndAllIsCounted) {
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

}  // namespace
}  // namespace clew::daemon
