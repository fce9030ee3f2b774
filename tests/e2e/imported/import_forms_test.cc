// Goal: whatever form a recording of perf has, an import of it decodes to what
// the program executed, or says what is missing: files without build-ids, pipe
// format, a stream for each thread, code of the vDSO, no CPU named, an image
// that is not there, code in memory that its file lacks.
// Method: a small program with a library, compiled here without build-ids, is
// stepped natively and traced by our encoder; the oracle is the stepper, and
// for a missing image also perf itself, where it is installed.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/procfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bundle/bundle.h"
#include "common/result.h"
#include "decoder/bundle_trace.h"
#include "decoder/loaded_images.h"
#include "decoder/streams.h"
#include "decoder/unwinder.h"
#include "recorder/images/vdso.h"
#include "recorder/stepper/stepped_pt.h"
#include "recorder/stepper/stepper.h"
#include "tests/e2e/clew_command.h"
#include "tests/e2e/imported/import_command.h"
#include "tests/support/core_maker.h"
#include "tests/support/read_text.h"
#include "tests/support/write_text.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;
using bundle::Bundle;
using bundle::MmapRecord;
using bundle::PerfData;
using bundle::PerfDataConfig;
using nlohmann::json;
using test::ReadText;
using test::WriteText;
using testing::HasSubstr;
using testing::Not;

// Calls the library, and through libc the vDSO, some times.
constexpr const char* kProgram = R"(
#include <time.h>
long work(long n);
int main(void) {
  long sum = 0;
  for (int i = 0; i < 20; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sum += work(i) + (now.tv_nsec < 0);
  }
  return sum == 0;
}
)";
constexpr const char* kLibrary = R"(
long work(long n) {
  for (long i = 0; i < 8; ++i) { n = n % 3 == 0 ? n + i : n * 2 - i; }
  return n;
}
)";

constexpr char kAuxtrace = 71;  // PERF_RECORD_AUXTRACE
constexpr const char* kCpu = "GenuineIntel,6,158,10";

using ThreadIps = std::map<Tid, std::vector<uint64_t>>;

size_t CountInsns(const ThreadIps& ips) {
  size_t count = 0;
  for (const auto& [thread, of_thread] : ips) {
    count += of_thread.size();
  }
  return count;
}

// A core dump of thread `tid` with the vDSO at `addr`.
std::string CoreWithVdso(int32_t tid, uint64_t addr,
                         std::span<const std::byte> vdso) {
  elf_prstatus status = {};
  status.pr_pid = tid;
  const std::array<uint64_t, 4> auxv = {AT_SYSINFO_EHDR, addr, AT_NULL, 0};
  CoreMaker core;
  core.AddNote(NT_PRSTATUS, BytesOf(status));
  core.AddNote(NT_AUXV, BytesOf(auxv));
  core.AddMemory(addr, PF_R | PF_X,
                 {reinterpret_cast<const char*>(vdso.data()), vdso.size()});
  return core.File();
}

// Compiles the program without a build-id, and its library.
void Compile(const Scratch& scratch) {
  WriteText(scratch.Path("work.c"), kLibrary);
  WriteText(scratch.Path("main.c"), kProgram);
  const std::string flags = "cc -O1 -Wl,--build-id=none ";
  const ProgramOutput made =
      Shell("cd " + scratch.Path("") + " && " + flags +
            "-shared -fPIC -o libwork.so work.c && " + flags +
            "-o prog main.c -L. -lwork -Wl,-rpath," + scratch.Path(""));
  ASSERT_EQ(made.exit_status, 0) << made.text;
}

// A program's run, stepped and traced.
struct Recording {
  Scratch scratch;
  std::string perf_data = scratch.Path("perf.data");
  int32_t process = 0;
  ThreadIps truth;

  void Record(const std::string& program, uint32_t cores = 1,
              const recorder::EncoderConfig& encoder = {}) {
    PerfDataConfig config;
    config.core_count = cores;
    config.command = {program};
    config.cpu_id = kCpu;
    auto pt = recorder::SteppedPt::Create(PosixFileSystem(), perf_data, encoder,
                                          config);
    ASSERT_TRUE(pt) << pt.error().message;
    const auto run = recorder::RunStepped(
        {.command = {program}, .environment = {}, .host_cpu = sched_getcpu()},
        **pt);
    ASSERT_TRUE(run) << run.error().message;
    ASSERT_TRUE((*pt)->Finish());
    process = run->process;
    truth = {(*pt)->thread_ips().begin(), (*pt)->thread_ips().end()};
    ASSERT_GT(CountInsns(truth), 10'000u);
  }
};

// A file that is somewhere else for a while.
class Moved {
 public:
  Moved(std::string from, std::string to)
      : from_(std::move(from)), to_(std::move(to)) {
    fs::create_directories(fs::path(to_).parent_path());
    fs::rename(from_, to_);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  ~Moved() { fs::rename(to_, from_); }

 private:
  std::string from_;
  std::string to_;
};

class ImportFormsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    recording_ = std::make_unique<Recording>();
    ASSERT_NO_FATAL_FAILURE(Compile(recording_->scratch));
    ASSERT_NO_FATAL_FAILURE(
        recording_->Record(recording_->scratch.Path("prog")));
  }
  static void TearDownTestSuite() { recording_.reset(); }

