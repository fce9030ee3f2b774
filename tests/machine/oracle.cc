#include "tests/machine/oracle.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/check.h"
#include "machine/xsave.h"

namespace clew::machine {
namespace {

// What the signal handlers exchange with RunOnCpu.
struct Exchange {
  Registers regs;  // in and out
  int signal = 0;
  bool has_addr = false;
  uint64_t fault_addr = 0;
  uint64_t steps_left = 0;  // REP traps after each iteration
  bool running = false;
  mcontext_t host;  // where the test goes on
  std::array<std::byte, sizeof(_xstate)> host_xstate;
  bool has_avx = false;
  bool has_avx512 = false;
  // Of the state components of AVX-512 in a signal frame, by their numbers.
  std::array<uint32_t, kComponentHighZmm + 1> offsets = {};
};
Exchange g_exchange;

constexpr int kEnter = SIGUSR1;
constexpr uint64_t kStepsMax = 100000;
// State components, as bits of XSTATE_BV.
constexpr uint64_t kX87AndSse = 3;
constexpr uint64_t kAvx = 1u << kComponentAvx;
constexpr uint64_t kAvx512 =
    1u << kComponentOpmask | 1u << kComponentZmm | 1u << kComponentHighZmm;

constexpr int kGregOf[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// The XSAVE area of a signal frame, in the standard format. (That it has the
// AVX component there is what xsave_test.cc asks the CPU.)
_xstate& XstateOf(_libc_fpstate* fp) { return *reinterpret_cast<_xstate*>(fp); }

// How much of it is kept for the test, which has nothing in registers of
// AVX-512 while it raises a signal.
size_t XstateBytes() {
  return g_exchange.has_avx ? sizeof(_xstate) : offsetof(_xstate, ymmh);
}

unsigned Top(uint16_t status) { return status >> 11 & 7u; }

// FXSAVE keeps one bit a register, set if it is in use.
uint8_t AbridgedTag(uint16_t tag) {
  uint8_t result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    result = static_cast<uint8_t>(result |
                                  ((tag >> (2 * i) & 3u) != 3 ? 1u << i : 0u));
  }
  return result;
}

uint16_t TagOf(const Float80& reg, bool in_use) {
  const uint16_t exponent = reg.sign_exponent & 0x7fff;
  if (!in_use) {
    return 3;
  }
  if (exponent == 0 && reg.significand == 0) {
    return 1;
  }
  const bool integer_bit = reg.significand >> 63 != 0;
  return exponent == 0x7fff || exponent == 0 || !integer_bit ? 2 : 0;
}

void PutFloat(const Registers& regs, _libc_fpstate& fp) {
  std::memcpy(fp._xmm, regs.vec[0].data(), sizeof(fp._xmm));
  fp.mxcsr = regs.mxcsr;
  fp.cwd = regs.x87.control;
  fp.swd = regs.x87.status;
  fp.ftw = AbridgedTag(regs.x87.tag);
  for (unsigned i = 0; i < 8; ++i) {
    const Float80& reg = regs.x87.regs[(Top(regs.x87.status) + i) % 8];
    std::memcpy(fp._st[i].significand, &reg.significand, 8);
    fp._st[i].exponent = reg.sign_exponent;
  }
}

void GetFloat(const _libc_fpstate& fp, Registers& regs) {
  std::memcpy(regs.vec[0].data(), fp._xmm, sizeof(fp._xmm));
  regs.mxcsr = fp.mxcsr;
  regs.x87.control = fp.cwd;
  regs.x87.status = fp.swd;
  regs.x87.tag = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned physical = (Top(fp.swd) + i) % 8;
    Float80& reg = regs.x87.regs[physical];
    std::memcpy(&reg.significand, fp._st[i].significand, 8);
    reg.sign_exponent = fp._st[i].exponent;
    const bool in_use = (fp.ftw >> physical & 1u) != 0;
    regs.x87.tag = static_cast<uint16_t>(regs.x87.tag | TagOf(reg, in_use)
                                                            << (2 * physical));
  }
}

void PutUpperHalves(const Registers& regs, _xstate& xstate) {
  if (g_exchange.has_avx) {
    std::memcpy(xstate.ymmh.ymmh_space, regs.vec[1].data(),
                sizeof(xstate.ymmh));
    xstate.xstate_hdr.xstate_bv |= kAvx;
  }
}

void GetUpperHalves(const _xstate& xstate, Registers& regs) {
  regs.vec[1] = {};
  if (g_exchange.has_avx && (xstate.xstate_hdr.xstate_bv & kAvx) != 0) {
    std::memcpy(regs.vec[1].data(), xstate.ymmh.ymmh_space,
                sizeof(xstate.ymmh));
  }
}

// Calls f(component, offset, part) for all parts of the registers that are of
// AVX-512; `offset` is that in the component.
template <class R, class F>
void EachAvx512Part(R& regs, F f) {
  f(kComponentOpmask, 0, regs.opmask);
  for (unsigned i = 0; i < kLowVecRegisters; ++i) {
    for (unsigned lane = 2; lane < kVecLanes; ++lane) {
      f(kComponentZmm, kLaneBytes * (2 * i + lane - 2), regs.vec[lane][i]);
    }
    for (unsigned lane = 0; lane < kVecLanes; ++lane) {
      f(kComponentHighZmm, kLaneBytes * (kVecLanes * i + lane),
        regs.vec[lane][kLowVecRegisters + i]);
    }
  }
}

void PutAvx512(const Registers& regs, _xstate& xstate) {
  if (!g_exchange.has_avx512) {
    return;
  }
  auto* area = reinterpret_cast<std::byte*>(&xstate);
  EachAvx512Part(regs, [&](unsigned component, unsigned offset, auto& part) {
    std::memcpy(area + g_exchange.offsets[component] + offset, &part,
                sizeof(part));
  });
  xstate.xstate_hdr.xstate_bv |= kAvx512;
}

void GetAvx512(const _xstate& xstate, Registers& regs) {
  const uint64_t present =
      g_exchange.has_avx512 ? xstate.xstate_hdr.xstate_bv : 0;
  const auto* area = reinterpret_cast<const std::byte*>(&xstate);
  EachAvx512Part(regs, [&](unsigned component, unsigned offset, auto& part) {
    part = {};
    if ((present >> component & 1) != 0) {
      std::memcpy(&part, area + g_exchange.offsets[component] + offset,
                  sizeof(part));
    }
  });
}

// Leaves the test for the wanted state, one instruction long.
void OnEnter(int, siginfo_t*, void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  g_exchange.host = machine;
  std::memcpy(g_exchange.host_xstate.data(), machine.fpregs, XstateBytes());
  for (size_t i = 0; i < 16; ++i) {
    machine.gregs[kGregOf[i]] = static_cast<greg_t>(g_exchange.regs.gpr[i]);
  }
  machine.gregs[REG_RIP] = static_cast<greg_t>(g_exchange.regs.rip);
  machine.gregs[REG_EFL] =
      static_cast<greg_t>(g_exchange.regs.rflags | kFlagTrap);
  PutFloat(g_exchange.regs, *machine.fpregs);
  XstateOf(machine.fpregs).xstate_hdr.xstate_bv |= kX87AndSse;
  PutUpperHalves(g_exchange.regs, XstateOf(machine.fpregs));
  PutAvx512(g_exchange.regs, XstateOf(machine.fpregs));
  g_exchange.running = true;
}

void SaveOutcome(int signal, const siginfo_t& info, const mcontext_t& machine) {
  Registers& regs = g_exchange.regs;
  for (size_t i = 0; i < 16; ++i) {
    regs.gpr[i] = static_cast<uint64_t>(machine.gregs[kGregOf[i]]);
  }
  regs.rip = static_cast<uint64_t>(machine.gregs[REG_RIP]);
  // RF is the processor's own; TF is ours.
  regs.rflags =
      static_cast<uint64_t>(machine.gregs[REG_EFL]) & 0x244dd5u & ~kFlagTrap;
  GetFloat(*machine.fpregs, regs);
  GetUpperHalves(XstateOf(machine.fpregs), regs);
  GetAvx512(XstateOf(machine.fpregs), regs);
  g_exchange.signal = signal == SIGTRAP ? 0 : signal;
  g_exchange.has_addr = signal == SIGSEGV && (info.si_code == SEGV_MAPERR ||
                                              info.si_code == SEGV_ACCERR);
  g_exchange.fault_addr = reinterpret_cast<uint64_t>(info.si_addr);
}

// Back into the test.
void OnStop(int signal, siginfo_t* info, void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  if (!g_exchange.running) {  // a bug of the test itself
    ::signal(signal, SIG_DFL);
    return;
  }
  const bool same_place =
      static_cast<uint64_t>(machine.gregs[REG_RIP]) == kCodeAt;
  if (signal == SIGTRAP && same_place && --g_exchange.steps_left > 0) {
    return;  // the next iteration
  }
  SaveOutcome(signal, *info, machine);
  auto* fp = machine.fpregs;
  machine = g_exchange.host;
  machine.fpregs = fp;
  std::memcpy(fp, g_exchange.host_xstate.data(), XstateBytes());
  XstateOf(fp).xstate_hdr.xstate_bv &= ~kAvx512;
  g_exchange.running = false;
}

void* MapAt(uint64_t addr, size_t size_bytes, int prot) {
  void* place = mmap(reinterpret_cast<void*>(addr), size_bytes, prot,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CLEW_CHECK(place == reinterpret_cast<void*>(addr), "cannot map {:#x}", addr);
  return place;
}

void Install(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  CLEW_CHECK(sigaction(signal, &action, nullptr) == 0, "sigaction");
}

void UseAlternateStack() {
  static std::array<std::byte, 65536> stack;
  stack_t alternate = {};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  CLEW_CHECK(sigaltstack(&alternate, nullptr) == 0, "sigaltstack");
}

// Source: Intel SDM vol. 1, "Extended Region of an XSAVE Area".
void AskForComponents() {
  constexpr uint32_t kXsaveLeaf = 0xd;
  g_exchange.has_avx = x86::HostFeatures().Has(x86::Feature::kAvx);
  g_exchange.has_avx512 = x86::HostFeatures().Has(x86::Feature::kAvx512f);
  for (const unsigned component :
       {kComponentOpmask, kComponentZmm, kComponentHighZmm}) {
    g_exchange.offsets[component] = x86::AskCpuid(kXsaveLeaf, component).ebx;
  }
}

int SignalOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kNone:
      return 0;
    case FaultKind::kDivide:
      return SIGFPE;
    case FaultKind::kIllegal:
      return SIGILL;
    case FaultKind::kBreakpoint:
      return SIGTRAP;
    default:
      return SIGSEGV;
  }
}

}  // namespace

