#include "recorder/pt_encoder/core_encoder.h"

#include "common/check.h"

namespace clew::recorder {
namespace {

using packets::IpPacket;

// Room for everything one event writes: CYC and TNT, a PSB+ of at most 56
// bytes, CYC and a packet with an IP.
constexpr ptrdiff_t kEventBytesMax = 128;
static_assert(kSinkRoomMinBytes >= kEventBytesMax);

// No address of user mode shares upper bytes with it, so that the next IP is
// sent whole.
constexpr uint64_t kNoLastIp = UINT64_MAX;

// IA32_RTIT_CTL.CycThresh: 0 none, else 2^(n-1) cycles.
uint64_t CyclesOfThreshold(uint32_t threshold) {
  return threshold == 0 ? 0 : uint64_t{1} << (threshold - 1);
}

}  // namespace

CoreEncoder::CoreEncoder(const EncoderConfig& config, PtSink& sink)
    : config_(config),
      tnt_max_(config.long_tnt ? packets::kLongTntBranchesMax
                               : packets::kShortTntBranchesMax),
      cyc_threshold_(CyclesOfThreshold(config.cyc_threshold)),
      cycles_per_tick_(config.core_bus_ratio / config.tsc_bus_ratio),
      sink_(sink),
      tnt_limit_(tnt_max_) {
  CLEW_CHECK(Validate(config), "invalid encoder configuration");
}

void CoreEncoder::RefuseState() const {
  CLEW_CHECK(false, "an event that needs a {} encoder, {} bytes in",
             enabled_ ? "disabled" : "enabled", bytes_written());
  __builtin_unreachable();
}

void CoreEncoder::Enable(TraceeAddr ip, EnableCause cause) {
  RequireEnabled(false);
  ReserveRoom();
  const bool psb = !started_ || IsPsbDue();
  if (psb) {
    WritePsb(std::nullopt);
  } else if (cause != EnableCause::kKernelReturn) {
    WriteTscTma();
  }
  // SDM, "TSC Packet" and "CBR Packet": both are sent when TraceEn is set. A
  // CBR outside of a PSB+ tells that it was, where there is no time.
  if (cause == EnableCause::kSwitchIn) {
    pos_ = packets::PutCbr(pos_, config_.core_bus_ratio);
  }
  // SDM, "Packet Generation Scenarios": MODE.Exec before TIP.PGE if there was
  // none since the last PSB (or the mode changed, which it never does here).
  if (!mode_told_) {
    WriteMode();
    mode_told_ = true;
  }
  WriteIp(IpPacket::kTipPge, ip.as_int());
  enabled_ = true;
}

void CoreEncoder::WriteMode() {
  pos_ = config_.code_bits == 32 ? packets::PutModeExec32(pos_)
                                 : packets::PutModeExec64(pos_);
}

void CoreEncoder::FarTransfer() {
  RequireEnabled(true);
  FlushTnt();
  ReserveRoom();
  WriteCyc(now_, cyc_threshold_);
  // SDM, "TIP.PGD": the IP is suppressed where ContextEn was cleared, as by
  // entering the kernel while only user mode is traced.
  pos_ = packets::PutIpSuppressed(pos_, IpPacket::kTipPgd);
  enabled_ = false;
}

void CoreEncoder::Interrupt(TraceeAddr next_ip) {
  RequireEnabled(true);
  FlushTnt();
  ReserveRoom();
  WriteIp(IpPacket::kFup, next_ip.as_int());
  pos_ = packets::PutIpSuppressed(pos_, IpPacket::kTipPgd);
  enabled_ = false;
}

void CoreEncoder::IndirectJump(TraceeAddr target) { WriteTip(target.as_int()); }

void CoreEncoder::IndirectCall(TraceeAddr return_ip, TraceeAddr target) {
  PushReturn(return_ip.as_int());
  WriteTip(target.as_int());
}

void CoreEncoder::Return(TraceeAddr target) {
  if (config_.return_compression && PopReturnIfMatched(target.as_int())) {
    AddTntBit(true, target.as_int());
  } else {
    WriteTip(target.as_int());
  }
}

// Decoders differ in whether a RET that came as a TIP pops their stack (perf's
// does, libipt's does not). Ours is a suffix of both at any time: it forgets
// everything on a RET that does not match.
bool CoreEncoder::PopReturnIfMatched(uint64_t target) {
  if (return_count_ == 0 ||
      return_stack_[(return_top_ - 1) % kReturnStackSize] != target) {
    return_count_ = 0;
    return false;
  }
  --return_top_;
  --return_count_;
  return true;
}

void CoreEncoder::Overflow(std::optional<TraceeAddr> next_ip) {
  ReserveRoom();
  if (!started_) {
    WritePsb(std::nullopt);
  }
  tnt_bits_ = 0;
  tnt_count_ = 0;
  return_count_ = 0;
  last_ip_ = kNoLastIp;
  pos_ = packets::PutOvf(pos_);
  WriteTscTma();
  if (next_ip) {
    WriteIp(IpPacket::kFup, next_ip->as_int());
  }
  enabled_ = next_ip.has_value();
}

void CoreEncoder::Flush() {
  FlushTnt();
  Exchange();
}

void CoreEncoder::Exchange() {
  const auto used = static_cast<size_t>(pos_ - begin_);
  exchanged_bytes_ += used;
  const std::span<uint8_t> room = sink_.Exchange(used);
  CLEW_CHECK(room.size() >= kSinkRoomMinBytes, "a sink offered {} bytes",
             room.size());
  begin_ = pos_ = room.data();
  end_ = begin_ + room.size();
}

void CoreEncoder::ReserveRoom() {
  if (end_ - pos_ < kEventBytesMax) [[unlikely]] {
    Exchange();
  }
}

void CoreEncoder::FlushTnt() { FlushTntAt(now_); }

void CoreEncoder::FlushTntAt(uint64_t tsc) {
  if (tnt_count_ == 0) {
    return;
  }
  ReserveRoom();
  WriteCyc(tsc, cyc_threshold_);
  pos_ = packets::PutTnt(pos_, tnt_bits_, tnt_count_);
  tnt_bits_ = 0;
  tnt_count_ = 0;
}

void CoreEncoder::WriteTip(uint64_t target) {
  RequireEnabled(true);
  FlushTnt();
  ReserveRoom();
  WriteIp(IpPacket::kTip, target);
  WritePsbIfDue(target);
}

void CoreEncoder::WriteIp(IpPacket packet, uint64_t ip) {
  WriteCyc(now_, cyc_threshold_);
  pos_ = packets::PutIp(pos_, packet, ip, last_ip_);
  last_ip_ = ip;
}

void CoreEncoder::Sync(TraceeAddr next_ip) {
  FlushTnt();
  ReserveRoom();
  if (enabled_ && IsPsbDue()) {
    WritePsb(next_ip.as_int());
  } else if (started_) {
    WriteTscTma();
  }
}

// SDM, "Packet Stream Boundary (PSB) Packet" and "PSB+": the last IP and the
// stack of RET compression are forgotten; MODE.Exec and FUP only while packets
// of control flow are on. No PIP, because user mode alone is traced (it needs
// IA32_RTIT_CTL.OS), no MODE.TSX, because this CPU has no TSX.
void CoreEncoder::WritePsb(std::optional<uint64_t> next_ip) {
  ReserveRoom();
  WriteCyc(now_, 0);
  pos_ = packets::PutPsb(pos_);
  last_ip_ = kNoLastIp;
  return_count_ = 0;
  WriteTscTma();
  pos_ = packets::PutCbr(pos_, config_.core_bus_ratio);
  if (next_ip) {
    WriteMode();
    pos_ = packets::PutIp(pos_, IpPacket::kFup, *next_ip, last_ip_);
    last_ip_ = *next_ip;
  }
  mode_told_ = next_ip.has_value();
  pos_ = packets::PutPsbend(pos_);
  next_psb_bytes_ = bytes_written() + config_.psb_period_bytes;
  tnt_limit_ = tnt_max_;
  started_ = true;
}

}  // namespace clew::recorder
