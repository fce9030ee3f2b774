// Goal: a leap runs exactly the instructions that it is to run, tells which
// they are, and leaves the registers as these do natively. Method: the same
// program in two processes. One runs in leaps of random lengths, the other is
// stepped through what these tell; the registers are compared behind each.
// Seeds are printed. Oracle: the CPU.

#include "recorder/native/leaps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/os/ptrace.h"
#include "common/user_registers.h"
#include "recorder/tracer/leaps.h"
#include "tests/recorder/tracer/generated_program.h"
#include "tests/recorder/tracer/insns_of.h"
#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

using recorder::CodeStretch;
using recorder::Leaps;

// What stepping alone has in RFLAGS: TF, and RF behind an instruction that
// faulted.
constexpr uint64_t kFlagsOfSteps = 0x10100;

// As long as leaps are exact (recorder/native/leaps.h).
constexpr uint64_t kInsnsMax = 4096;

std::optional<TracedProcess> Start(const std::string& program) {
  TraceeLaunch launch;
  launch.program = program;
  launch.arguments = {program};
  launch.host_cpu = sched_getcpu();
  launch.tell_traps = true;
  auto process = TracedProcess::Start(launch);
  EXPECT_TRUE(process.has_value());
  return process ? std::optional(std::move(*process)) : std::nullopt;
}

class SideBySide {
 public:
  SideBySide(TracedProcess& leaping, TracedProcess& stepped, uint64_t seed)
      : leaping_(leaping), stepped_(stepped), random_(seed) {}

  void Run(uint32_t fragments_kept) {
    auto leaps = MakeLeaps(leaping_, fragments_kept);
    ASSERT_TRUE(leaps.has_value()) << leaps.error().message;
    while (!ended_ && !testing::Test::HasFailure()) {
      if (steps_ > 0) {
        StepBoth();
      } else {
        Leap(**leaps);
      }
    }
  }
  uint64_t insns() const { return insns_; }

 private:
  uint64_t Length() {
    const uint64_t longest =
        std::array<uint64_t, 4>{3, 20, 300, kInsnsMax}[random_.Below(4)];
    return 1 + random_.Below(longest);
  }

  void Leap(Leaps& leaps) {
    const uint64_t length = Length();
    std::vector<RanInsn> told;
    const auto leap = leaps.Run(leaping_.first_thread(), length,
                                [&told](const CodeStretch& stretch) -> Status {
                                  std::ranges::copy(InsnsOf(stretch),
                                                    std::back_inserter(told));
                                  return {};
                                });
    ASSERT_TRUE(leap.has_value()) << leap.error().message;
    EXPECT_EQ(leap->signal, 0);
    if (leap->is_at_step) {
      EXPECT_LE(told.size(), length);
    } else {
      EXPECT_EQ(told.size(), length);
    }
    for (const RanInsn& insn : told) {
      Follow(insn);
    }
    // A signal that a call sends comes behind it.
    steps_ = leap->is_at_step ? 2 : 0;
    insns_ += told.size();
    // Otherwise the registers stay in the runtime for the next leap.
    if (steps_ > 0 || random_.Below(2) == 0) {
      ASSERT_TRUE(leaps.Settle(leaping_.first_thread()));
      Compare();
    }
  }

  // Steps over an instruction that a leap told of.
  void Follow(const RanInsn& insn) {
    const Tid thread = stepped_.first_thread();
    uint64_t ip = IpOf(stepped_);
    ASSERT_EQ(ip, insn.ip) << "instruction " << insns_;
    do {
      ASSERT_TRUE(stepped_.SingleStep(thread, 0));
      const auto stop = stepped_.Wait(thread, true);
      ASSERT_TRUE(stop.has_value());
      ASSERT_EQ(stop->kind, TraceeStop::Kind::kTrap);
      ip = IpOf(stepped_);
    } while (insn.repeats && ip == insn.ip);
  }

