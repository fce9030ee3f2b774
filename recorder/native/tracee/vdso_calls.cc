#include "recorder/native/tracee/vdso_calls.h"

#include <asm/unistd_64.h>
#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include "recorder/images/vdso.h"
#include "recorder/native/tracee/process_stat.h"

namespace clew::recorder {
namespace {

// Source: vdso(7), "x86-64 functions".
struct VdsoFunction {
  const char* name;
  uint32_t number;
};
constexpr VdsoFunction kFunctions[] = {
    {"__vdso_clock_gettime", __NR_clock_gettime},
    {"__vdso_clock_getres", __NR_clock_getres},
    {"__vdso_gettimeofday", __NR_gettimeofday},
    {"__vdso_time", __NR_time},
    {"__vdso_getcpu", __NR_getcpu}};

// nullopt: it does not have the function.
std::optional<uint64_t> OffsetOf(const char* name) {
  void* const vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (vdso == nullptr) {
    return std::nullopt;
  }
  const void* const function = dlsym(vdso, name);
  dlclose(vdso);
  return function == nullptr
             ? std::nullopt
             : std::optional<uint64_t>(static_cast<const std::byte*>(function) -
                                       OwnVdso().data());
}

uint64_t VdsoOf(const TracedProcess& process) {
  return AuxValue(process.ProcText("auxv"), AT_SYSINFO_EHDR);
}

// MOV EAX, number; SYSCALL; RET.
std::array<std::byte, 8> CallOf(uint32_t number) {
  std::array<uint8_t, 8> code = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
  std::memcpy(code.data() + 1, &number, sizeof(number));
  return std::bit_cast<std::array<std::byte, 8>>(code);
}

}  // namespace

Result<VdsoCalls> VdsoCalls::Install(TracedProcess& process,
                                     const std::vector<Tid>& threads,
                                     const GuestMemory& memory) {
  const auto own = OwnVdso();
  VdsoCalls calls(VdsoOf(process), own.size());
  std::vector<std::byte> theirs(own.size());
  if (own.empty() || calls.begin_ == 0 ||
      !memory.Read(calls.begin_, theirs.data(), theirs.size()) ||
      !std::ranges::equal(own, theirs)) {
    return Unsupported(
        "process {} has no vDSO, or another one than this program: what it "
        "reads there cannot be recorded",
        process.process());
  }
  CLEW_RETURN_IF_ERROR(calls.StepOut(process, threads));
  for (const VdsoFunction& function : kFunctions) {
    CLEW_RETURN_IF_ERROR(calls.Replace(function.name, function.number, memory));
  }
  if (calls.replaced_.empty()) {
    return Unsupported("this kernel's vDSO has none of the known functions");
  }
  return calls;
}

uint64_t VdsoCalls::syscall_addr() const {
  return replaced_.front().addr + kSyscallAt;
}

Result<std::vector<std::byte>> VdsoCalls::Image(
    const GuestMemory& memory) const {
  std::vector<std::byte> image(size_bytes_);
  if (!memory.Read(begin_, image.data(), image.size())) {
    return Unsupported("the vDSO at {:#x} cannot be read", begin_);
  }
  return image;
}

bool VdsoCalls::IsIn(const TracedProcess& process,
                     const GuestMemory& memory) const {
  return VdsoOf(process) == begin_ &&
         std::ranges::all_of(replaced_, [&](const Replaced& replaced) {
           return memory.Load<std::array<std::byte, kCallBytes>>(
                      replaced.addr) == CallOf(replaced.number);
         });
}

// Nothing that they need there is another thread's to do.
Status VdsoCalls::StepOut(TracedProcess& process,
                          const std::vector<Tid>& threads) const {
  constexpr int kStepsMax = 100'000;
  for (const Tid thread : threads) {
    for (int steps = 0;; ++steps) {
      CLEW_ASSIGN_OR_RETURN(ip, process.InsnPointer(thread));
      if (ip.as_int() - begin_ >= size_bytes_) {
        break;
      }
      if (steps == kStepsMax) {
        return Unsupported("thread {} does not leave the vDSO", thread);
      }
      CLEW_RETURN_IF_ERROR(process.SingleStep(thread, 0));
      CLEW_RETURN_IF_ERROR(process.Wait(thread, true));
    }
  }
  return {};
}

Status VdsoCalls::Replace(const char* name, uint32_t number,
                          const GuestMemory& memory) {
  const auto offset = OffsetOf(name);
  if (!offset || *offset + kCallBytes > size_bytes_) {
    return {};
  }
  Replaced replaced = {.addr = begin_ + *offset, .number = number};
  const auto code = CallOf(number);
  if (!memory.Read(replaced.addr, replaced.was.data(), kCallBytes) ||
      !memory.Write(replaced.addr, code.data(), kCallBytes)) {
    return Unsupported("the kernel lets nobody change {} in the vDSO", name);
  }
  replaced_.push_back(replaced);
  return {};
}

Status VdsoCalls::Remove(TracedProcess& process,
                         const std::vector<Tid>& threads,
                         const GuestMemory& memory) const {
  CLEW_RETURN_IF_ERROR(StepOut(process, threads));
  for (const Replaced& replaced : replaced_) {
    if (!memory.Write(replaced.addr, replaced.was.data(), kCallBytes)) {
      return Unsupported("the vDSO cannot be put back");
    }
  }
  return {};
}

}  // namespace clew::recorder
