#ifndef CLEW_DECODER_PT_LIBIPT_H_
#define CLEW_DECODER_PT_LIBIPT_H_

#include <intel-pt.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/units.h"
#include "decoder/pt/code_blocks.h"
#include "decoder/pt/flow.h"

// What those files share that use libipt; no header but this one shows it.

namespace clew::decoder {

// Calls `Free` on a libipt object when it goes.
template <class T, void (*Free)(T*)>
struct IptDeleter {
  void operator()(T* object) const { Free(object); }
};
using ImagePtr = std::unique_ptr<pt_image, IptDeleter<pt_image, pt_image_free>>;

// libipt wants a mutable pointer but only its encoder writes.
inline pt_config ConfigOver(std::span<const std::byte> bytes) {
  pt_config config;
  pt_config_init(&config);
  auto* begin =
      const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(bytes.data()));
  config.begin = begin;
  config.end = begin + bytes.size();
  return config;
}

inline const char* TextOf(int status) { return pt_errstr(pt_errcode(status)); }

// A made-up beginning of a trace: PSB, MODE.Exec, FUP, PSBEND. What comes next
// is at `ip`, code of 64, 32 or 16 bits.
inline constexpr size_t kStartBytes = 29;
void WriteStart(std::byte* out, TraceeAddr ip, uint8_t code_bits);

// A made-up end that proves all before `ip`: FUP, TIP.PGD without address.
inline constexpr size_t kStopBytes = 10;
void WriteStop(std::byte* out, TraceeAddr ip);

// libipt's instruction decoder, shown a made-up trace that begins at a place in
// the code. It stops where it would need a packet.
class InsnDecoder {
 public:
  // `takes_branch`: one packet is there, which says that the first conditional
  // branch is taken. `image` must outlive the decoder.
  InsnDecoder(pt_image* image, bool takes_branch);
  // Begins anew at `ip`; a status for Next().
  int Begin(TraceeAddr ip, uint8_t code_bits);
  // The next instruction, size 0 if there is none, after `status` of the call
  // before. It comes with an error where it needs a packet that is not there.
  int Next(pt_insn& insn, int status);

 private:
  int DrainEvents(int status);

  std::array<std::byte, kStartBytes + 1> trace_ = {};
  std::unique_ptr<pt_insn_decoder,
                  IptDeleter<pt_insn_decoder, pt_insn_free_decoder>>
      decoder_;
};

class SectionCache::Impl {
 public:
  explicit Impl(uint64_t limit_bytes);

  std::unique_ptr<pt_image_section_cache,
                  IptDeleter<pt_image_section_cache, pt_iscache_free>>
      cache_;
  CodeBlocks blocks_;
};

class CodeImage::Impl {
 public:
  explicit Impl(SectionCache::Impl& cache);

  // The code at `ip`, decoded once for all images that have the same there.
  // Good until the next call, of any image. `behind` is the number of the block
  // that ran before, or 0, and `taken` the outcome of its branch: they make it
  // faster.
  const CodeBlock& BlockAt(uint64_t ip, pt_exec_mode mode, uint32_t behind = 0,
                           bool taken = false) {
    CodeBlocks& blocks = cache_.blocks_;
    const CodeBlock& block =
        blocks.Numbered(blocks.Numbered(behind).successors[taken ? 1 : 0]);
    if (block.ip == ip && block.mode == mode &&
        block.version == first_version_ && !Replaced(block)) [[likely]] {
      return block;
    }
    return Find(ip, mode, behind, taken);
  }
  std::span<const uint64_t> InsnsOf(const CodeBlock& block) const {
    return block.end == BlockEnd::kFails ? insns_
                                         : cache_.blocks_.InsnsOf(block);
  }
  std::span<const CodeCall> CallsOf(const CodeBlock& block) const {
    return block.end == BlockEnd::kFails ? calls_
                                         : cache_.blocks_.CallsOf(block);
  }

  // Why the block that fails, that BlockAt() gave last, does; libipt's status.
  int error() const { return error_; }

  // As CodeImage::Map; libipt's status.
  int Map(const std::string& file_path, uint64_t file_offset,
          uint64_t size_bytes, uint64_t addr);

  SectionCache::Impl& cache_;
  ImagePtr image_;

 private:
  bool Replaced(const CodeBlock& block) const {
    return replaced_from_ <= replaced_to_ &&
           Replaced(cache_.blocks_.SpanOf(block));
  }
  bool Replaced(const CodeSpan& span) const {
    return span.lowest <= replaced_to_ && span.highest >= replaced_from_;
  }
  const CodeBlock& Find(uint64_t ip, pt_exec_mode mode, uint32_t behind,
                        bool taken);
  void NoteReplaced(uint64_t addr, uint64_t size_bytes);
  const CodeBlock& FindOrDecode(uint64_t ip, pt_exec_mode mode);
  void Decode(uint64_t ip, pt_exec_mode mode);
  void AddInsn(const pt_insn& insn);
  void EndBlock(const pt_insn& last, int status);
  void FailBlock(int status);

  CodeVersion version_ = CodeBlocks::kEmpty;
  // That when the first block was asked for. What was mapped later is between
  // two addresses; outside of them all is as it was then.
  CodeVersion first_version_ = CodeBlocks::kNone;
  uint64_t replaced_from_ = UINT64_MAX;
  uint64_t replaced_to_ = 0;
  std::unique_ptr<InsnDecoder> decoder_;  // once needed
  // The block that was decoded last.
  CodeBlock block_;
  CodeSpan span_;
  int error_ = 0;
  std::vector<uint64_t> insns_;
  std::vector<CodeCall> calls_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_LIBIPT_H_
