// Goal: of each host the last report is kept, those that want attention come
// first, and neither their number nor their texts grow without bound.
// Method: hand-picked, with the clock of the test.
#include "collector/catalogue/host_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

using testing::ElementsAre;
using transfer::HostReport;

constexpr int64_t kNow_s = 1'800'000'000;

class HostTableTest : public testing::Test {
 protected:
  HostTableTest() { Open(kHostsMax); }
  void Open(uint64_t hosts_max) {
    const std::string path = folder_ / "catalogue.sqlite";
    ASSERT_TRUE(Catalogue::Open(path).has_value());
    auto opened = HostTable::Open(path, hosts_max);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    hosts_ = *std::move(opened);
  }
  void Put(const std::string& host, const HostReport& report = {},
           int64_t age_s = 0) {
    const Status put = hosts_->Put(host, report, kNow_s - age_s);
    ASSERT_TRUE(put.has_value()) << put.error().message;
  }
  std::vector<HostRow> Rows(const HostQuery& query = {}) {
    auto page = hosts_->Hosts(query, kNow_s);
    EXPECT_TRUE(page.has_value()) << page.error().message;
    return page->rows;
  }
  std::vector<std::string> Names(const HostQuery& query = {}) {
    std::vector<std::string> names;
    for (const HostRow& row : Rows(query)) {
      names.push_back(row.host);
    }
    return names;
  }

  TempFolder folder_;
  std::unique_ptr<HostTable> hosts_;
};

TEST_F(HostTableTest, KeepsTheLastReportOfEachHost) {
  Put("web1", {.version = "0.1.0", .stuck = 3});
  const HostReport last = {.version = "0.2.0",
                           .state = "recording",
                           .source = "perf",
                           .source_error = "a",
                           .units_error = "b",
                           .last_error = "c",
                           .last_error_at_s = 5,
                           .uptime_s = 6,
                           .spool_bundles = 7,
                           .spool_bytes = 8,
                           .spool_bytes_max = 9,
                           .stuck = 10,
                           .refused = 11,
                           .saved = 12,
                           .not_saved = 13,
                           .uploaded = 14,
                           .lost = UINT64_MAX};
  Put("web1", last);
  Open(kHostsMax);
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  const HostRow& row = rows[0];
  EXPECT_EQ(row.seen_s, kNow_s);
  EXPECT_EQ(row.version, "0.2.0");
  EXPECT_EQ(row.state, "recording");
  EXPECT_EQ(row.source, "perf");
  EXPECT_EQ(row.source_error, "a");
  EXPECT_EQ(row.units_error, "b");
  EXPECT_EQ(row.last_error, "c");
  EXPECT_EQ(row.last_error_at_s, 5);
  EXPECT_EQ(row.uptime_s, 6u);
  EXPECT_EQ(row.spool_bundles, 7u);
  EXPECT_EQ(row.spool_bytes, 8u);
  EXPECT_EQ(row.spool_bytes_max, 9u);
  EXPECT_EQ(row.stuck, 10u);
  EXPECT_EQ(row.refused, 11u);
  EXPECT_EQ(row.saved, 12u);
  EXPECT_EQ(row.not_saved, 13u);
  EXPECT_EQ(row.uploaded, 14u);
  EXPECT_EQ(row.lost, static_cast<uint64_t>(INT64_MAX));
}

TEST_F(HostTableTest, WhatWantsAttentionComesFirst) {
  Put("fine");
  Put("stuck", {.stuck = 1}, 30);
  Put("lost", {.lost = 1}, 20);
  Put("blind", {.source_error = "no PT"}, 10);
  Put("unwatched", {.units_error = "no systemd"}, 5);
  Put("silent", {}, kSilentAfter_s);
  Put("silent for long", {.stuck = 1}, 2 * kSilentAfter_s);
  Put("nearly silent", {.last_error = "over"}, kSilentAfter_s - 1);
  EXPECT_THAT(Names(),
              ElementsAre("silent", "silent for long", "unwatched", "blind",
                          "lost", "stuck", "fine", "nearly silent"));
  EXPECT_THAT(Names({.health = HostHealth::kFine}),
              ElementsAre("fine", "nearly silent"));
  EXPECT_THAT(Names({.text = "SILENT", .health = HostHealth::kSilent}),
              ElementsAre("silent", "silent for long"));
  EXPECT_THAT(Names({.text = "%"}), ElementsAre());
  EXPECT_THAT(Names({.offset = 2, .limit = 2}),
              ElementsAre("unwatched", "blind"));
  EXPECT_EQ(hosts_->Hosts({.limit = 1}, kNow_s)->total, 8u);
  const auto counts = hosts_->Counts(kNow_s);
  EXPECT_THAT(counts->by_health, ElementsAre(2u, 4u, 2u));
}

TEST_F(HostTableTest, ForgetsWhoSaidNothingForLongest) {
  Open(3);
  for (const int64_t age_s : {10, 40, 20, 30}) {
    Put("host " + std::to_string(age_s), {}, age_s);
  }
  EXPECT_THAT(Names(), ElementsAre("host 10", "host 20", "host 30"));
}

TEST_F(HostTableTest, TextsAreCutAndOnOneLine) {
  Put("web1",
      {.version = std::string(10'000, 'v'),
       .source_error = "one\nline\x1b[31m\xff" + std::string(9999, 'e')});
  const HostRow row = Rows()[0];
  EXPECT_LE(row.version.size(), kWordBytesMax);
  EXPECT_LE(row.source_error.size(), kLineBytesMax);
  EXPECT_EQ(row.source_error.find('\n'), std::string::npos);
  EXPECT_EQ(row.source_error.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace clew::collector
