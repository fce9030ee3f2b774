#include "recorder/qemu/calls/syscall_effects.h"

#include <asm/unistd_64.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>

#include "common/check.h"
#include "common/digest.h"
#include "common/linux/request_table.h"
#include "common/x86/page.h"
#include "recorder/qemu/calls/ipc_calls.h"
#include "recorder/qemu/calls/program_descriptor.h"
#include "recorder/qemu/calls/refused_uses.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kIovecMax = 1024;  // UIO_MAXIOV

class ReadableMemory final : public ProgramMemory {
 public:
  explicit ReadableMemory(const GuestMemory& memory) : memory_(memory) {}
  bool Read(uint64_t addr, std::span<std::byte> to) const override {
    return memory_.Read(addr, to.data(), to.size());
  }

 private:
  const GuestMemory& memory_;
};

// Distributes `total` bytes over an iovec array.
void AddVector(uint64_t array, uint64_t count, uint64_t total,
               const GuestMemory& memory, std::vector<MemoryRange>& ranges) {
  for (uint64_t i = 0; i < std::min(count, kIovecMax) && total > 0; ++i) {
    const auto base = memory.Load<uint64_t>(array + 16 * i);
    const auto length = memory.Load<uint64_t>(array + 16 * i + 8);
    if (!base.has_value() || !length.has_value()) {
      return;
    }
    const uint64_t step = std::min(*length, total);
    if (step > 0) {
      ranges.push_back({*base, step});
    }
    total -= step;
  }
}

uint64_t ArgumentOf(const SyscallCall& call, size_t index) {
  return SyscallArgument(*call.row, call.args, index);
}

void AddRange(uint64_t addr, uint64_t size_bytes,
              std::vector<MemoryRange>& ranges) {
  if (addr != 0 && size_bytes > 0) {
    ranges.push_back({addr, size_bytes});
  }
}

void AddLengthAt(const SyscallCall& call, const Pointee& written,
                 const GuestMemory& memory, std::vector<MemoryRange>& ranges) {
  const uint64_t at = call.args[written.other];
  const auto after = memory.Load<uint32_t>(at);
  if (at == 0 || !after.has_value()) {
    return;
  }
  AddRange(call.args[written.arg], std::min(*after, call.length_before),
           ranges);
  AddRange(at, 4, ranges);
}

void AddWritten(const SyscallCall& call, const Pointee& written, int64_t result,
                const GuestMemory& memory, std::vector<MemoryRange>& ranges) {
  const uint64_t addr = call.args[written.arg];
  const auto count = static_cast<uint64_t>(std::max<int64_t>(result, 0));
  const uint64_t other = ArgumentOf(call, written.other);
  if (written.extent == Extent::kOnInterrupt) {
    AddRange(addr, result == -EINTR ? written.bytes : 0, ranges);
    return;
  }
  if (result < 0) {
    return;
  }
  switch (written.extent) {
    case Extent::kFixed:
      return AddRange(addr, written.bytes, ranges);
    case Extent::kResult:
      return AddRange(addr, std::min(count, other) * written.bytes, ranges);
    case Extent::kCounted:
      return AddRange(addr, other * written.bytes, ranges);
    case Extent::kLengthAt:
      return AddLengthAt(call, written, memory, ranges);
    case Extent::kVector:
      return AddVector(addr, other, count, memory, ranges);
    case Extent::kFdSet:
      return AddRange(addr, (ArgumentOf(call, 0) + 63) / 64 * 8, ranges);
    case Extent::kPages:
      return AddRange(addr, PagesIn(other), ranges);
    case Extent::kBits:
      return AddRange(addr, (other + 62) / 64 * 8, ranges);
    default:
      return;
  }
}

// An argument that is not an address of the program cannot be written through,
// whatever the request means.
bool IsAddress(uint64_t argument, const GuestMemory& memory) {
  return memory.Load<std::byte>(argument).has_value();
}

