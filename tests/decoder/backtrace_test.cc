// Goal: the stacks of a core dump are those of gdb; nothing but the bundle is
// read; a damaged dump or image gives an error or a shorter stack, no crash.
// Method: a program whose calls are known fails under gdb, which writes the
// dump (and, where this host lets it, without gdb, so that the kernel does);
// then images are removed and swapped, and bytes changed, seed printed.

#include "decoder/backtrace.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "common/build_id.h"
#include "common/bytes.h"
#include "decoder/assertion.h"
#include "decoder/failure_signature.h"
#include "proto/bundle.pb.h"
#include "tests/support/read_text.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::CoreDump;
using bundle::DumpMapping;
using test::ReadText;
using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kCrasher = CLEW_CRASHER;
// Where time is to decide nothing.
constexpr std::chrono::milliseconds kUnhurried{600'000};

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Runs a shell command; false if it failed.
bool Shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// The line of the crasher that has `marker`.
int LineOf(const std::string& marker) {
  std::ifstream source(CLEW_CRASHER_SOURCE);
  int number = 1;
  for (std::string line; std::getline(source, line); ++number) {
    if (line.find(marker) != std::string::npos) {
      return number;
    }
  }
  return 0;
}

class BacktraceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "clew-backtrace-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }

  // The dump of a run of the crasher, by gdb.
  void DumpByGdb(const std::string& way) {
    ASSERT_TRUE(Shell(
        fmt::format("timeout 600 gdb -nx -batch -iex 'set debuginfod enabled "
                    "off' -ex 'handle SIGUSR1 nostop' -ex run -ex "
                    "'generate-core-file {}' --args {} {}",
                    Path("core"), crasher_, way)));
    ASSERT_TRUE(std::filesystem::exists(Path("core"))) << way;
  }

  // The same by the kernel; false where it puts dumps elsewhere.
  bool DumpByKernel(const std::string& way) {
    if (ReadText("/proc/sys/kernel/core_pattern") != "core\n" ||
        ReadText("/proc/sys/kernel/core_uses_pid") != "0\n") {
      return false;
    }
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
      if (chdir(folder_.c_str()) == 0 && setrlimit(RLIMIT_CORE, &limit) == 0) {
        execl(kCrasher, kCrasher, way.c_str(), nullptr);
      }
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return std::filesystem::exists(Path("core"));
  }

  // manifest.pb and images beside the dump.
  void MakeBundle() {
    const auto core = CoreDump::Open(Path("core"));
    ASSERT_TRUE(core) << core.error().message;
    pb::Manifest manifest;
    manifest.set_format_version(1);
    pb::Failure* failure = manifest.mutable_failure();
    failure->set_kind(pb::Failure::KIND_SIGNAL);
    failure->set_signal(core->threads()[0].signal);
    failure->set_thread(core->threads()[0].thread.as_int());
    failure->set_ip(core->threads()[0].rip.as_int());
    std::set<std::string> seen;
    for (const DumpMapping& mapping : core->mappings()) {
      if (seen.insert(mapping.path).second) {
        AddImage(mapping.path, manifest);
      }
    }
    WriteText(Path("manifest.pb"), manifest.SerializeAsString());
  }

  void AddImage(const std::string& path, pb::Manifest& manifest) {
    const auto bytes = ReadWholeFile(path);
    const auto id = bytes ? BuildIdOf(*bytes) : std::vector<std::byte>();
    if (id.empty()) {
      return;
    }
    pb::Image* image = manifest.add_images();
    image->set_path(path);
    image->set_build_id(ToText(id));
    image->set_has_build_id(true);
    std::string hex;
    for (const std::byte byte : id) {
      hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    }
    const std::string at = Path("images/" + hex);
    std::filesystem::create_directories(at);
    const std::string file =
        at + "/" + std::filesystem::path(path).filename().string();
    WriteText(file, ToText(*bytes));
    if (path == kCrasher) {
      program_ = file;
    }
  }

  Backtrace Read(const BacktraceLimits& limits = {
                     .time_max = kUnhurried}) const {
    const auto bundle = Bundle::Open(folder_);
    EXPECT_TRUE(bundle) << bundle.error().message;
    auto backtrace = ReadBacktrace(*bundle, limits);
    EXPECT_TRUE(backtrace) << backtrace.error().message;
    return backtrace ? std::move(*backtrace) : Backtrace();
  }

  // Names of the failing thread's frames that are the program's own.
  static std::vector<std::string> OwnNames(const Backtrace& backtrace) {
    std::vector<std::string> names;
    for (const BacktraceFrame& frame : backtrace.threads.at(0).frames) {
      if (frame.module == "decoder_crasher") {
        names.push_back(frame.function);
      }
    }
    return names;
  }

  std::string folder_;
  std::string crasher_ = kCrasher;
  std::string program_;  // the crasher's image in the bundle
};

