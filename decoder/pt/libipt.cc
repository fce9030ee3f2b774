// All that uses libipt. Nothing of it shows in a header.

#include <intel-pt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/check.h"
#include "decoder/pt/flow.h"
#include "decoder/pt/packet.h"

namespace clew::decoder {
namespace {

// Calls `Free` on a libipt object when it goes.
template <class T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* object) const { Free(object); }
};
using PacketDecoderPtr =
    std::unique_ptr<pt_packet_decoder,
                    Deleter<pt_packet_decoder, pt_pkt_free_decoder>>;
using BlockDecoderPtr =
    std::unique_ptr<pt_block_decoder,
                    Deleter<pt_block_decoder, pt_blk_free_decoder>>;
using InsnDecoderPtr =
    std::unique_ptr<pt_insn_decoder,
                    Deleter<pt_insn_decoder, pt_insn_free_decoder>>;
using ImagePtr = std::unique_ptr<pt_image, Deleter<pt_image, pt_image_free>>;
using CachePtr =
    std::unique_ptr<pt_image_section_cache,
                    Deleter<pt_image_section_cache, pt_iscache_free>>;

// libipt wants a mutable pointer but only its encoder writes.
pt_config ConfigOver(std::span<const std::byte> bytes) {
  pt_config config;
  pt_config_init(&config);
  auto* begin =
      const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(bytes.data()));
  config.begin = begin;
  config.end = begin + bytes.size();
  return config;
}

const char* TextOf(int status) { return pt_errstr(pt_errcode(status)); }

uint8_t CompressionCode(pt_ip_compression ipc) {
  return static_cast<uint8_t>(ipc);
}

void SetIp(const pt_packet& from, PacketType type, Packet& to) {
  to.type = type;
  to.count = CompressionCode(from.payload.ip.ipc);
  to.value = from.payload.ip.ip;
}

uint64_t TwoBits(unsigned low, unsigned high) { return low | high << 1; }

void SetMode(const pt_packet_mode& mode, Packet& to) {
  if (mode.leaf == pt_mol_exec) {
    to.type = PacketType::kModeExec;
    to.value = TwoBits(mode.bits.exec.csl, mode.bits.exec.csd);
  } else {
    to.type = PacketType::kModeTsx;
    to.value = TwoBits(mode.bits.tsx.intx, mode.bits.tsx.abrt);
  }
}

// Fills in type and payload.
void Convert(const pt_packet& from, Packet& to) {
  const auto& payload = from.payload;
  const auto set = [&to](PacketType type, uint64_t value) {
    to.type = type;
    to.value = value;
  };
  switch (from.type) {
    case ppt_pad:
      return set(PacketType::kPad, 0);
    case ppt_psb:
      return set(PacketType::kPsb, 0);
    case ppt_psbend:
      return set(PacketType::kPsbend, 0);
    case ppt_tnt_8:
    case ppt_tnt_64:
      to.count = payload.tnt.bit_size;
      return set(PacketType::kTnt, payload.tnt.payload);
    case ppt_tip:
      return SetIp(from, PacketType::kTip, to);
    case ppt_tip_pge:
      return SetIp(from, PacketType::kTipPge, to);
    case ppt_tip_pgd:
      return SetIp(from, PacketType::kTipPgd, to);
    case ppt_fup:
      return SetIp(from, PacketType::kFup, to);
    case ppt_tsc:
      return set(PacketType::kTsc, payload.tsc.tsc);
    case ppt_tma:
      to.fast_counter = payload.tma.fc;
      return set(PacketType::kTma, payload.tma.ctc);
    case ppt_mtc:
      return set(PacketType::kMtc, payload.mtc.ctc);
    case ppt_cyc:
      return set(PacketType::kCyc, payload.cyc.value);
    case ppt_cbr:
      return set(PacketType::kCbr, payload.cbr.ratio);
    case ppt_pip:
      return set(PacketType::kPip, payload.pip.cr3);
    case ppt_mode:
      return SetMode(payload.mode, to);
    case ppt_ovf:
      return set(PacketType::kOvf, 0);
    case ppt_stop:
      return set(PacketType::kStop, 0);
    default:
      return set(PacketType::kOther, 0);
  }
}

}  // namespace

// Packets.

class PacketReader::Impl {
 public:
  explicit Impl(std::span<const std::byte> bytes) : bytes_(bytes) {
    const pt_config config = ConfigOver(bytes);
    decoder_.reset(pt_pkt_alloc_decoder(&config));
    CLEW_CHECK(bytes.empty() || decoder_ != nullptr, "libipt: out of memory");
  }
  std::span<const std::byte> bytes_;
  PacketDecoderPtr decoder_;
};

