#include "decoder/pt/code_blocks.h"

namespace clew::decoder {
namespace {

constexpr size_t kSlotsAtFirst = 1024;

}  // namespace

CodeBlocks::CodeBlocks(uint64_t bytes_max) : bytes_max_(bytes_max) { Clear(); }

CodeVersion CodeBlocks::Map(CodeVersion version, const std::string& file,
                            uint64_t file_offset, uint64_t size_bytes,
                            uint64_t addr) {
  const auto [at, is_new] = versions_.try_emplace(
      Mapping(version, file, file_offset, size_bytes, addr), kNone);
  if (is_new) {
    at->second = ++last_version_;
  }
  return at->second;
}

CodeBlock& CodeBlocks::Add(const CodeBlock& block, const CodeSpan& span,
                           std::span<const uint64_t> insns,
                           std::span<const CodeCall> calls) {
  if (bytes() > bytes_max_) {
    Clear();
  }
  if (2 * (blocks_.size() + 1) > slots_.size()) {
    Grow();
  }
  const auto number = static_cast<uint32_t>(blocks_.size());
  Enter(
      {.ip = block.ip, .tag = Tag(block.version, block.mode), .block = number});
  CodeBlock& added = blocks_.emplace_back(block);
  added.number = number;
  added.first_insn = static_cast<uint32_t>(insns_.size());
  added.first_call = static_cast<uint32_t>(calls_.size());
  spans_.push_back(span);
  insns_.insert(insns_.end(), insns.begin(), insns.end());
  calls_.insert(calls_.end(), calls.begin(), calls.end());
  return added;
}

uint64_t CodeBlocks::bytes() const {
  return slots_.size() * sizeof(Slot) +
         blocks_.size() * (sizeof(CodeBlock) + sizeof(CodeSpan)) +
         insns_.size() * sizeof(uint64_t) + calls_.size() * sizeof(CodeCall);
}

void CodeBlocks::Clear() {
  blocks_ = std::vector<CodeBlock>(1);
  blocks_.front().version = kNowhere;
  spans_ = std::vector<CodeSpan>(1);
  insns_ = {};
  calls_ = {};
  slots_.assign(kSlotsAtFirst, Slot{});
  mask_ = slots_.size() - 1;
}

void CodeBlocks::Grow() {
  std::vector<Slot> before(2 * slots_.size());
  before.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.tag != 0) {
      Enter(slot);
    }
  }
}

void CodeBlocks::Enter(const Slot& slot) {
  uint64_t at = Hash(slot.ip, slot.tag);
  while (slots_[at & mask_].tag != 0) {
    ++at;
  }
  slots_[at & mask_] = slot;
}

}  // namespace clew::decoder
