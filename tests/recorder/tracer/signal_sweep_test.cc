// Goal: a signal may come at any instruction of the tracer's runtime, and the
// program does what it does when it comes at another one.
// Method: swept.c up to one of the times that it comes to an instruction of the
// runtime, where it gets a signal, and some steps later another one; then it
// runs to its end. Its output is known, and its log has to lead through its
// code. The instructions are all to which a stepped run comes; a few of them,
// as those of a wait for the child, need not come as often in another run.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "recorder/qemu/guest_memory.h"
#include "recorder/tracer/image.h"
#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

// Moves a program in the tracer, of which it has one thread, in the runtime.
class Mover {
 public:
  Mover(TracedProcess& process, const SharedMemory& shared)
      : process_(process),
        image_at_(shared.header().places.image),
        memory_(recorder::GuestMemory::OpenOf(process.process())) {}

  // To where it is about to receive its first SIGUSR2.
  bool RunToSignal() {
    return process_.Continue(thread(), 0).has_value() && Wait() &&
           signal_ == SIGUSR2;
  }
  // False: it has ended.
  bool Step(int sent = 0) {
    const uint8_t insn =
        sent == 0 && signal_ == 0 ? InsnOfRuntime() : uint8_t{0};
    if (!process_.SingleStep(thread(), sent == 0 ? TakeSignal() : sent) ||
        !Wait()) {
      return false;
    }
    if (insn == kPushFlags) {
      ClearPushedTrapFlag();
    }
    ClearTrapFlag();
    return true;
  }
  // To the `time`-th time that it comes to `addr`; false: it is about to
  // receive SIGWINCH first, or has ended.
  bool RunTo(uint64_t addr, size_t time) {
    for (; time != 0; --time) {
      if (ip() == addr && !Step()) {
        return false;
      }
      const auto code = memory_->Load<uint8_t>(addr).value_or(0);
      EXPECT_TRUE(memory_->Write(addr, &kBreakpoint, 1));
      breakpoint_ = {.addr = addr, .code = code};
      do {
        if (!process_.Continue(thread(), TakeSignal()) || !Wait() ||
            signal_ == SIGWINCH) {
          return false;
        }
      } while (signal_ != 0);
      EXPECT_TRUE(memory_->Write(addr, &code, 1));
      breakpoint_.reset();
      auto registers = process_.Registers(thread());
      if (!registers || registers->rip != addr + 1) {
        return false;
      }
      registers->rip = addr;
      EXPECT_TRUE(process_.SetRegisters(thread(), *registers));
    }
    return true;
  }
  // What it is about to receive.
  int signal() const { return signal_; }
  int TakeSignal() { return std::exchange(signal_, 0); }
  // There a step with a signal would leave the trap flag set.
  bool IsAtPopFlags() const { return InsnOfRuntime() == kPopFlags; }
  uint64_t ip() const {
    const auto ip = process_.InsnPointer(thread());
    return ip ? ip->as_int() : 0;
  }

 private:
  static constexpr uint8_t kPushFlags = 0x9c;
  static constexpr uint8_t kPopFlags = 0x9d;
  static constexpr uint64_t kTrap = 0x100;  // of RFLAGS
  static constexpr uint8_t kBreakpoint = 0xcc;

  Tid thread() const { return process_.first_thread(); }
  bool Wait() {
    for (;;) {
      const auto stop = process_.Wait(thread(), true);
      if (!stop) {
        return false;
      }
      switch (stop->kind) {
        case TraceeStop::Kind::kSignal:
          signal_ = stop->signal;
          return true;
        case TraceeStop::Kind::kTrap:
          return true;
        case TraceeStop::Kind::kFork:
          // The child goes on by itself, and so does the call.
          if (!process_.Wait(stop->new_thread, true) ||
              !CleanUp(stop->new_thread) || !process_.LetGo(stop->new_thread) ||
              !(breakpoint_ ? process_.Continue(thread(), 0)
                            : process_.SingleStep(thread(), 0))) {
            return false;
          }
          break;
        default:
          return false;
      }
    }
  }
  // Its first byte; 0 outside of the runtime.
  uint8_t InsnOfRuntime() const {
    const uint64_t place = ip() - image_at_;
    return place < RuntimeImage().size() ? RuntimeImage()[place] : uint8_t{0};
  }
  // Behind a POPF the kernel takes it for the program's.
  void ClearTrapFlag() {
    auto registers = process_.Registers(thread());
    if (registers && (registers->eflags & kTrap) != 0) {
      registers->eflags &= ~kTrap;
      EXPECT_TRUE(process_.SetRegisters(thread(), *registers));
    }
  }
  // Of a new process, which has a copy of what this leaves in the other: the
  // breakpoint, the trap flag of a step, and the one that SYSCALL saved in R11.
  bool CleanUp(Tid process) {
    auto registers = process_.Registers(process);
    const auto memory = recorder::GuestMemory::OpenOf(process.as_int());
    if (!registers || !memory ||
        (breakpoint_ && !memory->Write(breakpoint_->addr, &breakpoint_->code,
                                       sizeof(breakpoint_->code)))) {
      return false;
    }
    registers->r11 &= ~kTrap;
    registers->eflags &= ~kTrap;
    return process_.SetRegisters(process, *registers).has_value();
  }
  // The one that a step had set, and PUSHF pushed.
  void ClearPushedTrapFlag() {
    const auto registers = process_.Registers(thread());
    const uint64_t addr = registers ? registers->rsp : 0;
    const uint64_t flags = memory_->Load<uint64_t>(addr).value_or(0) & ~kTrap;
    EXPECT_TRUE(memory_->Write(addr, &flags, sizeof flags));
  }

