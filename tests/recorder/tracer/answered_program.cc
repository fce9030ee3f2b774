#include "tests/recorder/tracer/answered_program.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include <array>
#include <csignal>
#include <cstddef>

#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/initial_stack.h"

namespace clew::tracer {
namespace {

// The same in both runs.
void SetRandomBytes(const TracedProcess& process) {
  auto memory = recorder::GuestMemory::OpenOf(process.process());
  ASSERT_TRUE(memory.has_value());
  const auto registers = process.Registers(process.first_thread());
  ASSERT_TRUE(registers.has_value());
  const recorder::InitialStack stack =
      recorder::ReadInitialStack(registers->rsp, *memory);
  const uint64_t at = stack.Aux(AT_RANDOM);
  constexpr std::array<uint8_t, 16> kBytes = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(memory->Write(at, kBytes.data(), kBytes.size()));
  // Without a vDSO it asks for the time by calls.
  if (const auto vdso = stack.AddrOf(AT_SYSINFO_EHDR)) {
    constexpr uint64_t kIgnored = AT_IGNORE;
    ASSERT_TRUE(memory->Write(*vdso, &kIgnored, sizeof kIgnored));
  }
}

// The calls that are answered.
constexpr std::array kAnsweredCalls = {
    SYS_getrandom,       SYS_getpid,        SYS_gettid,
    SYS_set_tid_address, SYS_clock_gettime, SYS_time,
    SYS_gettimeofday,    SYS_getppid,       SYS_sysinfo};

// In the child: lets RDTSC and those calls raise signals.
bool AskForAnswers() {
  std::array<sock_filter, kAnsweredCalls.size() + 3> filter;
  auto next = filter.begin();
  *next++ = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  auto left = static_cast<uint8_t>(kAnsweredCalls.size());
  for (const long number : kAnsweredCalls) {
    *next++ = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number),
                       left, 0);
    --left;
  }
  *next++ = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  *next++ = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  const sock_fprog program = {filter.size(), filter.data()};
  return prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0 &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool GiveResult(TracedProcess& process) {
  const Tid thread = process.first_thread();
  auto registers = process.Registers(thread);
  auto memory = recorder::GuestMemory::OpenOf(process.process());
  if (!registers || !memory) {
    return false;
  }
  constexpr std::array<uint64_t, 2> kTime = {1'700'000'000, 1};
  switch (registers->orig_rax) {
    case SYS_getrandom: {
      const std::vector<uint8_t> bytes(registers->rsi, 0x5a);
      (void)memory->Write(registers->rdi, bytes.data(), bytes.size());
      registers->rax = bytes.size();
      break;
    }
    case SYS_clock_gettime:
      (void)memory->Write(registers->rsi, kTime.data(), sizeof kTime);
      registers->rax = 0;
      break;
    case SYS_gettimeofday:
      (void)memory->Write(registers->rdi, kTime.data(), sizeof kTime);
      registers->rax = 0;
      break;
    case SYS_sysinfo: {
      struct sysinfo told = {};
      told.totalram = uint64_t{8} << 30;
      told.freeram = uint64_t{4} << 30;
      told.mem_unit = 1;
      (void)memory->Write(registers->rdi, &told, sizeof told);
      registers->rax = 0;
      break;
    }
    case SYS_time:
      registers->rax = kTime[0];
      break;
    default:
      registers->rax = 4242;
  }
  return process.SetRegisters(thread, *registers).has_value();
}

}  // namespace

std::optional<TracedProcess> LaunchAnswered(
    const std::vector<std::string>& command) {
  TraceeLaunch launch;
  launch.program = command[0];
  launch.arguments = command;
  // The tracer has no rseq; hashes are to have no random seed.
  launch.environment = {"GLIBC_TUNABLES=glibc.pthread.rseq=0", "LC_ALL=C",
                        "PATH=/usr/bin:/bin", "PERL_HASH_SEED=0",
                        "PYTHONHASHSEED=0"};
  launch.host_cpu = sched_getcpu();
  launch.prepare = AskForAnswers;
  auto process = TracedProcess::Start(launch);
  EXPECT_TRUE(process.has_value());
  if (!process) {
    return std::nullopt;
  }
  SetRandomBytes(*process);
  return std::move(*process);
}

bool Answers::Give(TracedProcess& process, const TraceeStop& stop) {
  if (stop.kind != TraceeStop::Kind::kSignal) {
    return false;
  }
  return stop.signal == SIGSYS ? GiveResult(process)
                               : stop.signal == SIGSEGV && GiveTime(process);
}

bool Answers::GiveTime(TracedProcess& process) {
  const Tid thread = process.first_thread();
  auto registers = process.Registers(thread);
  std::array<uint8_t, 2> code = {};
  constexpr std::array<uint8_t, 2> kRdtsc = {0x0f, 0x31};
  if (!registers ||
      process.ReadMemory(TraceeAddr(registers->rip), code) != code.size() ||
      code != kRdtsc) {
    return false;
  }
  ticks_ += 0x1'2345'6789;
  registers->rax = ticks_ & 0xffffffff;
  registers->rdx = ticks_ >> 32;
  registers->rip += code.size();
  return process.SetRegisters(thread, *registers).has_value();
}

}  // namespace clew::tracer