  std::string Path(const std::string& name) const {
    return scratch_.Path(name);
  }
  // Of the recorded program.
  static std::string Recorded(const std::string& name) {
    return recording_->scratch.Path(name);
  }

  struct Decoded {
    ThreadIps ips;
    uint64_t gaps = 0;
  };
  static Result<Decoded> DecodeAll(const std::string& path) {
    CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(path));
    CLEW_ASSIGN_OR_RETURN(trace, decoder::ReadTrace(bundle));
    CLEW_ASSIGN_OR_RETURN(streams, decoder::TraceStreams::Create(*trace, {}));
    Decoded decoded;
    for (const Tid thread : streams->threads()) {
      while (true) {
        CLEW_ASSIGN_OR_RETURN(item, streams->Next(thread));
        if (!item) {
          break;
        }
        const auto* block = std::get_if<StreamBlock>(&*item);
        if (block == nullptr) {
          ++decoded.gaps;
          continue;
        }
        CLEW_RETURN_IF_ERROR(streams->ForEachInstruction(
            *block, [&](const decoder::WalkedInsn& insn) {
              decoded.ips[thread].push_back(insn.ip.as_int());
            }));
      }
    }
    return decoded;
  }

  static Decoded Decode(const std::string& bundle) {
    auto decoded = DecodeAll(bundle);
    EXPECT_TRUE(decoded) << decoded.error().message;
    return decoded ? std::move(*decoded) : Decoded();
  }

  // The one mapping of the vDSO.
  static uint64_t VdsoAddr(const Recording& recording) {
    auto data = PerfData::Open(recording.perf_data);
    uint64_t addr = 0;
    EXPECT_TRUE(data && data->ForEachRecord([&](const auto& record) -> Status {
      const auto* map = std::get_if<MmapRecord>(&record.body);
      addr =
          map != nullptr && map->path == "[vdso]" ? map->addr.as_int() : addr;
      return {};
    }));
    EXPECT_NE(addr, 0u);
    return addr;
  }

  // With what the vDSO executed, too.
  std::vector<std::string> WithCore() { return WithCore(*recording_); }
  std::vector<std::string> WithCore(const Recording& recording) {
    WriteText(Path("core.1"),
              CoreWithVdso(recording.process, VdsoAddr(recording),
                           recorder::OwnVdso()));
    return {"--core", Path("core.1")};
  }

  // Of a trace of which the library's image is missing.
  void ExpectAsMuchAsPerfKeeps(const Recording& recording);

  static std::unique_ptr<Recording> recording_;
  Scratch scratch_;
};

std::unique_ptr<Recording> ImportFormsTest::recording_;

TEST_F(ImportFormsTest, WithoutBuildIdsFilesAreTakenByPath) {
  const std::string bundle = Path("a.clew");
  const json report = Import(recording_->perf_data, bundle, WithCore());
  for (const json& image : report["images"]) {
    EXPECT_NE(image["file"].is_null(), image["path"] != "[vsyscall]") << image;
  }
  for (const char* name : {"prog", "libwork.so", "libc.so.6"}) {
    EXPECT_EQ(ImageOf(report, name).value("verified", true), false) << name;
  }
  EXPECT_THAT(report["warnings"].dump(), HasSubstr("taken by path alone"));
  const Decoded decoded = Decode(bundle);
  EXPECT_EQ(decoded.gaps, 0u);
  EXPECT_TRUE(decoded.ips == recording_->truth);
  const ProgramOutput info = Clew({"info", "--no-backtraces", bundle});
  EXPECT_THAT(info.text, HasSubstr("(not verified):\n  " + Recorded("prog")));
  const ProgramOutput check = Clew({"check", bundle});
  EXPECT_THAT(check.text, HasSubstr("taken by its path alone"));
}

