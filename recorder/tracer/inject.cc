#include "recorder/tracer/inject.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "recorder/native/start_description.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/initial_stack.h"
#include "recorder/tracer/image.h"
#include "recorder/tracer/places.h"

namespace clew::tracer {
namespace {

using recorder::GuestMemory;

// Not one that failed, or that is to be made again.
constexpr uint64_t kNoCall = ~0ull;

// Makes system calls in a stopped thread, whose registers and code are as they
// were when this is destroyed.
class CallsOf {
 public:
  [[nodiscard]] static Result<CallsOf> Begin(TracedProcess& process,
                                             const GuestMemory& memory) {
    CLEW_ASSIGN_OR_RETURN(registers, process.Registers(process.first_thread()));
    const auto code = memory.Load<std::array<uint8_t, 2>>(registers.rip);
    constexpr std::array<uint8_t, 2> kSyscall = {0x0f, 0x05};
    if (!code || !memory.Write(registers.rip, kSyscall.data(), 2)) {
      return SystemError(EFAULT, "cannot write the program's code");
    }
    return CallsOf(process, memory, registers, *code);
  }
  CallsOf(const CallsOf&) = delete;
  CallsOf(CallsOf&& other) noexcept
      : process_(other.process_),
        memory_(other.memory_),
        registers_(other.registers_),
        code_(other.code_),
        is_owner_(std::exchange(other.is_owner_, false)) {}
  CallsOf& operator=(const CallsOf&) = delete;
  CallsOf& operator=(CallsOf&&) = delete;
  ~CallsOf() {
    if (is_owner_) {
      (void)memory_.Write(registers_.rip, code_.data(), code_.size());
      (void)process_.SetRegisters(process_.first_thread(), registers_);
    }
  }

  const user_regs_struct& registers() const { return registers_; }

  // Fails with what the kernel says, as of `what`.
  [[nodiscard]] Result<uint64_t> Make(const char* what, uint64_t number,
                                      std::array<uint64_t, 6> arguments) {
    user_regs_struct registers = registers_;
    registers.rax = number;
    registers.orig_rax = kNoCall;
    registers.rdi = arguments[0];
    registers.rsi = arguments[1];
    registers.rdx = arguments[2];
    registers.r10 = arguments[3];
    registers.r8 = arguments[4];
    registers.r9 = arguments[5];
    const Tid thread = process_.first_thread();
    CLEW_RETURN_IF_ERROR(process_.SetRegisters(thread, registers));
    CLEW_RETURN_IF_ERROR(process_.SingleStep(thread, 0));
    CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(thread, true));
    if (stop.kind != TraceeStop::Kind::kTrap) {
      return SystemError(EINTR, fmt::format("{} in the program", what));
    }
    CLEW_ASSIGN_OR_RETURN(after, process_.Registers(thread));
    constexpr uint64_t kErrorsMax = 4095;  // include/linux/err.h, MAX_ERRNO
    if (after.rax > ~kErrorsMax - 1) {
      return SystemError(static_cast<int>(-after.rax),
                         fmt::format("{} in the program", what));
    }
    return after.rax;
  }

 private:
  CallsOf(TracedProcess& process, const GuestMemory& memory,
          const user_regs_struct& registers, std::array<uint8_t, 2> code)
      : process_(process),
        memory_(memory),
        registers_(registers),
        code_(code) {}

  TracedProcess& process_;
  const GuestMemory& memory_;
  user_regs_struct registers_;
  std::array<uint8_t, 2> code_;
  bool is_owner_ = true;
};

// Opens the shared memory in the program: it is one of this process' files.
Result<uint64_t> OpenShared(CallsOf& calls, const GuestMemory& memory, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", getpid(), fd);
  // Below the red zone of the stack, which is as it was afterwards.
  constexpr uint64_t kBelow = 512;
  std::array<char, 128> before;
  const uint64_t at = calls.registers().rsp - kBelow;
  if (path.size() >= before.size() ||
      !memory.Read(at, before.data(), before.size()) ||
      !memory.Write(at, path.c_str(), path.size() + 1)) {
    return SystemError(EFAULT, "cannot write the program's stack");
  }
  auto opened = calls.Make("cannot open the tracer's memory", SYS_open,
                           {at, O_RDWR | O_CLOEXEC, 0, 0, 0, 0});
  (void)memory.Write(at, before.data(), before.size());
  return opened;
}

Status MapAll(CallsOf& calls, const GuestMemory& memory, int fd,
              const Places& places, uint64_t image_bytes) {
  CLEW_ASSIGN_OR_RETURN(opened, OpenShared(calls, memory, fd));
  CLEW_RETURN_IF_ERROR(calls.Make(
      "cannot map the tracer's memory", SYS_mmap,
      {places.shared, kSharedBytes, PROT_READ | PROT_WRITE,
       MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, opened, 0}));
  CLEW_RETURN_IF_ERROR(
      calls.Make("cannot map the tracer's code", SYS_mmap,
                 {places.image, image_bytes, PROT_READ | PROT_EXEC,
                  MAP_PRIVATE | MAP_FIXED_NOREPLACE, opened, kImageAt}));
  CLEW_RETURN_IF_ERROR(calls.Make("cannot close the tracer's memory", SYS_close,
                                  {opened, 0, 0, 0, 0, 0}));
  return {};
}

}  // namespace

Status Inject(TracedProcess& process, SharedMemory& shared) {
  const Tid thread = process.first_thread();
  CLEW_ASSIGN_OR_RETURN(start, recorder::DescribeThread(process, thread));
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(process.process()));
  constexpr size_t kRsp = 4;
  const uint64_t entry =
      recorder::ReadInitialStack(start.gpr[kRsp], memory).Aux(AT_ENTRY);
  CLEW_ASSIGN_OR_RETURN(places, ChoosePlaces(process.ProcText("maps"),
                                             start.rip.as_int(), entry));
  {
    CLEW_ASSIGN_OR_RETURN(calls, CallsOf::Begin(process, memory));
    CLEW_RETURN_IF_ERROR(
        MapAll(calls, memory, shared.fd(), places, RuntimeImage().size()));
  }
  shared.header().places = places;
  shared.header().slots.store(1);
  shared.slot(0).use.store(SlotUse::kThread);
  ThreadState& state = shared.slot(0).state;
  state.gpr = start.gpr;
  state.rflags = start.rflags;
  state.resume = start.rip.as_int();
  CLEW_ASSIGN_OR_RETURN(registers, process.Registers(thread));
  registers.rip = places.image;
  registers.rdi = places.shared;
  // Its upper end is not in use yet.
  registers.rsp = places.shared + kThreadsAt + kSlotBytes;
  registers.orig_rax = kNoCall;
  return process.SetRegisters(thread, registers);
}

}  // namespace clew::tracer