  // Over what is not the runtime's to run.
  void StepBoth() {
    TraceeStop stops[2];
    for (TracedProcess* process : {&leaping_, &stepped_}) {
      const Tid thread = process->first_thread();
      ASSERT_TRUE(process->SingleStep(thread, signal_));
      const auto stop = process->Wait(thread, true);
      ASSERT_TRUE(stop.has_value());
      stops[process == &stepped_] = *stop;
    }
    EXPECT_EQ(stops[0].kind, stops[1].kind);
    EXPECT_EQ(stops[0].signal, stops[1].signal);
    EXPECT_EQ(stops[0].exit_status, stops[1].exit_status);
    ended_ = stops[0].has_ended();
    signal_ = stops[0].signal;
    steps_ = signal_ != 0 ? 1 : steps_ - 1;
    if (!ended_) {
      Compare();
    }
  }

  static uint64_t IpOf(const TracedProcess& process) {
    const auto ip = process.InsnPointer(process.first_thread());
    return ip ? ip->as_int() : 0;
  }

  void Compare() {
    const auto leaping = leaping_.Registers(leaping_.first_thread());
    const auto stepped = stepped_.Registers(stepped_.first_thread());
    ASSERT_TRUE(leaping.has_value() && stepped.has_value());
    EXPECT_EQ(leaping->rip, stepped->rip) << "instruction " << insns_;
    EXPECT_EQ(leaping->eflags & ~kFlagsOfSteps,
              stepped->eflags & ~kFlagsOfSteps)
        << "instruction " << insns_;
    for (size_t i = 0; i < kUserGprs.size(); ++i) {
      const uint64_t traced = *leaping.*kUserGprs[i];
      const uint64_t native = *stepped.*kUserGprs[i];
      const bool are_their_numbers =
          traced == static_cast<uint64_t>(leaping_.process()) &&
          native == static_cast<uint64_t>(stepped_.process());
      // SYSCALL has RFLAGS in R11, TF with them.
      EXPECT_TRUE(are_their_numbers ||
                  ((traced ^ native) & ~kFlagsOfSteps) == 0)
          << fmt::format("register {}, instruction {}: {:#x}, natively {:#x}",
                         i, insns_, traced, native);
    }
  }

  TracedProcess& leaping_;
  TracedProcess& stepped_;
  Random random_;
  uint64_t insns_ = 0;
  int signal_ = 0;  // that both are about to receive
  int steps_ = 0;   // to make before the next leap
  bool ended_ = false;
};

// Returns how many instructions ran in leaps. `fragments_kept` as in
// SharedHeader.
uint64_t Compare(const std::string& program, uint64_t seed,
                 uint32_t fragments_kept = 0) {
  SCOPED_TRACE(fmt::format("{}, seed {}", program, seed));
  auto leaping = Start(program);
  auto stepped = Start(program);
  if (!leaping || !stepped) {
    return 0;
  }
  SideBySide both(*leaping, *stepped, seed);
  both.Run(fragments_kept);
  return both.insns();
}

void CompareGenerated(uint64_t first, uint64_t count) {
  const GeneratedProgram program;
  uint64_t insns = 0;
  for (uint64_t seed = first;
       seed < first + count && !testing::Test::HasFailure(); ++seed) {
    insns += Compare(program.Write(seed), seed);
  }
  fmt::print("{} programs: {} instructions\n", count, insns);
}

void CompareStatic(const std::string& name, uint32_t fragments_kept = 0) {
  const std::string program = StaticProgram(name);
  for (uint64_t seed = 1; seed <= 3 && !testing::Test::HasFailure(); ++seed) {
    fmt::print("seed {}: {} instructions\n", seed,
               Compare(program, seed, fragments_kept));
  }
}

TEST(LeapsTest, RunExactlySoManyInstructions) { CompareStatic("branches"); }

TEST(LeapsTest, RunExactlyWhereTheProgramWritesToItsCode) {
  CompareStatic("rewritten");
}

TEST(LeapsTest, RunExactlyWhereCodeIsForgotten) {
  CompareStatic("branches", 4);
  CompareStatic("rewritten", 4);
}

TEST(LeapsTest, RunExactlyInGeneratedPrograms) { CompareGenerated(1, 20); }
TEST(MoreLeapsTest, RunExactlyInGeneratedPrograms) {
  CompareGenerated(1000, 1000);
}

}  // namespace
}  // namespace clew::tracer
