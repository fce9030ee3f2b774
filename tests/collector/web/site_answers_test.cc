// Goal: no text from outside becomes an element of a page, every link leads
// somewhere, every request has an answer, and a catalogue that fails is said to
// fail.
// Method: the site without its sockets, over a fake catalogue. Property:
// pages of random hostile texts have the very elements and attributes of the
// pages of plain ones, by a tokenizer that shares no code with the writer.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <string>

#include "common/digest.h"
#include "tests/collector/web/html_tokens.h"
#include "tests/collector/web/site_fixture.h"

namespace clew::collector::web {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Walks from the first page over every link.
TEST_F(SiteTest, EveryLinkResolves) {
  FillWithFleet(data_.catalogue);
  data_.AddStored();
  data_.catalogue.bundles[3].host = "a b&c=d?e#f%2e/\"'<>";
  data_.catalogue.groups[3].hosts = {data_.catalogue.bundles[3].host};
  Site site = SiteOf(data_);
  std::set<std::string> seen = {"/"};
  std::queue<std::string> left({"/"});
  while (!left.empty()) {
    const std::string target = left.front();
    left.pop();
    const Response response = Ask(site, target);
    ASSERT_EQ(response.status, 200) << target;
    if (!response.content_type.starts_with("text/html")) {
      continue;
    }
    const Tokens tokens = TokensOf(response.body);
    ASSERT_EQ(tokens.broken, "") << target;
    for (const Tag& tag : tokens.tags) {
      for (const auto& [name, value] : tag.attributes) {
        if ((name == "href" || name == "action") && !value.starts_with("#") &&
            seen.insert(value).second) {
          ASSERT_THAT(value, StartsWith("/")) << target;
          left.push(value);
        }
      }
    }
  }
  // Each group, each bundle, and the lists.
  EXPECT_GT(seen.size(), 2 * 121u);
}

TEST_F(SiteTest, WhatIsNotThereIs404) {
  FillWithOne(data_.catalogue);
  const std::string no_id(64, '0');
  for (const std::string& target :
       {std::string("/nowhere"), std::string("//"), std::string("/groups/"),
        std::string("/groups/x"), "/groups/" + no_id, "/bundles/" + no_id,
        "/bundles/" + no_id.substr(1), "/bundles/" + SampleId(0).hex() + "/",
        std::string("/bundles/"), std::string("/bundles/../etc/passwd"),
        std::string("/../../etc/passwd"), std::string("/%2e%2e/%2e%2e/etc"),
        std::string("/bundles/..%2f..%2fetc%2fpasswd"),
        std::string("/api/bundles/x.json"), std::string("/api/bundles/.json"),
        std::string("/style.css"), std::string("/api/bundles/.jso")}) {
    const Response response = Get(target);
    EXPECT_EQ(response.status, 404) << target;
    EXPECT_THAT(response.body, HasSubstr("404 Not Found"));
    EXPECT_EQ(TokensOf(response.body).broken, "");
  }
}

TEST_F(SiteTest, BadQueriesAre400) {
  for (const std::string& target :
       {std::string("/?page=0"), std::string("/?page=-1"),
        std::string("/?page=1000001"), std::string("/?page=x"),
        std::string("/?page="), std::string("/?page=1+"),
        std::string("/bundles?state=done"),
        std::string("/?page=99999999999999999999"),
        "/?q=" + std::string(kSearchBytesMax + 1, 'q')}) {
    const Response response = Get(target);
    EXPECT_EQ(response.status, 400) << target;
    EXPECT_EQ(TokensOf(response.body).broken, "");
  }
  EXPECT_EQ(Get("/?q=" + std::string(kSearchBytesMax, 'q')).status, 200);
}

TEST_F(SiteTest, ForeignNamesOfTheServerAreRefused) {
  Site site = SiteOf(data_);
  const auto status = [&](const std::string& host) {
    return site
        .Answer(ParseHead("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"))
        .status;
  };
  EXPECT_EQ(status("clew.example:8080"), 200);
  EXPECT_EQ(status("rebound.evil.example"), 421);
}

TEST_F(SiteTest, AFailingCatalogueIs503AndNotHealthy) {
  data_.AddStored();
  EXPECT_EQ(Get("/healthz").status, 200);
  data_.catalogue.fails = true;
  for (const char* target : {"/", "/bundles", "/hosts", "/metrics", "/healthz",
                             "/api/groups.json"}) {
    const Response response = Get(target);
    EXPECT_EQ(response.status, 503) << target;
    EXPECT_THAT(response.body, HasSubstr("catalogue.sqlite: cannot read"));
  }
  EXPECT_EQ(Get("/bundles/" + SampleId(0).hex()).status, 503);
  EXPECT_EQ(Get("/groups/" + SampleSignature(0)).status, 503);
}

TEST_F(SiteTest, AStoreThatLostABundlesListIsNotHealthy) {
  const std::string id = data_.AddStored().hex();
  const std::string list = data_.folder / "store/bundles/" + id + ".pb";
  ASSERT_EQ(std::rename(list.c_str(), (list + "x").c_str()), 0);
  EXPECT_EQ(Get("/healthz").status, 503);
}

TEST_F(SiteTest, ADamagedBundleIsNamedEverywhere) {
  const BundleId id = data_.AddStored();
  const std::string page = "/bundles/" + id.hex();
  EXPECT_THAT(Get("/healthz").body, HasSubstr("ok\ndamaged_chunks 0\n"));
  EXPECT_THAT(Get("/bundles").body, Not(HasSubstr("damaged")));
  EXPECT_THAT(Get("/api" + page + ".json").body,
              HasSubstr("\"damaged\":false"));
  const ChunkRef chunk = data_.store->ReadList(id)->Chunks()[0];
  const std::string path = data_.store->chunks().PathOf(chunk.id);
  ASSERT_EQ(std::rename(path.c_str(), (path + "x").c_str()), 0);
  ASSERT_FALSE(data_.store->chunks().Scrub(chunk).has_value());
  data_.store->SetScrubbed(1'700'000'000);
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/healthz").body,
            "damaged\ndamaged_chunks 1\ndamaged_bundles 1\n"
            "last_scrub_s 1700000000\nstore_read 1\n");
  EXPECT_THAT(Get("/metrics").body,
              AllOf(HasSubstr("\nclew_damaged_chunks 1\n"),
                    HasSubstr("\nclew_damaged_bundles 1\n"),
                    HasSubstr("clew_last_scrub_timestamp_seconds 1700000000")));
  EXPECT_THAT(Get("/bundles").body, HasSubstr("damaged in the store"));
  EXPECT_THAT(Get(page).body, HasSubstr("Damaged: the collector"));
  EXPECT_THAT(Get("/api" + page + ".json").body, HasSubstr("\"damaged\":true"));
}

TEST_F(SiteTest, MetricsHaveTheFigures) {
  FillWithFleet(data_.catalogue);
  data_.AddStored();
  const Response response = Get("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(
      response.body,
      AllOf(HasSubstr("\nclew_bundles 121\n"), HasSubstr("\nclew_groups 121\n"),
            HasSubstr("\nclew_hosts 23\n"),
            HasSubstr("\nclew_bundles_by_state{state=\"witness\"} "),
            HasSubstr("\nclew_store_limit_bytes 1073741824\n"),
            HasSubstr(fmt::format("\nclew_store_used_bytes {}\n",
                                  data_.store->used_bytes()))));
}

TEST_F(SiteTest, JsonIsThatOfThePages) {
  FillWithHostileNames(data_.catalogue);
  const std::string id = data_.AddStored().hex();
  const json groups = json::parse(Get("/api/groups.json").body);
  EXPECT_EQ(groups["total"], data_.catalogue.groups.size());
  EXPECT_EQ(groups["groups"][0]["title"], "<script>alert(1)</script>");
  EXPECT_EQ(groups["groups"][3]["state"], "witness");
  const json bundle = json::parse(Get("/api/bundles/" + id + ".json").body);
  EXPECT_EQ(bundle["id"], id);
  EXPECT_EQ(bundle["files"][0]["path"], "images/c0ffee/libstdc++.so.6");
  EXPECT_EQ(bundle["backtraces"]["threads"][0]["frames"][0]["line"], 62);
}

// One random text of hostile pieces; plain where `plain` says so, of the same
// emptiness.
std::string RandomText(Random& random, bool plain) {
  static const std::vector<std::string> kPieces = [] {
    std::vector<std::string> pieces = HostileTexts();
    for (const char* piece :
         {"<",        ">",        "\"",     "'",    "&",
          "</",       "/>",       "<!--",   "-->",  "]]>",
          "<a href=", "\n",       "\t",     "\r\n", "=",
          "&#x3c;",   "\xf0\x9f", "\xc3",   "`",    "<svg/onload=",
          "style=\"", "</main>",  "</bdi>", "%00",  "%3Cscript%3E",
          "\\",       "{",        "}"}) {
      pieces.emplace_back(piece);
    }
    return pieces;
  }();
  std::string text = "t";
  const uint64_t count = 1 + random.Below(5);
  for (uint64_t i = 0; i < count; ++i) {
    text += kPieces[random.Below(kPieces.size())];
  }
  return plain ? "plain" : text;
}

// The same shape twice, from the same numbers.
void FillFrom(Random random, bool plain, FakeCatalogue& catalogue) {
  const auto text = [&] { return RandomText(random, plain); };
  BundleRow row = SampleBundle(0);
  row.host = text();
  row.unit = text();
  row.command = text();
  row.source = text();
  row.failure = text();
  row.grade = text();
  row.why = text();
  GroupRow group = SampleGroup(0);
  group.title = text();
  group.why = text();
  group.hosts = {text(), text()};
  group.host_count = 5;
  const json frame = {{"function", text()}, {"module", text()},
                      {"build_id", text()}, {"offset", text()},
                      {"file", text()},     {"line", 7}};
  const json document = {
      {"threads",
       {{{"thread", 1}, {"failed", true}, {"frames", {frame, frame}}}}}};
  catalogue.analyses[row.id] = {
      .signature = row.signature,
      .title = text(),
      .backtraces =
          document.dump(-1, ' ', false, json::error_handler_t::replace)};
  catalogue.bundles = {row};
  catalogue.groups = {group};
}

// Names of elements and attributes, in order.
std::vector<std::string> ShapeOf(const std::string& html) {
  std::vector<std::string> shape;
  for (const Tag& tag : TokensOf(html).tags) {
    std::string name = (tag.is_end ? "/" : "") + tag.name;
    for (const auto& [attribute, value] : tag.attributes) {
      name += " " + attribute;
    }
    shape.push_back(std::move(name));
  }
  return shape;
}

TEST_F(SiteTest, HostileTextMakesNoElement) {
  const char* from = std::getenv("CLEW_TEST_SEED");
  const char* count = std::getenv("CLEW_TEST_ROUNDS");
  const uint64_t seed =
      from != nullptr ? std::strtoull(from, nullptr, 10) : 20261120;
  const uint64_t rounds =
      count != nullptr ? std::strtoull(count, nullptr, 10) : 200;
  StoreAndCatalogue plain;
  FillFrom(Random(0), true, plain.catalogue);
  Site plain_site = SiteOf(plain);
  for (uint64_t round = 0; round < rounds; ++round) {
    Random random(seed + round);
    SCOPED_TRACE(
        fmt::format("CLEW_TEST_SEED={} CLEW_TEST_ROUNDS=1", seed + round));
    FillFrom(Random(random.Next()), false, data_.catalogue);
    // Found in no title.
    const std::string q =
        ("zz" + RandomText(random, false)).substr(0, kSearchBytesMax);
    for (const std::string& target :
         {std::string("/"), std::string("/bundles"), std::string("/hosts"),
          "/bundles/" + SampleId(0).hex(), "/groups/" + SampleSignature(0),
          "/?q=" + PercentEncode(q), "/bundles?host=" + PercentEncode(q),
          "/" + PercentEncode(q)}) {
      std::string plain_target = target;
      for (const char* part : {"/?q=", "/bundles?host="}) {
        if (target.starts_with(part)) {
          plain_target = std::string(part) + "zzz";
        }
      }
      if (target.starts_with("/zz")) {
        plain_target = "/zzz";
      }
      Site site = SiteOf(data_);
      const Response response = Ask(site, target);
      const Response expected = Ask(plain_site, plain_target);
      if (response.status == 400) {
        continue;  // control characters in the address
      }
      ASSERT_EQ(TokensOf(response.body).broken, "") << target;
      ASSERT_EQ(ShapeOf(response.body), ShapeOf(expected.body)) << target;
    }
  }
}

}  // namespace
}  // namespace clew::collector::web
