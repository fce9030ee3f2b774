// Goal: a catalogue of any earlier version is opened, loses nothing and works
// as one that was made today. Method: files made by the statements that each
// version was released with, filled as that version filled them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <span>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/notification_queue.h"
#include "collector/catalogue/sqlite.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

using testing::HasSubstr;

// Version 1, to the letter.
constexpr const char* kVersion1[] = {
    "CREATE TABLE bundles("
    "id BLOB PRIMARY KEY, host TEXT NOT NULL, unit TEXT NOT NULL, "
    "command TEXT NOT NULL, source TEXT NOT NULL, failure TEXT NOT NULL, "
    "recorded_at_s INTEGER NOT NULL, received_at_s INTEGER NOT NULL, "
    "seen_s INTEGER NOT NULL, size_bytes INTEGER NOT NULL, "
    "sufficiency INTEGER, fit INTEGER NOT NULL, "
    "state INTEGER NOT NULL DEFAULT 0, progress INTEGER NOT NULL DEFAULT 0, "
    "attempts INTEGER NOT NULL DEFAULT 0, "
    "signature TEXT NOT NULL DEFAULT '', grade TEXT NOT NULL DEFAULT '', "
    "why TEXT NOT NULL DEFAULT '', "
    "solve_seconds REAL NOT NULL DEFAULT 0) STRICT",
    "CREATE INDEX bundles_by_time ON bundles(received_at_s DESC, id)",
    "CREATE INDEX bundles_by_host ON bundles(host, received_at_s DESC, id)",
    "CREATE INDEX bundles_by_state "
    "ON bundles(state, received_at_s DESC, id, size_bytes)",
    "CREATE INDEX bundles_by_group "
    "ON bundles(signature, received_at_s DESC, id)",
    "CREATE INDEX bundles_by_progress ON bundles("
    "signature, progress DESC, fit DESC, received_at_s DESC, id)",
    "CREATE INDEX bundles_to_analyse ON bundles(received_at_s, id) "
    "WHERE state = 0 AND signature = ''",
    "CREATE TABLE analyses("
    "id BLOB PRIMARY KEY, title TEXT NOT NULL, "
    "backtraces TEXT NOT NULL) STRICT",
    "CREATE TABLE places("
    "signature TEXT NOT NULL, host TEXT NOT NULL, unit TEXT NOT NULL, "
    "bundles INTEGER NOT NULL, "
    "PRIMARY KEY(signature, host, unit)) STRICT, WITHOUT ROWID",
    "CREATE TABLE groups("
    "signature TEXT PRIMARY KEY, title TEXT NOT NULL, "
    "bundles INTEGER NOT NULL, host_count INTEGER NOT NULL, "
    "first_seen_s INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, "
    "state INTEGER NOT NULL, why TEXT NOT NULL, representative BLOB, "
    "to_solve BLOB) STRICT, WITHOUT ROWID",
    "CREATE INDEX groups_by_time ON groups(last_seen_s DESC, signature)",
    "CREATE INDEX groups_to_solve ON groups(last_seen_s DESC, signature, "
    "to_solve) WHERE to_solve IS NOT NULL",
    "PRAGMA application_id = 0x636c6577",
    "PRAGMA user_version = 1",
};

// What version 2 added, to the letter.
constexpr const char* kVersion2[] = {
    "ALTER TABLE bundles ADD COLUMN not_before_s INTEGER NOT NULL DEFAULT 0",
    "PRAGMA user_version = 2",
};