PacketReader::PacketReader(std::span<const std::byte> bytes)
    : impl_(std::make_unique<Impl>(bytes)) {}
PacketReader::PacketReader(PacketReader&&) noexcept = default;
PacketReader& PacketReader::operator=(PacketReader&&) noexcept = default;
PacketReader::~PacketReader() = default;

bool PacketReader::SyncAt(uint64_t offset) {
  const auto psb = FindPsb(impl_->bytes_, offset);
  if (!psb) {
    return false;
  }
  SetOffset(*psb);
  return true;
}

void PacketReader::SetOffset(uint64_t offset) {
  const int status = pt_pkt_sync_set(impl_->decoder_.get(), offset);
  CLEW_CHECK(status >= 0, "libipt: no packet at {:#x}: {}", offset,
             TextOf(status));
  offset_ = offset;
  error_ = nullptr;
}

bool PacketReader::Next(Packet& packet) {
  pt_packet raw;
  const int status = impl_->decoder_
                         ? pt_pkt_next(impl_->decoder_.get(), &raw, sizeof raw)
                         : -pte_eos;
  if (status < 0) {
    // A packet that the end cuts off is pte_eos, too: see offset().
    error_ = status == -pte_eos ? nullptr : TextOf(status);
    return false;
  }
  packet = Packet{};
  packet.offset = offset_;
  packet.size = raw.size;
  Convert(raw, packet);
  offset_ += raw.size;
  return true;
}

// Code.

class CodeCache::Impl {
 public:
  explicit Impl(uint64_t limit_bytes) : cache_(pt_iscache_alloc(nullptr)) {
    CLEW_CHECK(cache_ != nullptr, "libipt: out of memory");
    // Without a limit libipt maps a section anew for each use.
    pt_iscache_set_limit(cache_.get(), limit_bytes);
  }
  CachePtr cache_;
};

CodeCache::CodeCache(uint64_t limit_bytes)
    : impl_(std::make_unique<Impl>(limit_bytes)) {}
CodeCache::CodeCache(CodeCache&&) noexcept = default;
CodeCache& CodeCache::operator=(CodeCache&&) noexcept = default;
CodeCache::~CodeCache() = default;

class CodeImage::Impl {
 public:
  explicit Impl(pt_image_section_cache* cache)
      : cache_(cache), image_(pt_image_alloc(nullptr)) {
    CLEW_CHECK(image_ != nullptr, "libipt: out of memory");
  }
  pt_image_section_cache* cache_;
  ImagePtr image_;
};

CodeImage::CodeImage(CodeCache& cache)
    : impl_(std::make_unique<Impl>(cache.impl_->cache_.get())) {}
CodeImage::CodeImage(CodeImage&&) noexcept = default;
CodeImage& CodeImage::operator=(CodeImage&&) noexcept = default;
CodeImage::~CodeImage() = default;

Status CodeImage::Map(const std::string& file_path, uint64_t file_offset,
                      uint64_t size_bytes, TraceeAddr addr) {
  const int id = pt_iscache_add_file(impl_->cache_, file_path.c_str(),
                                     file_offset, size_bytes, addr.as_int());
  const int status = id < 0 ? id
                            : pt_image_add_cached(impl_->image_.get(),
                                                  impl_->cache_, id, nullptr);
  if (status < 0) {
    std::error_code ignored;  // then the size is -1, and that is as telling
    return CorruptInput(
        "{}: cannot map {} bytes at offset {:#x} to {:#x}: {}; the file has {} "
        "bytes",
        file_path, size_bytes, file_offset, addr, TextOf(status),
        static_cast<int64_t>(std::filesystem::file_size(file_path, ignored)));
  }
  return {};
}

// Control flow.

class FlowReader::Impl {
 public:
  Impl(std::span<const std::byte> bytes, pt_image* image,
       const CpuIdentity& cpu)
      : bytes_(bytes) {
    pt_config config = ConfigOver(bytes);
    if (cpu.is_intel) {
      config.cpu = {pcv_intel, cpu.family, cpu.model, cpu.stepping};
      // An unknown model has no errata that we could work around.
      (void)pt_cpu_errata(&config.errata, &config.cpu);
    }
    // No mtc_freq and no ratio: libipt's clock is interpolated, ours is not
    // (timing_edges.h), so let it drop what it would need them for.
    if (!bytes.empty()) {
      decoder_.reset(pt_blk_alloc_decoder(&config));
      CLEW_CHECK(decoder_ != nullptr, "libipt: out of memory");
      pt_blk_set_image(decoder_.get(), image);
    }
  }

