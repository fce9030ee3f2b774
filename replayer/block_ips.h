#ifndef CLEW_REPLAYER_BLOCK_IPS_H_
#define CLEW_REPLAYER_BLOCK_IPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "common/stream.h"
#include "replayer/stop_points.h"

namespace clew::replayer {

// Remembers which addresses a block of a recorded stream executes, so that a
// run with breakpoints steps only through blocks that hold one. The same start
// and length are always the same instructions as long as the code is the same.
//
// Bounded: forgets everything at kIpsMax addresses. Not thread-safe.
class BlockIps {
 public:
  static constexpr size_t kIpsMax = size_t{4} << 20;  // 32 MB

  // Forgets all if code has changed since the last call.
  void SetCodeVersion(uint64_t version);

  // Returns false only if the block is known to hold no breakpoint.
  bool MayStop(const StreamBlock& block, const StopPoints& points) const;

  bool Knows(const StreamBlock& block) const;
  // Remembers `ips`. REQUIRES: they are the addresses of all instructions of
  // the block.
  void Learn(const StreamBlock& block, std::vector<uint64_t> ips);

 private:
  struct Key {
    uint64_t ip;
    uint32_t insns;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return std::hash<uint64_t>()(key.ip * 0x9e3779b97f4a7c15u + key.insns);
    }
  };
  static Key KeyOf(const StreamBlock& block) {
    return {block.ip.as_int(), block.insn_count};
  }

  uint64_t version_ = 0;
  size_t ips_ = 0;
  std::unordered_map<Key, std::vector<uint64_t>, KeyHash> blocks_;
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_BLOCK_IPS_H_