TEST_F(ImportFormsTest, APerfDataWithoutABundleDecodesTheSame) {
  const ProgramOutput output =
      Clew({"decode", recording_->perf_data, "--as", "none"});
  EXPECT_EQ(output.exit_status, kExitOk);
  EXPECT_THAT(output.text, HasSubstr("taken by path alone"));
  Import(recording_->perf_data, Path("a.clew"));
  const auto bundle = Clew({"decode", Path("a.clew"), "--as", "none"});
  EXPECT_THAT(output.text, HasSubstr(bundle.text));
}

// Where the program ran is not where it is imported: only --images has it.
TEST_F(ImportFormsTest, PipeFormatTakesThemFromTheFoldersThatAreNamed) {
  if (Shell("perf inject --help").exit_status != 0) {
    GTEST_SKIP() << "no perf here; install linux-perf";
  }
  const std::string core = WithCore()[1];
  const Moved prog(Recorded("prog"), Path("root/bin/prog"));
  const Moved library(Recorded("libwork.so"), Path("root/bin/libwork.so"));
  const std::string bundle = Path("a.clew");
  const ProgramOutput imported =
      Shell("perf inject -i " + recording_->perf_data + " -o - | " + Binary() +
            " import - -o " + bundle + " --cpu " + kCpu + " --core " + core +
            " --images " + Path("root"));
  ASSERT_EQ(imported.exit_status, kExitOk) << imported.text;
  EXPECT_THAT(imported.text, HasSubstr("in pipe format"));
  EXPECT_THAT(imported.text, HasSubstr("not verified   \"" + Recorded("prog")));
  const Decoded decoded = Decode(bundle);
  EXPECT_EQ(decoded.gaps, 0u);
  EXPECT_TRUE(decoded.ips == recording_->truth);
}

TEST_F(ImportFormsTest, TheVdsoComesOutOfTheCoreDump) {
  const json without = Import(recording_->perf_data, Path("a.clew"));
  EXPECT_THAT(ImageOf(without, "[vdso]").value("why", ""),
              HasSubstr("a core dump of the run has it"));
  EXPECT_LT(CountInsns(Decode(Path("a.clew")).ips),
            CountInsns(recording_->truth));
  const auto core = WithCore();
  const json with = Import(recording_->perf_data, Path("b.clew"), core);
  const json vdso = ImageOf(with, "[vdso]");
  EXPECT_EQ(vdso.value("verified", false), true) << vdso;
  EXPECT_EQ(vdso.value("file", ""), core[1]) << vdso;
  EXPECT_TRUE(Decode(Path("b.clew")).ips == recording_->truth);
}

// As a perf that was killed leaves it.
TEST_F(ImportFormsTest, ARecordingThatNamesNoCpuIsWarnedOf) {
  std::string bytes = ReadText(recording_->perf_data);
  const size_t cpu = bytes.find(kCpu);
  ASSERT_NE(cpu, std::string::npos);
  bytes[cpu] = '\0';
  WriteText(Path("perf.data"), bytes);
  EXPECT_THAT(Import(Path("perf.data"), Path("a.clew"))["warnings"].dump(),
              HasSubstr("does not name its CPU"));
  EXPECT_THAT(
      Import(Path("perf.data"), Path("b.clew"), {"--cpu", kCpu})["warnings"]
          .dump(),
      Not(HasSubstr("CPU")));
}

// How many instructions perf gets out of it.
size_t CountByPerf(const std::string& perf_data) {
  const ProgramOutput script = Shell("perf script --itrace=i0ns -F ip -i " +
                                     perf_data + " 2>/dev/null | wc -l");
  EXPECT_EQ(script.exit_status, 0) << script.text;
  return std::strtoull(script.text.c_str(), nullptr, 10);
}

// With the vDSO, which perf takes from the host that it runs on.
void ImportFormsTest::ExpectAsMuchAsPerfKeeps(const Recording& recording) {
  if (Shell("perf script --help").exit_status != 0) {
    GTEST_SKIP() << "no perf here; install linux-perf";
  }
  const Moved library(Recorded("libwork.so"), Path("away/libwork.so"));
  const json report =
      Import(recording.perf_data, Path("a.clew"), WithCore(recording));
  EXPECT_EQ(ImageOf(report, "libwork.so").value("why", ""), "not found");
  const Decoded decoded = Decode(Path("a.clew"));
  EXPECT_GT(decoded.gaps, 0u);
  EXPECT_LT(CountInsns(decoded.ips), CountInsns(recording.truth));
  EXPECT_GE(CountInsns(decoded.ips), CountByPerf(recording.perf_data));
}

