// Goal: the catalogue says what a list of bundles would say that is looked
// through for every answer, whatever is done to it in whatever order, also
// after it was closed and opened; text of strangers is data. Method: random
// operations against that list (CatalogueModel); hand-picked text.
#include "collector/catalogue/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "collector/catalogue/text.h"
#include "common/check.h"
#include "common/digest.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"

namespace clew::collector {
namespace {

using testing::HasSubstr;

std::unique_ptr<Catalogue> OpenIn(const TempFolder& folder) {
  auto catalogue = Catalogue::Open(folder / "catalogue.sqlite");
  CLEW_CHECK(catalogue.has_value(), "{}", catalogue.error().message);
  return std::move(*catalogue);
}

Analysis AnalysisOf(uint64_t number, const std::string& title = "SIGABRT") {
  return {.signature = SignatureOf(number),
          .title = title,
          .backtraces = R"({"threads":[]})"};
}

template <class Row>
std::vector<std::string> DescribeAll(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    lines.push_back(Describe(row));
  }
  return lines;
}

// What has to agree.
class Pair {
 public:
  explicit Pair(uint64_t seed) : random_(seed), catalogue_(OpenIn(folder_)) {}

  void Step() {
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2:
        return Add();
      case 3:
      case 4:
        return TakeForAnalysis();
      case 5:
      case 6:
        return SetAnalysis();
      case 7:
        return TakeForSolving();
      case 8:
      case 9:
        return SetSolved();
      case 10:
        return Remove();
      default:
        return random_.Below(3) == 0 ? Restart() : (void)0;
    }
  }

  void Compare() {
    for (const std::string text : {"", "SIG 1", "web-2", "unit-0", "100%"}) {
      const auto page = catalogue_->Groups({.limit = 1000, .text = text});
      ASSERT_TRUE(page) << page.error().message;
      EXPECT_EQ(DescribeAll(page->rows), DescribeAll(model_.Groups(text)));
      EXPECT_EQ(page->total, page->rows.size());
    }
    CompareBundles({.limit = 1000});
    CompareBundles({.limit = 1000, .signature = SignatureOf(1)});
    CompareBundles({.limit = 1000, .filter = {.host = "web-1"}});
    CompareBundles({.limit = 1000,
                    .signature = SignatureOf(0),
                    .state = BundleState::kStored,
                    .filter = {.host = "web-0"}});
    CompareBundles({.limit = 1000, .state = BundleState::kUnsolved});
    const auto counts = catalogue_->Counts();
    ASSERT_TRUE(counts) << counts.error().message;
    EXPECT_EQ(Describe(*counts), Describe(model_.Counts()));
    const BundleId id = AnyId();
    const auto analysis = catalogue_->AnalysisOf(id);
    ASSERT_TRUE(analysis) << analysis.error().message;
    EXPECT_EQ(Describe(*analysis), Describe(model_.AnalysisOf(id)));
  }

 private:
  static constexpr uint64_t kIds = 24;
  static constexpr uint64_t kSignatures = 4;

  BundleId AnyId() { return IdOf(random_.Below(kIds)); }
  BundleId AnyTaken() {
    if (taken_.empty() || random_.Below(8) == 0) {
      return AnyId();
    }
    return taken_[random_.Below(taken_.size())];
  }

