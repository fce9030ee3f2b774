// Goal: what the stepper saw a program execute, its PT gives back through
// libipt, instruction by instruction on each core; and what it saw is true.
// Method: static programs with every kind of control flow, threads, signals, a
// fault and a C library. Oracles: libipt; a count by ptrace for the truth.

#include "recorder/stepper/stepper.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "common/os/file.h"
#include "common/os/ptrace.h"
#include "recorder/stepper/stepped_pt.h"
#include "tests/recorder/pt_encoder/ipt_decode.h"

namespace clew::recorder {
namespace {

std::string ProgramPath(const std::string& name) {
  return fmt::format("{}/tests/recorder/programs_static/clew_static_{}",
                     std::getenv("CLEW_BINARY_DIR"), name);
}

// A C library that uses what the CPU has would be fine for PT, but keep to what
// the rest of the project knows.
const char* const kTunables =
    "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX";

CodeImage ImageOf(const std::string& path) {
  const auto file = ReadWholeFile(path);
  EXPECT_TRUE(file.has_value());
  Elf64_Ehdr header;
  std::memcpy(&header, file->data(), sizeof header);
  CodeImage image;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, file->data() + header.e_phoff + i * sizeof part,
                sizeof part);
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0) {
      const auto* begin =
          reinterpret_cast<const uint8_t*>(file->data() + part.p_offset);
      image.push_back({part.p_vaddr, {begin, begin + part.p_filesz}});
    }
  }
  return image;
}

struct Cores {
  uint32_t core_count = 1;
  EncoderConfig encoder;
};

struct Stepped {
  SteppedRun run;
  std::unique_ptr<SteppedPt> pt;
};

class StepperTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "clew_stepper_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Stepped Step(const std::string& name, const Cores& config,
               uint32_t quantum_insns) {
    bundle::PerfDataConfig perf_data;
    perf_data.core_count = config.core_count;
    auto pt = SteppedPt::Create(PosixFileSystem(), folder_ + "/perf.data",
                                config.encoder, perf_data);
    EXPECT_TRUE(pt.has_value());
    StepperOptions options;
    options.command = {ProgramPath(name)};
    options.environment = {kTunables};
    options.quantum_insns = quantum_insns;
    options.host_cpu = sched_getcpu();  // one that may be used
    const auto run = RunStepped(options, **pt);
    EXPECT_TRUE(run.has_value()) << run.error().message;
    const Status finished = (*pt)->Finish();
    EXPECT_TRUE(finished.has_value()) << finished.error().message;
    return {run.value_or(SteppedRun()), std::move(*pt)};
  }

  void ExpectPtGivesBack(const Stepped& stepped, const std::string& name,
                         const Cores& config) {
    const CodeImage image = ImageOf(ProgramPath(name));
    for (uint32_t core = 0; core < config.core_count; ++core) {
      SCOPED_TRACE(testing::Message() << name << ", core " << core);
      const std::vector<uint64_t>& truth = stepped.pt->ips(CoreId(core));
      const IptRun insns =
          DecodeInsns(stepped.pt->pt(CoreId(core)), config.encoder, image);
      EXPECT_EQ(insns.errors, std::vector<std::string>());
      EXPECT_EQ(insns.ips, truth);
      const IptRun blocks =
          DecodeBlocks(stepped.pt->pt(CoreId(core)), config.encoder, image);
      EXPECT_EQ(blocks.errors, std::vector<std::string>());
      EXPECT_EQ(blocks.ips.size(), truth.size());
    }
  }

  std::string folder_;
};

TEST_F(StepperTest, PtGivesBackControlFlowWithoutLibc) {
  Cores config;
  const Stepped stepped = Step("branches", config, 500);
  EXPECT_EQ(stepped.run.failure.exit_status, 0);
  EXPECT_EQ(stepped.run.failure.kind, FailureKind::kNone);
  EXPECT_GT(stepped.run.insns, 5000u);
  EXPECT_EQ(stepped.pt->ips(CoreId(0)).size(), stepped.run.insns);
  ExpectPtGivesBack(stepped, "branches", config);
}

