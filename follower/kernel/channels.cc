#include "follower/kernel/channels.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "common/check.h"
#include "common/digest.h"
#include "common/linux/request_table.h"
#include "follower/kernel/machine_memory.h"
#include "follower/kernel/new_thread.h"

namespace clew::follower {
namespace {

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
    case __NR_read:
    case __NR_readv:
    case __NR_recvfrom:
    case __NR_recvmsg:
    case __NR_write:
    case __NR_writev:
    case __NR_sendto:
    case __NR_sendmsg:
    case __NR_sendmmsg:
    case __NR_sendfile:
    case __NR_splice:
    case __NR_tee:
    case __NR_vmsplice:
    case __NR_open:
    case __NR_openat:
    case __NR_openat2:
    case __NR_close:
    case __NR_close_range:
    case __NR_pipe:
    case __NR_pipe2:
    case __NR_socketpair:
    case __NR_eventfd:
    case __NR_eventfd2:
    case __NR_dup:
    case __NR_dup2:
    case __NR_dup3:
    case __NR_fcntl:
    case __NR_clone:
    case __NR_clone3:
    case __NR_fork:
    case __NR_vfork:
    case __NR_io_submit:
    case __NR_io_uring_setup:
    case __NR_pidfd_getfd:
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
    amount = call.number == __NR_write
                 ? Load<uint64_t>(memory, call.args[1]).value_or(kUnbounded)
                 : kUnbounded;
  }
  channel.put =
      std::min(channel.put + std::min(amount, kUnbounded), kUnbounded);
}

void Channels::Enter(const SyscallInput& call, const machine::Memory& memory) {
  const auto& args = call.args;
  switch (call.number) {
    case __NR_sendmsg:
      if (Load<uint64_t>(memory, args[1] + kControlBytesAt) != 0u) {
        ForgetAll();  // may send a descriptor away
      }
      return Put(call, args[0], memory);
    case __NR_write:
    case __NR_writev:
    case __NR_sendto:
    case __NR_sendfile:
    case __NR_vmsplice:
      return Put(call, args[0], memory);
    case __NR_tee:
      return Put(call, args[1], memory);
    case __NR_splice:
      return Put(call, args[2], memory);
    case __NR_close:
      return Close(args[0]);
    case __NR_dup2:
    case __NR_dup3:
      return args[0] == args[1] ? void() : Close(args[1]);
    case __NR_open:
      return MayNameDescriptor(memory, args[0]) ? ForgetAll() : void();
    case __NR_openat:
    case __NR_openat2:
      return MayNameDescriptor(memory, args[1]) ? ForgetAll() : void();
    case __NR_clone:
    case __NR_clone3: {
      const auto made = NewThreadOf(call, MachineMemory(memory));
      return call.result.value_or(0) < 0 || (made && !made->is_process())
                 ? void()
                 : ForgetAll();
    }
    case __NR_close_range:
    case __NR_sendmmsg:
    case __NR_fork:
    case __NR_vfork:
    case __NR_io_submit:
    case __NR_io_uring_setup:
    case __NR_pidfd_getfd:
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
    case __NR_pipe:
    case __NR_pipe2:
      return MakePair(call, args[0], false);
    case __NR_socketpair:
      return MakePair(call, args[3], true);
    case __NR_eventfd:
    case __NR_eventfd2: {
      const Id id = Add(args[0] & 0xffffffff, true);
      ends_[static_cast<int>(result)] = {.takes = id, .puts = id};
      return;
    }
    case __NR_fcntl:
      if (RequestIn(args[1]) != F_DUPFD &&
          RequestIn(args[1]) != F_DUPFD_CLOEXEC) {
        return;
      }
      [[fallthrough]];
    case __NR_dup:
    case __NR_dup2:
    case __NR_dup3:
      ends_[static_cast<int>(result)] = EndOf(args[0]);
      return;
    default:
      return;
  }
}

Channels::Taking Channels::Source(const SyscallInput& call) const {
  const bool takes =
      call.number == __NR_read || call.number == __NR_readv ||
      (call.number == __NR_recvmsg && (call.args[2] & MSG_PEEK) == 0) ||
      (call.number == __NR_recvfrom && (call.args[3] & MSG_PEEK) == 0);
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
