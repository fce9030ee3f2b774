// Goal: values with a meaning do not mix; digests, digits, sizes, generator,
// exit codes, messages and magnitudes are what documents and bundles rely on.
// Method: compile-time assertions, published test vectors, every enumerator.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "common/check.h"
#include "common/digest.h"
#include "common/progress.h"
#include "common/result.h"
#include "common/round_up.h"
#include "common/text/hex.h"
#include "common/text/path_names.h"
#include "common/units.h"

namespace clew {
namespace {

static_assert(!std::is_convertible_v<uint64_t, TraceeAddr>);
static_assert(!std::is_convertible_v<TraceeAddr, uint64_t>);
static_assert(!std::is_convertible_v<TraceeAddr, TscTicks>);
static_assert(!std::is_constructible_v<TscTicks, TraceeAddr>);
static_assert(!std::equality_comparable_with<TscTicks, PerfNanos>);
static_assert(TscTicks(1) < TscTicks(2));
static_assert(TscTicks().as_int() == 0);

static_assert(RoundUp(0, 8) == 0);
static_assert(RoundUp(1, 8) == 8);
static_assert(RoundUp(8, 8) == 8);
static_assert(RoundUp(UINT64_MAX - 4094, 4096) == 0);
static_assert(RoundUp(UINT64_MAX - 4095, 4096) == UINT64_MAX - 4095);
static_assert(PaddedNoteBytes(5) == 8);

TEST(StrongIntTest, OrdersHashesAndPrintsAsItsValue) {
  const std::unordered_set<Tid> tids = {Tid(1), Tid(2), Tid(1)};
  EXPECT_EQ(tids.size(), 2u);
  const std::set<Tid> ordered = {Tid(3), Tid(-1)};
  EXPECT_EQ(ordered.begin()->as_int(), -1);
  EXPECT_EQ(fmt::format("{} {:#x}", Tid(812), TraceeAddr(0x4000)),
            "812 0x4000");
}

uint64_t DigestOf(std::string_view text, uint64_t before = kEmptyDigest) {
  return Digest(std::as_bytes(std::span(text)), before);
}

// Vectors: Fowler, Noll, Vo, "The FNV non-cryptographic hash algorithm"
// (FNV-1a, 64 bits).
TEST(DigestTest, AgreesWithPublishedVectors) {
  EXPECT_EQ(DigestOf(""), 0xcbf29ce484222325u);
  EXPECT_EQ(DigestOf("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(DigestOf("foobar"), 0x85944171f73967e8u);
}

TEST(DigestTest, ContinuesWhereTheFirstPartEnded) {
  constexpr std::string_view kText = "clew of thread";
  for (size_t cut = 0; cut <= kText.size(); ++cut) {
    EXPECT_EQ(DigestOf(kText.substr(cut), DigestOf(kText.substr(0, cut))),
              DigestOf(kText));
  }
}

TEST(HexTest, EveryCharacterIsADigitOrNone) {
  constexpr std::string_view kLower = "0123456789abcdef";
  constexpr std::string_view kUpper = "0123456789ABCDEF";
  for (int i = 0; i < 256; ++i) {
    const auto c = static_cast<char>(i);
    const size_t value = std::min(kLower.find(c), kUpper.find(c));
    EXPECT_EQ(HexDigitValue(c).has_value(), value != std::string_view::npos)
        << i;
    EXPECT_EQ(HexDigitValue(c).value_or(16), std::min<size_t>(value, 16)) << i;
    EXPECT_EQ(IsHex(std::string("0f") + c),
              kLower.find(c) != std::string_view::npos)
        << i;
  }
  EXPECT_TRUE(IsHex(""));
  EXPECT_TRUE(IsHex(ToHex("any text")));
}

// Vectors: the reference implementation of SplitMix64 with seed 1234567.
TEST(RandomTest, IsTheSameOnEveryHost) {
  Random random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
}

TEST(RandomTest, StaysBelowItsBoundAndReachesEveryValue) {
  for (uint64_t bound = 1; bound <= 16; ++bound) {
    Random random(bound);
    std::set<uint64_t> seen;
    for (int i = 0; i < 1000; ++i) {
      seen.insert(random.Below(bound));
    }
    EXPECT_EQ(seen.size(), bound);
    EXPECT_LT(*seen.rbegin(), bound);
  }
}

TEST(ResultTest, EveryCauseHasItsExitCode) {
  EXPECT_EQ(ExitCodeOf(InvalidArgument("x").error().code), 2);
  EXPECT_EQ(ExitCodeOf(SystemError(EPERM, "x").error().code), 3);
  EXPECT_EQ(ExitCodeOf(Unsupported("x").error().code), 3);
  EXPECT_EQ(ExitCodeOf(CorruptInput("x").error().code), 4);
  EXPECT_EQ(ExitCodeOf(LimitReached("x").error().code), 5);
}

TEST(ResultTest, ASystemErrorKeepsItsNumberAndText) {
  const Error error = SystemError(EACCES, "cannot open \"f\"").error();
  EXPECT_EQ(error.message, "cannot open \"f\": Permission denied");
  EXPECT_EQ(error.sys_errno, EACCES);
}

Result<int> Half(int value) {
  if (value % 2 != 0) {
    return InvalidArgument("{} is odd", value);
  }
  return value / 2;
}

Result<int> Quarter(int value) {
  CLEW_ASSIGN_OR_RETURN(half, Half(value));
  CLEW_RETURN_IF_ERROR(Half(half));
  return half / 2;
}

TEST(ResultTest, MacrosPassValuesOnAndStopAtTheFirstError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(7).error().message, "7 is odd");
  EXPECT_EQ(Quarter(6).error().message, "3 is odd");
}

TEST(CheckTest, AFailedCheckEndsTheProcessWithItsMessage) {
  int evaluated = 0;
  CLEW_CHECK(++evaluated == 1, "never {}", "printed");
  EXPECT_EQ(evaluated, 1);
  EXPECT_EXIT(CLEW_CHECK(1 > 2, "slice {} is wrong", 7),
              testing::ExitedWithCode(kExitBug),
              "clew: bug: 1 > 2: slice 7 is wrong .*values_test.cc");
}

TEST(ProgressTest, MagnitudesKeepOneDecimal) {
  EXPECT_EQ(WithMagnitude(0), "0");
  EXPECT_EQ(WithMagnitude(981), "981");
  EXPECT_EQ(WithMagnitude(1000), "1.0 k");
  EXPECT_EQ(WithMagnitude(12345678), "12.3 M");
  EXPECT_EQ(WithMagnitude(4e9), "4.0 G");
  EXPECT_EQ(WithMagnitude(5e12), "5.0 T");
  EXPECT_EQ(WithMagnitude(5e15), "5000.0 T");
}

TEST(ProgressTest, NothingIsDrawnWhereStderrIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    TerminalProgress progress("solve", "insn");
    progress.Update(1, 0);
    progress.Update(2, 10);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(PathNames, EveryPathGivesANameThatABundleMayHave) {
  EXPECT_EQ(BaseName("/usr/lib/libc.so.6"), "libc.so.6");
  EXPECT_EQ(BaseName("a"), "a");
  EXPECT_EQ(ImageFileName("/usr/lib/libstdc++.so.6"), "libstdc++.so.6");
  EXPECT_EQ(ImageFileName("[vdso]"), "_vdso_");
  EXPECT_EQ(ImageFileName("/opt/my app/a:b"), "a_b");
  EXPECT_EQ(ImageFileName(std::string("/x\0y", 4)), "x_y");
  EXPECT_FALSE(IsImageFileName(ImageFileName("/usr/")));
  EXPECT_FALSE(IsImageFileName(ImageFileName("/usr/..")));
  for (int byte = 0; byte < 256; ++byte) {
    const std::string path = std::string("/x") + static_cast<char>(byte);
    EXPECT_EQ(IsImageFileName(ImageFileName(path)), byte != '/') << byte;
  }
  EXPECT_TRUE(IsImageFileName(ImageFileName(std::string(300, 'a'))));
  EXPECT_FALSE(IsImageFileName(std::string(256, 'a')));
}

}  // namespace
}  // namespace clew
