// Goal: whatever operation of the file system fails, an import leaves no bundle
// of that name or a complete one; a manifest holds any bytes that perf.data has
// for texts; a signal that ends no process is no failure.
// Method: exhaustive: the real file system below one that fails from its k-th
// operation on, for every k; core dumps made field by field.
#include "cli/import_bundle.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "decoder/bundle_reader.h"
#include "tests/support/failing_files.h"

namespace clew::cli {
namespace {

namespace fs = std::filesystem;
using testing::FailingFiles;

constexpr const char* kCapture = CLEW_TEST_DATA "/perf-intel-pt-4.14/perf.data";

class ImportBundleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "clew-import-XXXXXX";
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
      const auto opened = decoder::Bundle::Open(bundle);
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_TRUE(opened->ReadTrace()) << operations;
      EXPECT_EQ(fs::file_size(bundle + "/perf.data"), fs::file_size(kCapture));
    }
    // What is left behind is in nobody's way.
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
  const auto opened = decoder::Bundle::Open(bundle);
  ASSERT_TRUE(opened) << opened.error().message;
  const decoder::Manifest& manifest = opened->manifest();
  EXPECT_EQ(manifest.source, decoder::BundleSource::kImported);
  const decoder::CpuIdentity m7_6y75 = {
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
  EXPECT_EQ(report->run.cpu_model, 158u);
  options.output = root_ + "/b.clew";
  options.cpu = "AuthenticAMD,25,33,0";
  const auto refused = ImportBundle(PosixFileSystem(), options, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(options.output));
}

TEST_F(ImportBundleTest, TextsMayBeAnyBytes) {
  recorder::ImportedRun run;
  run.host = "caf\xc3\xa9 \xff\xc0\x80\xed\xa0\x80 \xf0\x9f\xa7\xb6 \xe2\x82";
  run.images.push_back({.path = "/x/\xfe", .build_id = {1}, .file = {}});
  const std::string bytes = recorder::ImportManifest(run);
  fs::create_directories(root_ + "/a.clew");
  ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), root_ + "/a.clew/manifest.pb",
                             std::as_bytes(std::span(bytes))));
  const auto opened = decoder::Bundle::Open(root_ + "/a.clew");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->manifest().origin.host,
            "caf\xc3\xa9 ?????? \xf0\x9f\xa7\xb6 ??");
  EXPECT_EQ(opened->manifest().images[0].path, "/x/?");
}

// A core dump with one thread, 7, at 0x1000.
std::vector<std::byte> MakeCore(int16_t cursig, int32_t signal, int32_t code,
                                uint64_t fault_addr) {
  constexpr size_t kPrstatus = 336;
  constexpr size_t kSiginfo = 128;
  constexpr size_t kNotes = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  std::vector<std::byte> bytes(kNotes + 20 + kPrstatus + 20 + kSiginfo);
  const auto put = [&bytes](size_t at, const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  Elf64_Ehdr ehdr = {};
  std::memcpy(ehdr.e_ident, ELFMAG, SELFMAG);
  ehdr.e_ident[EI_CLASS] = ELFCLASS64;
  ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
  ehdr.e_type = ET_CORE;
  ehdr.e_machine = EM_X86_64;
  ehdr.e_phoff = sizeof ehdr;
  ehdr.e_phentsize = sizeof(Elf64_Phdr);
  ehdr.e_phnum = 1;
  put(0, ehdr);
  Elf64_Phdr phdr = {};
  phdr.p_type = PT_NOTE;
  phdr.p_offset = kNotes;
  phdr.p_filesz = bytes.size() - kNotes;
  put(sizeof ehdr, phdr);
  const auto note = [&](size_t at, uint32_t type, uint32_t size) {
    put(at, Elf64_Nhdr{.n_namesz = 5, .n_descsz = size, .n_type = type});
    std::memcpy(bytes.data() + at + 12, "CORE", 4);
    return at + 20;
  };
  const size_t status = note(kNotes, NT_PRSTATUS, kPrstatus);
  put(status + 12, cursig);
  put(status + 32, int32_t{7});
  put(status + 112 + 8 * 16, uint64_t{0x1000});
  const size_t info = note(status + kPrstatus, NT_SIGINFO, kSiginfo);
  put(info, signal);
  put(info + 8, code);
  put(info + 16, fault_addr);
  return bytes;
}

Failure FailureOfCore(int16_t cursig, int32_t signal, int32_t code) {
  const auto bytes = MakeCore(cursig, signal, code, 0xdead);
  const auto core = decoder::CoreDump::Over(bytes, "core");
  EXPECT_TRUE(core) << core.error().message;
  return FailureOf(*core);
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
}  // namespace clew::cli
