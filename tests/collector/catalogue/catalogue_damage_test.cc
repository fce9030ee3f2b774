// Goal: a file that is not a catalogue, is of a later version or is damaged is
// refused with a message that says what to do, and nothing a damaged one holds
// brings the collector down; what a call did is there after the collector was
// killed. Method: files of other kinds; random bytes written over a catalogue;
// SIGKILL after random steps of a writer whose operations are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/sqlite.h"
#include "common/check.h"
#include "common/digest.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"
#include "tests/support/read_text.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using test::ReadText;
using testing::HasSubstr;

void ExpectRefused(const std::string& path, const std::string& why) {
  const auto refused = Catalogue::Open(path);
  ASSERT_FALSE(refused) << path;
  EXPECT_EQ(refused.error().code, ErrorCode::kCorruptInput);
  EXPECT_THAT(refused.error().message, HasSubstr(path));
  EXPECT_THAT(refused.error().message, HasSubstr(why));
  EXPECT_THAT(refused.error().message,
              HasSubstr("stop the collector and remove it with its -wal and "
                        "-shm: it is made again"));
  // And that is true.
  for (const char* suffix : {"", "-wal", "-shm"}) {
    fs::remove(path + suffix);
  }
  EXPECT_TRUE(Catalogue::Open(path));
}

// Some of everything.
void Fill(Catalogue& catalogue, uint64_t bundles) {
  for (uint64_t i = 0; i < bundles; ++i) {
    NewBundle bundle = BundleOf(i);
    bundle.host = fmt::format("web-{}", i % 7);
    CLEW_CHECK(catalogue.Add(bundle).has_value(), "not added");
    const Analysis analysis = {.signature = SignatureOf(i % 5),
                               .title = fmt::format("SIGSEGV in F{}", i % 5),
                               .backtraces = std::string(500, ' ')};
    if (i % 4 != 0) {
      CLEW_CHECK(catalogue.SetAnalysis(bundle.id, analysis).has_value(),
                 "not analysed");
    }
    if (i % 9 == 0) {
      CLEW_CHECK(catalogue.TakeForSolving().has_value(), "not taken");
    }
  }
}

