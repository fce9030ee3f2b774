// Goal: every page shows what the catalogue has.
// Method: golden, the site without its sockets, over a fake catalogue.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "collector/web/backtraces.h"
#include "collector/web/filters.h"
#include "tests/collector/web/html_tokens.h"
#include "tests/collector/web/site_fixture.h"

namespace clew::collector::web {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST_F(SiteTest, AnEmptyCollectorSaysWhatToDo) {
  for (const char* path : {"/", "/bundles", "/hosts"}) {
    EXPECT_THAT(
        Text(path),
        HasSubstr("clew upload --collector collector.example:7447 fail.clew"));
  }
}

TEST_F(SiteTest, BundlesWithoutAGroupAreMentioned) {
  data_.catalogue.bundles = {SampleBundle(1)};
  EXPECT_THAT(Text("/"), HasSubstr("1 bundle is here"));
}

TEST_F(SiteTest, AGroupIsListedWithCountsTimesHostsAndStatus) {
  FillWithOne(data_.catalogue);
  GroupRow& group = data_.catalogue.groups[0];
  group.bundles = 1234;
  group.host_count = 3;
  group.state = BundleState::kUnsolved;
  group.why = "no answer within 300 s";
  const std::string text = Text("/");
  EXPECT_THAT(text, HasSubstr(group.title));
  EXPECT_THAT(text, HasSubstr("1,234"));
  EXPECT_THAT(text, HasSubstr("2026-11-20 11:51:00 9 min ago"));
  EXPECT_THAT(text, HasSubstr("web-00.example and 2 more"));
  EXPECT_THAT(text, HasSubstr("unsolved"));
  EXPECT_THAT(text, HasSubstr("no answer within 300 s"));
}

TEST_F(SiteTest, AGroupSaysWhichLinesRacedInWhichVersions) {
  FillWithOne(data_.catalogue);
  GroupRow& group = data_.catalogue.groups[0];
  group.program = "bank";
  group.first_version = "5c0fc84b2d19a0a4be4d1d8e5dfe1be9";
  group.mark = {.reopened_in = "beef", .note = "see #12", .by = "ann"};
  const std::string text = Text("/groups/" + group.signature);
  for (const char* wanted :
       {"The race: balance", "what thread 12 wrote in between is lost",
        "read balance = 1940", "bank.c:26", "write balance = 2040", "bank.c:22",
        "bank.c:27", "first seen in version 5c0fc84b2d19", "seen again in beef",
        "see #12", "3 bundles in 30 days"}) {
    EXPECT_THAT(text, HasSubstr(wanted));
  }
  EXPECT_THAT(Text("/bundles/" + SampleId(0).hex()), HasSubstr("bank.c:27"));
  EXPECT_THAT(Text("/bundles?since=2026-11-19&program=bank"),
              HasSubstr("Bundles"));
  EXPECT_EQ(Get("/bundles?since=2026-13-19").status, 400);
  EXPECT_EQ(Get("/?status=maybe").status, 400);
}

TEST_F(SiteTest, AGroupSaysWhoHoldsAndWhoWaits) {
  FillWithOne(data_.catalogue);
  data_.catalogue.races[SampleId(0)] = SampleDeadlock("accounts");
  const std::string text =
      Text("/groups/" + data_.catalogue.groups[0].signature);
  for (const char* wanted :
       {"The deadlock", "accounts for reading at bank.c:12",
        "lock 0x404050 at bank.c:14", "end of thread 11 at bank.c:30"}) {
    EXPECT_THAT(text, HasSubstr(wanted));
  }
  // Who only waits for those of the cycle is none of it, and neither is a race
  // of ld.so's.
  EXPECT_EQ(text.find("bank.c:99"), std::string::npos);
  EXPECT_EQ(text.find("The race"), std::string::npos);
}

TEST_F(SiteTest, ACallToADescriptorIsToldWithItsResult) {
  FillWithOne(data_.catalogue);
  data_.catalogue.races[SampleId(0)] =
      R"({"races":[{"accesses":[{"thread":12,"kind":"write","call":"close",
          "descriptor":5,"result":0,"within":"__close","file":"fd.c","line":7},
          {"thread":11,"kind":"read","call":"read","descriptor":5,"result":-9,
          "within":"read","file":"fd.c","line":9}]}],"waits":[]})";
  const std::string text =
      Text("/groups/" + data_.catalogue.groups[0].signature);
  for (const char* wanted : {"The race: descriptor 5", "close descriptor 5 = 0",
                             "read descriptor 5 = -9", "fd.c:9 by read"}) {
    EXPECT_THAT(text, HasSubstr(wanted));
  }
}

