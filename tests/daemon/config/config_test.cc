// Goal: what clewd.conf says is taken, what it must not say is refused with
// file and line, and deploy's example is what the code believes.
// Method: hand-picked texts; the example with every comment sign removed.
#include "daemon/config/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>

#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto config = ParseConfig(text, "c.conf");
  return config ? "" : config.error().message;
}

TEST(ConfigTest, NothingIsTheDefaults) {
  const auto config = ParseConfig("", "c.conf");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(*config, Config());
  const auto absent = ReadConfig("/nonexistent/clewd.conf");
  ASSERT_TRUE(absent.has_value());
  EXPECT_EQ(*absent, Config());
}

TEST(ConfigTest, EveryKeyIsTaken) {
  const auto config = ParseConfig(
      "source = sideband\nsideband_only = yes\npt_buffer = 8M\n"
      "data_buffer = 64K\nsource_retry = 5s\nspool_bytes = 2G\n"
      "disk_free_bytes = 3M\ncore_bytes = 5M\nsoftware_bytes = 6M\n"
      "incoming_user_bytes = 7M\nsaves = 7\nrate_failure = 3\n"
      "rate_all = 4\nrate_period = 2m\nmerge = 0\nclew = /opt/clew\n"
      "redaction = /etc/r\ncheck_time = 9s\ncheck_memory = 1G\nupload = on\n"
      "upload_config = /etc/u\nupload_time = 8s\nupload_retry = 7s\n"
      "unit_poll = 6s\n[unit a@1.service]\nfailure = no\nhang = 30s\n"
      "heartbeat = /run/a\ntracer = ring\nring = 2M\n[unit b.service]\n",
      "c.conf");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  Config wanted;
  wanted.source = SourceKind::kSideband;
  wanted.sideband_only = true;
  wanted.pt_buffer_bytes = 8 << 20;
  wanted.data_buffer_bytes = 64 << 10;
  wanted.source_retry_s = 5;
  wanted.spool_bytes = uint64_t{2} << 30;
  wanted.disk_free_bytes = 3 << 20;
  wanted.core_bytes = 5 << 20;
  wanted.software_bytes = 6 << 20;
  wanted.incoming_user_bytes = 7 << 20;
  wanted.saves = 7;
  wanted.rate_failure = 3;
  wanted.rate_all = 4;
  wanted.rate_period_s = 120;
  wanted.merge_s = 0;
  wanted.clew = "/opt/clew";
  wanted.redaction = "/etc/r";
  wanted.check_s = 9;
  wanted.check_memory_bytes = uint64_t{1} << 30;
  wanted.upload = true;
  wanted.upload_config = "/etc/u";
  wanted.upload_s = 8;
  wanted.upload_retry_s = 7;
  wanted.unit_poll_s = 6;
  wanted.units = {
      {"a@1.service", false, 30, "/run/a", UnitTracer::kRing, 2 << 20},
      {"b.service", true, 0, ""}};
  EXPECT_EQ(*config, wanted);
}

TEST(ConfigTest, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_EQ(ErrorOf("\nspool = 1G\n").substr(0, 9), "c.conf:2:");
  EXPECT_EQ(ErrorOf("spool_bytes = many\n").substr(0, 9), "c.conf:1:");
  EXPECT_EQ(ErrorOf("[unit a.service]\nhung = 1s\n").substr(0, 9), "c.conf:2:");
  for (const char* text :
       {"source = gpu\n", "pt_buffer = 3M\n", "pt_buffer = 4K\n",
        "data_buffer = 2G\n", "clew = clew\n", "[units]\n", "[unit ]\n",
        "[unit a/b]\n", "[unit ..]\n", "[unit a]\nhung = 1s\n",
        "rate_all = 0\n", "[unit a.service]\nheartbeat = alive\n",
        "[unit a.service]\ntracer = slow\n", "[unit a.service]\nring = 4K\n"}) {
    EXPECT_NE(ErrorOf(text), "") << text;
  }
}

// As systemctl(1) completes names, and as clewd took them before it asked for
// the type: a host with such a file must not be left without clewd.
TEST(ConfigTest, AUnitWithoutATypeIsAServiceAndAWarning) {
  const auto config = ParseConfig(
      "[unit nginx]\nhang = 9s\n[unit a@1]\n[unit php8.2-fpm]\n"
      "[unit b.service]\n",
      "c.conf");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->units,
            (std::vector<WatchedUnit>{{"nginx.service", true, 9, ""},
                                      {"a@1.service", true, 0, ""},
                                      {"php8.2-fpm.service", true, 0, ""},
                                      {"b.service", true, 0, ""}}));
  ASSERT_EQ(config->warnings.size(), 3U);
  EXPECT_EQ(config->warnings[0],
            "c.conf: section [unit nginx] is taken for [unit nginx.service], "
            "write it so");
}

// One of them must not cost the host its clewd, and is said.
TEST(ConfigTest, ASectionOfWhatIsNoServiceIsLeftOutAndAWarning) {
  for (const char* name : {"a.timer", "a@.service", "@a.service", "a@", "@a",
                           "s.socket", "_.service.mount"}) {
    const auto config = ParseConfig(
        fmt::format("[unit {}]\nhang = 9s\n[unit b.service]\n", name),
        "c.conf");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->units,
              (std::vector<WatchedUnit>{{"b.service", true, 0, ""}}));
    ASSERT_EQ(config->warnings.size(), 1U);
    EXPECT_NE(config->warnings[0].find(
                  fmt::format("section [unit {}] is left out", name)),
              std::string::npos)
        << config->warnings[0];
  }
  EXPECT_NE(ErrorOf("[unit a.timer]\nhung = 1s\n"), "");
}

TEST(ConfigTest, TheSectionWithTheWholeNameCounts) {
  const auto config = ParseConfig(
      "[unit a]\nhang = 9s\n[unit a.service]\nhang = 7s\n", "c.conf");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->units,
            (std::vector<WatchedUnit>{{"a.service", true, 7, ""}}));
  ASSERT_EQ(config->warnings.size(), 1U);
  EXPECT_EQ(config->warnings[0],
            "c.conf: section [unit a] is left out for [unit a.service], "
            "write it so");
}

TEST(ConfigTest, ACompletedNameIsNoLongerThanANameMayBe) {
  const std::string name(247, 'a');
  EXPECT_EQ(ErrorOf("[unit " + name + "]\n"), "");
  EXPECT_NE(ErrorOf("[unit " + name + "a]\n"), "");
}

TEST(ConfigTest, ThereIsALimitOfUnits) {
  std::string text;
  for (size_t i = 0; i < kUnitsMax; ++i) {
    text += "[unit u" + std::to_string(i) + ".service]\n";
  }
  EXPECT_EQ(ErrorOf(text), "");
  EXPECT_NE(ErrorOf(text + "[unit more.service]\n"), "");
}

TEST(ConfigTest, TheInstalledFileShowsEveryKeyWithItsDefault) {
  const char* source = std::getenv("CLEW_SOURCE_DIR");
  if (source == nullptr) {
    GTEST_SKIP() << "run by ctest, which sets CLEW_SOURCE_DIR";
  }
  const std::string path = std::string(source) + "/deploy/etc/clew/clewd.conf";
  const std::string text = std::regex_replace(
      test::ReadText(path), std::regex("(^|\n)#(?=[a-z_]+ ?=)"), "$1");
  const std::string without_units = text.substr(0, text.find("#[unit"));
  ASSERT_NE(without_units, "") << path;
  const auto config = ParseConfig(without_units, path);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(*config, Config());
}

}  // namespace
}  // namespace clew::daemon