TEST(CatalogueDamageTest, RefusesWhatIsNoDatabase) {
  const TempFolder folder;
  WriteFiles(folder.path(), {{"c", std::string(10'000, 'x')}});
  ExpectRefused(folder / "c", "file is not a database");
}

TEST(CatalogueDamageTest, RefusesTheDatabaseOfAnotherProgram) {
  const TempFolder folder;
  {
    auto other = Database::Open(folder / "c", Database::Mode::kReadWriteCreate);
    ASSERT_TRUE(other);
    ASSERT_TRUE(other->Execute("CREATE TABLE bookmarks(url TEXT)"));
  }
  ExpectRefused(folder / "c", "a database of another program");
}

void Alter(const std::string& path, const std::string& sql) {
  ASSERT_TRUE(Catalogue::Open(path));
  auto database = Database::Open(path, Database::Mode::kReadWriteCreate);
  ASSERT_TRUE(database);
  const auto altered = database->Execute(sql);
  ASSERT_TRUE(altered) << altered.error().message;
}

TEST(CatalogueDamageTest, RefusesALaterVersion) {
  const TempFolder folder;
  Alter(folder / "c", "PRAGMA user_version = 99");
  ExpectRefused(folder / "c", "a catalogue of version 99, this program reads");
}

TEST(CatalogueDamageTest, RefusesOtherTables) {
  const TempFolder folder;
  Alter(folder / "c", "DROP INDEX bundles_by_host");
  ExpectRefused(folder / "c", "is not that of version 6");
  Alter(folder / "d", "CREATE TABLE more(x TEXT)");
  ExpectRefused(folder / "d", "is not that of version 6");
  // One that runs when a bundle is added.
  Alter(folder / "e",
        "CREATE TRIGGER t AFTER INSERT ON bundles BEGIN "
        "DELETE FROM bundles; END");
  ExpectRefused(folder / "e", "is not that of version 6");
  Alter(folder / "f", "DROP INDEX groups_to_solve");
  ExpectRefused(folder / "f", "table or index 10 is not that of version 6");
}

TEST(CatalogueDamageTest, AFolderThatIsNotThereIsAFailureOfTheSystem) {
  const auto refused = Catalogue::Open("/nonexistent/c");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kSystem);
  EXPECT_THAT(refused.error().message, HasSubstr("/nonexistent/c"));
}

// Every call; failures are fine as long as they are Results.
void Use(Catalogue& catalogue) {
  (void)catalogue.Groups({.text = "F1"});
  (void)catalogue.Groups({});
  (void)catalogue.Bundles({.limit = 1000});
  (void)catalogue.Bundles(
      {.signature = SignatureOf(1), .filter = {.host = "web-1"}});
  (void)catalogue.Counts();
  (void)catalogue.ReturnTaken();
  for (uint64_t i = 0; i < 20; ++i) {
    (void)catalogue.Bundle(IdOf(i));
    (void)catalogue.AnalysisOf(IdOf(i));
    (void)catalogue.SetSolved(IdOf(i), {});
    (void)catalogue.Remove(IdOf(i));
    (void)catalogue.Add(BundleOf(i));
    (void)catalogue.TakeForAnalysis();
    (void)catalogue.TakeForSolving();
  }
}

TEST(CatalogueDamageTest, RandomDamageIsRefusedOrHarmless) {
  const TempFolder folder;
  Fill(**Catalogue::Open(folder / "whole"), 60);
  const std::string whole = ReadText(folder / "whole");
  int refused = 0;
  constexpr int kRuns = 150;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    std::string damaged = whole;
    if (random.Below(4) == 0) {
      damaged.resize(random.Below(whole.size()));
    }
    const size_t begin = random.Below(damaged.size() + 1);
    const size_t end = begin + std::min<size_t>(1u << random.Below(12),
                                                damaged.size() - begin);
    for (size_t i = begin; i < end; ++i) {
      damaged[i] = static_cast<char>(random.Next());
    }
    WriteFiles(folder.path(), {{"c", damaged}});
    const auto opened = Catalogue::Open(folder / "c");
    if (opened) {
      Use(**opened);
    } else {
      ++refused;
      EXPECT_EQ(opened.error().code, ErrorCode::kCorruptInput)
          << opened.error().message;
    }
    fs::remove(folder / "c-wal");
    fs::remove(folder / "c-shm");
  }
  std::printf("%d of %d damaged files refused\n", refused, kRuns);
  EXPECT_GT(refused, kRuns / 3);
}

// What the writer does at its `step`-th step, on whatever has these calls.
template <class AnyCatalogue>
void Step(AnyCatalogue& catalogue, uint64_t step) {
  const uint64_t number = step / 4;
  switch (step % 4) {
    case 0:
      return (void)catalogue.Add(BundleOf(number));
    case 1:
      return (void)catalogue.SetAnalysis(
          IdOf(number), {.signature = SignatureOf(number % 3),
                         .title = "SIGSEGV",
                         .backtraces = std::string(2000, 'b')});
    case 2:
      return (void)catalogue.SetSolved(
          IdOf(number), {.state = number % 5 == 0 ? BundleState::kUnsolved
                                                  : BundleState::kStored,
                         .why = "no answer"});
    default:
      return (void)(number >= 8 ? catalogue.Remove(IdOf(number - 8))
                                : catalogue.Remove(IdOf(number + 1'000'000)));
  }
}

// Does the steps from `first` on and reports each step when it is done.
[[noreturn]] void WriteWithoutEnd(const std::string& path, uint64_t first,
                                  int pipe) {
  auto catalogue = Catalogue::Open(path);
  if (!catalogue) {
    _exit(1);
  }
  for (uint64_t step = first;; ++step) {
    Step(**catalogue, step);
    if (write(pipe, "", 1) != 1) {
      _exit(2);
    }
  }
}

// Kills a writer that has told of `steps_min` steps, which is at work on the
// next one or on one after that; how many it told of. The delay is there to
// find it at another place in a step each time.
uint64_t KillWriter(const std::string& path, uint64_t first, uint64_t steps_min,
                    uint64_t delay_us) {
  int pipe_fds[2];
  CLEW_CHECK(pipe(pipe_fds) == 0, "no pipe");
  const pid_t child = fork();
  CLEW_CHECK(child >= 0, "no process");
  if (child == 0) {
    WriteWithoutEnd(path, first, pipe_fds[1]);
  }
  close(pipe_fds[1]);
  char byte = 0;
  uint64_t told = 0;
  while (told < steps_min && read(pipe_fds[0], &byte, 1) == 1) {
    ++told;
  }
  usleep(static_cast<useconds_t>(delay_us));
  kill(child, SIGKILL);
  while (read(pipe_fds[0], &byte, 1) == 1) {
    ++told;
  }
  close(pipe_fds[0]);
  waitpid(child, nullptr, 0);
  return told;
}

std::string DescribeContents(const std::vector<GroupRow>& groups,
                             const std::vector<BundleRow>& bundles) {
  std::string text;
  for (const GroupRow& row : groups) {
    text += Describe(row) + "\n";
  }
  for (const BundleRow& row : bundles) {
    text += Describe(row) + "\n";
  }
  return text;
}

TEST(CatalogueDamageTest, WhatACallDidIsThereAfterAKill) {
  const TempFolder folder;
  const std::string path = folder / "c";
  CatalogueModel model;
  Random random(7);
  uint64_t steps = 0;
  for (int kill = 0; kill < 25; ++kill) {
    const uint64_t steps_min = 1 + random.Below(20);
    const uint64_t told =
        KillWriter(path, steps, steps_min, random.Below(9000));
    ASSERT_GE(told, steps_min) << "the writer ended by itself";
    for (uint64_t i = 0; i < told; ++i) {
      Step(model, steps++);
    }
    const auto catalogue = Catalogue::Open(path);
    ASSERT_TRUE(catalogue) << catalogue.error().message;
    const auto groups = (*catalogue)->Groups({.limit = kPageRowsMax});
    const auto bundles = (*catalogue)->Bundles({.limit = kPageRowsMax});
    ASSERT_TRUE(groups && bundles);
    const std::string found = DescribeContents(groups->rows, bundles->rows);
    const auto wanted = [&] {
      return DescribeContents(model.Groups(""), model.Bundles({}));
    };
    if (found != wanted()) {  // one more was done and not told of
      Step(model, steps++);
    }
    ASSERT_EQ(found, wanted()) << "kill " << kill << ", step " << steps;
  }
  std::printf("25 kills in %d steps\n", static_cast<int>(steps));
  EXPECT_GT(steps, 100u);
}

}  // namespace
}  // namespace clew::collector
