// Goal: nothing that a user without rights does beside a root clewd gets it at
// a file that is not theirs, ends or hangs it, or holds up the saves of others.
// Method: the built programs; attackers are processes of the user nobody, where
// the test is root; each attack is followed by the crash of somebody else,
// which must become a bundle. A look at the process of a bundle has an hour
// here (SidebandTest), so nothing that waits for an attacker comes to an end,
// however slow the machine is.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/daemon/attack_fixture.h"
#include "tests/daemon/silent_files.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using test::AttackTest;
using test::kNobody;
using test::MapsCode;
using test::NamesIn;
using test::Process;
using test::ReadText;
using test::SilentFiles;
using test::Stranger;
using test::WaitUntil;
using test::WriteText;

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
  ExpectNowhere(secret);
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
  const auto is_looked_at = [&] {
    const auto status = Status();
    return status["ok"] == true && status["state"] == "saving" &&
           ReadyOf(stranger.id()).empty();
  };
  EXPECT_TRUE(is_looked_at());
  ExpectOthersAreSaved();
  EXPECT_TRUE(is_looked_at()) << "the other one came after it";
}

// With the options of the daemon that say how long a look may take.
class OwnLookTest
    : public SilentAttackTest,
      public testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(OwnLookTest, ItsOwnCrashIsSavedWithoutWhatCannotBeKnown) {
  StartAgain(GetParam());
  const Stranger stranger([&] { return MapsSilence(); });
  DumpCore(stranger.id(), "core of a stranger", SIGSEGV);
  EXPECT_EQ(OnlyReady().trigger().process(), stranger.id());
  EXPECT_GT(StatusAtRest()["counters"]["unanswered"], 0);
  clewd_->Signal(SIGTERM);
  EXPECT_TRUE(clewd_->Ends()) << "it cannot end";
}

INSTANTIATE_TEST_SUITE_P(Short, OwnLookTest,
                         testing::Values(std::vector<std::string>{"--own-look",
                                                                  "1"}));
// In tools/test --all: the time that it has on a host.
INSTANTIATE_TEST_SUITE_P(More, OwnLookTest,
                         testing::Values(std::vector<std::string>{}));

// ELF headers that ask for more than there is in the world, and files that are
// nearly all hole.
TEST_F(AttackTest, HeadersThatAskForEverythingAndHolesCostNothing) {
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  Elf64_Ehdr header = {};
  std::memcpy(&header, ElfHeader(1).data(), sizeof header);
  Elf64_Phdr notes = {};
  notes.p_type = PT_NOTE;
  notes.p_offset = sizeof header + sizeof notes;
  notes.p_filesz = kHuge;
  const auto bytes = [](const auto& of) {
    return std::string(reinterpret_cast<const char*>(&of), sizeof of);
  };
  WriteText(At("notes.so"), bytes(header) + bytes(notes));
  header.e_phoff = kHuge;
  WriteText(At("headers.so"), bytes(header) + bytes(notes));
  // One too large for a bundle, one that fits.
  for (const auto& [name, size_bytes] :
       {std::pair("tebibyte.so", uint64_t{1} << 40),
        std::pair("hole.so", uint64_t{200} << 20)}) {
    WriteText(At(name), ElfHeader(0) + "x");
    std::error_code error;
    std::filesystem::resize_file(At(name), size_bytes, error);
    ASSERT_FALSE(error) << error.message();
  }
  const Stranger victim(
      {At("notes.so"), At("headers.so"), At("tebibyte.so"), At("hole.so")});
  DumpCore(victim.id(), "core", SIGSEGV);
  ExpectOthersAreSaved();
  EXPECT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 2; }))
      << ReadText(At("log"));
  EXPECT_LT(StatusAtRest()["spool"]["bytes"], uint64_t{32} << 20);
}

// Its path leads elsewhere each time that somebody looks.
TEST_F(AttackTest, APathThatIsSwappedAllTheTimeTakesNoOtherFileAlong) {
  const std::string secret = fmt::format("of root alone, {}", getpid());
  WriteText(At("secret"), ElfHeader(0) + secret);
  chmod(At("secret").c_str(), 0600);
  std::filesystem::create_directory(At("home"));
  chmod(At("home").c_str(), 0777);
  const std::string lib = At("home/lib.so");
  const Stranger swapper([&] {
    std::ofstream(At("home/own")) << ElfHeader(0) << "own";
    (void)!symlink(At("secret").c_str(), At("home/link").c_str());
    (void)!mkfifo(At("home/fifo").c_str(), 0666);
    (void)!link(At("home/own").c_str(), lib.c_str());
    return MapsCode(lib) && [&] {
      std::thread([&] {
        SwapForEver({"own", "link", "fifo", "own"});
      }).detach();
      return true;
    }();
  });
  for (size_t i = 1; i <= 3; ++i) {
    const Stranger victim(std::vector{At("home/own")});
    DumpCore(swapper.id(), "core of the swapper", SIGSEGV);
    DumpCore(victim.id(), "core", SIGSEGV);
    ASSERT_TRUE(WaitUntil([&] {
      return NamesIn(Spool("ready")).size() == 2 * i;
    })) << ReadText(At("log"));
    (void)StatusAtRest();  // else they are more than one user may have
  }
  ExpectOthersAreSaved();
  ExpectNowhere(secret);
  EXPECT_EQ(StatusAtRest()["counters"]["save_failures"], 0);
}