TEST_F(ImportFormsTest, OfATraceWithAMissingImageAsMuchIsLeftAsPerfKeeps) {
  ExpectAsMuchAsPerfKeeps(*recording_);
}

class MoreImportFormsTest : public ImportFormsTest {};

TEST_F(MoreImportFormsTest, SoItIsWhereNoReturnIsCompressed) {
  Recording uncompressed;
  ASSERT_NO_FATAL_FAILURE(uncompressed.Record(Recorded("prog"), /*cores=*/1,
                                              {.return_compression = false}));
  ExpectAsMuchAsPerfKeeps(uncompressed);
}

// A debugger's breakpoint is in memory and not in the file.
constexpr const char* kTrapProgram = R"(
#include <signal.h>
static volatile int hits;
static void OnTrap(int signal) { (void)signal; ++hits; }
int main(void) {
  signal(SIGTRAP, OnTrap);
  for (int i = 0; i < 10; ++i) {
    __asm__ volatile("nop; nop; nop; int3; nop; nop; nop");
  }
  return hits != 10;
}
)";

TEST_F(ImportFormsTest, CodeInMemoryThatTheFileLacksIsAGap) {
  WriteText(Path("trap.c"), kTrapProgram);
  const ProgramOutput made =
      Shell("cc -O1 -o " + Path("trap") + " " + Path("trap.c"));
  ASSERT_EQ(made.exit_status, 0) << made.text;
  Recording recording;
  ASSERT_NO_FATAL_FAILURE(recording.Record(Path("trap")));
  std::string file = ReadText(Path("trap"));
  const size_t at = file.find("\x90\x90\x90\xcc\x90\x90\x90");
  ASSERT_NE(at, std::string::npos);
  file[at + 3] = '\x90';
  WriteText(Path("trap"), file);
  Import(recording.perf_data, Path("a.clew"));
  const Decoded decoded = Decode(Path("a.clew"));
  EXPECT_GE(decoded.gaps, 10u);
  // Nothing is made up: what was decoded was executed, in that order.
  const auto& truth = recording.truth.begin()->second;
  auto executed = truth.begin();
  for (const uint64_t ip : decoded.ips.begin()->second) {
    executed = std::find(executed, truth.end(), ip);
    ASSERT_NE(executed, truth.end()) << fmt::format("{:#x}", ip);
    ++executed;
  }
}

constexpr const char* kThreads = R"(
#include <pthread.h>
static void* Run(void* n) {
  for (volatile long i = 0; i < *(long*)n; ++i) { }
  return 0;
}
int main(void) {
  long few = 500, many = 1500;
  pthread_t other;
  pthread_create(&other, 0, Run, &many);
  Run(&few);
  return pthread_join(other, 0);
}
)";

// Where the next record is: behind the PT of an AUXTRACE.
size_t RecordBytes(const std::string& bytes, size_t at) {
  uint16_t size = 0;
  std::memcpy(&size, bytes.data() + at + 6, sizeof size);
  uint64_t pt = 0;
  if (bytes[at] == kAuxtrace) {
    std::memcpy(&pt, bytes.data() + at + 8, sizeof pt);
  }
  return size + pt;
}

// As `perf record --per-thread` has it: PT is of threads, cpu is -1.
std::string PerThread(std::string bytes, const std::vector<Tid>& of_cores) {
  std::array<uint64_t, 2> data = {};
  std::memcpy(data.data(), bytes.data() + 40, sizeof data);
  for (size_t at = data[0]; at < data[0] + data[1];
       at += RecordBytes(bytes, at)) {
    if (bytes[at] != kAuxtrace) {
      continue;
    }
    uint32_t core = 0;
    std::memcpy(&core, bytes.data() + at + 40, sizeof core);
    const std::array<int32_t, 2> of = {of_cores.at(core).as_int(), -1};
    std::memcpy(bytes.data() + at + 36, of.data(), sizeof of);
  }
  return bytes;
}

