#include "decoder/pt/timing_edges.h"

#include <algorithm>
#include <utility>

#include "common/wide.h"

namespace clew::decoder {
namespace {

// MTC carries 8 bits of the crystal clock, TMA 16 (SDM, "MTC Packet", "TMA
// Packet").
constexpr uint32_t kMtcBits = 8;
constexpr uint32_t kTmaBits = 16;
constexpr uint32_t kMtcPeriodMax = 15;
// A CBR packet rounds the core's clock to a bus clock.
constexpr uint32_t kCbrSlack = 1;
// Ticks are counted in fractions where they come from cycles.
constexpr uint32_t kElapsedBits = 16;

// A FUP belongs to the packet behind it, except after an overflow. (libipt may
// read past it while branches before it are still to come.)
bool IsFlow(PacketType type, bool after_overflow) {
  return type == PacketType::kTnt || type == PacketType::kTip ||
         type == PacketType::kTipPge || type == PacketType::kTipPgd ||
         (type == PacketType::kFup && after_overflow);
}

uint64_t After(uint64_t key) { return key + (key == UINT64_MAX ? 0 : 1); }

}  // namespace

TimingEdges::TimingEdges(std::span<const std::byte> bytes,
                         const TimingConfig& config)
    : config_(config), reader_(bytes) {
  config_.mtc_period = std::min(config_.mtc_period, kMtcPeriodMax);
  at_end_ = !reader_.SyncAt(0);
}

// Positions only grow, so each edge is passed once. An edge is dropped as soon
// as both bounds are past it and both of its keys are known.
TscTicks TimingEdges::FindLower(uint64_t pos) {
  ScanWhileOpen(pos);
  // The largest floor: where an MTC is rounded down below an earlier edge, that
  // one still holds.
  while (lower_index_ < lower_open_ && At(lower_index_).lower_key < pos) {
    last_lower_ = std::max(last_lower_, At(lower_index_).floor_tsc);
    ++lower_index_;
  }
  lower_until_ = EndOfLower();
  while (dropped_ <
         std::min({lower_index_, upper_index_, lower_open_, upper_open_})) {
    edges_.pop_front();
    ++dropped_;
  }
  return TscTicks(last_lower_);
}

std::optional<TscTicks> TimingEdges::FindUpper(uint64_t pos) {
  ScanWhileOpen(pos);
  while (upper_index_ < upper_open_ && At(upper_index_).upper_key < pos) {
    ++upper_index_;
  }
  if (upper_index_ >= upper_open_) {
    // Perhaps there is one, but not known to be behind.
    upper_until_ = EndOfNoUpper(pos);
    last_upper_.reset();
    return std::nullopt;
  }
  upper_until_ = After(At(upper_index_).upper_key);
  last_upper_ = TscTicks(At(upper_index_).ceiling_tsc);
  return last_upper_;
}

// Where the next edge is before T(pos): behind its lower_key, which is its
// upper_key or later. Of one not yet read that is behind what was read.
uint64_t TimingEdges::EndOfLower() const {
  if (lower_index_ < lower_open_) {
    return After(At(lower_index_).lower_key);
  }
  if (lower_index_ < upper_open_) {
    return After(At(lower_index_).upper_key);
  }
  return EndOfRead();
}

// Where an edge that is not known yet can begin to matter.
uint64_t TimingEdges::EndOfRead() const {
  if (!cycle_edges_.empty()) {
    return std::min(cycle_edges_.front().key, reader_.offset());
  }
  return at_end_ ? UINT64_MAX : reader_.offset();
}

// Until where to take for granted that there is no edge behind T(pos).
uint64_t TimingEdges::EndOfNoUpper(uint64_t pos) const {
  if (at_end_) {
    return UINT64_MAX;
  }
  return upper_open_ == edge_count() ? pos + kReadAheadMax / 2 : 0;
}

std::optional<TscTicks> TimingEdges::FirstFrom(uint64_t offset) {
  while (edges_.empty() || edges_.back().offset < offset) {
    if (!ScanOne()) {
      break;
    }
  }
  for (const Edge& edge : edges_) {
    if (edge.offset >= offset) {
      return TscTicks(edge.ceiling_tsc);
    }
  }
  return std::nullopt;
}

// Scans until an edge that is not before T(pos) is known.
void TimingEdges::ScanWhileOpen(uint64_t pos) {
  while (upper_open_ == dropped_ || At(upper_open_ - 1).upper_key < pos) {
    const uint64_t at = reader_.offset();
    if ((at > pos && at - pos > kReadAheadMax) || !ScanOne()) {
      return;
    }
  }
}

uint64_t TimingEdges::LastBefore(uint64_t pos, std::deque<uint64_t>& offsets) {
  while (reader_.offset() < pos && ScanOne()) {
  }
  while (offsets.size() > 1 && offsets[1] < pos) {
    offsets.pop_front();
  }
  return offsets.empty() || offsets.front() >= pos ? 0 : offsets.front();
}

// Reads one packet; false at the end.
bool TimingEdges::ScanOne() {
  if (at_end_) {
    return false;
  }
  Packet packet;
  if (!reader_.Next(packet)) {
    // What follows bad bytes is taken as flow: it may hide some.
    CloseEdges(reader_.offset());
    DropCycleEdges();
    mtc_known_ = false;
    in_psb_ = false;
    at_end_ = !reader_.SyncAt(reader_.offset() + 1);
    if (at_end_) {
      CloseEdges(UINT64_MAX);
    }
    return true;
  }
  switch (packet.type) {
    case PacketType::kPsb:
      in_psb_ = true;
      break;
    case PacketType::kPsbend:
      in_psb_ = false;
      break;
    case PacketType::kOvf:
      // MTC packets may be among what is lost.
      DropCycleEdges();
      in_psb_ = false;
      mtc_known_ = false;
      after_overflow_ = true;
      break;
    case PacketType::kTsc:
      OnTsc(packet);
      break;
    case PacketType::kTma:
      // TMA gives the crystal clock at its TSC packet; the TSC has gone on by
      // the fast counter since that crystal tick (SDM, "TMA Packet").
      if (last_tsc_) {
        base_tsc_ = *last_tsc_ - std::min(*last_tsc_, packet.fast_counter);
        base_ctc_ = packet.value;
        mtc_count_ = base_ctc_ >> config_.mtc_period;
        mtc_known_ = config_.ctc_numerator != 0 && config_.ctc_denominator != 0;
      }
      break;
    case PacketType::kMtc:
      OnMtc(packet);
      break;
    case PacketType::kCyc:
      OnCyc(packet);
      return true;
    case PacketType::kCbr:
      OnCbr(packet);
      next_switched_on_ = std::max(
          next_switched_on_, in_psb_ ? SwitchedOn::kMaybe : SwitchedOn::kYes);
      break;
    default:
      break;
  }
  if (!in_psb_ && IsFlow(packet.type, after_overflow_)) {
    OnFlowPacket(packet);
    after_overflow_ = false;
  }
  after_cyc_ = false;
  return true;
}

void TimingEdges::OnFlowPacket(const Packet& packet) {
  if (packet.type == PacketType::kTipPge) {
    enables_.push_back(packet.offset);
    switched_on_.push_back(next_switched_on_);
  } else if (packet.type == PacketType::kTipPgd) {
    disables_.push_back(packet.offset);
    next_switched_on_ = SwitchedOn::kNo;
  }
  // Only the latest can be without a key: the flow packet behind an edge comes
  // before the next edge.
  if (!cycle_edges_.empty()) {
    CycleEdge& last = cycle_edges_.back();
    last.key = std::min(last.key, packet.offset);
  }
  if (after_cyc_ && anchored_ && cycle_edges_.size() < kCycleEdgesMax) {
    cycle_edges_.push_back({.offset = packet.offset, .elapsed = elapsed_});
  }
  // Edges that a TNT packet left open below: this is the second packet of flow
  // behind them, and what it holds is later for certain.
  for (; lower_open_ < upper_open_; ++lower_open_) {
    edges_[lower_open_ - dropped_].lower_key = packet.offset;
  }
  const bool may_hold_older =
      packet.type == PacketType::kTnt && !config_.branches_before_timing;
  for (; upper_open_ < edge_count(); ++upper_open_) {
    edges_[upper_open_ - dropped_].upper_key = packet.offset;
  }
  if (!may_hold_older) {
    for (; lower_open_ < edge_count(); ++lower_open_) {
      edges_[lower_open_ - dropped_].lower_key = packet.offset;
    }
  }
}

void TimingEdges::CloseEdges(uint64_t offset) {
  for (; upper_open_ < edge_count(); ++upper_open_) {
    edges_[upper_open_ - dropped_].upper_key = offset;
  }
  for (; lower_open_ < edge_count(); ++lower_open_) {
    edges_[lower_open_ - dropped_].lower_key = offset;
  }
}

void TimingEdges::OnTsc(const Packet& packet) {
  last_tsc_ = packet.value;
  mtc_known_ = false;  // until its TMA comes
  AddAnchor(packet.offset, packet.value, packet.value);
}

// The MTC's crystal ticks since the TMA give its time. Where the ratio is not a
// whole number, TMA's own rounding may add a tick either way.
void TimingEdges::OnMtc(const Packet& packet) {
  if (!mtc_known_) {
    return;
  }
  const uint32_t bits = std::min(kMtcBits, kTmaBits - config_.mtc_period);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  // Only the low bits of the tick are in the packet, so a whole round of lost
  // packets would not be noticed. OVF and bad bytes clear mtc_known_ for that.
  const uint64_t passed = (packet.value - mtc_count_) & mask;
  if (passed == 0) {
    return;  // the same tick again
  }
  mtc_count_ += passed;
  const uint64_t ctc = (mtc_count_ << config_.mtc_period) - base_ctc_;
  const auto ticks = static_cast<Wide>(ctc) * config_.ctc_numerator;
  const uint64_t whole = static_cast<uint64_t>(ticks / config_.ctc_denominator);
  const uint64_t slack = config_.ctc_denominator == 1 ? 0 : 1;
  AddAnchor(packet.offset, base_tsc_ + whole - std::min(slack, whole),
            base_tsc_ + whole + 2 * slack);
}

// The next CYC packet may have cycles of before, by the clock of before.
void TimingEdges::OnCbr(const Packet& packet) {
  next_cyc_ratio_ =
      std::max(core_bus_ratio_, static_cast<uint32_t>(packet.value));
  core_bus_ratio_ = static_cast<uint32_t>(packet.value);
}

void TimingEdges::OnCyc(const Packet& packet) {
  if (core_bus_ratio_ == 0 || config_.tsc_bus_ratio == 0) {
    return;
  }
  after_cyc_ = true;
  // Some of its cycles passed before the anchor, and how many is not known. To
  // count none of them loosens both bounds.
  if (std::exchange(cycles_older_, false)) {
    return;
  }
  const auto ticks = static_cast<Wide>(packet.value) * config_.tsc_bus_ratio;
  const uint64_t ratio = std::exchange(next_cyc_ratio_, core_bus_ratio_) +
                         (config_.branches_before_timing ? 0 : kCbrSlack);
  const Wide elapsed = (ticks << kElapsedBits) / ratio + elapsed_;
  elapsed_ = static_cast<uint64_t>(std::min<Wide>(elapsed, UINT64_MAX));
}

void TimingEdges::AddAnchor(uint64_t offset, uint64_t floor_tsc,
                            uint64_t ceiling_tsc) {
  // Even its latest time is before the earliest of an anchor before: clocks do
  // not go back, so this packet is not believed.
  if (ceiling_tsc < latest_) {
    DropCycleEdges();
    ++backwards_;
    return;
  }
  AddCycleEdges(ceiling_tsc);
  latest_ = std::max(latest_, floor_tsc);
  edges_.push_back(
      {.offset = offset, .floor_tsc = floor_tsc, .ceiling_tsc = ceiling_tsc});
  anchor_floor_ = floor_tsc;
  anchored_ = true;
  cycles_older_ = !config_.branches_before_timing && !after_cyc_;
}

// Ends the interval from one anchor to the next. Where the key of one of its
// edges is known, two packets of control flow came since the anchor: all edges
// before are closed.
void TimingEdges::AddCycleEdges(uint64_t anchor_ceiling) {
  const uint64_t all = elapsed_;
  // More cycles than fit into the interval: see the head of the class.
  if (all >> kElapsedBits <= anchor_ceiling - anchor_floor_) {
    for (const CycleEdge& edge : cycle_edges_) {
      const uint64_t left = (all - edge.elapsed) >> kElapsedBits;
      edges_.push_back(
          {.offset = edge.offset,
           .upper_key = edge.key,
           .lower_key = edge.key,
           .floor_tsc = anchor_floor_ + (edge.elapsed >> kElapsedBits),
           .ceiling_tsc = anchor_ceiling - left});
      if (edge.key != UINT64_MAX) {
        upper_open_ = lower_open_ = edge_count();
      }
    }
  }
  DropCycleEdges();
}

void TimingEdges::DropCycleEdges() {
  cycle_edges_.clear();
  elapsed_ = 0;
  anchored_ = false;
}

}  // namespace clew::decoder
