#ifndef CLEW_DECODER_PT_FLOW_H_
#define CLEW_DECODER_PT_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/cpu_identity.h"
#include "common/result.h"
#include "common/units.h"
#include "decoder/pt/packet_walk.h"

// The control flow of a trace behind an interface without libipt's types, which
// only the files have that include libipt.h.

namespace clew::decoder {

// Sections of code files, mapped and decoded once for all cores. The limit
// bounds what stays mapped at a time, in bytes; an eighth of it, in addition,
// what stays decoded. Not thread-safe.
class SectionCache {
 public:
  static constexpr uint64_t kDefaultLimitBytes = uint64_t{1} << 30;
  explicit SectionCache(uint64_t limit_bytes = kDefaultLimitBytes);
  SectionCache(SectionCache&&) noexcept;
  SectionCache& operator=(SectionCache&&) noexcept;
  ~SectionCache();

  class Impl;

 private:
  friend class CodeImage;
  std::unique_ptr<Impl> impl_;
};

// What code is where in the traced process. Not thread-safe.
class CodeImage {
 public:
  // `cache` must outlive the image.
  explicit CodeImage(SectionCache& cache);
  CodeImage(CodeImage&&) noexcept;
  CodeImage& operator=(CodeImage&&) noexcept;
  ~CodeImage();

  // Maps `size_bytes` of the file at `file_path`, from `file_offset` on, at
  // `addr`, over whatever was there. What the file does not have, stays out.
  // kCorruptInput: the file cannot be mapped so.
  [[nodiscard]] Status Map(const std::string& file_path, uint64_t file_offset,
                           uint64_t size_bytes, TraceeAddr addr);

  class Impl;

 private:
  friend class FlowReader;
  friend class InstructionWalker;
  std::unique_ptr<Impl> impl_;
};

enum class FlowKind : uint8_t {
  kBlock,
  kEnabled,      // instructions follow at `ip`
  kDisabled,     // by the last instruction (a system call)
  kInterrupted,  // tracing stopped before the instruction at `ip`
  kAsyncBranch,  // went from before the instruction at `ip` to elsewhere
  kOverflow,     // packets lost; goes on at `ip`, or disabled if !ip_known
  kProven,       // nothing new; a PSB+ proves all before
  kError,        // cannot go on; `ip` is the address that was to be executed
  kEnd,          // no more bytes
};

enum class FlowErrorKind : uint8_t { kCodeMissing, kBadPacket };

// One step of the control flow. Positions are offsets in the PT bytes. The
// packets of a step are before `pos_after`; packets before it may also belong
// to the next event, but not to later ones.
struct FlowStep {
  FlowKind kind = FlowKind::kEnd;
  bool ip_known = false;
  // kBlock: the last instruction is a conditional or indirect branch or a
  // return whose outcome was read from the trace.
  bool ends_in_branch = false;
  bool ends_in_syscall = false;  // kBlock: SYSCALL, INT or the like
  bool proven = false;  // kError: all before, by a packet at or near it
  FlowErrorKind error = FlowErrorKind::kBadPacket;
  uint8_t code_bits = 64;  // kBlock: 64, 32 or 16
  uint32_t insn_count = 0;
  TraceeAddr ip;      // kBlock: of the first instruction
  TraceeAddr end_ip;  // kBlock: of the last one
  uint64_t pos_before = 0;
  uint64_t pos_after = 0;
  const char* text = "";  // kError: what libipt says
};

// Follows the control flow of one stretch of PT bytes without holes. Never
// reads outside of it, whatever it holds. A step that makes no progress in the
// bytes is limited (kStepsWithoutProgressMax). Not thread-safe.
class FlowReader {
 public:
  static constexpr uint32_t kStepsWithoutProgressMax = 4096;
  // `bytes` and `image` must outlive the reader. It starts out of sync.
  // `tips_deferred`: see PacketWalk.
  FlowReader(std::span<const std::byte> bytes, CodeImage& image,
             const CpuIdentity& cpu, bool tips_deferred = true);
  FlowReader(FlowReader&&) noexcept;
  FlowReader& operator=(FlowReader&&) noexcept;
  ~FlowReader();

  // Begins anew at the first PSB at or after `offset` that can be decoded, and
  // returns where it is; nullopt if there is none.
  std::optional<uint64_t> SyncAt(uint64_t offset);
  // After kError: goes on at the next place that has an address, if the error
  // is not in the packets themselves, else at the next PSB. What begins there
  // but user mode is the next step. nullopt if there is no such place.
  std::optional<ResumePoint> Resume();
  // The code from the next step on; must outlive the reader, or the next call.
  void SetImage(CodeImage& image);
  // The next step. REQUIRES: in sync. After kEnd, and kError without Resume(),
  // it is not.
  void Next(FlowStep& step);
  uint64_t pos() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct WalkedInsn {
  TraceeAddr ip;
  uint8_t size = 0;
  std::span<const uint8_t> bytes;  // valid during the call
};

// Lists the single instructions of blocks, by libipt's instruction decoder over
// the same code. Not thread-safe.
class InstructionWalker {
 public:
  // `image` must outlive the walker.
  explicit InstructionWalker(CodeImage& image);
  InstructionWalker(InstructionWalker&&) noexcept;
  InstructionWalker& operator=(InstructionWalker&&) noexcept;
  ~InstructionWalker();

  // Calls `visit` for `count` instructions of `code_bits` (64, 32 or 16) from
  // `ip` on, along fall-through and direct branches that are always taken.
  // kCorruptInput: the path ends before.
  [[nodiscard]] Status Walk(
      TraceeAddr ip, uint32_t count, uint8_t code_bits,
      const std::function<void(const WalkedInsn&)>& visit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_FLOW_H_