// What versions 3 and 4 added, to the letter.
constexpr const char* kVersion3[] = {
    "CREATE TABLE notifications("
    "number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, "
    "signature TEXT NOT NULL, title TEXT NOT NULL, bundle BLOB NOT NULL, "
    "command TEXT NOT NULL, version TEXT NOT NULL, failure TEXT NOT NULL, "
    "host TEXT NOT NULL, unit TEXT NOT NULL, bundles INTEGER NOT NULL, "
    "first_seen_s INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, "
    "queued_at_s INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, "
    "not_before_s INTEGER NOT NULL DEFAULT 0) STRICT",
    "CREATE INDEX notifications_by_time ON notifications(not_before_s, number)",
    "CREATE TABLE notification_limit("
    "id INTEGER PRIMARY KEY CHECK(id = 1), most INTEGER NOT NULL, "
    "dropped INTEGER NOT NULL) STRICT",
    "INSERT INTO notification_limit VALUES(1, 0, 0)",
    "CREATE TABLE host_reports("
    "host TEXT PRIMARY KEY, seen_s INTEGER NOT NULL, "
    "version TEXT NOT NULL, state TEXT NOT NULL, source TEXT NOT NULL, "
    "source_error TEXT NOT NULL, units_error TEXT NOT NULL, "
    "last_error TEXT NOT NULL, last_error_s INTEGER NOT NULL, "
    "uptime_s INTEGER NOT NULL, "
    "spool_bundles INTEGER NOT NULL, spool_bytes INTEGER NOT NULL, "
    "spool_bytes_max INTEGER NOT NULL, stuck INTEGER NOT NULL, "
    "refused INTEGER NOT NULL, saved INTEGER NOT NULL, "
    "not_saved INTEGER NOT NULL, uploaded INTEGER NOT NULL, "
    "lost INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "PRAGMA user_version = 3",
};
constexpr const char* kVersion4[] = {
    "ALTER TABLE bundles ADD COLUMN program TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE bundles ADD COLUMN version TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE groups ADD COLUMN program TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE groups ADD COLUMN rules INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE groups ADD COLUMN tries INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX groups_by_rules ON groups(rules)",
    "CREATE INDEX bundles_by_day ON bundles(signature, seen_s)",
    "CREATE INDEX bundles_to_filter ON bundles(received_at_s DESC, id, "
    "program, version, unit, failure, host, state, signature)",
    "CREATE TABLE versions("
    "program TEXT NOT NULL, version TEXT NOT NULL, rank INTEGER NOT NULL, "
    "PRIMARY KEY(program, version)) STRICT, WITHOUT ROWID",
    "CREATE TABLE group_versions("
    "signature TEXT NOT NULL, version TEXT NOT NULL, rank INTEGER NOT NULL, "
    "first_seen_s INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, "
    "PRIMARY KEY(signature, version)) STRICT, WITHOUT ROWID",
    "CREATE TABLE marks("
    "signature TEXT PRIMARY KEY, resolved INTEGER NOT NULL DEFAULT 0, "
    "resolved_in TEXT NOT NULL DEFAULT '', boundary INTEGER NOT NULL "
    "DEFAULT 0, reopened_in TEXT NOT NULL DEFAULT '', "
    "note TEXT NOT NULL DEFAULT '', by TEXT NOT NULL DEFAULT '', "
    "at_s INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID",
    "CREATE TABLE former_signatures("
    "former TEXT PRIMARY KEY, present TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE races("
    "id BLOB PRIMARY KEY, races TEXT NOT NULL) STRICT",
    "PRAGMA user_version = 4",
};

void Execute(Database& database, std::span<const char* const> statements) {
  for (const char* statement : statements) {
    ASSERT_TRUE(database.Execute(statement)) << statement;
  }
}

// A bundle that waits to be solved, in a group, and one not analysed.
void MakeVersion1(const std::string& path) {
  auto database = Database::Open(path, Database::Mode::kReadWriteCreate);
  ASSERT_TRUE(database.has_value());
  Execute(*database, kVersion1);
  for (const uint64_t i : {1, 2}) {
    const NewBundle bundle = BundleOf(i);
    ASSERT_TRUE(
        database
            ->Prepare("INSERT INTO bundles(id, host, unit, command, source, "
                      "failure, recorded_at_s, received_at_s, seen_s, "
                      "size_bytes, fit, signature) "
                      "VALUES(?, 'web1', '', 'bank', 'qemu', '', 5, ?, 5, 9, "
                      "0, ?)")
            .Blob(bundle.id.bytes())
            .Int(static_cast<int64_t>(i))
            .Text(i == 1 ? SignatureOf(1) : "")
            .Run());
  }
  ASSERT_TRUE(database->Prepare("INSERT INTO places VALUES(?, 'web1', '', 1)")
                  .Text(SignatureOf(1))
                  .Run());
  const NewBundle first = BundleOf(1);
  ASSERT_TRUE(database
                  ->Prepare("INSERT INTO groups VALUES(?1, 'SIGABRT', 1, 1, 5, "
                            "5, 0, '', ?2, ?2)")
                  .Text(SignatureOf(1))
                  .Blob(first.id.bytes())
                  .Run());
}