  void Add() {
    NewBundle bundle = BundleOf(random_.Below(kIds));
    bundle.host = fmt::format("web-{}", random_.Below(12));
    bundle.unit = fmt::format("unit-{}", random_.Below(3));
    bundle.failure = fmt::format("signal {}", random_.Below(2));
    bundle.recorded_at_s = static_cast<int64_t>(random_.Below(4) * 100'000);
    bundle.received_at_s = static_cast<int64_t>(150'000 + random_.Below(9));
    bundle.sufficiency = std::nullopt;
    if (random_.Below(3) != 0) {
      bundle.sufficiency = static_cast<uint32_t>(random_.Below(4));
    }
    EXPECT_TRUE(catalogue_->Add(bundle));
    model_.Add(bundle);
  }

  void Remove() {
    const BundleId id = AnyId();
    EXPECT_TRUE(catalogue_->Remove(id));
    model_.Remove(id);
  }

  void Took(const Result<std::optional<BundleId>>& found,
            const std::optional<BundleId>& wanted) {
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(Describe(*found), Describe(wanted));
    if (wanted) {
      taken_.push_back(*wanted);
    }
  }
  void TakeForAnalysis() {
    Took(catalogue_->TakeForAnalysis(), model_.TakeForAnalysis());
  }
  void TakeForSolving() {
    Took(catalogue_->TakeForSolving(), model_.TakeForSolving());
  }

  void SetAnalysis() {
    const BundleId id = AnyTaken();
    const uint64_t number = random_.Below(kSignatures);
    const Analysis analysis = collector::AnalysisOf(
        number, number == 3 ? "100% of _" : fmt::format("SIG {}", number));
    EXPECT_TRUE(catalogue_->SetAnalysis(id, analysis));
    model_.SetAnalysis(id, analysis);
  }

  void SetSolved() {
    const BundleId id = AnyTaken();
    constexpr std::array kOutcomes = {
        BundleState::kUnsolved,      BundleState::kUnsolved,
        BundleState::kStored,        BundleState::kWitness,
        BundleState::kContradiction, BundleState::kModelDiffers};
    const SolveOutcome outcome = {
        .state = kOutcomes[random_.Below(kOutcomes.size())],
        .grade = "memory-exact",
        .why = fmt::format("why {}", random_.Below(9)),
        .seconds = 1.5};
    EXPECT_TRUE(catalogue_->SetSolved(id, outcome));
    model_.SetSolved(id, outcome);
  }

  // As after a crash: everything that is taken comes back.
  void Restart() {
    catalogue_.reset();
    catalogue_ = OpenIn(folder_);
    EXPECT_TRUE(catalogue_->ReturnTaken());
    model_.ReturnTaken();
    taken_.clear();
  }

  void CompareBundles(const BundleQuery& query) {
    const auto page = catalogue_->Bundles(query);
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_EQ(DescribeAll(page->rows), DescribeAll(model_.Bundles(query)));
    EXPECT_EQ(page->total, page->rows.size());
  }

  Random random_;
  TempFolder folder_;
  std::unique_ptr<Catalogue> catalogue_;
  CatalogueModel model_;
  std::vector<BundleId> taken_;
};

TEST(CatalogueTest, SaysWhatAListOfAllBundlesWouldSay) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Pair pair(seed);
    for (int step = 0; step < 150; ++step) {
      pair.Step();
      pair.Compare();
      if (testing::Test::HasFailure()) {
        FAIL() << "step " << step;
      }
    }
  }
}

TEST(CatalogueTest, PagesAreCutFromTheWholeList) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  for (uint64_t i = 0; i < 7; ++i) {
    ASSERT_TRUE(catalogue->Add(BundleOf(i)));
    ASSERT_TRUE(catalogue->SetAnalysis(IdOf(i), AnalysisOf(i)));
  }
  for (uint64_t offset = 0; offset < 9; ++offset) {
    const auto bundles = catalogue->Bundles({.offset = offset, .limit = 3});
    const auto groups = catalogue->Groups({.offset = offset, .limit = 3});
    ASSERT_TRUE(bundles && groups);
    const uint64_t rows = std::min<uint64_t>(3, offset > 7 ? 0 : 7 - offset);
    EXPECT_EQ(bundles->total, 7u);
    EXPECT_EQ(groups->total, 7u);
    ASSERT_EQ(bundles->rows.size(), rows) << offset;
    ASSERT_EQ(groups->rows.size(), rows) << offset;
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t number = 6 - offset - i;
      EXPECT_EQ(bundles->rows[i].id, IdOf(number));
      EXPECT_EQ(groups->rows[i].signature, SignatureOf(number));
    }
  }
  EXPECT_TRUE(catalogue->Bundles({.offset = UINT64_MAX, .limit = UINT64_MAX}));
}

TEST(CatalogueTest, ABundleAddedTwiceStaysAsItWas) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  ASSERT_TRUE(catalogue->Add(BundleOf(1)));
  NewBundle again = BundleOf(1);
  again.host = "another";
  ASSERT_TRUE(catalogue->Add(again));
  const auto row = catalogue->Bundle(IdOf(1));
  ASSERT_TRUE(row && *row);
  EXPECT_EQ((*row)->host, "web-1");
}

TEST(CatalogueTest, WhatIsNotThereIsNoError) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  EXPECT_TRUE(catalogue->Remove(IdOf(1)));
  EXPECT_TRUE(catalogue->SetAnalysis(IdOf(1), AnalysisOf(1)));
  EXPECT_TRUE(catalogue->SetSolved(IdOf(1), {}));
  EXPECT_TRUE(catalogue->ReturnTaken());
  const auto bundle = catalogue->Bundle(IdOf(1));
  const auto group = catalogue->Group("' OR 1=1 --");
  ASSERT_TRUE(bundle && group);
  EXPECT_FALSE(*bundle);
  EXPECT_FALSE(*group);
}

