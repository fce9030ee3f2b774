#include "decoder/pt/packet_walk.h"

#include <algorithm>

namespace clew::decoder {
namespace {

// Branches of a TNT packet that has room for no more (SDM vol. 3C, "TNT
// Packet"): of the short form, and of the long one, which has 8 bytes.
constexpr unsigned kShortTntMax = 6;
constexpr unsigned kLongTntMax = 47;

bool IsFull(const Packet& tnt) {
  return tnt.count >= (tnt.size == 1 ? kShortTntMax : kLongTntMax);
}

bool HasIp(const Packet& packet) {
  return packet.count != 0 && (packet.type == PacketType::kTip ||
                               packet.type == PacketType::kTipPge ||
                               packet.type == PacketType::kTipPgd ||
                               packet.type == PacketType::kFup);
}

uint64_t Low(uint64_t value, unsigned bits) {
  return value & ((uint64_t{1} << bits) - 1);
}

// IPBytes (SDM vol. 3C, "IP Compression").
uint64_t Decompress(uint64_t last, const Packet& packet) {
  const auto update = [&](unsigned bits) {
    return last - Low(last, bits) + Low(packet.value, bits);
  };
  switch (packet.count) {
    case 1:
      return update(16);
    case 2:
      return update(32);
    case 3:
      return static_cast<uint64_t>(static_cast<int64_t>(packet.value << 16) >>
                                   16);
    case 4:
      return update(48);
    default:
      return packet.value;
  }
}

// CS.L is bit 0, CS.D bit 1.
uint8_t BitsOf(const Packet& mode) {
  return mode.value == 1 ? 64 : mode.value == 2 ? 32 : 16;
}

// Whether the packet forces none out, so that it may stand anywhere in a row of
// TIPs and TNT packets: PAD, and CYC, which belongs to the packet behind it.
// What tells the time by itself (TSC, MTC, CBR) may be what forced TIPs out.
bool SaysNothingOfOrder(PacketType type) {
  return type == PacketType::kPad || type == PacketType::kCyc;
}

// How much of a trace is looked at for what its core does, in bytes, and how
// many times it has to be seen.
constexpr size_t kLookedAt = size_t{1} << 18;
constexpr uint64_t kSeen = 32;

// Whether the core may defer TIPs. A core that does lets them out behind a TNT
// packet that is full, or together with the packet that forced both out. So
// TNT does not follow the TIPs behind a partial TNT packet, which on another
// core is what follows most of them.
bool MayDeferTips(std::span<const std::byte> bytes) {
  PacketReader reader(bytes.first(std::min(bytes.size(), kLookedAt)));
  uint64_t rows = 0;  // of TIPs behind a partial TNT packet
  uint64_t before_tnt = 0;
  bool behind_partial = false;
  bool in_row = false;
  Packet packet;
  for (bool more = reader.SyncAt(0); more && reader.Next(packet);) {
    if (SaysNothingOfOrder(packet.type)) {
      continue;
    }
    if (packet.type == PacketType::kTip) {
      in_row = behind_partial;
      continue;
    }
    const bool is_tnt = packet.type == PacketType::kTnt;
    rows += in_row ? 1 : 0;
    before_tnt += in_row && is_tnt ? 1 : 0;
    in_row = false;
    behind_partial = is_tnt && !IsFull(packet);
  }
  return before_tnt < kSeen || before_tnt < rows / 2;
}

}  // namespace

PacketWalk::PacketWalk(std::span<const std::byte> bytes, bool tips_deferred)
    : bytes_(bytes), tips_deferred_(tips_deferred), reader_(bytes) {}

// Reads on to `offset`, from the last PSB before it if that is nearer; false if
// the packets before it cannot be read.
bool PacketWalk::Seek(uint64_t offset) {
  const uint64_t from = in_sync_ ? reader_.offset() : 0;
  if (const auto psb = FindLastPsb(bytes_, from, offset)) {
    reader_.SetOffset(*psb);
    in_sync_ = true;
  }
  Packet packet;
  while (in_sync_ && reader_.offset() < offset) {
    in_sync_ = reader_.Next(packet);
    if (in_sync_) {
      Track(packet);
    }
  }
  return in_sync_ && reader_.offset() == offset;
}

void PacketWalk::TrackIp(const Packet& packet) {
  if (HasIp(packet)) {
    last_ip_ = Decompress(last_ip_, packet);
  }
}

void PacketWalk::Track(const Packet& packet) {
  TrackIp(packet);
  const bool is_tip = packet.type == PacketType::kTip;
  switch (packet.type) {
    case PacketType::kPsb:
      in_psb_ = true;
      last_ip_ = 0;
      code_bits_.reset();
      overflow_.reset();
      break;
    case PacketType::kPsbend:
      in_psb_ = false;
      break;
    case PacketType::kModeExec:
      code_bits_ = BitsOf(packet);
      return;
    case PacketType::kOvf:
      in_psb_ = false;
      overflow_ = packet.offset;
      break;
    case PacketType::kTnt:
      tnt_ = IsFull(packet) ? Tnt::kFull : Tnt::kPartial;
      tip_led_ = false;
      return;
    case PacketType::kTipPgd:
      in_user_mode_ = false;
      break;
    case PacketType::kTipPge:
      in_user_mode_ = true;
      overflow_.reset();
      break;
    case PacketType::kFup:
      overflow_.reset();
      break;
    case PacketType::kTip:
      break;
    default:
      return;  // of time or of no matter
  }
  tip_led_ = is_tip && packet.count != 0 && !after_fup_;
  after_fup_ = packet.type == PacketType::kFup && !in_psb_;
  tnt_ = is_tip ? tnt_ : Tnt::kNone;
}

std::optional<ResumePoint> PacketWalk::NextPsb(uint64_t offset) const {
  const auto psb = FindPsb(bytes_, offset);
  if (!psb) {
    return std::nullopt;
  }
  ResumePoint point;
  point.offset = *psb;
  return point;
}

// Returns where decoding may go on by `packet`, which is tracked already.
std::optional<ResumePoint> PacketWalk::PointAt(const Packet& packet) const {
  ResumePoint point{.offset = packet.offset,
                    .end = packet.offset + packet.size,
                    .ip = TraceeAddr(last_ip_),
                    .code_bits = code_bits_.value_or(0)};
  if (!code_bits_ || packet.count == 0) {
    return std::nullopt;
  }
  if (packet.type == PacketType::kTipPge) {
    point.kind = ResumePoint::Kind::kEnabled;
    return point;
  }
  if (packet.type == PacketType::kTip && in_user_mode_ && !overflow_) {
    point.kind = ResumePoint::Kind::kInside;
    return point;
  }
  return std::nullopt;
}

// A TIP that was just read. TIPs that were deferred come behind a TNT packet
// that is full, or that the packet behind all of them forced out.
bool PacketWalk::MayBeDeferred() {
  if (!tips_deferred_ || tnt_ == Tnt::kNone) {
    return false;
  }
  if (!core_defers_) {
    core_defers_ = MayDeferTips(bytes_);
  }
  if (tnt_ == Tnt::kFull || !*core_defers_) {
    return *core_defers_;
  }
  const uint64_t offset = reader_.offset();
  if (offset > tips_end_) {
    Packet next{.type = PacketType::kTip};
    while (next.type == PacketType::kTip || SaysNothingOfOrder(next.type)) {
      tips_end_ = reader_.offset();
      if (!reader_.Next(next)) {
        break;
      }
    }
    tnt_behind_tips_ = next.type == PacketType::kTnt;
    reader_.SetOffset(offset);
  }
  return !tnt_behind_tips_;
}

std::optional<ResumePoint> PacketWalk::Next(uint64_t offset,
                                            bool in_user_mode) {
  if (!Seek(offset)) {
    return NextPsb(offset);
  }
  in_user_mode_ = in_user_mode;
  Packet packet;
  while (reader_.Next(packet)) {
    if (packet.type == PacketType::kPsb) {
      in_sync_ = false;
      return NextPsb(packet.offset);
    }
    const auto overflow = overflow_;
    Track(packet);
    auto point = PointAt(packet);
    if (packet.type == PacketType::kFup && packet.count != 0 && overflow &&
        code_bits_) {
      return ResumePoint{.kind = ResumePoint::Kind::kOverflow,
                         .offset = *overflow,
                         .end = packet.offset + packet.size,
                         .ip = TraceeAddr(last_ip_),
                         .code_bits = *code_bits_};
    }
    if (point && (packet.type != PacketType::kTip || !MayBeDeferred())) {
      return point;
    }
  }
  in_sync_ = false;
  return NextPsb(std::max(offset, reader_.offset()));
}

bool PacketWalk::TipLedTo(TraceeAddr ip, uint64_t offset) {
  return Seek(offset) && tip_led_ && TraceeAddr(last_ip_) == ip;
}

std::optional<TraceeAddr> PacketWalk::IpOfPsb(uint64_t psb) {
  constexpr int kPacketsMax = 64;  // of a PSB+ there are about ten
  PacketReader reader(bytes_);
  reader.SetOffset(psb);
  Packet packet;
  for (int i = 0; i < kPacketsMax && reader.Next(packet); ++i) {
    if (packet.type == PacketType::kFup && packet.count != 0) {
      return TraceeAddr(Decompress(0, packet));
    }
    if (packet.type == PacketType::kPsbend) {
      break;
    }
  }
  return std::nullopt;
}

}  // namespace clew::decoder