TEST_F(BacktraceTest, HasEveryCallOfEveryThreadWithItsLine) {
  DumpByGdb("store");
  MakeBundle();
  const Backtrace backtrace = Read();
  EXPECT_THAT(backtrace.notes, IsEmpty());
  EXPECT_THAT(OwnNames(backtrace),
              ElementsAre("Innermost", "Middle", "main", "_start"));
  const BacktraceFrame& first = backtrace.threads[0].frames[0];
  EXPECT_THAT(first.file, testing::EndsWith("crasher.c"));
  EXPECT_EQ(first.line, LineOf("// STORE"));
  EXPECT_EQ(first.build_id.size(), 40u);
  EXPECT_TRUE(backtrace.threads[0].failed);
  EXPECT_EQ(FailureTitle(backtrace), "decoder_crasher: SIGSEGV in Innermost");
  EXPECT_EQ(backtrace.program.build_id,
            backtrace.threads[0].frames[0].build_id);
  EXPECT_EQ(backtrace.message, "");
  EXPECT_EQ(backtrace.program.version, "1.4.2-1");
  ASSERT_THAT(backtrace.threads, SizeIs(3));
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_FALSE(backtrace.threads[i].failed);
    EXPECT_TRUE(std::ranges::any_of(
        backtrace.threads[i].frames,
        [](const BacktraceFrame& f) { return f.function == "Waits"; }))
        << i;
  }
}

// lld and mold do so always, GNU ld if asked.
TEST_F(BacktraceTest, SegmentsMayShareAPageOfTheFile) {
  crasher_ = CLEW_CRASHER_SHARED_PAGES;
  DumpByGdb("store");
  MakeBundle();
  EXPECT_THAT(OwnNames(Read()),
              ElementsAre("Innermost", "Middle", "main", "_start"));
}

TEST_F(BacktraceTest, GoesOnBehindCallsOfNowhereAndSignalHandlers) {
  DumpByGdb("nowhere");
  MakeBundle();
  Backtrace backtrace = Read();
  EXPECT_THAT(OwnNames(backtrace),
              ElementsAre("CallNowhere", "main", "_start"));
  EXPECT_EQ(backtrace.threads[0].frames[0].pc, TraceeAddr(0));
  EXPECT_EQ(backtrace.threads[0].frames[0].module, "");

  std::filesystem::remove_all(Path("images"));
  DumpByGdb("handler");
  MakeBundle();
  backtrace = Read();
  EXPECT_THAT(OwnNames(backtrace),
              ElementsAre("Innermost", "Middle", "OnSignal", "main", "_start"));
}

TEST_F(BacktraceTest, SignaturesTellFailuresApartAndNothingElse) {
  std::map<std::string, std::set<std::string>> by_way;
  for (const std::string way :
       {"store", "nowhere", "heap", "abort", "handler"}) {
    DumpByGdb(way);
    MakeBundle();
    by_way[way].insert(SignatureText(Read()));
    // What the C library found wrong with the heap.
    EXPECT_EQ(Read().message.empty(), way != "heap") << Read().message;
  }
  // Other addresses and thread numbers, and a dump of other origin.
  for (const std::string way : {"store", "abort"}) {
    for (int i = 0; i < 2; ++i) {
      if (DumpByKernel(way)) {
        MakeBundle();
        by_way[way].insert(SignatureText(Read()));
      }
    }
    EXPECT_THAT(by_way[way], SizeIs(1)) << way;
  }
  std::set<std::string> all;
  for (const auto& [way, texts] : by_way) {
    all.insert(texts.begin(), texts.end());
  }
  EXPECT_THAT(all, SizeIs(by_way.size()));
  // Neither raise nor abort, nor what has no name before them, is in it.
  EXPECT_THAT(*by_way["abort"].begin(),
              HasSubstr("signal 6\ndecoder_crasher main\n"));
  EXPECT_THAT(*by_way["heap"].begin(), Not(HasSubstr(" raise\n")));
  EXPECT_THAT(*by_way["heap"].begin(), Not(HasSubstr(" abort\n")));
}

