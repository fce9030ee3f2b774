// Goal: whatever operation of the file system fails, an import leaves no bundle
// of that name or a complete one; a manifest holds any bytes that perf.data has
// for texts; a signal that does not end a process is not a failure.
// Method: exhaustive: the real file system below one that fails from its k-th
// operation on, for every k; core dumps made field by field.
#include "importer/import_bundle.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bundle/bundle.h"
#include "bundle/core_dump/dump_failure.h"
#include "bundle/manifest/manifest_writer.h"
#include "decoder/bundle_trace.h"
#include "tests/support/captures.h"
#include "tests/support/core_maker.h"
#include "tests/support/failing_files.h"

namespace clew::importer {
namespace {

namespace fs = std::filesystem;
using bundle::Bundle;
using bundle::BundleSource;
using bundle::CoreDump;
using bundle::Manifest;
using test::FailingFiles;
using test::kCapture;

class ImportBundleTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "clew-import-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string root_;
};

TEST_F(ImportBundleTest, AnyFailureLeavesNoBundleOrACompleteOne) {
  bool finished = false;
  int operations = 0;
  for (; !finished; ++operations) {
    ASSERT_LT(operations, 100) << "the import never finishes";
    const std::string bundle = fmt::format("{}/{}.clew", root_, operations);
    FailingFiles files(operations);
    finished = ImportBundle(files, {kCapture, bundle, ""}, nullptr).has_value();
    EXPECT_TRUE(!finished || fs::exists(bundle)) << operations;
    if (fs::exists(bundle)) {
      const auto opened = Bundle::Open(bundle);
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_TRUE(decoder::ReadTrace(*opened)) << operations;
      EXPECT_EQ(fs::file_size(bundle + "/perf.data"), fs::file_size(kCapture));
    }
    // What is left behind is not in the way.
    EXPECT_TRUE(
        finished || fs::exists(bundle) ||
        ImportBundle(PosixFileSystem(), {kCapture, bundle, ""}, nullptr))
        << operations;
  }
  EXPECT_GE(operations, 12);
}

TEST_F(ImportBundleTest, TheManifestSaysWhatTheFileSays) {
  const std::string bundle = root_ + "/a.clew";
  ASSERT_TRUE(ImportBundle(PosixFileSystem(), {kCapture, bundle, ""}, nullptr));
  const auto opened = Bundle::Open(bundle);
  ASSERT_TRUE(opened) << opened.error().message;
  const Manifest& manifest = opened->manifest();
  EXPECT_EQ(manifest.source, BundleSource::kImported);
  const CpuIdentity m7_6y75 = {
      .is_intel = true, .family = 6, .model = 78, .stepping = 3};
  EXPECT_EQ(manifest.cpu, m7_6y75);
  EXPECT_EQ(manifest.core_count, 2u);
  EXPECT_EQ(manifest.conversion.shift, 31u);
  EXPECT_EQ(manifest.conversion.mult, 1789569706u);
  EXPECT_EQ(manifest.conversion.zero, 18446744041015200657u);
  EXPECT_EQ(manifest.origin.os_release, "4.14.18");
  EXPECT_EQ(manifest.command.back(), "Hello, World!");
  EXPECT_EQ(manifest.failure.kind, FailureKind::kNone);
  // [kernel.kallsyms], 55 modules, 9 files and the vDSO: all have a build-id.
  EXPECT_EQ(manifest.images.size(), 66u);
}

TEST_F(ImportBundleTest, TheCpuIsThatOfTheCallerIfGiven) {
  ImportOptions options = {kCapture, root_ + "/a.clew", ""};
  options.cpu = "GenuineIntel,6,158,10";
  const auto report = ImportBundle(PosixFileSystem(), options, nullptr);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->manifest.cpu.model, 158u);
  options.output = root_ + "/b.clew";
  options.cpu = "AuthenticAMD,25,33,0";
  const auto refused = ImportBundle(PosixFileSystem(), options, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(options.output));
}