TEST_F(SiteTest, ADamagedCatalogueIsNotHealthy) {
  EXPECT_EQ(Get("/healthz").status, 200);
  data_.catalogue.health = CorruptInput("catalogue.sqlite: damaged");
  EXPECT_EQ(Get("/healthz").status, 503);
  EXPECT_THAT(Get("/healthz").body, HasSubstr("catalogue.sqlite: damaged"));
  EXPECT_EQ(Get("/").status, 200);
}

TEST_F(SiteTest, ATitleHasProgramVersionAndWhatFailed) {
  const std::string failed = "Assertion `a == b' failed (SIGABRT in main)";
  FillWithOne(data_.catalogue);
  GroupRow& group = data_.catalogue.groups[0];
  group.title = "bank: " + failed;
  group.program = "bank";
  group.first_version = "1.4.1";
  group.last_version = "1.4.2-1+deb12u1";
  const std::string wanted = "bank 1.4.2-1+deb12u1: " + failed;
  EXPECT_THAT(Text("/"), HasSubstr(wanted));
  EXPECT_THAT(Text("/groups/" + group.signature), HasSubstr(wanted));
  BundleRow& bundle = data_.catalogue.bundles[0];
  bundle.program = "bank";
  bundle.version = "5c0fc84b2d19a0a4be4d1d8e5dfe1be92f5d43a1";
  data_.catalogue.analyses.begin()->second.title = failed;  // without program
  EXPECT_THAT(Text("/bundles/" + bundle.id.hex()),
              HasSubstr("bank 5c0fc84b2d19: " + failed));
  EXPECT_THAT(Text("/bundles"), HasSubstr("bank 5c0fc84b2d19: signal 6"));
}

TEST_F(SiteTest, ASolvedBundleSaysHowToReplayIt) {
  const std::string id = data_.AddStored().hex();
  const std::string text = Text("/bundles/" + id);
  const std::string folder = id.substr(0, kShortIdDigits) + ".clew";
  EXPECT_THAT(text, HasSubstr("clew get --collector collector.example:7447 " +
                              id + " -o " + folder));
  EXPECT_THAT(text, HasSubstr("clew replay " + folder));
  EXPECT_THAT(text, HasSubstr("clew replay --check 5 " + folder));
  EXPECT_THAT(text, Not(HasSubstr("clew solve")));
  EXPECT_THAT(text, HasSubstr("path-exact"));
  EXPECT_THAT(text, HasSubstr("manifest.pb"));
  EXPECT_THAT(text, HasSubstr("97 of 100"));
}

TEST_F(SiteTest, AnUnsolvedBundleSaysToSolveItFirst) {
  data_.catalogue.bundles = {SampleBundle(1)};
  data_.catalogue.bundles[0].state = BundleState::kUnsolved;
  const std::string text = Text("/bundles/" + SampleId(1).hex());
  EXPECT_LT(text.find("clew solve"), text.find("clew replay"));
  EXPECT_THAT(text, HasSubstr("No backtraces yet."));
  EXPECT_THAT(text, HasSubstr("The store cannot read the list of files."));
}

TEST_F(SiteTest, AModelThatDiffersIsToBeReportedNotReplayed) {
  FillWithOne(data_.catalogue);
  BundleRow& bundle = data_.catalogue.bundles[0];
  bundle.state = BundleState::kModelDiffers;
  bundle.why = "after `mremap`, at main";
  const std::string text = Text("/bundles/" + bundle.id.hex());
  EXPECT_THAT(text, HasSubstr("model-differs"));
  EXPECT_THAT(text, HasSubstr("after `mremap`, at main"));
  EXPECT_THAT(text, HasSubstr("clew report-bug"));
  EXPECT_THAT(text, Not(HasSubstr("clew replay")));
  EXPECT_THAT(Text("/?state=model-differs"), HasSubstr("model-differs"));
}

