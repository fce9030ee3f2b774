#include "recorder/tracer/inject.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
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

// Makes system calls in a program that is stopped at its first instruction,
// whose code is as it was when this is destroyed.
class Calls {
 public:
  // Both are borrowed.
  [[nodiscard]] static Result<Calls> Begin(TracedProcess& process,
                                           const GuestMemory& memory) {
    CLEW_ASSIGN_OR_RETURN(ip, process.InsnPointer(process.first_thread()));
    const auto code = memory.Load<Code>(ip.as_int());
    constexpr Code kSyscall = {0x0f, 0x05};
    if (!code || !memory.Write(ip.as_int(), kSyscall.data(), kSyscall.size())) {
      return SystemError(EFAULT, "cannot write the program's code");
    }
    return Calls(process, memory, ip, *code);
  }
  Calls(const Calls&) = delete;
  Calls(Calls&& other) noexcept
      : process_(other.process_),
        memory_(other.memory_),
        ip_(other.ip_),
        code_(std::exchange(other.code_, std::nullopt)) {}
  Calls& operator=(const Calls&) = delete;
  Calls& operator=(Calls&&) = delete;
  ~Calls() {
    if (code_) {
      (void)memory_.Write(ip_.as_int(), code_->data(), code_->size());
    }
  }

  // Fails with what the kernel says, as of `what`.
  [[nodiscard]] Result<uint64_t> Make(const char* what, uint64_t number,
                                      const std::array<uint64_t, 6>& args) {
    CLEW_ASSIGN_OR_RETURN(
        result, process_.MakeCall(process_.first_thread(), ip_, number, args));
    if (result < 0) {
      return SystemError(static_cast<int>(-result), what);
    }
    return static_cast<uint64_t>(result);
  }

 private:
  using Code = std::array<uint8_t, 2>;
  Calls(TracedProcess& process, const GuestMemory& memory, TraceeAddr ip,
        const Code& code)
      : process_(process), memory_(memory), ip_(ip), code_(code) {}

  TracedProcess& process_;
  const GuestMemory& memory_;
  TraceeAddr ip_;
  std::optional<Code> code_;  // nullopt: another one restores it
};

// Opens the shared memory in the program: it is one of this process' files.
Result<uint64_t> OpenShared(Calls& calls, const GuestMemory& memory,
                            uint64_t rsp, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", getpid(), fd);
  // Below the red zone of the stack, which is as it was afterwards.
  constexpr uint64_t kBelow = 512;
  std::array<char, 128> before;
  const uint64_t at = rsp - kBelow;
  if (path.size() >= before.size() ||
      !memory.Read(at, before.data(), before.size()) ||
      !memory.Write(at, path.c_str(), path.size() + 1)) {
    return SystemError(EFAULT, "cannot write the program's stack");
  }
  auto opened = calls.Make("cannot open the tracer's memory in the program",
                           SYS_open, {at, O_RDWR | O_CLOEXEC, 0, 0, 0, 0});
  (void)memory.Write(at, before.data(), before.size());
  return opened;
}

Status MapAll(Calls& calls, const Places& places, uint64_t opened) {
  CLEW_RETURN_IF_ERROR(calls.Make(
      "cannot map the tracer's memory in the program", SYS_mmap,
      {places.shared, kSharedBytes, PROT_READ | PROT_WRITE,
       MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, opened, 0}));
  CLEW_RETURN_IF_ERROR(
      calls.Make("cannot map the tracer's code in the program", SYS_mmap,
                 {places.image, RuntimeImage().size(), PROT_READ | PROT_EXEC,
                  MAP_PRIVATE | MAP_FIXED_NOREPLACE, opened, kImageAt}));
  CLEW_RETURN_IF_ERROR(
      calls.Make("cannot close the tracer's memory in the program", SYS_close,
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
  // A signal that comes meanwhile is for the program, once it runs.
  CLEW_ASSIGN_OR_RETURN(mask, process.SignalMask(thread));
  CLEW_RETURN_IF_ERROR(process.SetSignalMask(thread, UINT64_MAX));
  {
    CLEW_ASSIGN_OR_RETURN(calls, Calls::Begin(process, memory));
    CLEW_ASSIGN_OR_RETURN(
        opened, OpenShared(calls, memory, start.gpr[kRsp], shared.fd()));
    CLEW_RETURN_IF_ERROR(MapAll(calls, places, opened));
  }
  CLEW_RETURN_IF_ERROR(process.SetSignalMask(thread, mask));
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
  registers.orig_rax = UINT64_MAX;
  return process.SetRegisters(thread, registers);
}

}  // namespace clew::tracer
