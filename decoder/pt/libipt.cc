// Packets, code and single instructions by libipt. Control flow is in
// block_walk.cc.

#include "decoder/pt/libipt.h"

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

using PacketDecoderPtr =
    std::unique_ptr<pt_packet_decoder,
                    IptDeleter<pt_packet_decoder, pt_pkt_free_decoder>>;

// Of the limit on what is mapped, for the blocks decoded from it.
constexpr uint64_t kBlocksShareOfLimit = 8;

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

std::byte* Put(std::byte* out, std::initializer_list<uint8_t> bytes) {
  for (const uint8_t byte : bytes) {
    *out++ = std::byte{byte};
  }
  return out;
}

// FUP with all 8 bytes of the IP.
std::byte* PutFup(std::byte* out, TraceeAddr ip) {
  out = Put(out, {0xdd});
  const uint64_t address = ip.as_int();
  std::memcpy(out, &address, sizeof address);
  return out + sizeof address;
}

}  // namespace

void WriteStart(std::byte* out, TraceeAddr ip, uint8_t code_bits) {
  for (int i = 0; i < 8; ++i) {
    out = Put(out, {0x02, 0x82});
  }
  // CS.L, CS.D.
  const uint8_t mode = code_bits == 64 ? 1 : code_bits == 32 ? 2 : 0;
  out = PutFup(Put(out, {0x99, mode}), ip);
  Put(out, {0x02, 0x23});
}

void WriteStop(std::byte* out, TraceeAddr ip) { Put(PutFup(out, ip), {0x01}); }

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

SectionCache::Impl::Impl(uint64_t limit_bytes)
    : cache_(pt_iscache_alloc(nullptr)),
      blocks_(limit_bytes / kBlocksShareOfLimit) {
  CLEW_CHECK(cache_ != nullptr, "libipt: out of memory");
  // Without a limit libipt maps a section anew for each use.
  pt_iscache_set_limit(cache_.get(), limit_bytes);
}

SectionCache::SectionCache(uint64_t limit_bytes)
    : impl_(std::make_unique<Impl>(limit_bytes)) {}
SectionCache::SectionCache(SectionCache&&) noexcept = default;
SectionCache& SectionCache::operator=(SectionCache&&) noexcept = default;
SectionCache::~SectionCache() = default;

CodeImage::CodeImage(SectionCache& cache)
    : impl_(std::make_unique<Impl>(*cache.impl_)) {}
CodeImage::CodeImage(CodeImage&&) noexcept = default;
CodeImage& CodeImage::operator=(CodeImage&&) noexcept = default;
CodeImage::~CodeImage() = default;

Status CodeImage::Map(const std::string& file_path, uint64_t file_offset,
                      uint64_t size_bytes, TraceeAddr addr) {
  const int status =
      impl_->Map(file_path, file_offset, size_bytes, addr.as_int());
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

// Single instructions.

InsnDecoder::InsnDecoder(pt_image* image, bool takes_branch) {
  trace_.back() = std::byte{0x06};  // TNT with one bit, 1
  const pt_config config =
      ConfigOver(std::span(trace_).first(kStartBytes + (takes_branch ? 1 : 0)));
  decoder_.reset(pt_insn_alloc_decoder(&config));
  CLEW_CHECK(decoder_ != nullptr, "libipt: out of memory");
  pt_insn_set_image(decoder_.get(), image);
}

int InsnDecoder::Begin(TraceeAddr ip, uint8_t code_bits) {
  WriteStart(trace_.data(), ip, code_bits);
  return DrainEvents(pt_insn_sync_set(decoder_.get(), 0));
}

int InsnDecoder::Next(pt_insn& insn, int status) {
  insn = pt_insn{};
  if (status < 0) {
    return status;
  }
  return DrainEvents(pt_insn_next(decoder_.get(), &insn, sizeof insn));
}

int InsnDecoder::DrainEvents(int status) {
  while (status >= 0 && (status & pts_event_pending) != 0) {
    pt_event event;
    status = pt_insn_event(decoder_.get(), &event, sizeof event);
  }
  return status;
}

class InstructionWalker::Impl {
 public:
  explicit Impl(pt_image* image) : decoder_(image, /*takes_branch=*/false) {}
  InsnDecoder decoder_;
};

InstructionWalker::InstructionWalker(CodeImage& image)
    : impl_(std::make_unique<Impl>(image.impl_->image_.get())) {}
InstructionWalker::InstructionWalker(InstructionWalker&&) noexcept = default;
InstructionWalker& InstructionWalker::operator=(InstructionWalker&&) noexcept =
    default;
InstructionWalker::~InstructionWalker() = default;

Status InstructionWalker::Walk(
    TraceeAddr ip, uint32_t count, uint8_t code_bits,
    const std::function<void(const WalkedInsn&)>& visit) {
  int status = impl_->decoder_.Begin(ip, code_bits);
  for (uint32_t i = 0; i < count; ++i) {
    pt_insn insn;
    status = impl_->decoder_.Next(insn, status);
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