TEST(CatalogueMigrationTest, Version1LosesNothingAndWorksOn) {
  const TempFolder folder;
  const std::string path = folder / "catalogue.sqlite";
  MakeVersion1(path);
  for (int i = 0; i < 2; ++i) {
    const auto opened = Catalogue::Open(path);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    Catalogue& catalogue = **opened;
    EXPECT_EQ(catalogue.Counts()->bundles, 2u);
    EXPECT_EQ((*catalogue.Bundle(BundleOf(1).id))->host, "web1");
    EXPECT_EQ((*catalogue.Group(SignatureOf(1)))->bundles, 1u);
    // Put off by what is new in version 2, and then taken.
    ASSERT_EQ(*catalogue.TakeForSolving(), BundleOf(1).id);
    ASSERT_TRUE(catalogue.PutOff(BundleOf(1).id, 100));
    EXPECT_EQ(*catalogue.TakeForSolving(), std::nullopt);
    ASSERT_EQ(*catalogue.TakeForAnalysis(), BundleOf(2).id);
    ASSERT_TRUE(catalogue.PutOff(BundleOf(2).id, 100));
    EXPECT_EQ(*catalogue.TakeForAnalysis(), std::nullopt);
    ASSERT_TRUE(catalogue.PutOff(BundleOf(1).id, 0));
    ASSERT_TRUE(catalogue.PutOff(BundleOf(2).id, 0));
  }
}

TEST(CatalogueMigrationTest, Version2LosesNothingAndTellsOfNewGroups) {
  const TempFolder folder;
  const std::string path = folder / "catalogue.sqlite";
  MakeVersion1(path);
  {
    auto database = Database::Open(path, Database::Mode::kReadWriteCreate);
    Execute(*database, kVersion2);
  }
  const auto catalogue = Catalogue::Open(path);
  ASSERT_TRUE(catalogue.has_value()) << catalogue.error().message;
  EXPECT_EQ((*catalogue)->Counts()->bundles, 2u);
  auto queue = NotificationQueue::Open(path, 10);
  ASSERT_TRUE(queue.has_value()) << queue.error().message;
  NewBundle bundle = BundleOf(3);
  bundle.received_at_s = time(nullptr);
  ASSERT_TRUE((*catalogue)->Add(bundle));
  ASSERT_TRUE((*catalogue)
                  ->SetAnalysis(bundle.id, {.signature = SignatureOf(3),
                                            .title = "",
                                            .backtraces = ""}));
  EXPECT_EQ(queue->Count()->waiting, 1u);
}

// What an engineer said stays said, and counts from when it was.
TEST(CatalogueMigrationTest, Version4KeepsWhatEngineersSaid) {
  const TempFolder folder;
  const std::string path = folder / "catalogue.sqlite";
  MakeVersion1(path);
  {
    auto database = Database::Open(path, Database::Mode::kReadWriteCreate);
    Execute(*database, kVersion2);
    Execute(*database, kVersion3);
    Execute(*database, kVersion4);
    ASSERT_TRUE(
        database
            ->Prepare("INSERT INTO marks(signature, resolved, boundary, note, "
                      "by, at_s) VALUES(?, 1, 1, 'see #12', 'ann', 100)")
            .Text(SignatureOf(1))
            .Run());
  }
  const auto catalogue = Catalogue::Open(path);
  ASSERT_TRUE(catalogue.has_value()) << catalogue.error().message;
  const auto mark = [&] {
    return (*(*catalogue)->Group(SignatureOf(1)))->mark;
  };
  EXPECT_EQ(mark().note, "see #12");
  EXPECT_TRUE(mark().resolved);
  for (const int64_t received_s : {99, 100}) {
    NewBundle bundle = BundleOf(static_cast<uint64_t>(received_s));
    bundle.received_at_s = received_s;
    ASSERT_TRUE((*catalogue)->Add(bundle));
    ASSERT_TRUE((*catalogue)
                    ->SetAnalysis(bundle.id, {.signature = SignatureOf(1),
                                              .title = "",
                                              .backtraces = "{}",
                                              .program = "bank",
                                              .version = "aa"}));
    EXPECT_EQ(mark().resolved, received_s < 100) << received_s;
  }
}