  std::optional<uint64_t> SyncAt(uint64_t offset) {
    // Never the same PSB twice, so that decoding comes to an end.
    for (auto psb = FindPsb(bytes_, std::max(offset, next_sync_)); psb;
         psb = FindPsb(bytes_, next_sync_)) {
      next_sync_ = *psb + 1;
      status_ = pt_blk_sync_set(decoder_.get(), *psb);
      if (status_ >= 0) {
        pos_ = std::max(pos_, Position());
        stalled_ = 0;
        return psb;
      }
    }
    return std::nullopt;
  }

  void SetImage(pt_image* image) {
    if (decoder_) {
      pt_blk_set_image(decoder_.get(), image);
    }
  }

  void Next(FlowStep& step) {
    step = FlowStep{};
    do {
      if (status_ >= 0 && (status_ & pts_event_pending)) {
        NextEvent(step);
      } else {
        NextBlock(step);
      }
    } while (!done_);
  }

  uint64_t pos() const { return pos_; }

 private:
  uint64_t Position() const {
    uint64_t offset = 0;
    return pt_blk_get_offset(decoder_.get(), &offset) < 0
               ? pos_
               : std::max(pos_, offset);
  }

  void Finish(FlowStep& step, FlowKind kind) {
    step.kind = kind;
    step.pos_after = pos_;
    done_ = true;
  }

  void FinishError(FlowStep& step, TraceeAddr ip) {
    step.ip = ip;
    step.ip_known = true;
    step.text = TextOf(status_);
    step.error = status_ == -pte_nomap ? FlowErrorKind::kCodeMissing
                                       : FlowErrorKind::kBadPacket;
    Finish(step, status_ == -pte_eos ? FlowKind::kEnd : FlowKind::kError);
  }

  void NextEvent(FlowStep& step) {
    done_ = false;
    step.pos_before = pos_;
    pt_event event;
    status_ = pt_blk_event(decoder_.get(), &event, sizeof event);
    if (status_ < 0) {
      return FinishError(step, TraceeAddr());
    }
    const uint64_t event_end = pos_;
    pos_ = Position();
    stalled_ = pos_ == event_end ? stalled_ : 0;
    step.ip_known = !event.ip_suppressed;
    switch (event.type) {
      case ptev_enabled:
        step.ip = TraceeAddr(event.variant.enabled.ip);
        return Finish(step, FlowKind::kEnabled);
      case ptev_disabled:
        step.ip = TraceeAddr(event.variant.disabled.ip);
        return Finish(step, FlowKind::kDisabled);
      case ptev_async_disabled:
        step.ip = TraceeAddr(event.variant.async_disabled.at);
        return Finish(step, FlowKind::kInterrupted);
      case ptev_async_branch:
        step.ip = TraceeAddr(event.variant.async_branch.from);
        return Finish(step, FlowKind::kAsyncBranch);
      case ptev_overflow:
        step.ip = TraceeAddr(event.variant.overflow.ip);
        return Finish(step, FlowKind::kOverflow);
      default:
        return;  // tells nothing about where execution goes
    }
  }

  void NextBlock(FlowStep& step) {
    done_ = false;
    step.pos_before = pos_;
    if (status_ < 0 || (status_ & pts_eos) != 0) {
      // No packet is left that could prove what libipt would go on with.
      return Finish(step, FlowKind::kEnd);
    }
    pt_block block;
    status_ = pt_blk_next(decoder_.get(), &block, sizeof block);
    if (status_ < 0) {
      // A block that came with the error is not proven to have run.
      return FinishError(step, TraceeAddr(block.ip));
    }
    pos_ = Position();
    if (block.ninsn == 0) {
      if (Stalls(step.pos_before)) {
        status_ = -pte_bad_query;
        FinishError(step, TraceeAddr(block.ip));
      }
      return;
    }
    step.ip = TraceeAddr(block.ip);
    step.end_ip = TraceeAddr(block.end_ip);
    step.ip_known = true;
    step.insn_count = block.ninsn;
    step.ends_in_branch =
        block.iclass == ptic_cond_jump || block.iclass == ptic_return;
    step.ends_in_syscall = block.iclass == ptic_far_call;
    if (!step.ends_in_branch && Stalls(step.pos_before)) {
      status_ = -pte_bad_query;  // code that never asks for a packet
      return FinishError(step, TraceeAddr(block.ip));
    }
    Finish(step, FlowKind::kBlock);
  }

