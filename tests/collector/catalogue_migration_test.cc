// Goal: a catalogue of any earlier version is opened, loses nothing and works
// as one that was made today. Method: files made by the statements that each
// version was released with, filled as that version filled them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include "collector/catalogue.h"
#include "collector/notification_queue.h"
#include "collector/sqlite.h"
#include "tests/collector/catalogue_model.h"
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

// A bundle that waits to be solved, in a group, and one not analysed.
void MakeVersion1(const std::string& path) {
  auto database = Database::Open(path, Database::Mode::kReadWriteCreate);
  ASSERT_TRUE(database.has_value());
  for (const char* statement : kVersion1) {
    ASSERT_TRUE(database->Execute(statement)) << statement;
  }
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
    for (const char* statement : kVersion2) {
      ASSERT_TRUE(database->Execute(statement)) << statement;
    }
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