TEST(CatalogueTest, RefusesWhatIsNoSignatureAndBacktracesWithoutEnd) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  ASSERT_TRUE(catalogue->Add(BundleOf(1)));
  Analysis analysis = AnalysisOf(1);
  for (const std::string signature : {"", "abc", "../../etc"}) {
    analysis.signature = signature;
    const auto status = catalogue->SetAnalysis(IdOf(1), analysis);
    ASSERT_FALSE(status) << signature;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr("64 hexadecimal digits"));
  }
  analysis = AnalysisOf(1);
  analysis.backtraces.assign(kBacktracesBytesMax + 1, ' ');
  const auto status = catalogue->SetAnalysis(IdOf(1), analysis);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kLimit);
  analysis.backtraces.assign(kBacktracesBytesMax, ' ');
  EXPECT_TRUE(catalogue->SetAnalysis(IdOf(1), analysis));
}

TEST(CatalogueTest, TextOfStrangersIsDataAndCut) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  NewBundle bundle = BundleOf(1);
  bundle.host = "x'); DROP TABLE bundles; --";
  bundle.unit = std::string("a\0b\x1b[31m\xff", 9);
  bundle.command.assign(100'000, 'c');
  bundle.size_bytes = UINT64_MAX;
  ASSERT_TRUE(catalogue->Add(bundle));
  Analysis analysis = AnalysisOf(1, "<script>\n</script>\xc0\xaf");
  analysis.backtraces = "{\"title\":\"\xff\"}";
  ASSERT_TRUE(catalogue->SetAnalysis(IdOf(1), analysis));

  const auto row = catalogue->Bundle(IdOf(1));
  ASSERT_TRUE(row && *row);
  EXPECT_EQ((*row)->host, "x'); DROP TABLE bundles; --");
  EXPECT_EQ((*row)->unit, "a\ufffdb\ufffd[31m\ufffd");
  EXPECT_EQ((*row)->command.size(), kLineBytesMax);
  EXPECT_TRUE((*row)->command.ends_with("c\u2026"));
  EXPECT_EQ((*row)->size_bytes, uint64_t{INT64_MAX});
  const auto group = catalogue->Group(SignatureOf(1));
  ASSERT_TRUE(group && *group);
  EXPECT_EQ((*group)->title, "<script>\ufffd</script>\ufffd\ufffd");
  const auto stored = catalogue->AnalysisOf(IdOf(1));
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->backtraces, "{\"title\":\"\ufffd\"}");
  // As it was given, and as it is shown.
  for (const std::string& host : {bundle.host, (*row)->host}) {
    const auto found = catalogue->Bundles({.filter = {.host = host}});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->total, 1u);
  }
}

TEST(CatalogueTest, TextIsSearchedForAsItIs) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(catalogue->Add(BundleOf(i)));
  }
  ASSERT_TRUE(catalogue->SetAnalysis(IdOf(0), AnalysisOf(0, "50% full")));
  ASSERT_TRUE(catalogue->SetAnalysis(IdOf(1), AnalysisOf(1, "50 x full")));
  ASSERT_TRUE(catalogue->SetAnalysis(IdOf(2), AnalysisOf(2, "a_b\\c")));
  const auto count = [&](const std::string& text) {
    const auto page = catalogue->Groups({.text = text});
    CLEW_CHECK(page.has_value(), "{}", page.error().message);
    return page->total;
  };
  EXPECT_EQ(count("50%"), 1u);
  EXPECT_EQ(count("%"), 1u);
  EXPECT_EQ(count("_"), 1u);
  EXPECT_EQ(count("\\"), 1u);
  EXPECT_EQ(count("FULL"), 2u);
  EXPECT_EQ(count("bank.serv"), 3u);
  EXPECT_EQ(count("' OR 1=1 --"), 0u);
  EXPECT_EQ(count(std::string(100'000, '%')), 0u);
}

// A bundle that takes the collector down with it is not tried for ever.
TEST(CatalogueTest, AfterThreeCrashesABundleIsGivenUp) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  ASSERT_TRUE(catalogue->Add(BundleOf(1)));
  for (int crash = 0; crash < kAttemptsMax; ++crash) {
    const auto taken = catalogue->TakeForAnalysis();
    ASSERT_TRUE(taken && *taken) << crash;
    ASSERT_TRUE(catalogue->ReturnTaken());
  }
  const auto row = catalogue->Bundle(IdOf(1));
  ASSERT_TRUE(row && *row);
  EXPECT_EQ((*row)->state, BundleState::kUnsolved);
  EXPECT_THAT((*row)->why, HasSubstr("given up"));
  EXPECT_EQ((*row)->signature,
            AnalysisByKind((*row)->failure, (*row)->command).signature);
  const auto taken = catalogue->TakeForAnalysis();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
}

TEST(CatalogueTest, WhatWasBrokenOffInGoodOrderIsNoAttempt) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  ASSERT_TRUE(catalogue->Add(BundleOf(1)));
  for (int stop = 0; stop < 2 * kAttemptsMax; ++stop) {
    const auto taken = catalogue->TakeForAnalysis();
    ASSERT_TRUE(taken && *taken) << stop;
    ASSERT_TRUE(catalogue->SetSolved(IdOf(1), {.state = BundleState::kStored}));
    ASSERT_TRUE(catalogue->ReturnTaken());
  }
}