TEST_F(BacktraceTest, OnlyAnAssertionOfTheProgramsTextIsFound) {
  const auto found = [this](const std::string& way) {
    std::filesystem::remove_all(Path("images"));
    DumpByGdb(way);
    MakeBundle();
    const auto bundle = Bundle::Open(folder_);
    auto assertion = FindAssertion(*bundle);
    EXPECT_TRUE(assertion) << assertion.error().message;
    return assertion && *assertion ? ToString(**assertion) : "none";
  };
  const std::string wanted =
      fmt::format("{}:{}: main: Assertion `sink == 7' failed",
                  CLEW_CRASHER_SOURCE, LineOf("// ASSERT"));
  EXPECT_EQ(found("assert"), wanted);
  EXPECT_EQ(Read().message, fmt::format("decoder_crasher: {}.\n", wanted));
  // Messages of another kind, and of the form whose text is not the program's.
  EXPECT_EQ(found("heap"), "none");
  EXPECT_EQ(found("abort"), "none");
  EXPECT_EQ(found("store"), "none");
  EXPECT_EQ(found("forge 'password=hunter2' bank.c main"), "none");
  const std::string forge =
      fmt::format("forge 'sink == 7' {} ", CLEW_CRASHER_SOURCE);
  EXPECT_EQ(found(forge + "hunter2"), "none");
  EXPECT_NE(found(forge + "main"), "none");
  // Without the image nothing tells whose text it is.
  std::filesystem::remove(program_);
  EXPECT_FALSE(FindAssertion(*Bundle::Open(folder_))->has_value());
}

// Notes that strangers wrote; the build-id is what is left.
TEST_F(BacktraceTest, AVersionIsPlainTextOfThePackageNote) {
  DumpByGdb("abort");
  MakeBundle();
  const std::string whole = ReadText(program_);
  const std::string note = "\"version\":\"1.4.2-1\"";
  const size_t at = whole.find(note);
  ASSERT_NE(at, std::string::npos);
  const std::string build_id = Read().program.build_id;
  for (const auto& [text, wanted] :
       std::vector<std::pair<std::string, std::string>>{
           {"\"version\":\"<b>42\"", "<b>42"},
           {"\"version\":\"1\\u0007 2\"", build_id},
           {"\"version\":\"1\xff.2-1\"", build_id},
           {"\"version\":7", build_id},
           {"\"version\":", build_id},
           {"\"ver\":\"\"", build_id}}) {
    std::string changed = text;
    changed.resize(note.size(), ' ');
    WriteText(program_, std::string(whole).replace(at, note.size(), changed));
    EXPECT_EQ(Read().program.version, wanted) << text;
  }
  // A note that says that it is longer than the file.
  std::string longer = whole;
  longer.replace(whole.find("FDO") - 8, 4, "\xff\xff\xff\x7f");
  WriteText(program_, longer);
  EXPECT_EQ(Read().program.version, build_id);
}

// What redaction kept is shown where the dump has it no more.
TEST_F(BacktraceTest, AKeptAssertionIsTheMessage) {
  const std::string kept = "bank.c:62: main: Assertion `a == b' failed";
  DumpByGdb("abort");
  for (const auto& [text, wanted] :
       {std::pair(kept, kept), std::pair(kept + "<b>", std::string()),
        std::pair(std::string("hunter2"), std::string())}) {
    MakeBundle();
    pb::Manifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(ReadText(Path("manifest.pb"))));
    manifest.set_assertion(text);
    WriteText(Path("manifest.pb"), manifest.SerializeAsString());
    EXPECT_EQ(Read().message, wanted);
  }
}

