// What system calls are given to read from the program's memory, and whether it
// is what they were given when the run was recorded.
#include <algorithm>
#include <array>

#include "common/digest.h"
#include "common/linux/syscall_reads.h"
#include "common/linux/syscall_table.h"
#include "follower/process.h"

namespace clew::follower {
namespace {

constexpr uint64_t kOutputBytesMax = 64u << 20;

// Where an output call's iovec[] is; nullopt: it has none.
struct OutputVector {
  uint64_t addr = 0;
  uint64_t count = 0;
};
std::optional<OutputVector> OutputVectorOf(const SyscallInput& call,
                                           const machine::Memory& memory) {
  const SyscallRow* const row = FindSyscall(call.number);
  switch (row == nullptr ? SyscallOutput::kNone : row->output) {
    case SyscallOutput::kVector:
      return OutputVector{.addr = call.args[1], .count = call.args[2]};
    case SyscallOutput::kMessage: {
      constexpr uint64_t kVectorAt = 16;  // msghdr, msg_iov and msg_iovlen
      OutputVector vector;
      const bool mapped =
          memory.Peek(call.args[1] + kVectorAt,
                      std::as_writable_bytes(std::span(&vector, 1)));
      return mapped ? vector : OutputVector();
    }
    case SyscallOutput::kNone:
    case SyscallOutput::kBuffer:
      break;
  }
  return std::nullopt;
}

class MachineMemory final : public ProgramMemory {
 public:
  explicit MachineMemory(const machine::Memory& memory) : memory_(memory) {}
  bool Read(uint64_t addr, std::span<std::byte> to) const override {
    return memory_.Peek(addr, to);
  }

 private:
  const machine::Memory& memory_;
};

}  // namespace

void Process::ObserveReads(uint64_t ip, uint64_t insn_offset,
                           const SyscallInput& call) {
  const MachineMemory memory(memory_);
  for (const MemoryRange& range :
       ReadsOfSyscall(call.number, call.args, memory)) {
    observer_->OnAccess({.ip = ip,
                         .insn_offset = insn_offset,
                         .addr = range.addr,
                         .value = 0,
                         .size_bytes = static_cast<uint32_t>(range.size_bytes),
                         .kind = AccessKind::kRead});
  }
}

Followed Process::CheckReads(size_t thread, const SyscallInput& call) {
  if (!call.read_digest) {
    return Followed::kAsRecorded;
  }
  const MachineMemory memory(memory_);
  const auto ranges = ReadsOfSyscall(call.number, call.args, memory);
  if (DigestOfReads(ranges, memory) == call.read_digest) {
    return Followed::kAsRecorded;
  }
  return Contradict(Contradiction::Kind::kSyscall, thread,
                    fmt::format("{} is given other memory to read than "
                                "recorded, {} bytes at {:#x} first",
                                SyscallName(call.number),
                                ranges.empty() ? 0 : ranges[0].size_bytes,
                                ranges.empty() ? 0 : ranges[0].addr));
}

Followed Process::CheckOutput(size_t thread, const SyscallInput& call) {
  if (!call.output_digest) {
    return Followed::kAsRecorded;
  }
  const auto bytes = CollectOutput(call);
  const bool same = bytes && Digest(*bytes) == *call.output_digest;
  if (!same) {
    ++outputs_differing_;
    if (options_.strict_output) {
      return Contradict(Contradiction::Kind::kOutput, thread,
                        fmt::format("{} outputs other bytes than recorded",
                                    SyscallName(call.number)));
    }
  }
  if (output_ && bytes) {
    output_(tid(thread), static_cast<int>(call.args[0]), *bytes);
  }
  return Followed::kAsRecorded;
}

// The bytes that an output call reads from the process.
Result<std::vector<std::byte>> Process::CollectOutput(
    const SyscallInput& call) const {
  std::vector<std::byte> bytes;
  const uint64_t wanted = std::min(call.output_bytes, kOutputBytesMax);
  const auto append = [&](uint64_t addr, uint64_t size) {
    const uint64_t take = std::min<uint64_t>(size, wanted - bytes.size());
    const size_t before = bytes.size();
    bytes.resize(before + take);
    return memory_.Peek(addr, std::span(bytes).subspan(before));
  };
  bool readable = true;
  if (const auto vector = OutputVectorOf(call, memory_)) {
    for (uint64_t i = 0; i < vector->count && bytes.size() < wanted; ++i) {
      std::array<uint64_t, 2> part = {};  // struct iovec
      readable = readable &&
                 memory_.Peek(vector->addr + i * sizeof(part),
                              std::as_writable_bytes(std::span(part))) &&
                 append(part[0], part[1]);
    }
  } else {
    readable = append(call.args[1], wanted);
  }
  if (!readable) {
    return InvalidArgument("the output buffer of {} is not mapped",
                           SyscallName(call.number));
  }
  return bytes;
}

}  // namespace clew::follower