  TracedProcess& process_;
  uint64_t image_at_;
  Result<recorder::GuestMemory> memory_;
  int signal_ = 0;
  struct Breakpoint {
    uint64_t addr = 0;
    uint8_t code = 0;  // that was there
  };
  std::optional<Breakpoint> breakpoint_ = {};
};

// How often it comes to each instruction of the runtime, by its place there,
// from its first SIGUSR2 to SIGWINCH, or for so many steps.
std::map<uint64_t, size_t> InsnsOfRuntime(
    const std::vector<std::string>& command, size_t steps_max) {
  std::map<uint64_t, size_t> insns;
  const Drive drive = [&](TracedProcess& process, const SharedMemory& shared) {
    const Places& places = shared.header().places;
    Mover mover(process, shared);
    EXPECT_TRUE(mover.RunToSignal());
    for (size_t step = 0; step < steps_max && mover.signal() != SIGWINCH;
         ++step) {
      const uint64_t place = mover.ip() - places.image;
      if (place < places.image_bytes) {
        ++insns[place];
      }
      EXPECT_TRUE(mover.Step());
    }
    return SIGKILL;
  };
  (void)RunTraced(command, drive);
  return insns;
}

struct Moment {
  uint64_t place = 0;  // in the runtime
  size_t time = 0;     // that it comes there
  size_t later = 0;    // steps to the second signal; 0: at once
};

// Ends a program to which the moment does not come, and clears `came`.
Drive SendAt(const Moment& moment, bool& came) {
  return [&came, moment](TracedProcess& process, const SharedMemory& shared) {
    Mover mover(process, shared);
    EXPECT_TRUE(mover.RunToSignal());
    came =
        mover.RunTo(shared.header().places.image + moment.place, moment.time);
    if (!came) {
      EXPECT_EQ(mover.signal(), SIGWINCH);
      return SIGKILL;
    }
    if (moment.later == 0 || mover.IsAtPopFlags()) {
      kill(process.process(), SIGRTMIN);
      return SIGUSR1;
    }
    EXPECT_TRUE(mover.Step(SIGUSR1));
    for (size_t step = 0; step < moment.later && mover.signal() == 0; ++step) {
      EXPECT_TRUE(mover.Step());
    }
    kill(process.process(), SIGRTMIN);
    return mover.signal();
  };
}

// One of `parts` of the instructions.
void Sweep(const std::string& what, size_t steps_max, size_t parts,
           const std::string& expected) {
  constexpr uint32_t kSeed = 1;
  std::mt19937 random(kSeed);
  const std::vector<std::string> command = {TestProgram("swept"), what};
  const std::map<uint64_t, size_t> insns = InsnsOfRuntime(command, steps_max);
  ASSERT_GT(insns.size(), 1000);
  size_t runs = 0;
  size_t missed = 0;
  size_t part = random() % parts;
  for (const auto& [place, times] : insns) {
    if (part++ % parts != 0) {
      continue;
    }
    constexpr size_t kTimesMax = 10;
    const Moment moment = {place, 1 + random() % std::min(times, kTimesMax),
                           random() % 2 == 0 ? 0 : random() % 400};
    bool came = false;
    const TracedRun run = RunTraced(command, SendAt(moment, came));
    ++runs;
    if (!came) {
      ++missed;
      continue;
    }
    const std::string where =
        fmt::format("the {}. time at {:#x} of the runtime, and {} later",
                    moment.time, moment.place, moment.later);
    ASSERT_EQ(run.contradiction, "") << where;
    ASSERT_EQ(run.status, 0) << where;
    ASSERT_EQ(run.output, expected) << where;
  }
  fmt::print("{} instructions of the runtime, {} runs, {} of them not to it\n",
             insns.size(), runs, missed);
  EXPECT_LE(missed, runs / 50);
}

constexpr const char* kExpected = "449407, SIGUSR1 1, SIGUSR2 2, SIGRTMIN 1\n";
constexpr const char* kExpectedWithFork =
    "449410, SIGUSR1 1, SIGUSR2 2, SIGRTMIN 1\n";

TEST(SignalSweepTest, SomeMoments) { Sweep("", 60'000, 60, kExpected); }

TEST(MoreSignalSweepTest, EachInsnOfTheRuntime) {
  Sweep("", SIZE_MAX, 1, kExpected);
}
TEST(MoreSignalSweepTest, EachInsnWithAFork) {
  Sweep("fork", SIZE_MAX, 1, kExpectedWithFork);
}

}  // namespace
}  // namespace clew::tracer