TEST_F(AttackTest, WhatItCallsItselfForgesNoLineAndBreaksNothing) {
  std::filesystem::create_directory(At("home"));
  chmod(At("home").c_str(), 0777);
  const std::string forged = "\nevent=saved bundle=forged\n\"} \xff\x1b[2J";
  const std::string lib = At("home/lib" + forged.substr(0, 20) + ".so");
  const Stranger victim([&] {
    std::ofstream(lib) << ElfHeader(0) << "x";
    return prctl(PR_SET_NAME, forged.c_str()) == 0 && MapsCode(lib) &&
           chdir(At("home").c_str()) == 0;
  });
  DumpCore(victim.id(), "core", SIGSEGV, forged);
  // Two mebibytes of arguments, more than a manifest has room for.
  mkfifo(At("never").c_str(), 0600);
  std::vector<std::string> words = {"/bin/sh", "-c",
                                    "read line <>" + At("never")};
  for (int i = 0; i < 20; ++i) {
    words.push_back(std::string(100'000, '0') + forged);
  }
  Process talker(words, At("victim"));
  const std::string told = fmt::format("/proc/{}/cmdline", talker.id());
  ASSERT_TRUE(WaitUntil([&] { return ReadText(told).size() > 2'000'000; }));
  DumpCore(talker.id(), "core", SIGSEGV);
  EXPECT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 2; }))
      << ReadText(At("log"));
  for (const std::string& name : NamesIn(Spool("ready"))) {
    EXPECT_LT(
        std::filesystem::file_size(Spool("ready/" + name + "/manifest.pb")),
        uint64_t{128} << 10);
  }
  EXPECT_EQ(ReadText(At("log")).find("\nevent=saved bundle=forged"),
            std::string::npos);
  EXPECT_EQ(Status()["ok"], true);
  ExpectOthersAreSaved();
}

TEST_F(AttackTest, ThousandsOfMappingsWithLongNamesHoldNobodyUp) {
  std::filesystem::create_directory(At("home"));
  chmod(At("home").c_str(), 0777);
  const auto deeds = [&] {
    std::string folder = At("home");
    while (folder.size() < 3'700) {
      folder += "/" + std::string(250, 'd');
      (void)!mkdir(folder.c_str(), 0777);
    }
    const std::string lib = folder + "/" + std::to_string(getpid());
    std::ofstream(lib) << ElfHeader(0) << "x";
    for (int i = 0; i < 20'000; ++i) {
      if (!MapsCode(lib)) {
        return false;
      }
    }
    return true;
  };
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 3; ++i) {
    strangers.push_back(std::make_unique<Stranger>(deeds));
  }
  ExpectOthersAreSaved();
  const std::string folder = Spool("ready/" + NamesIn(Spool("ready")).at(0));
  EXPECT_LT(std::filesystem::file_size(folder + "/perf.data"),
            uint64_t{64} << 20);
  DumpCore(strangers[0]->id(), "core", SIGSEGV);
  ExpectOthersAreSaved();
  // Its own has what was asked for, too.
  ASSERT_TRUE(WaitUntil([&] { return !ReadyOf(strangers[0]->id()).empty(); }))
      << ReadText(At("log"));
  EXPECT_EQ(NamesIn(Spool("ready")).size(), 3u);
  pb::Manifest manifest;
  ASSERT_TRUE(manifest.ParseFromString(
      ReadText(ReadyOf(strangers[0]->id()) + "/manifest.pb")));
  ASSERT_EQ(manifest.trigger().process(), strangers[0]->id());
  EXPECT_TRUE(manifest.command(0).find('/') != std::string::npos)
      << manifest.command(0);
}

TEST_F(AttackTest, AProcessThatIsGoneWhileItIsSavedHoldsNobodyUp) {
  for (int i = 0; i < 10; ++i) {
    DumpCoreOfOneThatGoes(3 * i);
  }
  const auto told = [&] {
    const auto counters = Status()["counters"];
    // Of a process that is gone nobody knows the size, so what several of them
    // may write can be more than the spool has room for.
    return counters["saved"].get<int>() + counters["refused_busy"].get<int>() +
           counters["refused_budget"].get<int>();
  };
  // One that is gone is nobody's, and counts as root's, who may have all saves
  // at once: until they end there may be none left for others.
  EXPECT_TRUE(WaitUntil([&] { return told() == 10; }, 4)) << Status();
  (void)StatusAtRest();
  ExpectOthersAreSaved();
  EXPECT_TRUE(WaitUntil([&] { return told() == 11; })) << Status();
  EXPECT_EQ(StatusAtRest()["counters"]["save_failures"], 0);
}

