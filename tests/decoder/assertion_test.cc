// Goal: a message is taken for an assertion only if it has the form that
// glibc's assert() prints, whatever else it has. Method: messages of programs;
// hostile ones; random changes of good ones, of which those that are taken are
// printable, bounded, and the same when written and read again.

#include "decoder/assertion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/digest.h"
#include "decoder/unwinder.h"

namespace clew::decoder {
namespace {

const Assertion kBank = {.file = "/src/bank.c",
                         .line = "62",
                         .function = "main",
                         .expression = "balance == expected"};

TEST(AssertionTest, HasThePartsOfTheMessage) {
  const std::string text =
      "/src/bank.c:62: main: Assertion `balance == expected' failed";
  EXPECT_EQ(ToString(kBank), text);
  for (const char* program : {"bank: ", ""}) {
    for (const char* end : {"", ".", ".\n"}) {
      EXPECT_EQ(ParseAssertion(program + text + end), kBank) << program << end;
    }
  }
  const auto method = ParseAssertion(
      "a b: x.cc:7: int A::F(B&) [with T = C::D]: Assertion `s == \"': x' "
      "failed.\"' failed.\n");
  ASSERT_TRUE(method);
  EXPECT_EQ(method->file, "x.cc");
  EXPECT_EQ(method->function, "int A::F(B&) [with T = C::D]");
  EXPECT_EQ(method->expression, "s == \"': x' failed.\"");
  const auto bare = ParseAssertion("p: x.c:7: Assertion `0' failed.\n");
  ASSERT_TRUE(bare);
  EXPECT_EQ(*bare, (Assertion{"x.c", "7", "", "0"}));
  EXPECT_EQ(ParseAssertion(ToString(*bare)), bare);
}

TEST(AssertionTest, OtherMessagesAreNone) {
  const std::string good = "bank: bank.c:62: main: Assertion `a' failed.\n";
  const std::vector<std::string> others = {
      "",
      "\n",
      "free(): double free detected in tcache 2\n",
      "terminate called after throwing: password=hunter2",
      "Assertion `a' failed.",
      ": Assertion `a' failed.",
      "bank: Assertion `a' failed.",
      "bank: bank.c: main: Assertion `a' failed.",
      "bank: bank.c:62x: main: Assertion `a' failed.",
      "bank: bank.c:12345678901: main: Assertion `a' failed.",
      "bank: :62: main: Assertion `a' failed.",
      "bank: bank.c:62: main: Assertion `' failed.",
      "bank: bank.c:62: main: Assertion `a' failed; password=hunter2",
      "bank: bank.c:62: main: Assertion `a' failed.\nhunter2",
      "bank: bank.c:62: main: Assertion 'a' failed.",
      "bank: bank.c:62: main: Assertion `a\x1b[31m' failed.",
      "bank: bank.c:62: main: Assertion `a\tb' failed.",
      "bank: bank.c:62: main: Assertion `\xe2\x80\xae' failed.",
      "bank: bank.c:62: main: Assertion `" + std::string(1 << 20, 'a') +
          "' failed.",
      std::string(1 << 20, ':'),
      good + good};
  for (const std::string& message : others) {
    EXPECT_EQ(ParseAssertion(message), std::nullopt) << message.substr(0, 80);
  }
  EXPECT_TRUE(ParseAssertion(good));
}

TEST(AssertionTest, WhatIsTakenIsPrintableAndTheSameWhenReadAgain) {
  Random random(3);
  const std::string good = "bank: " + ToString(kBank) + ".\n";
  int taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string message = good;
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) {
      const size_t at = random.Below(message.size());
      random.Below(2) == 0
          ? (void)message.erase(at, 1 + random.Below(4))
          : (void)(message[at] = ": `'\n.7\x01\xff"[random.Below(9)]);
      if (message.empty()) {
        break;
      }
    }
    const auto assertion = ParseAssertion(message);
    if (!assertion) {
      continue;
    }
    ++taken;
    const std::string text = ToString(*assertion);
    EXPECT_LE(text.size(), Unwinder::kMessageBytesMax);
    EXPECT_TRUE(
        std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
    EXPECT_EQ(ParseAssertion(text), assertion) << message;
  }
  EXPECT_GT(taken, 20'000);
}

}  // namespace
}  // namespace clew::decoder