// The buffer that a struct ifconf names: its length, then its address.
void AddInterfaces(uint64_t list, const GuestMemory& memory,
                   std::vector<MemoryRange>& ranges) {
  const auto length = memory.Load<uint32_t>(list);
  const auto buffer = memory.Load<uint64_t>(list + offsetof(ifconf, ifc_ifcu));
  AddRange(buffer.value_or(0), length.value_or(0), ranges);
}

// The arguments behind the request; the kernel may write at some of them.
std::span<const uint64_t> BehindRequest(const SyscallCall& call,
                                        const RequestCall& requests) {
  const size_t arguments = std::string_view(call.row->arguments).size();
  return std::span(call.args).first(arguments).subspan(requests.argument + 1);
}

// A request without a row, or of whose extent the row knows only the beginning.
Status RefuseAddresses(const SyscallCall& call, const RequestCall& requests,
                       const GuestMemory& memory) {
  const auto is_address = [&](uint64_t a) { return IsAddress(a, memory); };
  if (std::ranges::none_of(BehindRequest(call, requests), is_address)) {
    return {};
  }
  const uint64_t request = ArgumentOf(call, requests.argument);
  return Unsupported(
      "{} request {:#x} ({}) is not known, and an argument is an address: what "
      "the kernel writes there could not be recorded; run the program so that "
      "it does without the request",
      call.row->name, request, request);
}

Status AddRequest(const SyscallCall& call, uint64_t result,
                  const GuestMemory& memory, std::vector<MemoryRange>& ranges) {
  const RequestCall* const requests = FindRequestCall(call.number);
  CLEW_CHECK(requests != nullptr, "{} has no requests", call.row->name);
  const auto row = FindRequest(call.number, call.args);
  if (!row || row->extent == RequestExtent::kUnknown) {
    return RefuseAddresses(call, *requests, memory);
  }
  const size_t at = requests->argument + row->behind;
  const uint64_t to = call.args[at];
  switch (row->extent) {
    case RequestExtent::kUnknown:
    case RequestExtent::kFixed:
      AddRange(to, row->bytes, ranges);
      break;
    case RequestExtent::kInterfaceList:
      AddRange(to, row->bytes, ranges);
      AddInterfaces(to, memory, ranges);
      break;
    case RequestExtent::kSemaphores:
      AddRange(to, CountSemaphores(call) * row->bytes, ranges);
      break;
    case RequestExtent::kResult:
      AddRange(to, std::min(result, ArgumentOf(call, at + 1)) * row->bytes,
               ranges);
      break;
  }
  return {};
}

// msghdr: name, namelen, iov, iovlen, control, controllen, flags.
void AddReceivedMessage(uint64_t header, uint64_t received,
                        const GuestMemory& memory,
                        std::vector<MemoryRange>& ranges) {
  const auto message = memory.Load<std::array<uint64_t, 7>>(header);
  if (!message.has_value()) {
    return;
  }
  AddVector((*message)[2], (*message)[3], received, memory, ranges);
  AddRange((*message)[0], (*message)[1] & UINT32_MAX, ranges);
  AddRange((*message)[4], (*message)[5], ranges);
  AddRange(header, sizeof(*message), ranges);
}

void AddReceivedMessages(const SyscallCall& call, uint64_t count,
                         const GuestMemory& memory,
                         std::vector<MemoryRange>& ranges) {
  for (uint64_t i = 0; i < std::min(count, kIovecMax); ++i) {
    const uint64_t entry = call.args[1] + i * sizeof(mmsghdr);
    const uint64_t length_at = entry + offsetof(mmsghdr, msg_len);
    const auto received = memory.Load<uint32_t>(length_at);
    AddReceivedMessage(entry, received.value_or(0), memory, ranges);
    AddRange(length_at, 4, ranges);
  }
}

// Of each message the kernel says how much it took.
void AddSentMessages(const SyscallCall& call, uint64_t count,
                     std::vector<MemoryRange>& ranges) {
  for (uint64_t i = 0; i < std::min(count, kIovecMax); ++i) {
    AddRange(call.args[1] + i * sizeof(mmsghdr) + offsetof(mmsghdr, msg_len), 4,
             ranges);
  }
}

