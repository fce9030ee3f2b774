#include "tests/e2e/truth/true_registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "machine/xsave.h"
#include "tests/machine/forms.h"

namespace clew::e2e {
namespace {

constexpr size_t kToldMax = 20;

// What is noted: these, then the XSAVE area.
constexpr std::array kGeneral = {
    &user_regs_struct::rax,     &user_regs_struct::rcx,
    &user_regs_struct::rdx,     &user_regs_struct::rbx,
    &user_regs_struct::rsp,     &user_regs_struct::rbp,
    &user_regs_struct::rsi,     &user_regs_struct::rdi,
    &user_regs_struct::r8,      &user_regs_struct::r9,
    &user_regs_struct::r10,     &user_regs_struct::r11,
    &user_regs_struct::r12,     &user_regs_struct::r13,
    &user_regs_struct::r14,     &user_regs_struct::r15,
    &user_regs_struct::rip,     &user_regs_struct::eflags,
    &user_regs_struct::fs_base, &user_regs_struct::gs_base};
constexpr size_t kRip = 16;
constexpr size_t kFlags = 17;
constexpr size_t kFsBase = 18;
constexpr size_t kGsBase = 19;

// Those that instructions set and read; the others are the kernel's and the
// stepper's.
constexpr uint64_t kFlagAlignment = 1u << 18;
constexpr uint64_t kFlagsCompared = machine::kFlagsArithmetic |
                                    machine::kFlagDirection | machine::kFlagId |
                                    kFlagAlignment;

machine::Registers FromWords(std::span<const uint64_t> words) {
  machine::Registers registers;
  std::copy_n(words.begin(), registers.gpr.size(), registers.gpr.begin());
  registers.rip = words[kRip];
  registers.rflags = words[kFlags];
  registers.fs_base = words[kFsBase];
  registers.gs_base = words[kGsBase];
  const auto area = std::as_bytes(words.subspan(kGeneral.size()));
  machine::FxsaveArea legacy;
  std::memcpy(&legacy, area.data(), sizeof(legacy));
  registers.mxcsr_mask = legacy.pointers.mxcsr_mask;
  machine::RestoreXsave(area, machine::UsualLayout(registers), registers);
  return registers;
}

bool AreEqual(const machine::Registers& machine, machine::Registers cpu) {
  cpu.rflags =
      (machine.rflags & ~kFlagsCompared) | (cpu.rflags & kFlagsCompared);
  return machine == cpu;
}

// Tells how two sets of registers differ.
class Differences {
 public:
  Differences(const machine::Registers& machine, const machine::Registers& cpu)
      : machine_(machine), cpu_(cpu) {
    TellGeneral();
    TellVectors();
    TellX87();
    Tell("AVX in use", machine.avx_in_use, cpu.avx_in_use);
    Tell("opmasks in use", machine.opmask_in_use, cpu.opmask_in_use);
    Tell("ZMM in use", machine.zmm_in_use, cpu.zmm_in_use);
    Tell("high ZMM in use", machine.high_zmm_in_use, cpu.high_zmm_in_use);
    Tell("MXCSR_MASK", machine.mxcsr_mask, cpu.mxcsr_mask);
  }
  const std::string& text() const { return text_; }

 private:
  void Tell(std::string_view name, uint64_t machine, uint64_t cpu) {
    if (machine != cpu) {
      text_ += fmt::format(" {} is {:#x}, not {:#x}", name, machine, cpu);
    }
  }
  void TellGeneral() {
    for (size_t i = 0; i < cpu_.gpr.size(); ++i) {
      Tell(fmt::format("gpr {}", i), machine_.gpr[i], cpu_.gpr[i]);
    }
    Tell("rip", machine_.rip, cpu_.rip);
    Tell("rflags", machine_.rflags & kFlagsCompared,
         cpu_.rflags & kFlagsCompared);
    Tell("fs", machine_.fs_base, cpu_.fs_base);
    Tell("gs", machine_.gs_base, cpu_.gs_base);
  }
  void TellVectors() {
    for (unsigned number = 0; number < machine::kVecRegisters; ++number) {
      for (unsigned i = 0; i < machine::kVecQuads; ++i) {
        Tell(fmt::format("zmm{}[{}]", number, i), machine_.quad(number, i),
             cpu_.quad(number, i));
      }
    }
    for (size_t i = 0; i < cpu_.opmask.size(); ++i) {
      Tell(fmt::format("k{}", i), machine_.opmask[i], cpu_.opmask[i]);
    }
    Tell("mxcsr", machine_.mxcsr, cpu_.mxcsr);
  }
  void TellX87() {
    const machine::X87& machine = machine_.x87;
    const machine::X87& cpu = cpu_.x87;
    Tell("x87 control", machine.control, cpu.control);
    Tell("x87 status", machine.status, cpu.status);
    Tell("x87 tag", machine.tag, cpu.tag);
    Tell("x87 in use", machine.in_use, cpu.in_use);
    for (size_t i = 0; i < cpu.regs.size(); ++i) {
      Tell(fmt::format("x87 {}", i), machine.regs[i].significand,
           cpu.regs[i].significand);
      Tell(fmt::format("x87 {} exponent", i), machine.regs[i].sign_exponent,
           cpu.regs[i].sign_exponent);
    }
  }