// One after the other, and with time for looks at all others: what is late
// would be counted, too.
TEST_F(AttackTest, AProcessThatIsGoneIsNotOneWithoutAnAnswer) {
  StartAgain({"--own-look", "3600", "--host-look", "3600"});
  for (int i = 0; i < 10; ++i) {
    DumpCoreOfOneThatGoes(3 * i);
    const auto counters = StatusAtRest()["counters"];
    EXPECT_EQ(counters["save_failures"], 0);
    EXPECT_EQ(counters["unanswered"], 0) << i;
    ASSERT_TRUE(WaitUntil([&] { return LooksAreOver(); }));
  }
}

// ---- What is put into incoming/, and what is read there

class IncomingAttackTest : public AttackTest {
 protected:
  void SetUp() override {
    AttackTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, to be another user";
    }
    // As the packages make it for the users of recorded units.
    chmod(Spool("incoming").c_str(), 01777);
    for (const char* folder :
         {"var", "var/lib", "var/lib/clew", "var/lib/clew/spool"}) {
      chmod(At(folder).c_str(), 0711);
    }
  }
  // No file or folder of a bundle can be opened.
  void ExpectClosedTo(uid_t user) const {
    std::vector<std::string> paths;
    for (const char* stage : {"incoming", "ready"}) {
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(Spool(stage))) {
        paths.push_back(entry.path());
      }
    }
    EXPECT_GE(paths.size(), 3u);
    const Stranger stranger([&] {
      return getuid() == user &&
             std::ranges::none_of(paths, [](const std::string& path) {
               return open(path.c_str(), O_RDONLY) >= 0 ||
                      open(path.c_str(), O_WRONLY) >= 0;
             });
    });
  }
  std::string Mine(const std::string& name) const {
    return Spool("incoming/" + name);
  }
};

TEST_F(IncomingAttackTest, WhatIsNoFileOfItsOwnIsTakenFromNobody) {
  const std::string secret = fmt::format("of root alone, {}", getpid());
  WriteText(At("secret"), secret);
  chmod(At("secret").c_str(), 0600);
  WriteText(At("public"), "everybody's");
  chmod(At("public").c_str(), 0644);
  const Stranger stranger([&] {
    const auto make = [&](int i, const auto& fill) {
      const std::string folder = Mine(fmt::format("evil~{0}~{0}.clew", i));
      test::MakeBundle(folder + ".x", 6);
      fill(folder + ".x");
      return rename((folder + ".x").c_str(), folder.c_str()) == 0;
    };
    return make(1,
                [&](const std::string& at) {
                  (void)!symlink(At("secret").c_str(),
                                 (at + "/perf.data").c_str());
                }) &&
           make(2,
                [](const std::string& at) {
                  (void)!mkfifo((at + "/perf.data").c_str(), 0666);
                }) &&
           make(3,
                [](const std::string& at) {
                  (void)!link((at + "/core").c_str(), (at + "/raw").c_str());
                }) &&
           make(4,
                [](const std::string& at) {
                  sockaddr_un address = {};
                  address.sun_family = AF_UNIX;
                  (at + "/s").copy(address.sun_path,
                                   sizeof address.sun_path - 1);
                  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
                  (void)!bind(fd, reinterpret_cast<sockaddr*>(&address),
                              sizeof address);
                }) &&
           make(5,
                [](const std::string& at) {
                  std::string deep = at;
                  while (deep.size() < at.size() + 600) {
                    deep += "/d";
                    mkdir(deep.c_str(), 0777);
                  }
                }) &&
           symlink("/etc", Mine("evil~6~6.clew").c_str()) == 0 &&
           mkfifo(Mine("evil~7~7.clew").c_str(), 0666) == 0 &&
           mkdir(Mine("evil~8~8.clew.partial").c_str(), 0777) == 0 &&
           symlink(At("secret").c_str(),
                   Mine("evil~8~8.clew.partial/lock").c_str()) == 0;
  });
  ExpectOthersAreSaved();
  ASSERT_TRUE(WaitUntil([&] {
    return NamesIn(Spool("incoming")).size() == 1 &&
           NamesIn(Spool("checking")).empty();
  })) << ReadText(At("log"));
  EXPECT_EQ(NamesIn(Spool("ready")).size(), 1u);
  ExpectNowhere(secret);
  EXPECT_EQ(ReadText(At("secret")), secret);
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
}

// H6: bundles are their makers' alone, from the first byte.
TEST_F(IncomingAttackTest, NothingOfASaveCanBeReadByOthers) {
  const auto victim = Bystander();
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  Process handler = Handler(victim->id(), SIGSEGV, ends[0]);
  ASSERT_EQ(write(ends[1], "core of another", 15), 15);
  ASSERT_TRUE(WaitUntil([&] { return Status()["state"] == "saving"; }));
  ExpectClosedTo(kNobody);
  close(ends[1]);
  close(ends[0]);
  EXPECT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 1; }));
  ExpectClosedTo(kNobody);
}

}  // namespace
}  // namespace clew::daemon
