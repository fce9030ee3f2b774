#include "follower/kernel/call_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "common/digest.h"
#include "common/linux/argument_bits.h"
#include "common/linux/request_table.h"
#include "common/linux/syscall_reads.h"
#include "common/linux/syscall_table.h"
#include "follower/kernel/machine_memory.h"

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

}  // namespace

std::optional<std::string> OtherArguments(const machine::Registers& registers,
                                          const SyscallInput& call) {
  const auto& gpr = registers.gpr;
  if (SyscallNumber(gpr[kRax]) != SyscallNumber(call.number)) {
    return fmt::format("makes system call {}, recorded is {}",
                       SyscallName(SyscallNumber(gpr[kRax])),
                       SyscallName(call.number));
  }
  const ArgumentBits bits = BitsOfArguments(call.number, call.args);
  for (size_t i = 0; i < bits.size(); ++i) {
    const uint64_t differing = gpr[kSyscallArguments[i]] ^ call.args[i];
    if (bits[i] != 0 && differing << (64 - bits[i]) != 0) {
      return fmt::format("argument {} of {} is {:#x}, recorded is {:#x}", i,
                         CallName(call.number, call.args),
                         gpr[kSyscallArguments[i]], call.args[i]);
    }
  }
  return std::nullopt;
}

CallReads ReadsOf(const machine::Memory& memory, const SyscallInput& call) {
  const MachineMemory bytes(memory);
  CallReads reads = {.ranges = ReadsOfSyscall(call.number, call.args, bytes)};
  reads.as_recorded = DigestOfReads(reads.ranges, bytes) == call.read_digest;
  return reads;
}

std::optional<std::string> OtherReads(const machine::Memory& memory,
                                      const SyscallInput& call) {
  if (!call.read_digest) {
    return std::nullopt;
  }
  const auto [ranges, as_recorded] = ReadsOf(memory, call);
  if (as_recorded) {
    return std::nullopt;
  }
  return fmt::format(
      "{} is given other memory to read than "
      "recorded, {} bytes at {:#x} first",
      SyscallName(call.number), ranges.empty() ? 0 : ranges[0].size_bytes,
      ranges.empty() ? 0 : ranges[0].addr);
}

Result<std::vector<std::byte>> OutputOf(const machine::Memory& memory,
                                        const SyscallInput& call) {
  std::vector<std::byte> bytes;
  const uint64_t wanted = std::min(call.output_bytes, kOutputBytesMax);
  const auto append = [&](uint64_t addr, uint64_t size) {
    const uint64_t take = std::min<uint64_t>(size, wanted - bytes.size());
    const size_t before = bytes.size();
    bytes.resize(before + take);
    return memory.Peek(addr, std::span(bytes).subspan(before));
  };
  bool readable = true;
  if (const auto vector = OutputVectorOf(call, memory)) {
    for (uint64_t i = 0; i < vector->count && bytes.size() < wanted; ++i) {
      std::array<uint64_t, 2> part = {};  // struct iovec
      readable = readable &&
                 memory.Peek(vector->addr + i * sizeof(part),
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