// A group of version 1, whose signature is of the first rules, is taken in as a
// whole by the group of what its representative is now.
TEST(CatalogueMigrationTest, GroupsOfEarlierRulesStayWhole) {
  const TempFolder folder;
  const std::string path = folder / "catalogue.sqlite";
  MakeVersion1(path);
  const auto opened = Catalogue::Open(path);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  Catalogue& catalogue = **opened;
  const BundleId old = BundleOf(1).id;
  const Analysis now = {.signature = SignatureOf(9),
                        .title = "bank: SIGABRT",
                        .backtraces = "{}",
                        .program = "bank",
                        .version = "aa"};
  // Another of the old group, and a new bundle that the next build sent.
  ASSERT_EQ(*catalogue.TakeForAnalysis(), BundleOf(2).id);
  ASSERT_TRUE(
      catalogue.SetAnalysis(BundleOf(2).id, {.signature = SignatureOf(1),
                                             .title = "",
                                             .backtraces = "{}",
                                             .rules = 1}));
  NewBundle next = BundleOf(3);
  ASSERT_TRUE(catalogue.Add(next));
  ASSERT_EQ(*catalogue.TakeForAnalysis(), next.id);
  Analysis of_next = now;
  of_next.version = "bb";
  ASSERT_TRUE(catalogue.SetAnalysis(next.id, of_next));
  EXPECT_EQ(catalogue.Groups({})->total, 2u);
  // Broken off, it is taken again; its state is none of this.
  ASSERT_TRUE(catalogue.SetSolved(old, {.state = BundleState::kWitness}));
  ASSERT_EQ(*catalogue.TakeForAnalysis(), old);
  EXPECT_EQ(*catalogue.TakeForAnalysis(), std::nullopt);
  ASSERT_TRUE(catalogue.SetSolved(old, {.state = BundleState::kStored}));
  ASSERT_EQ(*catalogue.TakeForAnalysis(), old);
  EXPECT_EQ((*catalogue.Bundle(old))->state, BundleState::kWitness);
  ASSERT_TRUE(catalogue.SetAnalysis(old, now));

  EXPECT_EQ(*catalogue.TakeForAnalysis(), std::nullopt);
  EXPECT_EQ(catalogue.Groups({})->total, 1u);
  const auto group = catalogue.Group(SignatureOf(9));
  ASSERT_TRUE(group && *group);
  EXPECT_EQ((*group)->bundles, 3u);
  EXPECT_EQ((*group)->state, BundleState::kWitness);
  EXPECT_EQ((*group)->representative, old);
  EXPECT_EQ((*group)->first_seen_s, 5);
  EXPECT_EQ((*group)->program, "bank");
  EXPECT_EQ((*group)->versions, 2u);
  EXPECT_EQ((*catalogue.Bundle(BundleOf(2).id))->signature, SignatureOf(9));
  EXPECT_EQ(*catalogue.PresentSignature(SignatureOf(1)), SignatureOf(9));
}

// What cannot be analysed any more keeps the group that it has.
TEST(CatalogueMigrationTest, AGroupOfEarlierRulesIsTriedThreeTimes) {
  const TempFolder folder;
  const std::string path = folder / "catalogue.sqlite";
  MakeVersion1(path);
  for (int i = 0; i < 3; ++i) {  // the collector ends each time
    const auto opened = Catalogue::Open(path);
    ASSERT_EQ(*(*opened)->TakeForAnalysis(),
              i == 0 ? BundleOf(2).id : BundleOf(1).id);
    if (i == 0) {
      ASSERT_TRUE((*opened)->SetAnalysis(BundleOf(2).id,
                                         AnalysisByKind("hang", "bank")));
      ASSERT_EQ(*(*opened)->TakeForAnalysis(), BundleOf(1).id);
    }
  }
  const auto opened = Catalogue::Open(path);
  EXPECT_EQ(*(*opened)->TakeForAnalysis(), std::nullopt);
  ASSERT_TRUE(
      (*opened)->SetAnalysis(BundleOf(1).id, AnalysisByKind("abort", "bank")));
  EXPECT_EQ((*(*opened)->Bundle(BundleOf(1).id))->signature, SignatureOf(1));
}

TEST(CatalogueMigrationTest, Version1WithOtherTablesIsRefused) {
  const TempFolder folder;
  const std::string path = folder / "catalogue.sqlite";
  MakeVersion1(path);
  auto database = Database::Open(path, Database::Mode::kReadWriteCreate);
  ASSERT_TRUE(database->Execute("DROP INDEX bundles_by_host"));
  const auto opened = Catalogue::Open(path);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("is not that of version 1"));
}

}  // namespace
}  // namespace clew::collector