Oracle::Oracle() : machine_(regs_, memory_, cache_) {
  MapAt(kCodeAt, kPageBytes, PROT_READ | PROT_WRITE | PROT_EXEC);
  MapAt(kDataAt, kDataBytes, PROT_READ | PROT_WRITE);
  memory_.Map(kCodeAt, kPageBytes, kProtRead | kProtExec);
  memory_.Map(kDataAt, kDataBytes, kProtRead | kProtWrite);
  UseAlternateStack();
  Install(kEnter, OnEnter);
  for (const int signal : {SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    Install(signal, OnStop);
  }
  AskForComponents();
  any_stack_ = EntersWithAnyStack();
  static bool told = false;
  if (std::exchange(told, true)) {
    return;
  }
  if (!any_stack_) {
    fmt::print(
        "this host cannot enter user mode with a stack pointer that is not "
        "canonical: such states are compared with a canonical one\n");
  }
  if (!g_exchange.has_avx) {
    fmt::print(
        "this host has no AVX: the upper halves are zero in all states\n");
  }
  if (!g_exchange.has_avx512) {
    fmt::print(
        "this host has no AVX-512: its registers are zero in all states\n");
  }
}

// Steps over a NOP.
bool Oracle::EntersWithAnyStack() {
  SetCode({});
  State state;
  state.regs.gpr[kRsp] = uint64_t{1} << 63;
  const Outcome outcome = RunOnCpu(state);
  return outcome.signal == 0 && outcome.state.regs.rip == kCodeAt + 1;
}

Registers Oracle::Enterable(const Registers& regs) const {
  constexpr uint64_t kUserHalf = (uint64_t{1} << 47) - 1;
  Registers enterable = regs;
  if (!any_stack_) {
    enterable.gpr[kRsp] &= kUserHalf;
  }
  if (!g_exchange.has_avx) {
    enterable.vec[1] = {};
  }
  if (!g_exchange.has_avx512) {
    EachAvx512Part(enterable,
                   [](unsigned, unsigned, auto& part) { part = {}; });
  }
  enterable.x87.in_use = true;  // the signal's return restores them all
  enterable.avx_in_use = g_exchange.has_avx;
  enterable.opmask_in_use = g_exchange.has_avx512;
  enterable.zmm_in_use = g_exchange.has_avx512;
  enterable.high_zmm_in_use = g_exchange.has_avx512;
  return enterable;
}

Oracle::~Oracle() {
  munmap(reinterpret_cast<void*>(kCodeAt), kPageBytes);
  munmap(reinterpret_cast<void*>(kDataAt), kDataBytes);
  for (const int signal : {kEnter, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    ::signal(signal, SIG_DFL);
  }
}

void Oracle::SetCode(std::span<const uint8_t> code) {
  CLEW_CHECK(code.size() <= code_.size(), "{} bytes of code", code.size());
  code_.fill(0x90);
  std::copy(code.begin(), code.end(), code_.begin());
  auto* place = reinterpret_cast<void*>(kCodeAt);
  CLEW_CHECK(mprotect(place, kPageBytes, PROT_READ | PROT_WRITE) == 0, "code");
  std::memcpy(place, code_.data(), code_.size());
  CLEW_CHECK(mprotect(place, kPageBytes, PROT_READ | PROT_EXEC) == 0, "code");
  CLEW_CHECK(memory_.Poke(kCodeAt, std::as_bytes(std::span(code_))), "poke");
}

Outcome Oracle::RunOnCpu(const State& state) {
  auto* window = reinterpret_cast<std::byte*>(kDataAt);
  std::memcpy(window, state.window.data(), kDataBytes);
  g_exchange.regs = Enterable(state.regs);
  g_exchange.regs.rip = kCodeAt;
  g_exchange.steps_left = kStepsMax;
  raise(kEnter);
  Outcome outcome;
  outcome.state.regs = g_exchange.regs;
  std::memcpy(outcome.state.window.data(), window, kDataBytes);
  outcome.signal = g_exchange.signal;
  outcome.has_addr = g_exchange.has_addr;
  outcome.fault_addr = g_exchange.fault_addr;
  return outcome;
}

Outcome Oracle::RunOnMachine(const State& state) {
  CLEW_CHECK(memory_.Poke(kDataAt, state.window), "poke");
  regs_ = Enterable(state.regs);
  regs_.rip = kCodeAt;
  const Stop stop = machine_.Run(1);
  Outcome outcome;
  outcome.state.regs = regs_;
  CLEW_CHECK(memory_.Peek(kDataAt, outcome.state.window), "peek");
  outcome.signal = SignalOf(stop.fault.kind);
  outcome.has_addr = stop.fault.kind == FaultKind::kUnmapped ||
                     stop.fault.kind == FaultKind::kProtection;
  outcome.fault_addr = stop.fault.addr;
  outcome.supported =
      stop.kind == StopKind::kBudget || stop.kind == StopKind::kFault;
  outcome.detail = stop.detail;
  return outcome;
}

std::string Oracle::Compare(const State& state, uint64_t undefined_flags) {
  const Outcome machine = RunOnMachine(state);
  if (!machine.supported) {
    return "not supported: " + machine.detail;
  }
  return Difference(RunOnCpu(state), machine, undefined_flags);
}

namespace {

// Formats the name only where it is needed.
template <class... Args>
void DiffInteger(std::string& out, uint64_t cpu, uint64_t machine,
                 fmt::format_string<const Args&...> name, const Args&... args) {
  if (cpu != machine) {
    out += fmt::format(name, args...);
    out += fmt::format(": cpu {:#x}, machine {:#x}; ", cpu, machine);
  }
}

constexpr std::string_view kGprNames[16] = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

// zmm3[5] is bits 64 * 5 to 64 * 5 + 63 of ZMM3.
void DiffVectors(std::string& out, const Registers& cpu,
                 const Registers& machine) {
  if (cpu.vec == machine.vec && cpu.opmask == machine.opmask) {
    return;
  }
  for (unsigned number = 0; number < kVecRegisters; ++number) {
    for (unsigned i = 0; i < kVecQuads; ++i) {
      DiffInteger(out, cpu.quad(number, i), machine.quad(number, i),
                  "zmm{}[{}]", number, i);
    }
  }
  for (size_t i = 0; i < kOpmasks; ++i) {
    DiffInteger(out, cpu.opmask[i], machine.opmask[i], "k{}", i);
  }
}

void DiffX87(std::string& out, const X87& cpu, const X87& machine) {
  DiffInteger(out, cpu.control, machine.control, "x87 control");
  DiffInteger(out, cpu.status, machine.status, "x87 status");
  DiffInteger(out, cpu.tag, machine.tag, "x87 tags");
  for (size_t i = 0; i < 8; ++i) {
    DiffInteger(out, cpu.regs[i].significand, machine.regs[i].significand,
                "x87 register {}", i);
    DiffInteger(out, cpu.regs[i].sign_exponent, machine.regs[i].sign_exponent,
                "x87 exponent {}", i);
  }
}

void DiffWindow(std::string& out, const State& cpu, const State& machine) {
  if (cpu.window == machine.window) {
    return;
  }
  for (size_t i = 0; i < kDataBytes; ++i) {
    DiffInteger(out, static_cast<uint64_t>(cpu.window[i]),
                static_cast<uint64_t>(machine.window[i]), "memory at +{:#x}",
                i);
  }
}

}  // namespace

std::string Difference(const Outcome& cpu, const Outcome& machine,
                       uint64_t undefined_flags) {
  std::string out;
  // After a jump into the kernel's half the trap arrives as SIGSEGV.
  const bool in_kernel_half =
      machine.signal == 0 && machine.state.regs.rip >> 47 != 0;
  // A non-canonical stack address is SIGBUS on Linux; the machine says
  // kGeneral for both.
  const int cpu_signal = cpu.signal == SIGBUS ? SIGSEGV : cpu.signal;
  if (!in_kernel_half) {
    DiffInteger(out, static_cast<uint64_t>(cpu_signal),
                static_cast<uint64_t>(machine.signal), "signal");
  }
  if (cpu.has_addr && machine.has_addr) {
    DiffInteger(out, cpu.fault_addr, machine.fault_addr, "fault address");
  }
  const Registers& a = cpu.state.regs;
  const Registers& b = machine.state.regs;
  for (size_t i = 0; i < 16; ++i) {
    DiffInteger(out, a.gpr[i], b.gpr[i], "{}", kGprNames[i]);
  }
  DiffInteger(out, a.rip, b.rip, "rip");
  const uint64_t flags =
      (kFlagsArithmetic | kFlagDirection | kFlagId) & ~undefined_flags;
  DiffInteger(out, a.rflags & flags, b.rflags & flags, "rflags");
  DiffVectors(out, a, b);
  DiffInteger(out, a.mxcsr, b.mxcsr, "mxcsr");
  DiffX87(out, a.x87, b.x87);
  DiffWindow(out, cpu.state, machine.state);
  return out;
}

}  // namespace clew::machine
