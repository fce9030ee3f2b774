#ifndef CLEW_MACHINE_BLOCK_CACHE_H_
#define CLEW_MACHINE_BLOCK_CACHE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/x86/features.h"
#include "machine/decode.h"
#include "machine/handlers.h"
#include "machine/insn.h"
#include "machine/memory.h"

namespace clew::machine {

template <class D>
struct Op {
  Handler<D> run = nullptr;
  Insn insn;
};

// Instructions that follow one another; only the last may transfer control.
// Never empty: what cannot be fetched or is not known is an op that says so.
template <class D>
struct Block {
  std::vector<Op<D>> ops;
};

// Blocks by the address of their first instruction, for one domain. Holds at
// most kOpsMax instructions, then starts over.
template <class D>
class BlockCache {
 public:
  static constexpr size_t kOpsMax = size_t{1} << 19;  // some 50 MB
  static constexpr size_t kBlockOpsMax = 64;

  // Of a CPU with these features.
  explicit BlockCache(x86::FeatureSet features) : handlers_(features) {}

  // Returns the block at `ip` as memory is now. It lives until the next Find.
  const Block<D>& Find(const Memory& memory, uint64_t ip) {
    const Recent& recent = recent_[ip % kRecent];
    if (recent.ip == ip && memory.code_version() == version_) [[likely]] {
      return *recent.block;
    }
    return FindSlow(memory, ip);
  }

  std::string Describe(const Memory& memory, uint64_t ip);
  x86::FeatureSet features() const { return handlers_.features(); }

 private:
  static constexpr size_t kRecent = 8192;
  struct Recent {
    uint64_t ip = ~uint64_t{0};
    const Block<D>* block = nullptr;
  };
  const Block<D>& FindSlow(const Memory& memory, uint64_t ip);
  void Clear();
  Block<D> Build(const Memory& memory, uint64_t ip);
  Op<D> MakeOp(const Decoded& decoded, uint64_t ip) const;

  Decoder decoder_;
  Handlers<D> handlers_;
  std::unordered_map<uint64_t, std::unique_ptr<Block<D>>> blocks_;
  std::array<Recent, kRecent> recent_;
  size_t op_count_ = 0;
  uint64_t version_ = 0;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_BLOCK_CACHE_H_