  bool Stalls(uint64_t pos_before) {
    stalled_ = pos_ == pos_before ? stalled_ + 1 : 0;
    return stalled_ > kStepsWithoutProgressMax;
  }

  std::span<const std::byte> bytes_;
  BlockDecoderPtr decoder_;
  int status_ = -pte_nosync;
  uint64_t pos_ = 0;        // never decreases
  uint64_t next_sync_ = 0;  // no PSB before this one any more
  uint32_t stalled_ = 0;
  bool done_ = false;
};

FlowReader::FlowReader(std::span<const std::byte> bytes, CodeImage& image,
                       const CpuIdentity& cpu)
    : impl_(std::make_unique<Impl>(bytes, image.impl_->image_.get(), cpu)) {}
FlowReader::FlowReader(FlowReader&&) noexcept = default;
FlowReader& FlowReader::operator=(FlowReader&&) noexcept = default;
FlowReader::~FlowReader() = default;

std::optional<uint64_t> FlowReader::SyncAt(uint64_t offset) {
  return impl_->SyncAt(offset);
}
void FlowReader::SetImage(CodeImage& image) {
  impl_->SetImage(image.impl_->image_.get());
}
void FlowReader::Next(FlowStep& step) { impl_->Next(step); }
uint64_t FlowReader::pos() const { return impl_->pos(); }

// Single instructions: the decoder is shown a trace that begins at the block
// and ends there, and stops where it would need a packet.

class InstructionWalker::Impl {
 public:
  explicit Impl(pt_image* image) {
    config_ = ConfigOver(std::as_bytes(std::span(trace_)));
    decoder_.reset(pt_insn_alloc_decoder(&config_));
    CLEW_CHECK(decoder_ != nullptr, "libipt: out of memory");
    pt_insn_set_image(decoder_.get(), image);
  }

  int Begin(TraceeAddr ip) {
    WriteTrace(ip);
    int status = pt_insn_sync_set(decoder_.get(), 0);
    return DrainEvents(status);
  }

  // The next instruction; size 0 if there is none.
  int Next(pt_insn& insn, int status) {
    if (status < 0) {
      insn = pt_insn{};
      return status;
    }
    insn = pt_insn{};
    status = pt_insn_next(decoder_.get(), &insn, sizeof insn);
    return DrainEvents(status);
  }

 private:
  int DrainEvents(int status) {
    while (status >= 0 && (status & pts_event_pending)) {
      pt_event event;
      status = pt_insn_event(decoder_.get(), &event, sizeof event);
    }
    return status;
  }

  // PSB, MODE.Exec (64-bit), FUP, PSBEND.
  void WriteTrace(TraceeAddr ip) {
    uint8_t* out = trace_.data();
    for (int i = 0; i < 8; ++i) {
      *out++ = 0x02;
      *out++ = 0x82;
    }
    *out++ = 0x99;
    *out++ = 0x01;
    *out++ = 0xdd;  // FUP with all 8 bytes of the IP
    const uint64_t address = ip.as_int();
    std::memcpy(out, &address, sizeof address);
    out += sizeof address;
    *out++ = 0x02;
    *out++ = 0x23;
    CLEW_CHECK(out == trace_.data() + trace_.size(), "trace of another size");
  }

  std::array<uint8_t, 29> trace_ = {};
  pt_config config_;
  InsnDecoderPtr decoder_;
};

InstructionWalker::InstructionWalker(CodeImage& image)
    : impl_(std::make_unique<Impl>(image.impl_->image_.get())) {}
InstructionWalker::InstructionWalker(InstructionWalker&&) noexcept = default;
InstructionWalker& InstructionWalker::operator=(InstructionWalker&&) noexcept =
    default;
InstructionWalker::~InstructionWalker() = default;

Status InstructionWalker::Walk(
    TraceeAddr ip, uint32_t count,
    const std::function<void(const WalkedInsn&)>& visit) {
  int status = impl_->Begin(ip);
  for (uint32_t i = 0; i < count; ++i) {
    pt_insn insn;
    status = impl_->Next(insn, status);
    // At a branch that needs a packet, the instruction comes with an error.
    const bool last = i + 1 == count;
    if (insn.size == 0 || (status < 0 && !last)) {
      return CorruptInput("instruction {} of {} from {:#x} on: {}", i, count,
                          ip, TextOf(status));
    }
    visit({.ip = TraceeAddr(insn.ip),
           .size = insn.size,
           .bytes = std::span(insn.raw, insn.size)});
  }
  return {};
}

}  // namespace clew::decoder