TEST_F(BacktraceTest, LimitsCutOffAndSaySo) {
  DumpByGdb("recurse 300");
  MakeBundle();
  Backtrace backtrace = Read({.frames_max = 100, .time_max = kUnhurried});
  EXPECT_THAT(backtrace.threads[0].frames, SizeIs(100));
  EXPECT_TRUE(backtrace.threads[0].cut_off);
  backtrace = Read({.frames_max = 1000, .time_max = kUnhurried});
  EXPECT_THAT(backtrace.threads[0].frames, SizeIs(Gt(300u)));
  EXPECT_FALSE(backtrace.threads[0].cut_off);
  backtrace = Read({.threads_max = 2, .time_max = kUnhurried});
  EXPECT_THAT(backtrace.threads, SizeIs(2));
  EXPECT_THAT(backtrace.notes, Contains(HasSubstr("1 threads are left out")));
  backtrace = Read({.time_max = std::chrono::milliseconds(0)});
  EXPECT_THAT(backtrace.threads, SizeIs(3));
  EXPECT_THAT(backtrace.notes, Contains(HasSubstr("time limit")));
  const auto bundle = Bundle::Open(folder_);
  ASSERT_TRUE(bundle);
}

// The files of this host are where the recording had them, and are not read.
TEST_F(BacktraceTest, AnImageIsTakenFromTheBundleByBuildIdOrNotAtAll) {
  DumpByGdb("store");
  MakeBundle();
  const std::string image = ReadText(program_);
  std::filesystem::remove(program_);
  Backtrace backtrace = Read();
  EXPECT_THAT(backtrace.notes, Contains(HasSubstr("no image of it")));
  EXPECT_EQ(backtrace.threads[0].frames[0].function, "");
  EXPECT_EQ(backtrace.threads[0].frames[0].module, "decoder_crasher");
  EXPECT_EQ(backtrace.threads[0].frames[0].build_id.size(), 40u);

  // Another file under its name.
  WriteText(program_, ReadText("/proc/self/exe"));
  backtrace = Read();
  EXPECT_THAT(backtrace.notes, Contains(HasSubstr("another build-id")));
  EXPECT_EQ(backtrace.threads[0].frames[0].function, "");
  WriteText(program_, image);
  EXPECT_EQ(Read().threads[0].frames[0].function, "Innermost");
}

TEST_F(BacktraceTest, WithoutADumpThereIsTheFailingInstruction) {
  DumpByGdb("store");
  MakeBundle();
  std::filesystem::remove(Path("core"));
  const auto bundle = Bundle::Open(folder_);
  ASSERT_TRUE(bundle);
  // No perf.data either.
  EXPECT_FALSE(ReadBacktrace(*bundle, {}));
}

TEST_F(BacktraceTest, DamagedFilesGiveAnErrorOrAShorterStack) {
  DumpByGdb("store");
  MakeBundle();
  const std::string core = ReadText(Path("core"));
  const std::string image = ReadText(program_);
  // Headers and notes of the dump, everything of the image.
  const size_t notes = std::min<size_t>(core.size(), 16 * 1024);
  const char* more = std::getenv("CLEW_PROPERTY_RUNS");
  const int runs = more != nullptr ? std::atoi(more) : 60;
  std::mt19937 random(20240607);
  SCOPED_TRACE("seed 20240607");
  int read = 0;
  for (int run = 0; run < runs; ++run) {
    std::string bad_core = core;
    std::string bad_image = image;
    std::string& bad = run % 3 == 0 ? bad_core : bad_image;
    const size_t range = run % 3 == 0 ? notes : bad.size();
    for (unsigned i = 0; i < 1 + random() % 20; ++i) {
      bad[random() % range] = static_cast<char>(random());
    }
    if (run % 10 == 9) {
      bad.resize(random() % bad.size());
    }
    WriteText(Path("core"), bad_core);
    WriteText(program_, bad_image);
    const auto bundle = Bundle::Open(folder_);
    ASSERT_TRUE(bundle);
    const auto backtrace = ReadBacktrace(*bundle, {.time_max = kUnhurried});
    if (!backtrace) {
      EXPECT_EQ(backtrace.error().code, ErrorCode::kCorruptInput)
          << run << ": " << backtrace.error().message;
      continue;
    }
    ++read;
    EXPECT_THAT(backtrace->threads, Not(IsEmpty()));
    for (const ThreadBacktrace& thread : backtrace->threads) {
      EXPECT_THAT(thread.frames, Not(IsEmpty()));
    }
    EXPECT_THAT(SignatureText(*backtrace), HasSubstr("signal 11"));
  }
  EXPECT_GT(read, runs / 3);
}

}  // namespace
}  // namespace clew::decoder
