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
#include "daemon/control/control.h"
#include "daemon/spool/spool.h"
#include "proto/bundle.pb.h"
#include "tests/daemon/clewd_fixture.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using nlohmann::json;
using test::BecomesFree;
using test::ClewdTest;
using test::MakeBundle;
using test::NamesIn;
using test::Process;
using test::ReadText;
using test::SidebandTest;
using test::WaitUntil;
using test::WriteText;

// What systemd would hear.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = test::SocketAddress(path);
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

TEST_F(ClewdTest, TellsItsSupervisorWhatItDoes) {
  NotifySocket notify(At("notify"));
  // Not Start: the socket has room for a few messages, so it is read meanwhile.
  Launch({"NOTIFY_SOCKET=" + At("notify"), "WATCHDOG_USEC=200000"});
  ASSERT_TRUE(WaitUntil([&] { return notify.Times("READY=1") == 1; }))
      << ReadText(At("log"));
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("WATCHDOG=1") > 3; }));
  EXPECT_GE(notify.Times("STATUS=off, 0 bundles waiting"), 1u);
  clewd_->Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("RELOADING=1") == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("READY=1") == 2; }));
  clewd_->Stop();
  const size_t fed = notify.Times("WATCHDOG=1");
  usleep(400'000);  // four times it would be fed, if by somebody else
  EXPECT_EQ(notify.Times("WATCHDOG=1"), fed) << "fed while it hangs";
  clewd_->Signal(SIGCONT);
  clewd_->Signal(SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return notify.Times("STOPPING=1") == 1; }));
  ASSERT_TRUE(clewd_->Ends());
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
  Process second({test::Program("clewd"), "--root", scratch_.root()},
                 At("second"));
  EXPECT_EQ(WEXITSTATUS(second.Wait()), kExitUsage);
  EXPECT_NE(ReadText(At("second")).find("is clewd running?"),
            std::string::npos);
  Configure("ring = 5\n");
  const auto reply = Reply(ReloadRequest());
  ASSERT_FALSE(reply.has_value());
  EXPECT_NE(reply.error().message.find("clewd.conf:5:"), std::string::npos)
      << reply.error().message;
  EXPECT_NE(Status()["last_error"]["message"], "");
  Process check(
      {test::Program("clewd"), "--check-config", At("etc/clew/clewd.conf")},
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
    // At another point of its work each time; any will do.
    usleep(static_cast<useconds_t>(random.Below(150'000)));
    Kill();
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
      [&] { return NamesIn(Spool("uploaded")).size() == kBundles; }, 4))
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
    std::vector<std::string> words = {test::Program("clewd-run"), "--root",
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
  const auto reply = Reply(SnapshotRequest{getpid(), "", false, ""});
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(reply.error().message.find("source = none"), std::string::npos);
  EXPECT_EQ(Status()["counters"]["refused_no_source"], 1);
}

// --- The sideband source: real events of the kernel's, no PT ---

TEST_F(SidebandTest, ACoreDumpBecomesABundleWithTheTrace) {
  Process victim({"/bin/sleep", "1000"}, At("victim"));
  ASSERT_TRUE(WaitUntil([&] { return IsSleep(victim.id()); }));
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
  const json source = StatusAtRest()["source"];
  EXPECT_GT(source["first_byte_us"], 0);
  EXPECT_GE(source["saved_us"], source["first_byte_us"]);
}

TEST_F(SidebandTest, WithSourceNoneACoreDumpIsSavedAndNothingElse) {
  Configure("source = none\nmerge = 0\nspool_bytes = 1G\n");
  ASSERT_TRUE(Reply(ReloadRequest()));
  Process victim({"/bin/sleep", "1000"}, At("victim"));
  ASSERT_TRUE(WaitUntil([&] { return IsSleep(victim.id()); }));
  for (const size_t saved : {1U, 2U}) {
    DumpCore(victim.id(), "core of none", SIGSEGV);
    ASSERT_TRUE(WaitUntil([&] {
      return NamesIn(Spool("ready")).size() == saved;
    })) << ReadText(At("log"));
    EXPECT_EQ(StatusAtRest()["state"], "off");
  }
  const std::string folder = Spool("ready/" + NamesIn(Spool("ready")).at(1));
  pb::Manifest manifest;
  ASSERT_TRUE(manifest.ParseFromString(ReadText(folder + "/manifest.pb")));
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_CORE);
  EXPECT_EQ(manifest.command(0), "/bin/sleep");
  EXPECT_GT(manifest.images_size(), 0);
  EXPECT_EQ(ReadText(folder + "/core"), "core of none");
  EXPECT_FALSE(Reply(SnapshotRequest{victim.id(), "", false, ""}));
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
  EXPECT_EQ(StatusAtRest()["counters"]["cores_cut"], 1);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(SidebandTest, KilledWhileSavingItLeavesNothingHalf) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  Process handler = Handler(getpid(), SIGABRT, ends[0]);
  ASSERT_TRUE(WaitUntil([&] { return Status()["state"] == "saving"; }));
  Kill();
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(handler.Ends()) << "it hung with its clewd";
  const auto partial = NamesIn(Spool("incoming"));
  ASSERT_EQ(partial.size(), 1u);
  const timespec old[2] = {{1, 0}, {1, 0}};
  const std::string lock = Spool("incoming/" + partial[0] + "/lock");
  ASSERT_TRUE(BecomesFree(lock));
  ASSERT_EQ(utimensat(AT_FDCWD, lock.c_str(), old, 0), 0);
  Start();
  EXPECT_TRUE(NamesIn(Spool("incoming")).empty());
  EXPECT_TRUE(NamesIn(Spool("ready")).empty());
}

// The journal is a script: it notes what it was asked, and prints a secret,
// bytes that are not text, a line that is not JSON, and more than is wanted.
TEST_F(SidebandTest, LinesOfTheJournalAreInTheBundleWithoutSecrets) {
  WriteText(
      At("journalctl"),
      "#!/bin/sh\necho \"$@\" > " + At("journal-asked") +
          "\necho '{\"__REALTIME_TIMESTAMP\":\"1700000000000002\",\"_PID\":"
          "\"17\",\"_SYSTEMD_UNIT\":\"a.service\",\"PRIORITY\":\"3\","
          "\"SYSLOG_IDENTIFIER\":\"sleep\",\"MESSAGE\":\"login with "
          "--password=open-sesame for bob\"}'\n"
          "echo '{\"__REALTIME_TIMESTAMP\":\"1700000000000001\","
          "\"MESSAGE\":[1,2,255]}'\necho '{\"MESS'\necho '[]'\n");
  chmod(At("journalctl").c_str(), 0755);
  Configure(
      "source = sideband\nsideband_only = yes\nmerge = 0\n"
      "spool_bytes = 1G\njournalctl = " +
      At("journalctl") + "\n");
  WriteText(At("rules"), "arguments drop-after --password\n");
  ASSERT_TRUE(Reply(ReloadRequest()));
  Process victim({"/bin/sleep", "1000"}, At("victim"));
  ASSERT_TRUE(WaitUntil([&] { return IsSleep(victim.id()); }));
  ASSERT_TRUE(Reply(SnapshotRequest{victim.id(), "", false, ""}));
  const pb::Manifest manifest = OnlyReady();
  EXPECT_NE(
      ReadText(At("journal-asked")).find(fmt::format("_PID={}", victim.id())),
      std::string::npos)
      << ReadText(At("journal-asked"));
  ASSERT_EQ(manifest.journal_size(), 2) << manifest.ShortDebugString();
  EXPECT_EQ(manifest.journal(0).at_us(), 1'700'000'000'000'001);
  EXPECT_EQ(manifest.journal(0).message(), "(bytes that are no text)");
  EXPECT_EQ(manifest.journal(1).process(), 17);
  EXPECT_EQ(manifest.journal(1).unit(), "a.service");
  EXPECT_EQ(manifest.journal(1).program(), "sleep");
  EXPECT_EQ(manifest.journal(1).priority(), 3u);
  EXPECT_EQ(manifest.journal(1).message(),
            "login with --password=xxxxxxxxxxx for bob");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/journal.json"));
}

TEST_F(SidebandTest, AJournalThatIsNotThereIsSaid) {
  Configure(
      "source = sideband\nsideband_only = yes\nmerge = 0\n"
      "spool_bytes = 1G\njournalctl = /nowhere/journalctl\n");
  ASSERT_TRUE(Reply(ReloadRequest()));
  Process victim({"/bin/sleep", "1000"}, At("victim"));
  ASSERT_TRUE(WaitUntil([&] { return IsSleep(victim.id()); }));
  ASSERT_TRUE(Reply(SnapshotRequest{victim.id(), "", false, ""}));
  const pb::Manifest manifest = OnlyReady();
  EXPECT_EQ(manifest.journal_size(), 0);
  EXPECT_NE(manifest.no_journal().find("/nowhere/journalctl"),
            std::string::npos)
      << manifest.no_journal();
}

TEST_F(SidebandTest, ASnapshotAndAHangAreSavedAndAReloadKeepsTheRing) {
  const auto reply = Reply(SnapshotRequest{getpid(), "", false, "why"});
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_EQ(OnlyReady().trigger().kind(), pb::Trigger::KIND_REQUEST);
  EXPECT_EQ(StatusAtRest()["source"]["saves"], 1);
  Configure(
      "source = sideband\nsideband_only = yes\nunit_poll = 1s\n"
      "[unit b.service]\nhang = 1s\nheartbeat = " +
      At("alive") + "\n");
  ASSERT_TRUE(Reply(ReloadRequest()).has_value());
  EXPECT_NE(ReadText(At("log")).find("event=reloaded ring=kept"),
            std::string::npos);
  EXPECT_EQ(Status()["source"]["saves"], 1) << "the source is a new one";
  // Of a unit without one nothing is expected, so the hang begins only now.
  WriteText(At("alive"), "");
  ASSERT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 2; }))
      << ReadText(At("log"));
  pb::Manifest manifest;
  ASSERT_TRUE(manifest.ParseFromString(ReadText(
      Spool("ready/" + NamesIn(Spool("ready")).at(0) + "/manifest.pb"))));
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_HANG);
  EXPECT_EQ(manifest.images_size(), 0) << "of which process?";
  EXPECT_EQ(manifest.trigger().unit(), "b.service");
}

}  // namespace
}  // namespace clew::daemon