TEST_F(StepperTest, PtGivesBackThreadsOnTwoCores) {
  for (const uint32_t quantum : {1u, 7u, 300u}) {
    Cores config;
    config.core_count = 2;
    config.encoder.psb_period_bytes = 512;
    const Stepped stepped = Step("threads", config, quantum);
    EXPECT_EQ(stepped.run.failure.exit_status, 0);
    EXPECT_EQ(stepped.pt->thread_ips().size(), 4u);
    EXPECT_FALSE(stepped.pt->ips(CoreId(1)).empty());
    ExpectPtGivesBack(stepped, "threads", config);
  }
}

TEST_F(StepperTest, PtGivesBackAProgramWithLibc) {
  Cores config;
  config.encoder.cyc = true;
  const Stepped stepped = Step("libc_user", config, 5000);
  EXPECT_EQ(stepped.run.failure.exit_status, 0);
  EXPECT_GT(stepped.run.insns, 20000u);
  ExpectPtGivesBack(stepped, "libc_user", config);
}

TEST_F(StepperTest, AFaultIsAFailureAtItsInstruction) {
  Cores config;
  const Stepped stepped = Step("fault", config, 500);
  EXPECT_EQ(stepped.run.failure.kind, FailureKind::kSignal);
  EXPECT_EQ(stepped.run.failure.signal, SIGSEGV);
  EXPECT_NE(stepped.pt->ips(CoreId(0)).back(), stepped.run.failure.ip.as_int());
  ExpectPtGivesBack(stepped, "fault", config);
}

TEST_F(StepperTest, RunsAreRepeatable) {
  Cores config;
  config.core_count = 2;
  const Stepped first = Step("threads", config, 50);
  const Stepped second = Step("threads", config, 50);
  EXPECT_EQ(first.pt->pt(CoreId(0)), second.pt->pt(CoreId(0)));
  EXPECT_EQ(first.pt->pt(CoreId(1)), second.pt->pt(CoreId(1)));
}

TEST_F(StepperTest, StopsAtItsLimit) {
  auto pt = SteppedPt::Create(PosixFileSystem(), folder_ + "/perf.data", {});
  StepperOptions options;
  options.command = {ProgramPath("branches")};
  options.insns_max = 100;
  options.host_cpu = sched_getcpu();
  const auto run = RunStepped(options, **pt);
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().code, ErrorCode::kLimit);
}

TEST_F(StepperTest, NamesWhatCannotBeExecuted) {
  auto pt = SteppedPt::Create(PosixFileSystem(), folder_ + "/perf.data", {});
  StepperOptions options;
  options.command = {"/nonexistent"};
  options.host_cpu = sched_getcpu();
  const auto run = RunStepped(options, **pt);
  ASSERT_FALSE(run.has_value());
  EXPECT_NE(run.error().message.find("/nonexistent"), std::string::npos)
      << run.error().message;
}

// The number of traps that the trap flag makes on its own, without any of our
// decoding: every instruction, and every iteration of REP but the last.
TEST_F(StepperTest, SeesEveryInstruction) {
  auto process = TracedProcess::Start({.program = ProgramPath("fault"),
                                       .arguments = {ProgramPath("fault")},
                                       .environment = {},
                                       .host_cpu = sched_getcpu(),
                                       .prepare = nullptr});
  ASSERT_TRUE(process.has_value()) << process.error().message;
  std::vector<uint64_t> truth;
  for (;;) {
    const auto ip = process->InsnPointer(process->first_thread());
    ASSERT_TRUE(ip.has_value());
    ASSERT_TRUE(process->SingleStep(process->first_thread(), 0));
    const auto stop = process->Wait(process->first_thread(), true);
    ASSERT_TRUE(stop.has_value());
    if (stop->kind != TraceeStop::Kind::kTrap) {
      EXPECT_EQ(stop->signal, SIGSEGV);
      break;
    }
    truth.push_back(ip->as_int());
  }
  const Stepped stepped = Step("fault", {}, 3);
  EXPECT_EQ(stepped.pt->ips(CoreId(0)), truth);
}

}  // namespace
}  // namespace clew::recorder