TEST_F(ImportBundleTest, TextsMayBeAnyBytes) {
  bundle::Manifest manifest;
  manifest.source = bundle::BundleSource::kImported;
  manifest.origin.host =
      "caf\xc3\xa9 \xff\xc0\x80\xed\xa0\x80 \xf0\x9f\xa7\xb6 \xe2\x82";
  manifest.images.push_back({.path = "/x/\xfe", .build_id = {std::byte{1}}});
  const std::string bytes = bundle::ManifestBytes(manifest);
  fs::create_directories(root_ + "/a.clew");
  ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), root_ + "/a.clew/manifest.pb",
                             std::as_bytes(std::span(bytes))));
  const auto opened = Bundle::Open(root_ + "/a.clew");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->manifest().origin.host,
            "caf\xc3\xa9 ?????? \xf0\x9f\xa7\xb6 ??");
  EXPECT_EQ(opened->manifest().images[0].path, "/x/?");
}

// A core dump with one thread, 7, at 0x1000.
std::string MakeCore(int16_t cursig, int32_t signal, int32_t code,
                     uint64_t fault_addr) {
  elf_prstatus status = {};
  status.pr_cursig = cursig;
  status.pr_pid = 7;
  user_regs_struct regs = {};
  regs.rip = 0x1000;
  std::memcpy(&status.pr_reg, &regs, sizeof regs);
  siginfo_t info = {};
  info.si_signo = signal;
  info.si_code = code;
  std::memcpy(static_cast<void*>(&info.si_addr), &fault_addr,
              sizeof fault_addr);
  CoreMaker core;
  core.AddNote(NT_PRSTATUS, BytesOf(status));
  core.AddNote(NT_SIGINFO, BytesOf(info));
  return core.File();
}

Failure FailureOfCore(int16_t cursig, int32_t signal, int32_t code) {
  const std::string bytes = MakeCore(cursig, signal, code, 0xdead);
  const auto core = CoreDump::Over(std::as_bytes(std::span(bytes)), "core");
  EXPECT_TRUE(core) << core.error().message;
  return bundle::FailureOf(*core);
}

TEST(FailureOfTest, IsTheSignalWithTheAddressOfAFault) {
  const Failure failure = FailureOfCore(SIGSEGV, SIGSEGV, /*SEGV_MAPERR*/ 1);
  EXPECT_EQ(failure.kind, FailureKind::kSignal);
  EXPECT_EQ(failure.signal, SIGSEGV);
  EXPECT_EQ(failure.thread, Tid(7));
  EXPECT_EQ(failure.ip, TraceeAddr(0x1000));
  EXPECT_EQ(failure.addr, TraceeAddr(0xdead));
}

TEST(FailureOfTest, AnAddressIsOnlyOfAFaultThatTheKernelRaised) {
  EXPECT_EQ(FailureOfCore(SIGSEGV, SIGSEGV, /*SI_TKILL*/ -6).addr,
            TraceeAddr(0));
  EXPECT_EQ(FailureOfCore(SIGABRT, SIGABRT, -6).addr, TraceeAddr(0));
  EXPECT_EQ(FailureOfCore(SIGFPE, SIGFPE, 1).addr, TraceeAddr(0));
  EXPECT_EQ(FailureOfCore(SIGSEGV, SIGBUS, 1).addr, TraceeAddr(0));
}

TEST(FailureOfTest, ASignalThatDumpsNoCoreIsNoFailure) {
  for (const int signal : {0, SIGSTOP, SIGTERM, 64, 300, -1}) {
    EXPECT_EQ(FailureOfCore(static_cast<int16_t>(signal), 0, 0).kind,
              FailureKind::kNone)
        << signal;
  }
  EXPECT_EQ(FailureOfCore(0, SIGABRT, -6).signal, SIGABRT);
}

}  // namespace
}  // namespace clew::importer