TEST_F(ImportFormsTest, EachThreadHasItsOwnInAPerThreadRecording) {
  WriteText(Path("threads.c"), kThreads);
  const ProgramOutput made =
      Shell("cc -O1 -pthread -o " + Path("threads") + " " + Path("threads.c"));
  ASSERT_EQ(made.exit_status, 0) << made.text;
  Recording recording;
  ASSERT_NO_FATAL_FAILURE(recording.Record(Path("threads"), 2));
  const Tid first(recording.process);
  ASSERT_EQ(recording.truth.size(), 2u);
  // Thread numbers may begin anew between the two.
  const Tid second = recording.truth.begin()->first == first
                         ? recording.truth.rbegin()->first
                         : recording.truth.begin()->first;
  ASSERT_NE(first, second);
  WriteText(Path("perf.data"),
            PerThread(ReadText(recording.perf_data), {first, second}));
  const json report = Import(Path("perf.data"), Path("a.clew"));
  EXPECT_EQ(report["streams"], "2 threads");
  const Decoded decoded = Decode(Path("a.clew"));
  EXPECT_EQ(decoded.gaps, 0u);
  EXPECT_TRUE(decoded.ips == recording.truth);
  const ProgramOutput info = Clew({"info", "--no-backtraces", Path("a.clew")});
  EXPECT_THAT(info.text, HasSubstr("of 2 threads"));
  EXPECT_THAT(info.text, Not(HasSubstr("4294967295")));
}

// A 32-bit program without libc. INC and DEC are prefixes in 64-bit code.
constexpr const char* kProgram32 = R"(
        .text
        .globl _start, work, twice
        .type _start, @function
        .type work, @function
        .type twice, @function
work:   mov 4(%esp), %ecx
        xor %eax, %eax
again:  inc %eax
        nop
        test $1, %ecx
        jz even
        add %ecx, %eax
even:   dec %ecx
        nop
        jnz again
        ret
        .size work, . - work
twice:  push %ebp
        mov %esp, %ebp
        push 8(%ebp)
        call work
        mov $work, %edx
        call *%edx
        leave
        ret
        .size twice, . - twice
_start: mov $60, %edi
next:   push %edi
        call twice
        pop %edi
        mov $20, %eax  # getpid
        int $0x80
        dec %edi
        nop
        jnz next
        mov $1, %eax  # exit
        xor %ebx, %ebx
        int $0x80
        .size _start, . - _start
)";

// The function that each instruction is in, by what nm(1) says.
std::map<std::string, size_t> CountByFunction(const std::string& nm,
                                              const ThreadIps& ips) {
  std::map<uint64_t, std::string> functions;
  std::istringstream lines(nm);
  for (std::string addr, type, name; lines >> addr >> type >> name;) {
    if (name == "work" || name == "twice" || name == "_start") {
      functions[std::stoull(addr, nullptr, 16)] = name;
    }
  }
  std::map<std::string, size_t> counts;
  for (const uint64_t ip : ips.begin()->second) {
    ++counts[std::prev(functions.upper_bound(ip))->second];
  }
  return counts;
}

TEST_F(ImportFormsTest, CodeOf32BitsIsDecodedAndNamedAndNotSolved) {
  WriteText(Path("small.s"), kProgram32);
  const std::string program = Path("small");
  const ProgramOutput made =
      Shell("cd " + Path("") + " && as --32 -o small.o small.s && " +
            "ld -m elf_i386 --build-id -o small small.o && ./small");
  if (made.exit_status != 0) {
    GTEST_SKIP() << "32-bit programs are not made or run here: " << made.text;
  }
  Recording recording;
  ASSERT_NO_FATAL_FAILURE(recording.Record(program, 1, {.code_bits = 32}));
  const json report = Import(recording.perf_data, Path("a.clew"));
  EXPECT_EQ(ImageOf(report, "small").value("file", ""), program);
  const Decoded decoded = Decode(Path("a.clew"));
  EXPECT_EQ(decoded.gaps, 0u);
  EXPECT_TRUE(decoded.ips == recording.truth);

  const auto bundle = Bundle::Open(Path("a.clew"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  const auto images = decoder::LoadedImages::FromTrace(*bundle);
  ASSERT_TRUE(images) << images.error().message;
  decoder::Unwinder unwinder(*images, nullptr);
  std::map<std::string, size_t> named;
  for (const uint64_t ip : decoded.ips.begin()->second) {
    ++named[unwinder.Find(TraceeAddr(ip)).symbol];
  }
  EXPECT_EQ(named,
            CountByFunction(Shell("nm " + program).text, recording.truth));

  EXPECT_EQ(Clew({"decode", Path("a.clew"), "--as", "none"}).exit_status,
            kExitOk);
  const ProgramOutput check = Clew({"check", Path("a.clew")});
  EXPECT_THAT(check.text, HasSubstr("32-bit code, which is not solved"));
  const ProgramOutput solved = Clew({"solve", Path("a.clew")});
  EXPECT_EQ(solved.exit_status, kExitEnvironment) << solved.text;
  EXPECT_THAT(solved.text, HasSubstr("32-bit code, which is not solved"));
}

}  // namespace
}  // namespace clew::e2e