TEST_F(SiteTest, TheFailingThreadComesFirstAndIsOpen) {
  const std::string id = data_.AddStored().hex();
  const std::string body = Get("/bundles/" + id).body;
  const size_t failed = body.find("Thread 18484");
  EXPECT_LT(failed, body.find("Thread 18486"));
  EXPECT_LT(body.find("open=\"\""), failed);
  EXPECT_EQ(body.find("open=\"\"", failed), std::string::npos);
  const std::string text = TextOfHtml(body);
  EXPECT_THAT(text, HasSubstr("0 main bank.c:62 /usr/lib/bank/bank +0x13a8"));
  EXPECT_THAT(text, HasSubstr("not known"));  // a frame without a name
}

TEST_F(SiteTest, AnyDocumentOfBacktracesIsTolerated) {
  const std::string id = data_.AddStored().hex();
  Analysis& analysis = data_.catalogue.analyses.begin()->second;
  std::string deep;
  for (int i = 0; i < 100000; ++i) {
    deep += "[{\"threads\":";
  }
  for (const std::string& document :
       {std::string(), std::string("null"), std::string("[]"),
        std::string("{\"threads\":7}"), std::string("{\"threads\":[]}"),
        std::string("\xff"), deep, SampleBacktraces().substr(0, 100)}) {
    analysis.backtraces = document;
    EXPECT_THAT(Text("/bundles/" + id),
                HasSubstr("No backtraces could be made"));
  }
  for (const char* document :
       {"{\"threads\":[1,null,[],{}]}",
        "{\"threads\":[{\"thread\":\"x\",\"failed\":1,\"frames\":{}}]}",
        "{\"threads\":[{\"thread\":1e300,\"frames\":[1,[],{\"line\":-1}]}]}",
        "{\"threads\":[{\"thread\":-1,\"frames\":[{\"function\":{}}]}]}"}) {
    analysis.backtraces = document;
    EXPECT_THAT(Text("/bundles/" + id), HasSubstr("Thread "));
  }
}

TEST_F(SiteTest, AnImportedBundleIsNotToBeReplayed) {
  data_.catalogue.bundles = {SampleBundle(1)};
  data_.catalogue.bundles[0].source = "imported";
  data_.catalogue.bundles[0].state = BundleState::kUnsolved;
  const std::string text = Text("/bundles/" + SampleId(1).hex());
  EXPECT_THAT(text, HasSubstr("clew decode --as slices"));
  EXPECT_THAT(text, Not(HasSubstr("clew replay")));
  EXPECT_THAT(text, Not(HasSubstr("clew solve")));
}

TEST_F(SiteTest, AGroupShowsItsHostsAndTheFailingThread) {
  data_.AddStored();
  data_.catalogue.groups[0].hosts = {"a.example", "b.example"};
  data_.catalogue.groups[0].host_count = 11;
  const std::string text = Text("/groups/" + SampleSignature(0));
  EXPECT_THAT(text, HasSubstr("a.example , b.example and 9 more"));
  EXPECT_THAT(text, HasSubstr("Thread 18484"));
  EXPECT_THAT(text, HasSubstr("bank.c:62"));
  EXPECT_THAT(text, Not(HasSubstr("Thread 18486")));
  data_.catalogue.analyses.begin()->second.backtraces =
      json{{"threads", {{{"thread", 5}, {"frames", {json::object()}}}}}}.dump();
  EXPECT_THAT(Text("/groups/" + SampleSignature(0)), Not(HasSubstr("Thread")));
}

TEST_F(SiteTest, WhatBacktracesCouldNotTellIsShown) {
  const std::string id = data_.AddStored().hex();
  data_.catalogue.analyses.begin()->second.backtraces = json{
      {"threads",
       {{{"thread", 1}, {"cut_off", true}, {"frames", {json::object()}}}}},
      {"notes", {"no unwind table of libfoo", 7}}}.dump();
  const std::string text = Text("/bundles/" + id);
  EXPECT_THAT(text, HasSubstr("goes on beyond these frames"));
  EXPECT_THAT(text, HasSubstr("no unwind table of libfoo"));
}

TEST_F(SiteTest, ThreadsAndFramesBeyondTheLimitsAreCounted) {
  const std::string id = data_.AddStored().hex();
  json frames(kFramesMax + 5, json{{"function", "f"}});
  json threads(kThreadsMax + 3, json{{"thread", 1}, {"frames", json::array()}});
  threads.back() = {{"thread", 99}, {"failed", true}, {"frames", frames}};
  data_.catalogue.analyses.begin()->second.backtraces =
      json{{"threads", threads}}.dump();
  const std::string text = Text("/bundles/" + id);
  EXPECT_THAT(text, HasSubstr("Thread 99"));
  EXPECT_THAT(text, HasSubstr("5 more frames are not shown."));
  EXPECT_THAT(text, HasSubstr("3 more threads are not shown."));
}

