// Goal: what sysfs says about intel_pt becomes the bits of perf_event_attr that
// the kernel means, and each combination of options that a CPU cannot do is
// refused with capability, wanted, found, and what to do.
// Method: folders as the kernel documents them, written by the test: a CPU of
// 2018 and one of the first with PT, which has neither MTC nor CYC nor filters.
#include "recorder/perf/pmu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "recorder/perf/event_config.h"
#include "recorder/perf/events.h"
#include "recorder/perf/sysfs.h"

namespace clew::recorder::perf {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class PmuTest : public testing::Test {
 protected:
  PmuTest() {
    std::string pattern = fs::temp_directory_path() / "clew-pmu-XXXXXX";
    sys_ = mkdtemp(pattern.data());
    Put("type", "8");
    Put("nr_addr_filters", "2");
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"branch", "config:13"},
                                            {"cyc", "config:1"},
                                            {"cyc_thresh", "config:19-22"},
                                            {"mtc", "config:9"},
                                            {"mtc_period", "config:14-17"},
                                            {"noretcomp", "config:11"},
                                            {"psb_period", "config:24-27"},
                                            {"pt", "config:0"},
                                            {"tsc", "config:10"}}) {
      Put("format/" + name, text);
    }
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"cycle_thresholds", "1fff"},
                                            {"mtc", "1"},
                                            {"mtc_periods", "249"},
                                            {"psb_cyc", "1"},
                                            {"single_range_output", "1"},
                                            {"topa_output", "1"}}) {
      Put("caps/" + name, text);
    }
  }
  ~PmuTest() override { fs::remove_all(sys_); }

  std::string Folder() const {
    return sys_ + "/bus/event_source/devices/intel_pt/";
  }
  void Put(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(Folder() + name).parent_path());
    std::ofstream(Folder() + name) << text << "\n";
  }
  void Remove(const std::string& name) { fs::remove(Folder() + name); }
  // The CPU as the first ones with PT were.
  void MakeOld() {
    for (const char* name : {"format/cyc", "format/cyc_thresh", "format/mtc",
                             "format/mtc_period", "format/pt", "format/branch",
                             "nr_addr_filters", "caps/psb_cyc", "caps/mtc"}) {
      Remove(name);
    }
  }
  Pmu Get() const {
    auto pmu = Pmu::Discover(sys_);
    EXPECT_TRUE(pmu) << pmu.error().message;
    return *pmu;
  }
  std::string Refusal(const PtOptions& options) const {
    const auto attr = PtAttr(Get(), options);
    return attr ? "accepted" : attr.error().message;
  }
  std::string FilterRefusal(const PtOptions& options) const {
    const auto text = FilterText(Get(), options);
    return text ? "accepted " + *text : text.error().message;
  }

  std::string sys_;
};

