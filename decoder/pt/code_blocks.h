#ifndef CLEW_DECODER_PT_CODE_BLOCKS_H_
#define CLEW_DECODER_PT_CODE_BLOCKS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

// Code decoded once. A block is what runs from an address on without asking
// the trace: it goes along direct jumps and calls, up to the first conditional
// or indirect branch. Of
//
//   10: push rax   11: call 20   ...   20: test eax, eax   22: je 30
//
// the block at 10 has four instructions, a call that returns to 16, ends at 22
// and goes on at 24 or 30. Whoever follows a trace asks it for one bit here,
// and looks at no instruction again.

namespace clew::decoder {

// How a block ends.
enum class BlockEnd : uint8_t {
  kGoesOn,  // at `next`, without the trace: blocks have an end
  kConditional,
  kReturn,
  kIndirect,  // a jump, a call, or a far transfer
  kFails,     // what comes next cannot be decoded
};

// The last instruction is one that an event may be about.
enum class SpecialInsn : uint8_t {
  kNone,
  kPtwrite,
  kMovCr3,
  kVmEntry,  // VMLAUNCH, VMRESUME
  kVmPtrld,
};

// Which code an image has: images to which the same was mapped in the same
// order have the same one.
using CodeVersion = uint32_t;

struct CodeBlock {
  uint64_t ip = 0;      // of the first instruction
  uint64_t end_ip = 0;  // of the last one
  uint64_t next = 0;    // kGoesOn: where; else what is behind the last one
  uint64_t target = 0;  // kConditional: where it leads if taken
  // The numbers of blocks that came behind it, by the outcome of its branch: a
  // hint where to look.
  uint32_t successors[2] = {};
  uint16_t insn_count = 0;
  uint16_t call_count = 0;
  BlockEnd end = BlockEnd::kFails;
  SpecialInsn special = SpecialInsn::kNone;
  uint8_t last_class = 0;  // of the last instruction, libipt's pt_insn_class
  uint8_t mode = 0;        // libipt's
  uint32_t number = 0;     // in CodeBlocks; 0: not there
  CodeVersion version = 0;
  uint32_t first_insn = 0;  // in CodeBlocks
  uint32_t first_call = 0;
};
static_assert(sizeof(CodeBlock) == 64);  // as many as fit into the CPU's cache

// All bytes of a block are from `lowest` to `highest`.
struct CodeSpan {
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
};

struct CodeCall {
  uint64_t returns_to = 0;
  uint16_t insn = 0;  // in the block
};

// The blocks of all images that share a cache. Memory: at most `bytes_max`,
// beyond which it begins anew. Not thread-safe.
class CodeBlocks {
 public:
  static constexpr CodeVersion kNone = 0;   // no block has it
  static constexpr CodeVersion kEmpty = 1;  // nothing is mapped
  static constexpr CodeVersion kNowhere = UINT32_MAX;

  explicit CodeBlocks(uint64_t bytes_max);

  // What `version` becomes by a mapping over it.
  CodeVersion Map(CodeVersion version, const std::string& file,
                  uint64_t file_offset, uint64_t size_bytes, uint64_t addr);

  // Good until the next Add(); null if it is not there. `mode`: libipt's.
  CodeBlock* Find(CodeVersion version, uint64_t ip, uint32_t mode) {
    const uint64_t tag = Tag(version, mode);
    for (uint64_t at = Hash(ip, tag);; ++at) {
      const Slot& slot = slots_[at & mask_];
      if (slot.tag == 0) {
        return nullptr;
      }
      if (slot.ip == ip && slot.tag == tag) {
        return &blocks_[slot.block];
      }
    }
  }
  // REQUIRES: it is not there.
  CodeBlock& Add(const CodeBlock& block, const CodeSpan& span,
                 std::span<const uint64_t> insns,
                 std::span<const CodeCall> calls);
  // The block of that number, which may have become another one's since, or one
  // that is nowhere.
  CodeBlock& Numbered(uint32_t number) {
    return blocks_[number < blocks_.size() ? number : 0];
  }

  const CodeSpan& SpanOf(const CodeBlock& block) const {
    return spans_[block.number];
  }
  // The addresses of a block's instructions, and its calls.
  std::span<const uint64_t> InsnsOf(const CodeBlock& block) const {
    return {insns_.data() + block.first_insn, block.insn_count};
  }
  std::span<const CodeCall> CallsOf(const CodeBlock& block) const {
    return {calls_.data() + block.first_call, block.call_count};
  }

 private:
  struct Slot {
    uint64_t ip = 0;
    uint64_t tag = 0;  // 0: free
    uint32_t block = 0;
  };
  using Mapping =
      std::tuple<CodeVersion, std::string, uint64_t, uint64_t, uint64_t>;

  static uint64_t Tag(CodeVersion version, uint32_t mode) {
    return uint64_t{version} << 8 | mode;
  }
  static uint64_t Hash(uint64_t ip, uint64_t tag) {
    return ((ip ^ tag << 40) * 0x9e3779b97f4a7c15) >> 32;
  }
  uint64_t bytes() const;
  void Clear();
  void Grow();
  void Enter(const Slot& slot);

  uint64_t bytes_max_;
  std::map<Mapping, CodeVersion> versions_;
  CodeVersion last_version_ = kEmpty;
  std::vector<Slot> slots_;  // open addressing, at most half full
  uint64_t mask_ = 0;
  std::vector<CodeBlock> blocks_;
  std::vector<CodeSpan> spans_;  // of blocks_
  std::vector<uint64_t> insns_;
  std::vector<CodeCall> calls_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_CODE_BLOCKS_H_
