// Goal: a bundle is in one stage, whole, whatever ends the daemon or the power;
// room is made oldest first, of sent before unsent; what others wrote is taken
// over without following them out of the bundle.
// Method: real folders; every cut of the power within a move and a removal,
// with every outcome of what was not synced (PowerCutFiles).
#include "daemon/spool/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>

#include "common/check.h"
#include "common/os/fd.h"
#include "daemon/spool/takeover.h"
#include "tests/daemon/support.h"
#include "tests/support/power_cut_files.h"

namespace clew::daemon {
namespace {

namespace fs = std::filesystem;
using test::NamesIn;
using test::Scratch;
using test::WriteText;

constexpr SpoolLimits kNoLimits{.bytes = uint64_t{1} << 40, .free_bytes = 0};

Spool OpenSpool(const std::string& root, SpoolLimits limits = kNoLimits) {
  auto spool = Spool::Open(PosixFileSystem(), root, limits);
  CLEW_CHECK(spool.has_value(), "{}", spool.error().message);
  return std::move(*spool);
}

// `kilobytes` of disk.
void Put(const Spool& spool, Stage stage, const std::string& name,
         size_t kilobytes) {
  WriteText(spool.Path(stage, name) + "/core",
            std::string(kilobytes * 1024, 'c'));
}

TEST(BundleNameTest, IsReadAsItWasWritten) {
  for (const BundleName& name :
       {BundleName{"a@1.service", 1, 2}, BundleName{"a~b", 0, 0},
        BundleName{"x\\x2dy", INT64_MAX, INT32_MAX}}) {
    BundleName wanted = name;
    wanted.subject = name.subject == "a~b" ? "a_b" : name.subject;
    EXPECT_EQ(ParseName(FormatName(name)), wanted) << FormatName(name);
    EXPECT_EQ(ParseName(FormatName(name) + ".partial"), wanted);
  }
  EXPECT_EQ(ParseName(FormatName({"../../x", 1, 2})),
            (BundleName{"_.._.._x", 1, 2}));
  EXPECT_EQ(ParseName(FormatName({"", 1, 2})), (BundleName{"_", 1, 2}));
  for (const char* name :
       {"", ".clew", "a.clew", "a~1.clew", "~1~2.clew", "a~1~2", "a~x~2.clew",
        "a~1~.clew", "a~-1~2.clew", "a~1~2147483648.clew", "a/b~1~2.clew",
        "..~1~2.clew"}) {
    EXPECT_FALSE(ParseName(name).has_value()) << name;
  }
}

TEST(SpoolTest, ListsOldestFirstAndNothingElse) {
  const Scratch scratch;
  const Spool spool = OpenSpool(scratch.Path("spool"));
  for (const char* name : {"b~20~1.clew", "a~100~1.clew", "c~3~1.clew",
                           "c~4~1.clew.partial", "notes.txt"}) {
    Put(spool, Stage::kIncoming, name, 1);
  }
  EXPECT_EQ(
      spool.List(Stage::kIncoming),
      (std::vector<std::string>{"c~3~1.clew", "b~20~1.clew", "a~100~1.clew"}));
}

TEST(SpoolTest, OneDaemonAtATime) {
  const Scratch scratch;
  const Spool spool = OpenSpool(scratch.Path("spool"));
  const auto second =
      Spool::Open(PosixFileSystem(), scratch.Path("spool"), kNoLimits);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
}

TEST(SpoolTest, DeadWritersAreRemovedAndLiveOnesStay) {
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  const std::string live = spool.Path(Stage::kIncoming, "a~1~1.clew.partial");
  const std::string dead = spool.Path(Stage::kIncoming, "b~1~1.clew.partial");
  const std::string fresh = spool.Path(Stage::kIncoming, "c~1~1.clew.partial");
  for (const std::string& folder : {live, dead, fresh}) {
    WriteText(folder + "/lock", "");
  }
  const auto set_time = [](const std::string& folder, time_t at_s) {
    const timespec both[2] = {{at_s, 0}, {at_s, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder + "/lock").c_str(), both, 0), 0);
  };
  set_time(live, 1);
  set_time(dead, 1);
  set_time(fresh, time(nullptr) + 3600);  // it stays fresh
  const int fd = open((live + "/lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  EXPECT_EQ(spool.Writing().size(), 2u);
  ASSERT_TRUE(spool.RemoveDeadWriters().has_value());
  EXPECT_EQ(
      NamesIn(spool.Folder(Stage::kIncoming)),
      (std::vector<std::string>{"a~1~1.clew.partial", "c~1~1.clew.partial"}));
  close(fd);
}

TEST(SpoolTest, RoomIsMadeOldestFirstAndOfSentBeforeUnsent) {
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  Put(spool, Stage::kReady, "r~1~1.clew", 100);
  Put(spool, Stage::kReady, "r~4~1.clew", 100);
  Put(spool, Stage::kUploaded, "u~3~1.clew", 100);
  Put(spool, Stage::kUploaded, "u~2~1.clew", 100);
  ASSERT_TRUE(
      spool.Move("r~1~1.clew", Stage::kReady, Stage::kIncoming).has_value());
  ASSERT_TRUE(
      spool.SetAside("r~1~1.clew", Stage::kIncoming, Stage::kRefused, "why not")
          .has_value());
  EXPECT_EQ(spool.WhyAside("r~1~1.clew", Stage::kRefused), "why not");
  Put(spool, Stage::kReady, "r~0~1.clew", 100);
  spool.SetLimits({.bytes = spool.UsedBytes(), .free_bytes = 0});
  std::vector<std::string> order;
  for (uint64_t kilobytes = 1; kilobytes < 1000; kilobytes += 50) {
    const auto gone = spool.MakeRoom(kilobytes * 1024, "r~4~1.clew");
    ASSERT_TRUE(gone.has_value()) << gone.error().message;
    for (const Evicted& bundle : *gone) {
      order.push_back(bundle.name);
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{"u~2~1.clew", "u~3~1.clew",
                                             "r~1~1.clew", "r~0~1.clew"}));
  EXPECT_EQ(spool.List(Stage::kReady),
            (std::vector<std::string>{"r~4~1.clew"}));
  EXPECT_TRUE(NamesIn(spool.Folder(Stage::kRefused)).empty());
}

TEST(SpoolTest, WhatIsLeftToOthersOnTheDiskIsNotRoom) {
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  EXPECT_GT(spool.Room(), 0u);
  // More than there can be, since others make and remove files meanwhile.
  spool.SetLimits(
      {.bytes = uint64_t{1} << 40, .free_bytes = uint64_t{1} << 62});
  EXPECT_EQ(spool.Room(), 0u);
}

TEST(SpoolTest, WhatIsUnsentStaysWhateverGrowsInIncoming) {
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  Put(spool, Stage::kReady, "r~1~1.clew", 100);
  Put(spool, Stage::kStuck, "s~1~1.clew", 100);
  Put(spool, Stage::kUploaded, "u~1~1.clew", 100);
  Put(spool, Stage::kIncoming, "junk", 800);
  Put(spool, Stage::kIncoming, "w~1~1.clew.partial", 800);
  spool.SetLimits({.bytes = 1 << 20, .free_bytes = 0});
  const auto gone = spool.MakeRoom(100 << 10, "");
  ASSERT_TRUE(gone.has_value()) << gone.error().message;
  ASSERT_EQ(gone->size(), 1u);
  EXPECT_EQ(gone->front().name, "u~1~1.clew");
  EXPECT_EQ(spool.Room(), 0u);
  // For what is ours they do make room, those that are stuck first.
  ASSERT_TRUE(spool.MakeRoom(850 << 10, "").has_value());
  EXPECT_TRUE(spool.List(Stage::kStuck).empty());
  EXPECT_EQ(spool.List(Stage::kReady).size(), 1u);
}

TEST(SpoolTest, JunkIsCountedAndRemovedWhenItIsOld) {
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  Put(spool, Stage::kIncoming, "junk", 100);
  Put(spool, Stage::kIncoming, "a~1~1.clew", 100);
  Put(spool, Stage::kIncoming, "b~1~1.clew.partial", 100);
  WriteText(spool.Path(Stage::kIncoming, "c~1~1.clew.partial") + "/lock", "");
  EXPECT_EQ(spool.Junk().bundles, 2u);
  EXPECT_GE(spool.Junk().bytes, uint64_t{200} << 10);
  const int64_t now_ns = int64_t{time(nullptr)} * 1'000'000'000;
  EXPECT_EQ(spool.RemoveOldJunk(now_ns).value_or(9), 0u);
  const int64_t later_ns = now_ns + (Spool::kJunkAgeS + 5) * 1'000'000'000;
  EXPECT_EQ(spool.RemoveOldJunk(later_ns).value_or(9), 2u);
  EXPECT_EQ(NamesIn(spool.Folder(Stage::kIncoming)),
            (std::vector<std::string>{"a~1~1.clew", "c~1~1.clew.partial"}));
}

// Of user 65534 a recording that grows, two bundles and junk; of 65533 a
// bundle; and one of ours.
TEST(SpoolTest, OneUsersShareOfIncomingIsLimited) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to make files of other users";
  }
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  const std::string growing = "a~1~1.clew.partial";
  Put(spool, Stage::kIncoming, growing, 100);
  WriteText(spool.Path(Stage::kIncoming, growing) + "/lock", "");
  for (const char* name :
       {"b~1~1.clew", "c~1~1.clew", "junk", "other~1~1.clew", "own~1~1.clew"}) {
    Put(spool, Stage::kIncoming, name, 100);
  }
  const auto give = [&](const std::string& name, uid_t user) {
    ASSERT_EQ(chown(spool.Path(Stage::kIncoming, name).c_str(), user, user), 0);
  };
  for (const std::string name : {growing.c_str(), "b~1~1.clew", "c~1~1.clew"}) {
    give(name, 65534);
  }
  give("other~1~1.clew", 65533);
  const auto changed_s = [&](const std::string& name) {
    struct stat info = {};
    EXPECT_EQ(stat(spool.Path(Stage::kIncoming, name).c_str(), &info), 0);
    return info.st_ctim.tv_sec;
  };
  // By the second of the last change junk is the newest.
  ASSERT_TRUE(test::WaitUntil([&] {
    give("junk", 65534);
    return changed_s("junk") > changed_s("c~1~1.clew");
  }));
  const auto gone = [&](uint64_t kilobytes) {
    return spool.EnforceQuota(kilobytes << 10)
        .value_or(std::vector<std::string>{"failed"});
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(gone(500), Names());
  EXPECT_EQ(gone(350), Names{"b~1~1.clew"});
  EXPECT_EQ(gone(150), (Names{"c~1~1.clew", "junk"}));
  EXPECT_EQ(gone(110), Names());
  EXPECT_EQ(gone(50), (Names{"other~1~1.clew", growing}));
  EXPECT_EQ(NamesIn(spool.Folder(Stage::kIncoming)), Names{"own~1~1.clew"});
}

// Folders in folders, more than there may be descriptors and longer than a
// path.
TEST(SpoolTest, FoldersWithoutEndAreRemovedAndKeepNobodyFromStarting) {
  constexpr int kDepth = 3000;
  const Scratch scratch;
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few = {128, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    Spool spool = OpenSpool(scratch.Path("spool"));
    const std::string top = spool.Path(Stage::kIncoming, "a~1~1.clew.partial");
    WriteText(top + "/lock", "");
    const timespec old[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (top + "/lock").c_str(), old, 0), 0);
    Fd at(open(top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; i < kDepth; ++i) {
      ASSERT_EQ(mkdirat(at.get(), "d", 0777), 0);
      at = Fd(openat(at.get(), "d", O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    EXPECT_GT(spool.UsedBytes(), 0u);
  }
  Spool again = OpenSpool(scratch.Path("spool"));
  EXPECT_TRUE(NamesIn(again.Folder(Stage::kIncoming)).empty());
  EXPECT_TRUE(again.SweepTrash());
  EXPECT_TRUE(NamesIn(scratch.Path("spool/trash")).empty());
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(SpoolTest, ManyFilesOfAUserAreLookedAtInPartsAndGo) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to make files of other users";
  }
  constexpr int kFiles = 2 * Spool::kWalkMax;
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  const auto make = [&](const std::string& name) {
    close(open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_EQ(chown(name.c_str(), 65534, 65534), 0);
  };
  for (int i = 0; i < kFiles; ++i) {
    make(spool.Path(Stage::kIncoming, fmt::format("a{0}~{0}~1.clew", i)));
  }
  // More than a bundle has.
  const std::string large = spool.Path(Stage::kIncoming, "large");
  fs::create_directory(large);
  for (int i = 0; i < 5000; ++i) {
    make(fmt::format("{}/{}", large, i));
  }
  ASSERT_EQ(chown(large.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(spool.IsIncomingTooLarge());
  EXPECT_LE(spool.List(Stage::kIncoming).size(), Spool::kWalkMax);
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(spool.EnforceQuota(UINT64_MAX).has_value());
  }
  EXPECT_FALSE(spool.IsIncomingTooLarge());
  EXPECT_EQ(NamesIn(spool.Folder(Stage::kIncoming)).size(), Spool::kGuestsMax);
  EXPECT_FALSE(fs::exists(large));
  EXPECT_TRUE(spool.SweepTrash());
}

TEST(SpoolTest, ALockThatIsALinkIsNotFollowed) {
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  WriteText(scratch.Path("old"), "");
  const timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, scratch.Path("old").c_str(), old, 0), 0);
  const std::string partial =
      spool.Path(Stage::kIncoming, "a~1~1.clew.partial");
  fs::create_directories(partial);
  fs::create_symlink(scratch.Path("old"), partial + "/lock");
  ASSERT_TRUE(spool.RemoveDeadWriters().has_value());
  EXPECT_TRUE(fs::exists(partial)) << "the file outside was locked";
}

TEST(SpoolTest, TwoOfOneNameLiveTogether) {
  const Scratch scratch;
  Spool spool = OpenSpool(scratch.Path("spool"));
  const std::string last = fmt::format("b~{}~1.clew", INT64_MAX);
  for (const Stage stage : kStages) {
    if (stage != Stage::kChecking) {
      Put(spool, stage, "a~7~1.clew", 1);
      Put(spool, stage, last, 1);
    }
  }
  Put(spool, Stage::kReady, "a~8~1.clew", 1);
  const auto moved =
      spool.Move("a~7~1.clew", Stage::kIncoming, Stage::kChecking);
  ASSERT_TRUE(moved.has_value()) << moved.error().message;
  EXPECT_EQ(*moved, "a~9~1.clew");
  EXPECT_EQ(test::ReadText(spool.Path(Stage::kChecking, *moved) + "/core"),
            std::string(1024, 'c'));
  const auto aside =
      spool.SetAside(last, Stage::kIncoming, Stage::kRefused, "why not");
  ASSERT_TRUE(aside.has_value()) << aside.error().message;
  EXPECT_EQ(*aside, "b~0~1.clew");
  EXPECT_EQ(spool.WhyAside("b~0~1.clew", Stage::kRefused), "why not");
  EXPECT_EQ(spool.WhyAside(last, Stage::kRefused), "");
}

// The bundle's stages after a cut; "" for a name without all of its bytes.
std::set<std::string> WhereIs(const std::string& root, const char* name) {
  std::set<std::string> found;
  for (const Stage stage : kStages) {
    const std::string path =
        fmt::format("{}/{}/{}", root, FolderOf(stage), name);
    if (fs::exists(path)) {
      const bool whole = test::ReadText(path + "/a") == "one" &&
                         test::ReadText(path + "/b") == "two";
      found.insert(whole ? std::string(FolderOf(stage)) : "");
    }
  }
  return found;
}

// Cuts the power after each operation of `work`, and calls `check` with the
// places of the bundle and whether `work` had ended.
template <class Work, class Check>
void CutEverywhere(const Work& work, const Check& check) {
  constexpr const char* kCutBundle = "a~1~1.clew";
  bool finished = false;
  for (int operations = 0; !finished; ++operations) {
    ASSERT_LT(operations, 50) << "never ends";
    const Scratch scratch;
    const std::string root = scratch.Path("spool");
    {
      const Spool made = OpenSpool(root);
    }
    WriteText(root + "/ready/a~1~1.clew/a", "one");
    WriteText(root + "/ready/a~1~1.clew/b", "two");
    PowerCutFiles files(root);
    auto spool = Spool::Open(files, root, kNoLimits);
    ASSERT_TRUE(spool.has_value()) << spool.error().message;
    files.FailAfter(operations);
    finished = work(*spool, kCutBundle);
    bool complete = false;
    int outcome = 0;
    ForEveryChoice(
        64, 1,
        [&](const PowerCutFiles::Choose& choose) {
          const std::string after =
              scratch.Path("after" + std::to_string(outcome++));
          files.AfterCut(after, choose);
          check(WhereIs(after, kCutBundle), finished, operations);
        },
        &complete);
    EXPECT_GT(outcome, 0);
  }
}

TEST(SpoolTest, APowerCutInAMoveLosesNothing) {
  CutEverywhere(
      [](Spool& spool, const char* name) {
        return spool.Move(name, Stage::kReady, Stage::kUploaded).has_value();
      },
      [](const std::set<std::string>& places, bool finished, int operations) {
        // A disk may show both names of a rename, or, without the journal that
        // real file systems have, the new one not yet and the old one no more.
        EXPECT_FALSE(places.contains("")) << operations;
        if (finished) {
          EXPECT_EQ(places, std::set<std::string>{"uploaded"}) << operations;
        }
      });
}

TEST(SpoolTest, APowerCutInARemovalLeavesAllOrNothing) {
  CutEverywhere(
      [](Spool& spool, const char* name) {
        return spool.Remove(name, Stage::kReady).has_value();
      },
      [](const std::set<std::string>& places, bool finished, int operations) {
        EXPECT_FALSE(places.contains("")) << operations;
        if (finished) {
          EXPECT_TRUE(places.empty()) << operations;
        }
      });
}

TEST(SpoolTest, TheTrashOfADeadDaemonIsEmptied) {
  const Scratch scratch;
  {
    const Spool spool = OpenSpool(scratch.Path("spool"));
  }
  WriteText(scratch.Path("spool/trash/a~1~1.clew/core"), "x");
  const Spool spool = OpenSpool(scratch.Path("spool"));
  EXPECT_TRUE(NamesIn(scratch.Path("spool/trash")).empty());
}

TEST(TakeOverTest, MakesATreeOurs) {
  const Scratch scratch;
  WriteText(scratch.Path("b/core"), "x");
  WriteText(scratch.Path("b/images/0a/lib.so"), "x");
  fs::permissions(scratch.Path("b/core"), fs::perms::all);
  fs::permissions(scratch.Path("b/images"), fs::perms::all);
  ASSERT_TRUE(TakeOver(scratch.Path("b")).has_value());
  EXPECT_EQ(fs::status(scratch.Path("b/core")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(scratch.Path("b/images")).permissions(),
            fs::perms::owner_all);
}

// A unit that recorded itself may keep its files open, and mapped.
TEST(TakeOverTest, WhatOthersHoldOpenIsNoFileOfARenewedTree) {
  const Scratch scratch;
  const std::string core = scratch.Path("b/images/core");
  WriteText(core, "recorded");
  const Fd held(open(core.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_GE(held.get(), 0);
  ASSERT_TRUE(TakeOver(scratch.Path("b")).has_value());
  ASSERT_TRUE(Renew(scratch.Path("b"), {geteuid(), getegid()}).has_value());
  EXPECT_EQ(pwrite(held.get(), "secret", 6, 0), 6);
  EXPECT_EQ(ftruncate(held.get(), 1), 0);
  EXPECT_EQ(test::ReadText(core), "recorded");
  EXPECT_EQ(NamesIn(scratch.Path("b")), std::vector<std::string>{"images"});
  EXPECT_EQ(NamesIn(scratch.Path("b/images")),
            std::vector<std::string>{"core"});
  EXPECT_EQ(fs::status(core).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(TakeOverTest, RenewingKeepsHolesAndForgetsAHalfCopy) {
  const Scratch scratch;
  const std::string core = scratch.Path("b/core");
  WriteText(core, "begin");
  WriteText(scratch.Path("b/clewd.copy"), "of a process that was killed");
  constexpr off_t kFar = off_t{1} << 36;
  const Fd file(open(core.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(pwrite(file.get(), "middle", 6, kFar), 6);
  ASSERT_EQ(ftruncate(file.get(), 2 * kFar), 0);
  ASSERT_TRUE(Renew(scratch.Path("b"), {geteuid(), getegid()}).has_value());
  EXPECT_EQ(NamesIn(scratch.Path("b")), std::vector<std::string>{"core"});
  const Fd copy(open(core.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 6> bytes = {};
  EXPECT_EQ(pread(copy.get(), bytes.data(), 5, 0), 5);
  EXPECT_EQ(std::string_view(bytes.data(), 5), "begin");
  EXPECT_EQ(pread(copy.get(), bytes.data(), 6, kFar), 6);
  EXPECT_EQ(std::string_view(bytes.data(), 6), "middle");
  struct stat info = {};
  ASSERT_EQ(fstat(copy.get(), &info), 0);
  EXPECT_EQ(info.st_size, 2 * kFar);
  EXPECT_LT(info.st_blocks, 1024);
}

TEST(TakeOverTest, RefusesWhatLeadsOutOrNeverEnds) {
  const Scratch scratch;
  WriteText(scratch.Path("secret"), "x");
  const auto refused = [&](const char* name) {
    const Status taken = TakeOver(scratch.Path(name));
    return !taken && taken.error().code == ErrorCode::kInvalidArgument;
  };
  WriteText(scratch.Path("link/manifest.pb"), "x");
  fs::create_symlink(scratch.Path("secret"), scratch.Path("link/core"));
  EXPECT_TRUE(refused("link"));
  WriteText(scratch.Path("hard/manifest.pb"), "x");
  fs::create_hard_link(scratch.Path("secret"), scratch.Path("hard/core"));
  EXPECT_TRUE(refused("hard"));
  EXPECT_NE(fs::status(scratch.Path("secret")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write)
      << "the file outside was touched";
  fs::create_directories(scratch.Path("pipe"));
  ASSERT_EQ(mkfifo(scratch.Path("pipe/core").c_str(), 0600), 0);
  EXPECT_TRUE(refused("pipe"));
  fs::create_directories(scratch.Path("deep/1/2/3/4/5"));
  EXPECT_TRUE(refused("deep"));
  fs::create_directory_symlink(scratch.Path("hard"), scratch.Path("itself"));
  EXPECT_TRUE(refused("itself"));
  for (size_t i = 0; i <= kTakenFilesMax; ++i) {
    WriteText(scratch.Path("many/" + std::to_string(i)), "");
  }
  EXPECT_TRUE(refused("many"));
}

}  // namespace
}  // namespace clew::daemon