  const machine::Registers& machine_;
  const machine::Registers& cpu_;
  std::string text_;
};

}  // namespace

Status TrueRegisters::Note(const TracedProcess& process, Tid thread,
                           uint64_t tick) {
  CLEW_ASSIGN_OR_RETURN(general, process.Registers(thread));
  CLEW_ASSIGN_OR_RETURN(area, process.ExtendedState(thread));
  std::vector<uint64_t> words;
  words.reserve(kGeneral.size() + area.size() / sizeof(uint64_t));
  for (const auto member : kGeneral) {
    words.push_back(general.*member);
  }
  words.resize(kGeneral.size() + area.size() / sizeof(uint64_t));
  std::memcpy(words.data() + kGeneral.size(), area.data(),
              (words.size() - kGeneral.size()) * sizeof(uint64_t));
  Thread& noted = threads_[thread];
  noted.last.resize(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != noted.last[i]) {
      noted.words.push_back(static_cast<uint16_t>(i));
      noted.values.push_back(words[i]);
    }
  }
  noted.last = std::move(words);
  noted.ticks.push_back(tick);
  noted.changes_until.push_back(noted.words.size());
  return {};
}

TrueRegisters::Reader::Reader(const TrueRegisters& noted, Tid thread)
    : noted_(&noted), thread_(thread) {}

const machine::Registers* TrueRegisters::Reader::At(uint64_t tick) {
  const auto found = noted_->threads_.find(thread_);
  if (found == noted_->threads_.end()) {
    return nullptr;
  }
  const Thread& noted = found->second;
  words_.resize(noted.last.size());
  while (notes_ < noted.ticks.size() && noted.ticks[notes_] <= tick) {
    for (; changes_ < noted.changes_until[notes_]; ++changes_) {
      words_[noted.words[changes_]] = noted.values[changes_];
    }
    ++notes_;
  }
  if (notes_ == 0 || noted.ticks[notes_ - 1] != tick) {
    return nullptr;
  }
  registers_ = FromWords(words_);
  return &registers_;
}

RegisterChecker::RegisterChecker(follower::Process& process,
                                 const TrueRegisters& truth,
                                 const std::vector<Turn>& turns)
    : process_(process),
      code_(process.cpu_features()),
      ticks_(TrueTicks(turns)),
      truth_(truth) {}

machine::Machine RegisterChecker::MachineOf(size_t thread) {
  return {process_.mutable_registers(thread), process_.mutable_memory(), code_};
}

machine::Stop RegisterChecker::Run(size_t thread, uint64_t max_insns) {
  machine::Machine machine = MachineOf(thread);
  uint64_t retired = 0;
  for (;;) {
    Compare(thread, process_.thread(thread).retired + retired);
    last_ips_[thread] = process_.thread(thread).registers.rip;
    machine::Stop stop = machine.Run(1);
    retired += stop.insns_retired;
    if (stop.kind != machine::StopKind::kBudget || retired == max_insns) {
      stop.insns_retired = retired;
      return stop;
    }
  }
}

void RegisterChecker::CompleteInsn(size_t thread, const InsnInput& input) {
  MachineOf(thread).CompleteInsn(input);
}

void RegisterChecker::Compare(size_t thread, uint64_t retired) {
  const Tid tid = process_.tid(thread);
  const auto& ticks = ticks_[tid];
  auto& reader =
      readers_.try_emplace(thread, TrueRegisters::Reader(truth_, tid))
          .first->second;
  const machine::Registers* const cpu =
      retired < ticks.size() ? reader.At(ticks[retired] - 1) : nullptr;
  const machine::Registers& machine = process_.thread(thread).registers;
  if (cpu != nullptr && !AreEqual(machine, *cpu)) {
    TakeUndefinedFlags(thread, cpu->rflags);
    TakeUnusedX87(thread, cpu->x87);
  }
  ++compared_;
  if (cpu != nullptr && AreEqual(machine, *cpu)) {
    return;
  }
  ++differing_;
  if (told_.size() < kToldMax) {
    told_.push_back(fmt::format("thread {}, before instruction {} at {:#x}:{}",
                                tid, retired, machine.rip,
                                cpu == nullptr
                                    ? " nothing was noted"
                                    : Differences(machine, *cpu).text()));
  }
}

void RegisterChecker::TakeUndefinedFlags(size_t thread, uint64_t of_cpu) {
  const uint64_t ip = last_ips_[thread];
  std::array<std::byte, x86::kInsnBytesMax> bytes = {};
  const size_t fetched = process_.memory().Fetch(ip, bytes);
  const machine::Decoded last =
      decoder_.Decode(ip, std::span(bytes).first(fetched));
  uint64_t& flags = process_.mutable_registers(thread).rflags;
  flags ^= (flags ^ of_cpu) & machine::UndefinedFlags(last.mnemonic);
}

// A CPU may take x87 state that is the initial one for used (Intel SDM vol. 1,
// "Processor Tracking of XSAVE-Managed State"): one under a hypervisor does
// from some moment on that the program has no part in.
void RegisterChecker::TakeUnusedX87(size_t thread, const machine::X87& of_cpu) {
  machine::X87& x87 = process_.mutable_registers(thread).x87;
  if (of_cpu.in_use && x87 == machine::X87()) {
    x87.in_use = true;
  }
}

}  // namespace clew::e2e
