// Goal: the signature of a failure depends on what failed where, and on nothing
// that differs between two runs of one bug.
// Method: backtraces made here; each is changed in one way, and the signature
// must follow or stay.

#include "decoder/failure_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace clew::decoder {
namespace {

BacktraceFrame Frame(const std::string& module, const std::string& symbol,
                     uint64_t offset = 0x100) {
  return {.pc = TraceeAddr(0x400000 + offset),
          .symbol = symbol,
          .function = symbol,
          .module = module,
          .build_id = module.empty() ? "" : "id-" + module,
          .offset = offset};
}

// As a failed assertion looks with a stripped C library.
Backtrace FailedAssertion() {
  Backtrace backtrace;
  backtrace.failure.kind = FailureKind::kSignal;
  backtrace.failure.signal = 6;
  backtrace.modules = {"bank", "libc.so.6"};
  backtrace.threads.push_back(
      {.thread = Tid(7),
       .failed = true,
       .frames = {Frame("libc.so.6", "", 0x8aeec), Frame("libc.so.6", "raise"),
                  Frame("libc.so.6", "abort"), Frame("libc.so.6", "", 0x26395),
                  Frame("libc.so.6", "__assert_fail"), Frame("bank", "Check"),
                  Frame("bank", "main"),
                  Frame("libc.so.6", "__libc_start_main"),
                  Frame("bank", "_start")}});
  backtrace.threads.push_back(
      {.thread = Tid(8), .frames = {Frame("libc.so.6", "read")}});
  return backtrace;
}

Backtrace Deadlock() {
  Backtrace backtrace;
  backtrace.failure.kind = FailureKind::kHang;
  backtrace.modules = {"app", "libc.so.6"};
  for (const char* name : {"main", "Left", "Right"}) {
    backtrace.threads.push_back(
        {.thread = Tid(static_cast<int32_t>(backtrace.threads.size() + 1)),
         .frames = {Frame("libc.so.6", "", 0x8612b),
                    Frame("libc.so.6", "pthread_mutex_lock"),
                    Frame("app", name), Frame("app", "Run"),
                    Frame("libc.so.6", "clone")}});
  }
  return backtrace;
}

TEST(SignatureTest, IsTheTextThatTheHeaderSpecifies) {
  EXPECT_EQ(SignatureText(FailedAssertion()),
            "clew failure 2\n"
            "signal 6\n"
            "bank Check\n"
            "bank main\n"
            "libc.so __libc_start_main\n"
            "bank _start\n");
  EXPECT_EQ(SignatureText(Deadlock()),
            "clew failure 2\n"
            "hang\n"
            "app Left\n"
            "app Right\n"
            "app Run\n"
            "app main\n");
  EXPECT_EQ(FailureTitle(FailedAssertion()), "SIGABRT in Check");
  EXPECT_EQ(FailureTitle(Deadlock()), "hang in Left, Right, main");
}

struct Change {
  const char* name;
  std::function<void(Backtrace&)> apply;
};

TEST(SignatureTest, StaysWhenARunDiffersInAccidents) {
  const std::vector<Change> changes = {
      {"addresses", [](Backtrace& b) { b.threads[0].frames[5].pc = {}; }},
      {"place in a function",
       [](Backtrace& b) { b.threads[0].frames[5].offset += 8; }},
      {"line", [](Backtrace& b) { b.threads[0].frames[5].line = 99; }},
      {"thread numbers", [](Backtrace& b) { b.threads[0].thread = Tid(9); }},
      {"failure address",
       [](Backtrace& b) { b.failure.addr = TraceeAddr(0x1234); }},
      {"other threads", [](Backtrace& b) { b.threads.pop_back(); }},
      {"way through the abort path",
       [](Backtrace& b) {
         auto& frames = b.threads[0].frames;
         frames.erase(frames.begin(), frames.begin() + 2);
         frames[1].offset = 0x999;
       }},
      {"depth of a recursion", [](Backtrace& b) {
         auto& frames = b.threads[0].frames;
         frames.insert(frames.begin() + 5, 20, frames[5]);
       }}};
  for (const Change& change : changes) {
    Backtrace changed = FailedAssertion();
    change.apply(changed);
    EXPECT_EQ(SignatureText(changed), SignatureText(FailedAssertion()))
        << change.name;
  }
  // Which frames count: eight, each with another name.
  Backtrace deep = FailedAssertion();
  auto& frames = deep.threads[0].frames;
  frames.resize(5);
  for (int i = 0; i < 12; ++i) {
    frames.push_back(Frame("bank", "f" + std::to_string(i)));
  }
  const std::string eight = SignatureText(deep);
  EXPECT_THAT(eight, testing::EndsWith("f7\n"));
  frames.pop_back();
  EXPECT_EQ(SignatureText(deep), eight);
}

// A program that was built again, its libraries, too.
TEST(SignatureTest, StaysInTheNextBuild) {
  const auto next_build = [](Backtrace b) {
    for (ThreadBacktrace& thread : b.threads) {
      for (BacktraceFrame& frame : thread.frames) {
        frame.build_id += "-next";
        frame.offset += 0x40;
        frame.line += 1;
      }
    }
    return b;
  };
  for (const Backtrace& before : {FailedAssertion(), Deadlock()}) {
    EXPECT_EQ(SignatureText(next_build(before)), SignatureText(before));
  }
  // Names that change with a build, old and new.
  const std::pair<const char*, const char*> symbols[] = {
      {"Check.part.0", "Check"},
      {"Check.constprop.1", "Check.isra.0.cold"},
      {"Check@@BANK_1", "Check@@BANK_2"},
      {"_ZN4bank5check17h0123456789abcdefE",
       "_ZN4bank5check17hfedcba9876543210E"}};
  for (const auto& [old_name, new_name] : symbols) {
    Backtrace before = FailedAssertion();
    Backtrace after = FailedAssertion();
    before.threads[0].frames[5].symbol = old_name;
    after.threads[0].frames[5].symbol = new_name;
    EXPECT_EQ(SignatureText(after), SignatureText(before)) << new_name;
  }
  // Without symbols: a function that moved, the C library's next version.
  Backtrace stripped = FailedAssertion();
  auto& frames = stripped.threads[0].frames;
  frames[5] = Frame("bank", "");
  frames[5].row_offset = 0x20;
  frames[5].row_bytes = 0x80;
  frames[6] = Frame("libcrypto.so.3", "f");
  frames[7] = Frame("libc.so.6", "");
  EXPECT_THAT(SignatureText(stripped),
              testing::HasSubstr("bank +0x20 of 0x80\nlibcrypto.so f\n"
                                 "libc.so ?\n"));
  EXPECT_EQ(SignatureText(next_build(stripped)), SignatureText(stripped));
}

TEST(SignatureTest, TitleHasProgramAndWhatItSaid) {
  Backtrace said = FailedAssertion();
  said.program.name = "bank";
  EXPECT_EQ(FailureTitle(said), "bank: SIGABRT in Check");
  said.message = "bank: /src/bank.c:62: main: Assertion `a == b' failed.\n";
  EXPECT_EQ(FailureTitle(said),
            "bank: Assertion `a == b' failed (SIGABRT in Check)");
  said.message = "double free or corruption (top)\n";
  EXPECT_EQ(FailureTitle(said),
            "bank: double free or corruption (top) (SIGABRT in Check)");
  said.message = std::string(4000, 'x');
  EXPECT_LT(FailureTitle(said).size(), 400u);
  Backtrace fault = FailedAssertion();
  fault.failure.signal = 11;
  fault.failure.addr = TraceeAddr(8);
  EXPECT_EQ(FailureTitle(fault), "SIGSEGV at 0x8 in Check");
  fault.failure.addr = TraceeAddr(0x7f0000001000);
  EXPECT_EQ(FailureTitle(fault), "SIGSEGV in Check");
}

TEST(SignatureTest, ChangesWithWhatFailed) {
  const std::vector<Change> changes = {
      {"signal", [](Backtrace& b) { b.failure.signal = 11; }},
      {"kind",
       [](Backtrace& b) {
         b.failure.kind = FailureKind::kExit;
         b.failure.exit_status = 6;
       }},
      {"function",
       [](Backtrace& b) { b.threads[0].frames[5].symbol = "Other"; }},
      {"module", [](Backtrace& b) { b.threads[0].frames[5].module = "other"; }},
      {"caller", [](Backtrace& b) { b.threads[0].frames[6].symbol = "Other"; }},
      {"function without a name at another place", [](Backtrace& b) {
         b.threads[0].frames[5].symbol = "";
         b.threads[0].frames[5].row_offset = 0x20;
         b.threads[0].frames[5].row_bytes = 0x80;
       }}};
  std::vector<std::string> texts = {SignatureText(FailedAssertion())};
  for (const Change& change : changes) {
    Backtrace changed = FailedAssertion();
    change.apply(changed);
    EXPECT_THAT(texts, testing::Not(testing::Contains(SignatureText(changed))))
        << change.name;
    texts.push_back(SignatureText(changed));
  }
}

TEST(SignatureTest, AProgramsOwnFunctionsAreNotTheAbortPath) {
  Backtrace own = FailedAssertion();
  own.threads[0].frames = {Frame("bank", "abort"), Frame("bank", "main")};
  EXPECT_THAT(SignatureText(own), testing::HasSubstr("bank abort\n"));
  own.modules = {"bank"};  // linked statically: then it is the C library's
  EXPECT_THAT(SignatureText(own),
              testing::Not(testing::HasSubstr("bank abort\n")));
  // A stack that is nothing else is kept.
  own.threads[0].frames = {Frame("bank", "abort")};
  EXPECT_THAT(SignatureText(own), testing::HasSubstr("bank abort\n"));
}

TEST(SignatureTest, OfAHangDoesNotDependOnOrderOrNumberOfThreads) {
  Backtrace more = Deadlock();
  std::swap(more.threads[0], more.threads[2]);
  more.threads.push_back(more.threads[1]);
  EXPECT_EQ(SignatureText(more), SignatureText(Deadlock()));
  more.threads[0].frames[2].symbol = "Elsewhere";
  EXPECT_NE(SignatureText(more), SignatureText(Deadlock()));
}

TEST(SignatureTest, WhatAFileSaysCannotForgeLines) {
  Backtrace forged = FailedAssertion();
  forged.threads[0].frames[5].symbol = "Check\nbank main";
  forged.threads[0].frames.erase(forged.threads[0].frames.begin() + 6);
  EXPECT_NE(SignatureText(forged), SignatureText(FailedAssertion()));
}

}  // namespace
}  // namespace clew::decoder