// The kernel maps whole pages, and writes what the file has of them; the rest
// of the last page is zero.
void AddMapped(const SyscallCall& call, uint64_t addr,
               const GuestMemory& memory, std::vector<MemoryRange>& ranges) {
  const uint64_t length = RoundUpToPage(call.args[1]);
  if ((call.args[3] & MAP_ANONYMOUS) != 0) {
    return;
  }
  const auto info =
      ProgramDescriptor(memory, static_cast<int>(call.args[4])).Stat();
  if (!info) {
    return;
  }
  const auto size = static_cast<uint64_t>(info->st_size);
  const uint64_t offset = call.args[5];
  AddRange(addr, offset < size ? std::min(length, size - offset) : 0, ranges);
}

// A child process has memory of its own: what the kernel tells it there does
// not reach its parent.
void AddClone(const SyscallCall& call, std::vector<MemoryRange>& ranges) {
  const uint64_t flags = call.args[0];
  if (MakesProcess(call)) {
    return;
  }
  AddRange((flags & CLONE_PARENT_SETTID) != 0 ? call.args[2] : 0, 4, ranges);
  AddRange((flags & CLONE_CHILD_SETTID) != 0 ? call.args[3] : 0, 4, ranges);
}

void AddFutex(const SyscallCall& call, std::vector<MemoryRange>& ranges) {
  const FutexCall futex = ParseFutex(call.args);
  if (futex.kind == FutexCall::Kind::kOwner) {
    AddRange(futex.addr, 4, ranges);
  }
  if (futex.kind == FutexCall::Kind::kWakeOp) {
    AddRange(futex.addr2, 4, ranges);
  }
}

// Rows with a SpecialEffect. `result` >= 0.
Status AddSpecial(const SyscallCall& call, uint64_t result,
                  const GuestMemory& memory, std::vector<MemoryRange>& ranges) {
  switch (call.row->special) {
    case SpecialEffect::kNone:
      return {};
    case SpecialEffect::kRequest:
      return AddRequest(call, result, memory, ranges);
    case SpecialEffect::kMmap:
      AddMapped(call, result, memory, ranges);
      return {};
    case SpecialEffect::kClone:
      AddClone(call, ranges);
      return {};
    case SpecialEffect::kFutex:
      AddFutex(call, ranges);
      return {};
    case SpecialEffect::kReceiveMessage:
      AddReceivedMessage(call.args[1], result, memory, ranges);
      return {};
    case SpecialEffect::kReceiveMessages:
      AddReceivedMessages(call, result, memory, ranges);
      return {};
    case SpecialEffect::kSendMessages:
      AddSentMessages(call, result, ranges);
      return {};
    case SpecialEffect::kMessageReceive:
      AddRange(call.args[1], sizeof(long) + result, ranges);
      return {};
    case SpecialEffect::kSharedMemory:
      return AddSharedMemory(call, result, ranges);
    case SpecialEffect::kOtherMemory:
      if (static_cast<int32_t>(call.args[0]) == memory.process()) {
        AddVector(call.args[3], call.args[4], result, memory, ranges);
      }
      return {};
  }
  return {};
}

void AddOutput(const SyscallCall& call, int64_t result,
               const GuestMemory& memory, SyscallEffects& effects) {
  effects.has_output = call.row->output != SyscallOutput::kNone && result >= 0;
  if (!effects.has_output) {
    return;
  }
  const auto count = static_cast<uint64_t>(result);
  uint64_t vector = call.args[1];
  uint64_t entries = call.args[2];
  if (call.row->output == SyscallOutput::kBuffer) {
    AddRange(call.args[1], count, effects.output);
    return;
  }
  if (call.row->output == SyscallOutput::kMessage) {
    vector = memory.Load<uint64_t>(call.args[1] + 16).value_or(0);
    entries = memory.Load<uint64_t>(call.args[1] + 24).value_or(0);
  }
  AddVector(vector, entries, count, memory, effects.output);
}