TEST_F(PmuTest, AbsentPmuIsUnsupportedAndSaysWhatStillWorks) {
  const auto pmu = Pmu::Discover(sys_ + "/nowhere");
  ASSERT_FALSE(pmu);
  EXPECT_EQ(pmu.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(pmu.error().message, AllOf(HasSubstr("does not offer Intel PT"),
                                         HasSubstr("software recording")));
}

TEST_F(PmuTest, ReadsTypeFieldsAndHexadecimalCapabilities) {
  const Pmu pmu = Get();
  EXPECT_EQ(pmu.type(), 8u);
  EXPECT_EQ(pmu.field("mtc_period"),
            (ConfigField{.word = 0, .lo = 14, .hi = 17}));
  EXPECT_EQ(pmu.capability("mtc_periods"), 0x249u);
  EXPECT_EQ(pmu.capability("nothing"), 0u);
  EXPECT_EQ(pmu.address_filters_max(), 2u);
}

TEST_F(PmuTest, FilesThatSayNonsenseAreNamed) {
  for (const char* text :
       {"config", "config:", "config:4-3", "config:64", "config3:1",
        "config:1-", "konfig:1", "config:0-3,8", "config:x", ""}) {
    Put("format/tsc", text);
    const auto pmu = Pmu::Discover(sys_);
    ASSERT_FALSE(pmu) << text;
    EXPECT_THAT(pmu.error().message, HasSubstr("intel_pt/format/tsc"));
  }
  Put("format/tsc", "config:10");
  Put("caps/mtc", "yes");
  EXPECT_FALSE(Pmu::Discover(sys_));
  Put("caps/mtc", "1");
  Put("type", "-1");
  EXPECT_FALSE(Pmu::Discover(sys_));
}

TEST_F(PmuTest, SetStoresInEachWordAndKeepsTheRest) {
  Put("format/wide", "config2:0-63");
  Put("format/one", "config1:4-7");
  const Pmu pmu = Get();
  perf_event_attr attr = {};
  attr.config1 = 0xffff;
  ASSERT_TRUE(pmu.Set(attr, "one", 5));
  EXPECT_EQ(attr.config1, 0xff5fu);
  ASSERT_TRUE(pmu.Set(attr, "wide", UINT64_MAX));
  EXPECT_EQ(attr.config2, UINT64_MAX);
  const Status too_wide = pmu.Set(attr, "one", 16);
  ASSERT_FALSE(too_wide);
  EXPECT_THAT(too_wide.error().message, HasSubstr("at most 15"));
  EXPECT_EQ(attr.config1, 0xff5fu);
  EXPECT_FALSE(pmu.Set(attr, "none", 0));
}

TEST_F(PmuTest, DefaultIsUserCodeWithTscMtcAndBranches) {
  const auto attr = PtAttr(Get(), {});
  ASSERT_TRUE(attr) << attr.error().message;
  EXPECT_EQ(attr->type, 8u);
  EXPECT_EQ(attr->config, 1u << 0 | 1u << 9 | 1u << 10 | 1u << 13 | 3u << 14);
  EXPECT_EQ(attr->exclude_kernel, 1u);
  EXPECT_EQ(attr->exclude_hv, 1u);
  EXPECT_EQ(attr->disabled, 1u);
  EXPECT_EQ(attr->sample_id_all, 1u);
  EXPECT_EQ(attr->sample_type, bundle::kSampleIdType | PERF_SAMPLE_IP);
  EXPECT_EQ(attr->use_clockid, 0u);
  EXPECT_EQ(attr->write_backward, 0u);
  EXPECT_EQ(attr->aux_watermark, 1u << 20);
}

TEST_F(PmuTest, OptionsBecomeBits) {
  const auto attr = PtAttr(
      Get(),
      {.snapshot = true, .mtc_period = 6, .cyc_threshold = 12, .kernel = true});
  ASSERT_TRUE(attr) << attr.error().message;
  EXPECT_EQ(attr->config >> 14 & 15, 6u);
  EXPECT_EQ(attr->config >> 1 & 1, 1u);
  EXPECT_EQ(attr->config >> 19 & 15, 12u);
  EXPECT_EQ(attr->exclude_kernel, 0u);
  EXPECT_EQ(attr->write_backward, 0u);
  EXPECT_EQ(attr->aux_watermark, 0u);
}

TEST_F(PmuTest, AnOldCpuTracesWithoutMtc) {
  MakeOld();
  const auto attr = PtAttr(Get(), {});
  ASSERT_TRUE(attr) << attr.error().message;
  EXPECT_EQ(attr->config, 1u << 10);
}

TEST_F(PmuTest, UnsupportedOptionsSayWantedFoundAndRemedy) {
  EXPECT_THAT(Refusal({.mtc_period = 5}),
              AllOf(HasSubstr("--mtc-period 5"), HasSubstr("caps/mtc_periods"),
                    HasSubstr("found 0, 3, 6, 9"), HasSubstr("choose one")));
  EXPECT_THAT(
      Refusal({.cyc_threshold = 13}),
      AllOf(HasSubstr("caps/cycle_thresholds"), HasSubstr("wanted 13")));
  EXPECT_THAT(Refusal({.buffer_bytes = 12288}), HasSubstr("power of two"));
  EXPECT_THAT(Refusal({.buffer_bytes = 4096}), HasSubstr("at least 8192"));
  MakeOld();
  EXPECT_THAT(Refusal({.mtc_period = 3}),
              AllOf(HasSubstr("capability \"mtc\""), HasSubstr("leave")));
  EXPECT_THAT(Refusal({.cyc_threshold = 0}),
              AllOf(HasSubstr("capability \"psb_cyc\""), HasSubstr("leave")));
  EXPECT_THAT(
      FilterRefusal({.filters = {"filter 1/1@/bin/true"}, .per_task = true}),
      AllOf(HasSubstr("wanted 1 address filters"),
            HasSubstr("nr_addr_filters to be 0")));
  Remove("caps/topa_output");
  Remove("caps/single_range_output");
  EXPECT_THAT(Refusal({}), HasSubstr("topa_output"));
}

TEST_F(PmuTest, FiltersAreCheckedAndJoined) {
  const auto with = [](std::vector<std::string> filters) {
    return PtOptions{.filters = std::move(filters), .per_task = true};
  };
  EXPECT_EQ(FilterRefusal(with({"filter 0x10/0x20@/bin/a b"})).substr(0, 9),
            "--filter:");
  EXPECT_EQ(FilterRefusal(with({"filter 0x10/0x20@/bin/a", "stop 5@/bin/b"})),
            "accepted filter 0x10/0x20@/bin/a,stop 5@/bin/b");
  EXPECT_EQ(FilterRefusal(with({})), "accepted ");
  for (const char* text :
       {"", "filter", "filter 0x10@/bin/a", "filter 1/0@/bin/a", "stop x@/a",
        "start 1/2@/a", "filter 1/2@bin/a", "trace 1/2@/bin/a",
        "filter 1/2@/a,stop 1@/a"}) {
    EXPECT_THAT(FilterRefusal(with({text})), HasSubstr("--filter: wanted"))
        << text;
  }
  EXPECT_THAT(FilterRefusal(with({"filter 1/2"})), HasSubstr("add @FILE"));
  EXPECT_THAT(FilterRefusal({.filters = {"stop 1@/a"}}),
              HasSubstr("record one process"));
  EXPECT_THAT(FilterRefusal(with({"stop 1@/a", "stop 2@/a", "stop 3@/a"})),
              HasSubstr("wanted 3 address filters"));
}

TEST(EventConfigTest, BufferSizes) {
  EXPECT_EQ(ParseBufferBytes("4M"), 4u << 20);
  EXPECT_EQ(ParseBufferBytes("8K"), 8192u);
  EXPECT_EQ(ParseBufferBytes("1G"), 1u << 30);
  EXPECT_EQ(ParseBufferBytes("65536"), 65536u);
  for (const char* text : {"", "M", "4m", "3M", "4K", "-4M", "4MM", "1 M",
                           "18446744073709551615G", "99999999999999999999"}) {
    EXPECT_FALSE(ParseBufferBytes(text)) << text;
  }
}

TEST(EventConfigTest, CoreLists) {
  const auto cores = ParseCoreList("0-2,8");
  ASSERT_TRUE(cores);
  EXPECT_EQ(*cores,
            (std::vector<CoreId>{CoreId(0), CoreId(1), CoreId(2), CoreId(8)}));
  for (const char* text :
       {"", "a", "2-1", "0,0", "3,1", "0-", "-1", "0,,1", "0-99999999"}) {
    EXPECT_FALSE(ParseCoreList(text)) << text;
  }
}

}  // namespace
}  // namespace clew::recorder::perf
