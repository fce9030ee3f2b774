#ifndef CLEW_FOLLOWER_KERNEL_CHANNELS_H_
#define CLEW_FOLLOWER_KERNEL_CHANNELS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "common/inputs.h"
#include "machine/memory.h"

namespace clew::follower {

// Pipes, socket pairs and eventfds that the process made: how much was put into
// each and taken out. What a call was recorded to take must have been put there
// by calls that were entered before it returns; an eventfd counts its value,
// the others bytes.
//
// Channels that another process may know (after a fork, a descriptor sent away,
// a descriptor opened through /proc), those whose taking end was closed, and
// all descriptors from elsewhere are not constrained.
//
// Copyable; a copy is a checkpoint. Not thread-safe.
class Channels {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = 0;
  // Returns an address that stands for the channel; no memory is there.
  static constexpr uint64_t WaitAddr(Id channel) {
    return (uint64_t{1} << 63) + uint64_t{8} * channel;
  }

  // Returns whether Enter, Return or Source do anything with such a call.
  static bool Concerns(uint64_t number);

  // Notes that a call is entered: what it puts counts from here on. `memory`
  // holds its arguments.
  void Enter(const SyscallInput& call, const machine::Memory& memory);
  // Notes that a call has returned, and the descriptors that it made.
  void Return(const SyscallInput& call);

  // Where the call was recorded to take something, and how much.
  struct Taking {
    Id channel = kNone;
    uint64_t amount = 0;
  };
  Taking Source(const SyscallInput& call) const;
  bool MayTake(const Taking& taking) const;
  // Takes the amount out of its channel. REQUIRES: MayTake(taking) is true.
  void Take(const Taking& taking);

  // Equal channels have equal digests.
  uint64_t Digest() const;

 private:
  struct Channel {
    uint64_t put = 0;
    uint64_t taken = 0;
    bool counts_value = false;  // an eventfd
    bool known = true;
  };
  struct End {
    Id takes = kNone;
    Id puts = kNone;
  };

  Id Add(uint64_t put, bool counts_value);
  End EndOf(uint64_t fd) const;
  void Put(const SyscallInput& call, uint64_t fd,
           const machine::Memory& memory);
  void Close(uint64_t fd);
  void MakePair(const SyscallInput& call, uint64_t array, bool both_ways);
  void ForgetAll();

  std::map<int, End> ends_;               // by descriptor
  std::vector<Channel> channels_ = {{}};  // by Id; the first is kNone
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_CHANNELS_H_