// Of a number that Linux 6.1 does not have: kernel and QEMU answer ENOSYS.
constexpr SyscallRow kNoSuchCall = {.effects = KnownEffects::kOfFailure};

const SyscallRow& RowOf(uint64_t number) {
  const SyscallRow* const row = FindSyscall(number);
  return row == nullptr ? kNoSuchCall : *row;
}

bool IsKnown(const SyscallCall& call) {
  return call.row->effects == KnownEffects::kAll;
}

// What QEMU 7.2 lets only fail.
std::unexpected<Error> Succeeded(const SyscallCall& call) {
  return Unsupported(
      "system call {} ({}) succeeded; its effects are not known to the "
      "recorder; run the program so that it does without",
      SyscallName(call.number), call.number);
}

}  // namespace

bool MakesProcess(const SyscallCall& call) {
  return call.number == __NR_fork || call.number == __NR_vfork ||
         (call.number == __NR_clone && (call.args[0] & CLONE_THREAD) == 0);
}

bool StartsTimer(const SyscallCall& call) {
  return call.number == __NR_setitimer || call.number == __NR_alarm ||
         call.number == __NR_timer_settime ||
         call.number == __NR_timerfd_settime;
}

Result<SyscallCall> BeginSyscall(uint64_t number,
                                 const std::array<uint64_t, 6>& args,
                                 const GuestMemory& memory) {
  SyscallCall call;
  call.row = &RowOf(number);
  call.number = number;
  call.args = args;
  if (call.row->effects == KnownEffects::kNone) {
    return Unsupported(
        "system call {} ({}) is not known to the recorder; run the program so "
        "that it does without",
        SyscallName(number), number);
  }
  CLEW_RETURN_IF_ERROR(RefuseUse(call, memory));
  for (const Pointee& written : call.row->writes) {
    if (written.extent == Extent::kLengthAt && args[written.other] != 0) {
      call.length_before =
          memory.Load<uint32_t>(args[written.other]).value_or(0);
    }
  }
  return call;
}

SyscallReads ReadsOf(const SyscallCall& call, const GuestMemory& memory) {
  const ReadableMemory readable(memory);
  SyscallReads reads;
  reads.ranges = ReadsOfSyscall(call.number, call.args, readable);
  reads.digest = DigestOfReads(reads.ranges, readable);
  return reads;
}

void NoteOutput(const SyscallEffects& effects, const GuestMemory& memory,
                SyscallInput& input) {
  if (!effects.has_output) {
    return;
  }
  uint64_t digest = kEmptyDigest;
  std::array<std::byte, kPageBytes> chunk;
  for (const MemoryRange& range : effects.output) {
    for (uint64_t at = 0; at < range.size_bytes; at += chunk.size()) {
      const auto step = static_cast<size_t>(
          std::min<uint64_t>(chunk.size(), range.size_bytes - at));
      if (memory.Read(range.addr + at, chunk.data(), step)) {
        digest = Digest(std::span(chunk).first(step), digest);
      }
    }
    input.output_bytes += range.size_bytes;
  }
  input.output_digest = digest;
}

Result<SyscallEffects> EffectsOf(const SyscallCall& call, int64_t result,
                                 const GuestMemory& memory) {
  SyscallEffects effects;
  if (!IsKnown(call)) {
    return result < 0 ? Result<SyscallEffects>(effects) : Succeeded(call);
  }
  for (const Pointee& written : call.row->writes) {
    AddWritten(call, written, result, memory, effects.writes);
  }
  AddOutput(call, result, memory, effects);
  if (result >= 0) {
    CLEW_RETURN_IF_ERROR(AddSpecial(call, static_cast<uint64_t>(result), memory,
                                    effects.writes));
  }
  return effects;
}

}  // namespace clew::recorder
