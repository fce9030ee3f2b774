#include "follower/channels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "common/check.h"
#include "common/digest.h"
#include "follower/syscalls.h"

namespace clew::follower {
namespace {

constexpr uint64_t kCloneThread = 0x00010000;  // linux/sched.h
constexpr uint64_t kMsgPeek = 2;               // linux/socket.h
constexpr uint64_t kDupfd = 0;                 // linux/fcntl.h
constexpr uint64_t kDupfdCloexec = 1030;
constexpr uint64_t kControlBytesAt = 40;  // msghdr, msg_controllen
constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max() / 2;

template <class T>
std::optional<T> Load(const machine::Memory& memory, uint64_t addr) {
  T value = {};
  const bool mapped =
      memory.Peek(addr, std::as_writable_bytes(std::span(&value, 1)));
  return mapped ? std::optional(value) : std::nullopt;
}

// What the call wrote at `addr`, where that is one whole T.
template <class T>
std::optional<T> WrittenAt(const SyscallInput& call, uint64_t addr) {
  for (const MemoryWrite& write : call.writes) {
    if (write.addr.as_int() == addr && write.bytes.size() == sizeof(T)) {
      T value = {};
      std::memcpy(&value, write.bytes.data(), sizeof(T));
      return value;
    }
  }
  return std::nullopt;
}

// Files that are other names of descriptors.
bool MayNameDescriptor(const machine::Memory& memory, uint64_t path) {
  std::array<char, 6> start = {};
  for (size_t i = 0; i < start.size(); ++i) {
    start[i] = Load<char>(memory, path + i).value_or('\0');
    if (start[i] == '\0') {
      break;
    }
  }
  const std::string_view text(start.data(), start.size());
  return text.starts_with("/proc/") || text.starts_with("/dev/f") ||
         text.starts_with("/dev/s") || text[0] != '/';
}

}  // namespace

bool Channels::Concerns(uint64_t number) {
  switch (number) {
    case kSysRead:
    case kSysReadv:
    case kSysRecvfrom:
    case kSysRecvmsg:
    case kSysWrite:
    case kSysWritev:
    case kSysSendto:
    case kSysSendmsg:
    case kSysSendmmsg:
    case kSysSendfile:
    case kSysSplice:
    case kSysTee:
    case kSysVmsplice:
    case kSysOpen:
    case kSysOpenat:
    case kSysOpenat2:
    case kSysClose:
    case kSysCloseRange:
    case kSysPipe:
    case kSysPipe2:
    case kSysSocketpair:
    case kSysEventfd:
    case kSysEventfd2:
    case kSysDup:
    case kSysDup2:
    case kSysDup3:
    case kSysFcntl:
    case kSysClone:
    case kSysClone3:
    case kSysFork:
    case kSysVfork:
    case kSysIoSubmit:
    case kSysIoUringSetup:
    case kSysPidfdGetfd:
      return true;
    default:
      return false;
  }
}

Channels::Id Channels::Add(uint64_t put, bool counts_value) {
  channels_.push_back({.put = put, .counts_value = counts_value});
  return static_cast<Id>(channels_.size() - 1);
}

Channels::End Channels::EndOf(uint64_t fd) const {
  const auto found = ends_.find(static_cast<int>(fd));
  return found == ends_.end() ? End() : found->second;
}

void Channels::ForgetAll() {
  ends_.clear();
  for (Channel& channel : channels_) {
    channel.known = false;
  }
}

// A call that was entered before may still use the descriptor: who takes by it
// is not known any more, what is put still counts, until the number is reused.
void Channels::Close(uint64_t fd) {
  const auto found = ends_.find(static_cast<int>(fd));
  if (found != ends_.end()) {
    channels_[found->second.takes].known = false;
    found->second.takes = kNone;
  }
}

// Without a result it may still put all that it was given.
void Channels::Put(const SyscallInput& call, uint64_t fd,
                   const machine::Memory& memory) {
  const End end = EndOf(fd);
  if (end.puts == kNone || call.result.value_or(0) < 0) {
    return;
  }
  Channel& channel = channels_[end.puts];
  uint64_t amount =
      call.result ? static_cast<uint64_t>(*call.result) : kUnbounded;
  if (channel.counts_value) {
    amount = call.number == kSysWrite
                 ? Load<uint64_t>(memory, call.args[1]).value_or(kUnbounded)
                 : kUnbounded;
  }
  channel.put =
      std::min(channel.put + std::min(amount, kUnbounded), kUnbounded);
}

void Channels::Enter(const SyscallInput& call, const machine::Memory& memory) {
  const auto& args = call.args;
  switch (call.number) {
    case kSysSendmsg:
      if (Load<uint64_t>(memory, args[1] + kControlBytesAt) != 0u) {
        ForgetAll();  // may send a descriptor away
      }
      return Put(call, args[0], memory);
    case kSysWrite:
    case kSysWritev:
    case kSysSendto:
    case kSysSendfile:
    case kSysVmsplice:
      return Put(call, args[0], memory);
    case kSysTee:
      return Put(call, args[1], memory);
    case kSysSplice:
      return Put(call, args[2], memory);
    case kSysClose:
      return Close(args[0]);
    case kSysDup2:
    case kSysDup3:
      return args[0] == args[1] ? void() : Close(args[1]);
    case kSysOpen:
      return MayNameDescriptor(memory, args[0]) ? ForgetAll() : void();
    case kSysOpenat:
    case kSysOpenat2:
      return MayNameDescriptor(memory, args[1]) ? ForgetAll() : void();
    case kSysClone:
      return (args[0] & kCloneThread) == 0 ? ForgetAll() : void();
    case kSysCloseRange:
    case kSysSendmmsg:
    case kSysClone3:
    case kSysFork:
    case kSysVfork:
    case kSysIoSubmit:
    case kSysIoUringSetup:
    case kSysPidfdGetfd:
      return call.result.value_or(0) < 0 ? void() : ForgetAll();
    default:
      return;
  }
}

void Channels::MakePair(const SyscallInput& call, uint64_t array,
                        bool both_ways) {
  const auto pair = WrittenAt<std::array<int, 2>>(call, array);
  if (!pair) {
    return;
  }
  const Id forth = Add(0, false);
  const Id back = both_ways ? Add(0, false) : kNone;
  ends_[(*pair)[0]] = {.takes = forth, .puts = back};
  ends_[(*pair)[1]] = {.takes = back, .puts = forth};
}

void Channels::Return(const SyscallInput& call) {
  const int64_t result = call.result.value_or(-1);
  const auto& args = call.args;
  if (result < 0) {
    return;
  }
  switch (call.number) {
    case kSysPipe:
    case kSysPipe2:
      return MakePair(call, args[0], false);
    case kSysSocketpair:
      return MakePair(call, args[3], true);
    case kSysEventfd:
    case kSysEventfd2: {
      const Id id = Add(args[0] & 0xffffffff, true);
      ends_[static_cast<int>(result)] = {.takes = id, .puts = id};
      return;
    }
    case kSysFcntl:
      if (args[1] != kDupfd && args[1] != kDupfdCloexec) {
        return;
      }
      [[fallthrough]];
    case kSysDup:
    case kSysDup2:
    case kSysDup3:
      ends_[static_cast<int>(result)] = EndOf(args[0]);
      return;
    default:
      return;
  }
}

Channels::Taking Channels::Source(const SyscallInput& call) const {
  const bool takes =
      call.number == kSysRead || call.number == kSysReadv ||
      (call.number == kSysRecvmsg && (call.args[2] & kMsgPeek) == 0) ||
      (call.number == kSysRecvfrom && (call.args[3] & kMsgPeek) == 0);
  const Id id = takes ? EndOf(call.args[0]).takes : kNone;
  const int64_t result = call.result.value_or(0);
  if (id == kNone || result <= 0) {
    return {};
  }
  if (!channels_[id].counts_value) {
    return {.channel = id, .amount = static_cast<uint64_t>(result)};
  }
  const auto value = WrittenAt<uint64_t>(call, call.args[1]);
  return {.channel = value ? id : kNone, .amount = value.value_or(0)};
}

bool Channels::MayTake(const Taking& taking) const {
  const Channel& channel = channels_[taking.channel];
  return !channel.known || taking.amount <= channel.put - channel.taken;
}

void Channels::Take(const Taking& taking) {
  Channel& channel = channels_[taking.channel];
  if (channel.known) {
    CLEW_CHECK(MayTake(taking), "{} of channel {}", taking.amount,
               taking.channel);
    channel.taken += taking.amount;
  }
}

uint64_t Channels::Digest() const {
  uint64_t digest = 0;
  for (size_t id = 1; id < channels_.size(); ++id) {
    const Channel& channel = channels_[id];
    digest += MixBits(MixBits(id) ^ MixBits(channel.put + 1) ^
                      (channel.taken << 1) ^ (channel.known ? 1 : 0));
  }
  for (const auto& [fd, end] : ends_) {
    digest += MixBits(MixBits(static_cast<uint64_t>(fd) + 1) ^
                      (uint64_t{end.takes} << 32) ^ end.puts);
  }
  return digest;
}

}  // namespace clew::follower
