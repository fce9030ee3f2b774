// The code of an image as blocks that are decoded once, by libipt's instruction
// decoder.

#include <algorithm>

#include "decoder/pt/libipt.h"

namespace clew::decoder {
namespace {

constexpr uint16_t kInsnsMax = UINT16_MAX;  // as many as a pt_block can have

bool IsPrefix(uint8_t byte) {
  constexpr uint8_t kPrefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36,
                                   0x3e, 0x26, 0x64, 0x65, 0xf0};
  return std::ranges::find(kPrefixes, byte) != std::end(kPrefixes);
}

// Opcodes: SDM vol. 2, "MOV - Move to/from Control Registers", "VMLAUNCH/
// VMRESUME", "VMPTRLD".
SpecialInsn SpecialOf(const pt_insn& insn) {
  const uint8_t* at = insn.raw;
  const uint8_t* const end = insn.raw + insn.size;
  while (at != end && IsPrefix(*at)) {
    ++at;
  }
  uint8_t rex = 0;
  if (insn.mode == ptem_64bit && at != end && (*at & 0xf0) == 0x40) {
    rex = *at++;
  }
  if (end - at < 3 || at[0] != 0x0f) {
    return SpecialInsn::kNone;
  }
  const uint8_t modrm = at[2];
  const int reg = modrm >> 3 & 7;
  if (at[1] == 0x22 && reg == 3 && (rex & 4) == 0) {
    return SpecialInsn::kMovCr3;
  }
  if (at[1] == 0x01 && (modrm == 0xc2 || modrm == 0xc3)) {
    return SpecialInsn::kVmEntry;
  }
  const bool memory = modrm >> 6 != 3;
  return at[1] == 0xc7 && memory && reg == 6 ? SpecialInsn::kVmPtrld
                                             : SpecialInsn::kNone;
}

uint8_t BitsOf(pt_exec_mode mode) {
  return mode == ptem_32bit ? 32 : mode == ptem_16bit ? 16 : 64;
}

// One that does not fit into the code comes with a size, too.
bool IsDecoded(const pt_insn& insn, int status) {
  return insn.size > 0 && status != -pte_bad_insn && status != -pte_nomap;
}

bool NeedsTrace(const pt_insn& insn, int status) {
  switch (insn.iclass) {
    case ptic_cond_jump:
    case ptic_return:
    case ptic_far_call:
    case ptic_far_return:
    case ptic_far_jump:
      return true;
    default:
      return status < 0;  // an indirect call or jump
  }
}

}  // namespace

CodeImage::Impl::Impl(SectionCache::Impl& cache)
    : cache_(cache), image_(pt_image_alloc(nullptr)) {
  CLEW_CHECK(image_ != nullptr, "libipt: out of memory");
}

int CodeImage::Impl::Map(const std::string& file_path, uint64_t file_offset,
                         uint64_t size_bytes, uint64_t addr) {
  version_ =
      cache_.blocks_.Map(version_, file_path, file_offset, size_bytes, addr);
  if (first_version_ != CodeBlocks::kNone && size_bytes > 0) {
    NoteReplaced(addr, size_bytes);
  }
  const int id = pt_iscache_add_file(cache_.cache_.get(), file_path.c_str(),
                                     file_offset, size_bytes, addr);
  return id < 0 ? id
                : pt_image_add_cached(image_.get(), cache_.cache_.get(), id,
                                      nullptr);
}

void CodeImage::Impl::NoteReplaced(uint64_t addr, uint64_t size_bytes) {
  const uint64_t last = addr + (size_bytes - 1);
  replaced_from_ = std::min(replaced_from_, addr);
  replaced_to_ = last < addr ? UINT64_MAX : std::max(replaced_to_, last);
}

const CodeBlock& CodeImage::Impl::Find(uint64_t ip, pt_exec_mode mode,
                                       uint32_t behind, bool taken) {
  const CodeBlock& block = FindOrDecode(ip, mode);
  if (behind != 0) {
    cache_.blocks_.Numbered(behind).successors[taken ? 1 : 0] = block.number;
  }
  return block;
}