TEST_F(SiteTest, HostsAreAddedUp) {
  FillWithFleet(data_.catalogue);
  const std::string text = Text("/hosts");
  // Bundles, witnesses, bytes: i of 120 are of host i % 23.
  uint64_t witnesses = 0;
  for (size_t i = 0; i < 120; i += 23) {
    witnesses +=
        data_.catalogue.bundles[i].state == BundleState::kWitness ? 1 : 0;
  }
  EXPECT_GT(witnesses, 0u);
  EXPECT_THAT(
      text, HasSubstr(fmt::format("web-00.example 6 {} 22.5 MiB", witnesses)));
  EXPECT_THAT(text, HasSubstr("web-22.example 5 "));
}

TEST_F(SiteTest, HostsThatWantAttentionComeFirstAndSayWhy) {
  data_.AddReports(1'000);
  const std::string text = Text("/hosts");
  EXPECT_THAT(text, HasSubstr("silent 25"));
  EXPECT_THAT(text, HasSubstr("trouble 90"));
  EXPECT_THAT(text, HasSubstr("fine 885"));
  EXPECT_THAT(text, HasSubstr("said nothing for a day"));
  EXPECT_THAT(text, HasSubstr("1–50 of 1,000"));
  EXPECT_LT(text.find("web-0007.example silent"),
            text.find("web-0003.example trouble"));
  EXPECT_THAT(Text("/hosts?page=20"), HasSubstr("951–1,000 of 1,000"));
  EXPECT_EQ(LinkOf("/hosts?health=trouble&q=web", "next"),
            "/hosts?q=web&health=trouble&page=2");

  const std::string trouble = Text("/hosts?health=trouble&q=web-0005");
  EXPECT_THAT(trouble, HasSubstr("web-0005.example trouble no intel_pt event"));
  EXPECT_THAT(trouble, HasSubstr("perf, off"));
  EXPECT_THAT(trouble, HasSubstr("0.1.0 1 to send 320.0 MiB of 10.0 GiB 15 2"));
  EXPECT_THAT(trouble, testing::Not(HasSubstr("web-0003")));
  EXPECT_THAT(Text("/hosts?q=web-0003"),
              HasSubstr("2 bundles are stuck: clew daemon status"));
  EXPECT_THAT(Text("/hosts?q=web-0002"),
              HasSubstr("last error, 2 h ago: upload-failed"));
  EXPECT_THAT(Text("/hosts?q=nowhere"), HasSubstr("No host matches"));
  EXPECT_THAT(Get("/metrics").body,
              HasSubstr("\nclew_hosts_by_health{health=\"silent\"} 25\n"));
  const json list =
      json::parse(Get("/api/hosts.json?health=trouble&q=web-0005").body);
  ASSERT_EQ(list["total"], 1) << list;
  EXPECT_EQ(list["hosts"][0]["host"], "web-0005.example");
  EXPECT_EQ(list["hosts"][0]["health"], "trouble");
  EXPECT_EQ(Get("/api/hosts.json?page=0").status, 400);
  EXPECT_EQ(Get("/hosts?health=well").status, 400);
  EXPECT_EQ(Get("/hosts?page=0").status, 400);
}

TEST_F(SiteTest, WhatAHostSaysOfItselfStaysText) {
  for (const std::string& hostile : HostileTexts()) {
    ASSERT_TRUE(data_.hosts->Put("web1", {.version = "0.1.0"}, kNow_s));
    const auto plain = TokensOf(Get("/hosts").body).tags.size();
    ASSERT_TRUE(data_.hosts->Put(
        "web1", {.version = hostile, .state = hostile, .source = hostile},
        kNow_s));
    EXPECT_EQ(TokensOf(Get("/hosts").body).tags.size(), plain) << hostile;
  }
}

// What a visitor chose stays while they go on choosing, and on other pages.
TEST_F(SiteTest, FiltersStayInEveryAddress) {
  FillWithFleet(data_.catalogue);
  const std::string chosen = "program=bank&failure=SIGABRT&last=7d&";
  for (const std::string list : {"/?q=i&", "/bundles?"}) {
    const std::string next = LinkOf(list + chosen, "next");
    EXPECT_EQ(next, list + chosen + "page=2");
    EXPECT_EQ(Get(next).status, 200);
    EXPECT_THAT(Text(list + chosen), HasSubstr("Signal: SIGABRT"));
    const std::string body = Get(list + chosen).body;
    EXPECT_THAT(body, HasSubstr("value=\"bank\""));
    EXPECT_THAT(body, HasSubstr("failure=SIGABRT&amp;last=7d&amp;\""))
        << "a link without the program";
  }
  EXPECT_THAT(Text("/?q=i&state=witness&status=open"), HasSubstr("witness"));
  EXPECT_EQ(LinkOf("/?state=witness&q=i&" + chosen, "next"), "");
  const std::string both = Get("/?state=witness&status=open&" + chosen).body;
  EXPECT_THAT(both, HasSubstr("status=resolved&amp;state=witness&amp;program"));
  // The search keeps what was chosen, and so does the form.
  EXPECT_THAT(both, HasSubstr("type=\"hidden\" name=\"failure\" "
                              "value=\"SIGABRT\""));
  EXPECT_THAT(both, HasSubstr("type=\"hidden\" name=\"state\" "
                              "value=\"witness\""));
}

TEST_F(SiteTest, NoMatchSaysWhatWasChosenAndHowToGoBack) {
  FillWithFleet(data_.catalogue);
  const std::string text = Text("/?program=other&unit=bank&q=i");
  EXPECT_THAT(text, HasSubstr("No group matches."));
  EXPECT_THAT(text, HasSubstr("Program: other"));
  EXPECT_THAT(text, HasSubstr("Unit: bank"));
  EXPECT_THAT(text, HasSubstr("Clear filters"));
  EXPECT_THAT(text, HasSubstr("Show all groups"));
  EXPECT_THAT(text, HasSubstr("seen is when the collector received it"));
}

TEST_F(SiteTest, TimesAreDatesSecondsOrTheLastDays) {
  FillWithFleet(data_.catalogue);
  for (const char* list : {"/?", "/bundles?", "/api/groups.json?"}) {
    for (const char* good :
         {"last=24h", "last=30d&since=2026-11-19", "until=2026-11-20",
          "since=1795176000&until=1795176001", "since=&until=&last="}) {
      EXPECT_EQ(Get(std::string(list) + good).status, 200) << list << good;
    }
    for (const char* bad :
         {"last=8d", "since=2026-13-19", "until=2026-02-30", "until=-1",
          "since=1969-12-31", "until=99999999999999999999", "state=fine"}) {
      EXPECT_EQ(Get(std::string(list) + bad).status, 400) << list << bad;
    }
  }
  EXPECT_EQ(FilterOf({.last = "24h"}, kNow_s)->since_s, kNow_s - 86400);
  EXPECT_EQ(FilterOf({.last = "30d", .since = "2026-11-19"}, kNow_s)->since_s,
            kNow_s - 36 * 3600);
  EXPECT_EQ(FilterOf({.until = "2026-11-20"}, kNow_s)->until_s,
            kNow_s + 12 * 3600);
}

TEST_F(SiteTest, ListsHavePages) {
  FillWithFleet(data_.catalogue);
  EXPECT_THAT(Text("/"), HasSubstr("1–50 of 120"));
  EXPECT_THAT(Text("/?page=3"), HasSubstr("101–120 of 120"));
  EXPECT_THAT(Text("/?page=4"), HasSubstr("Nothing on this page."));
  EXPECT_THAT(Text("/bundles?page=2"), HasSubstr("51–100 of 120"));
  EXPECT_EQ(LinkOf("/", "prev"), "");
  EXPECT_EQ(LinkOf("/", "next"), "/?page=2");
  EXPECT_EQ(LinkOf("/?page=2", "prev"), "/?page=1");
  EXPECT_EQ(LinkOf("/?page=2", "next"), "/?page=3");
  EXPECT_EQ(LinkOf("/?page=3", "next"), "");
  EXPECT_EQ(LinkOf("/?q=in&page=1", "next"), "/?q=in&page=2");
  EXPECT_THAT(Text("/?q=Scheduler"), HasSubstr("hang in Scheduler::Drain"));
  EXPECT_THAT(Text("/?q=Scheduler"), Not(HasSubstr("Cache::Evict")));
  EXPECT_THAT(Text("/?q=nothing+has+this"), HasSubstr("No group matches."));
}

}  // namespace
}  // namespace clew::collector::web