TEST(CatalogueTest, KindOfFailureAndProgramMakeTheSignatureWithoutBacktrace) {
  const auto of = [](const char* failure, const char* command) {
    return AnalysisByKind(failure, command);
  };
  EXPECT_EQ(of("signal 6", "/usr/bin/bank -a").signature,
            of("signal 6", "/opt/bank -b").signature);
  EXPECT_NE(of("signal 6", "bank").signature, of("signal 9", "bank").signature);
  EXPECT_NE(of("signal 6", "bank").signature, of("signal 6", "sink").signature);
  EXPECT_EQ(of("signal 6", "/opt/bank -b").title,
            "signal 6 in bank (no backtrace)");
  EXPECT_TRUE(transfer::FromHex(of("", "").signature));
}

// Readers see the group and its bundles as one transaction left them.
TEST(CatalogueTest, ReadersBesideAWriterSeeWholeStates) {
  const TempFolder folder;
  const auto catalogue = OpenIn(folder);
  std::atomic<bool> done = false;
  std::atomic<uint64_t> reads = 0;
  std::thread writer([&] {
    for (uint64_t i = 0; i < 150; ++i) {
      if (i == 50) {  // not before somebody reads
        EXPECT_TRUE(clew::test::WaitUntil([&] { return reads > 0; }));
      }
      EXPECT_TRUE(catalogue->Add(BundleOf(i)));
      EXPECT_TRUE(catalogue->SetAnalysis(IdOf(i), AnalysisOf(0)));
      if (i % 3 == 0) {
        EXPECT_TRUE(catalogue->Remove(IdOf(i)));
      }
    }
    done = true;
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const auto page =
            catalogue->Bundles({.limit = 1000, .signature = SignatureOf(0)});
        ASSERT_TRUE(page) << page.error().message;
        EXPECT_EQ(page->rows.size(), page->total);
        const auto counts = catalogue->Counts();
        ASSERT_TRUE(counts) << counts.error().message;
        EXPECT_EQ(counts->bundles * 4096, counts->bytes);
        EXPECT_LE(counts->groups, 1u);
        ++reads;
      }
    });
  }
  writer.join();
  for (std::thread& reader : readers) {
    reader.join();
  }
  const auto counts = catalogue->Counts();
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->bundles, 100u);
}

// Goal: cleaned text is UTF-8, on one line, not too long; clean text stays.
// Method: all strings of up to three bytes from a set with every class of byte.
TEST(CleanTextTest, EveryShortStringBecomesUtf8) {
  constexpr std::string_view kBytes = std::string_view(
      "\0a\x7f\x80\x9f\xa0\xbf\xc1\xc2\xe0\xed\xef\xf0\xf4\xf5\xff", 16);
  std::vector<std::string> texts = {""};
  for (size_t begin = 0, size = 1; size <= 4; ++size) {
    const size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char c : kBytes) {
        texts.push_back(texts[begin] + c);
      }
    }
  }
  for (const std::string& text : texts) {
    const std::string clean = CleanUtf8(text);
    ASSERT_EQ(CleanUtf8(clean), clean);
    const std::string line = CleanLine(text, 6);
    ASSERT_LE(line.size(), 6u);
    ASSERT_EQ(CleanLine(line, 6), line);
    ASSERT_EQ(line.find('\0'), std::string::npos);
  }
}

TEST(CleanTextTest, GoodTextStaysAndBadBytesAreReplaced) {
  const std::string good =
      "a\u00e9\u20ac\U0001f600\u0800\ud7ff\ue000\U0010ffff";
  EXPECT_EQ(CleanUtf8(good), good);
  EXPECT_EQ(CleanLine(good, 64), good);
  const std::string r = "\ufffd";
  EXPECT_EQ(CleanUtf8("\xc0\x80"), r + r);                  // overlong
  EXPECT_EQ(CleanUtf8("\xed\xa0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(CleanUtf8("\xf4\x90\x80\x80"), r + r + r + r);  // beyond Unicode
  EXPECT_EQ(CleanUtf8("\xe2\x82"), r + r);                  // cut off
  EXPECT_EQ(CleanUtf8("a\nb"), "a\nb");
  EXPECT_EQ(CleanLine("a\nb\u0085", 64), "a" + r + "b" + r);
  EXPECT_EQ(CleanLine("abcdef", 6), "abcdef");
  EXPECT_EQ(CleanLine("abcdefg", 6), "abc\u2026");
  EXPECT_EQ(CleanLine("ab\u20acdefg", 6), "ab\u2026");
}

}  // namespace
}  // namespace clew::collector