const CodeBlock& CodeImage::Impl::FindOrDecode(uint64_t ip, pt_exec_mode mode) {
  if (first_version_ == CodeBlocks::kNone) {
    first_version_ = version_;
  }
  CodeBlocks& blocks = cache_.blocks_;
  const CodeBlock* first = blocks.Find(first_version_, ip, mode);
  if (first != nullptr && !Replaced(*first)) {
    return *first;
  }
  const CodeBlock* now = blocks.Find(version_, ip, mode);
  if (now != nullptr && version_ != first_version_) {
    return *now;
  }
  Decode(ip, mode);
  if (block_.end == BlockEnd::kFails) {
    return block_;
  }
  const bool as_first = first == nullptr && !Replaced(span_);
  block_.version = as_first ? first_version_ : version_;
  return blocks.Add(block_, span_, insns_, calls_);
}

// Fills in block_, insns_ and calls_.
void CodeImage::Impl::Decode(uint64_t ip, pt_exec_mode mode) {
  if (decoder_ == nullptr) {
    decoder_ = std::make_unique<InsnDecoder>(image_.get(),
                                             /*takes_branch=*/true);
  }
  block_ = CodeBlock{};
  span_ = CodeSpan{};
  block_.ip = ip;
  block_.mode = static_cast<uint8_t>(mode);
  insns_.clear();
  calls_.clear();
  int status = decoder_->Begin(TraceeAddr(ip), BitsOf(mode));
  pt_insn insn;
  for (bool called = false;; called = insn.iclass == ptic_call) {
    status = decoder_->Next(insn, status);
    // A call of the next instruction only asks where it is.
    if (called && calls_.back().returns_to == insn.ip) {
      calls_.pop_back();
      --block_.call_count;
    }
    if (!IsDecoded(insn, status) || mode == ptem_unknown) {
      block_.next = insn.ip;
      return FailBlock(IsDecoded(insn, status) ? -pte_bad_insn : status);
    }
    AddInsn(insn);
    if (NeedsTrace(insn, status)) {
      return EndBlock(insn, status);
    }
    if (block_.special != SpecialInsn::kNone ||
        block_.insn_count == kInsnsMax) {
      (void)decoder_->Next(insn, status);
      block_.end = BlockEnd::kGoesOn;
      block_.next = insn.ip;
      return;
    }
  }
}

void CodeImage::Impl::AddInsn(const pt_insn& insn) {
  const uint64_t last = insn.ip + (insn.size - 1u);
  span_.lowest = std::min(span_.lowest, last < insn.ip ? 0 : insn.ip);
  span_.highest = std::max(span_.highest, last < insn.ip ? UINT64_MAX : last);
  block_.end_ip = insn.ip;
  block_.last_class = static_cast<uint8_t>(insn.iclass);
  block_.special =
      insn.iclass == ptic_ptwrite ? SpecialInsn::kPtwrite : SpecialOf(insn);
  if (insn.iclass == ptic_call) {
    calls_.push_back({.returns_to = insn.ip + insn.size,
                      .insn = static_cast<uint16_t>(insns_.size())});
    ++block_.call_count;
  }
  insns_.push_back(insn.ip);
  ++block_.insn_count;
}

// Behind `last`, which needs the trace. The decoder was told that a conditional
// branch is taken.
void CodeImage::Impl::EndBlock(const pt_insn& last, int status) {
  block_.next = last.ip + last.size;
  block_.end =
      last.iclass == ptic_return ? BlockEnd::kReturn : BlockEnd::kIndirect;
  if (last.iclass == ptic_cond_jump) {
    if (status < 0) {
      return FailBlock(status);
    }
    pt_insn target;
    (void)decoder_->Next(target, status);
    block_.end = BlockEnd::kConditional;
    block_.target = target.ip;
  }
}

void CodeImage::Impl::FailBlock(int status) {
  block_.end = BlockEnd::kFails;
  error_ = status;
}

}  // namespace clew::decoder
