#ifndef CLEW_DECODER_PT_TIMING_EDGES_H_
#define CLEW_DECODER_PT_TIMING_EDGES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "common/units.h"
#include "decoder/pt/packet.h"

namespace clew::decoder {

// How a trace tells time. Without tsc there is no time at all.
struct TimingConfig {
  // CPUID leaf 0x15: TSC ticks = crystal ticks * numerator / denominator. 0:
  // not known, MTC packets are not used.
  uint32_t ctc_numerator = 0;
  uint32_t ctc_denominator = 0;
  // An MTC packet comes every 2^mtc_period crystal ticks; 0..15.
  uint32_t mtc_period = 0;
  // The TSC's clock over the bus clock (perf's max_nonturbo_ratio), in whose
  // units CBR packets give the core's. 0: not known, CYC packets are not used.
  uint32_t tsc_bus_ratio = 0;
  // Branches that retired before a timing packet are in packets before it, and
  // so are cycles, which CBR packets give exact ticks. Our own encoder
  // guarantees that; hardware may hold branches back in a TNT packet that it
  // has not filled yet, and cycles until a threshold, and rounds its clock.
  bool branches_before_timing = false;
};

enum class SwitchedOn : uint8_t { kNo, kMaybe, kYes };

// The timing packets of one stretch of PT bytes as *edges*: an edge separates
// the packets of control flow before it, whose instructions retired at its time
// or earlier, from those behind it, at its time or later.
//
// Positions are those of FlowReader. T(p) is the last packet of control flow
// before position p (TNT, TIP, TIP.PGE, TIP.PGD, and FUP after OVF).
//
// TSC packets are edges, and MTC packets once a TSC and a TMA packet have tied
// them to the TSC. Call these two *anchors*: they say what time it is. A CYC
// packet says how many core cycles passed since the last one, and it is the
// time of the packet behind it. If that is one of control flow, there is an
// edge behind it: its instructions retired until then, all others later.
//
// How many ticks a cycle takes is not known, as the core may halt or run
// slower, but for one side: it is never faster than its CBR packet says. So c
// cycles take at least c * tsc_bus_ratio / CBR ticks, and between two anchors
// A and B the time of a CYC packet is bounded from both:
//
//       A     CYC 400   TNT    CYC 800   TIP      CYC 120   B
//    tsc 1000                                            tsc 1400
//              |               |                  |
//              c = 400         c = 1200           C = 1320
//
// With a core four times as fast as the TSC, what follows the TNT retired not
// before 1000 + 400/4 = 1100, and what is in it not behind 1400 - (1320 -
// 400)/4 = 1170. If the core always ran at its clock, C/4 is all of B - A, and
// both are the same. Where C/4 is more than B - A the clock is not what we
// believe, and the interval's CYC packets give no edge. So they give one only
// once B was read. Not thread-safe.
class TimingEdges {
 public:
  // Bytes behind a position that are searched for an edge; bounds memory.
  static constexpr uint64_t kReadAheadMax = uint64_t{1} << 20;
  // `bytes` must outlive the object.
  TimingEdges(std::span<const std::byte> bytes, const TimingConfig& config);

  // The last edge before T(pos): what follows the branches of T(pos) retired at
  // that time or later. 0 if there is none. Positions must not decrease from
  // call to call.
  TscTicks LowerBound(uint64_t pos) {
    return pos < lower_until_ ? TscTicks(last_lower_) : FindLower(pos);
  }

  // The first edge behind T(pos): the branches of T(pos) and all before retired
  // at that time or earlier. Absent if there is none within kReadAheadMax, and
  // then for half that many bytes more. Positions must not decrease from call
  // to call, nor be below LowerBound's; for one that does, the answer is that
  // of the last.
  std::optional<TscTicks> UpperBound(uint64_t pos) {
    return pos < upper_until_ ? last_upper_ : FindUpper(pos);
  }

  // The first edge at or behind `offset`; absent if there is none. As
  // UpperBound, but drops nothing.
  std::optional<TscTicks> FirstFrom(uint64_t offset);

  // The last TIP.PGE (TIP.PGD) packet before `pos`, or 0. Positions must not
  // decrease from call to call.
  uint64_t LastEnable(uint64_t pos) {
    const uint64_t offset = LastBefore(pos, enables_);
    while (switched_on_.size() > enables_.size()) {
      switched_on_.pop_front();
    }
    return offset;
  }
  uint64_t LastDisable(uint64_t pos) { return LastBefore(pos, disables_); }

  // Whether the thread's trace was switched on with the TIP.PGE at `offset`,
  // LastEnable's last answer: then a CBR packet came before. In a PSB+ it may
  // have come for that alone.
  SwitchedOn SwitchedOnAt(uint64_t offset) const {
    const bool known = !enables_.empty() && enables_.front() == offset;
    return known && !switched_on_.empty() ? switched_on_.front()
                                          : SwitchedOn::kMaybe;
  }

  // Edges that went back in time and were left out.
  uint64_t backwards() const { return backwards_; }

 private:
  struct Edge {
    uint64_t offset = 0;
    // Start of the next packet of control flow, from which on this edge is
    // before T(pos); for LowerBound perhaps one packet later.
    uint64_t upper_key = UINT64_MAX;
    uint64_t lower_key = UINT64_MAX;
    uint64_t floor_tsc = 0;
    uint64_t ceiling_tsc = 0;
  };
  // An edge behind a packet of control flow that a CYC packet came before.
  struct CycleEdge {
    uint64_t offset = 0;
    uint64_t key = UINT64_MAX;  // start of the next packet of control flow
    uint64_t elapsed = 0;       // of elapsed_, then
  };
  // Of CYC packets between two anchors more give no edge.
  static constexpr size_t kCycleEdgesMax = size_t{1} << 16;

  TscTicks FindLower(uint64_t pos);
  std::optional<TscTicks> FindUpper(uint64_t pos);
  uint64_t EndOfLower() const;
  uint64_t EndOfNoUpper(uint64_t pos) const;
  bool ScanOne();
  void OnFlowPacket(const Packet& packet);
  void OnTsc(const Packet& packet);
  void OnMtc(const Packet& packet);
  void OnCbr(const Packet& packet);
  void OnCyc(const Packet& packet);
  void AddAnchor(uint64_t offset, uint64_t floor_tsc, uint64_t ceiling_tsc);
  void AddCycleEdges(uint64_t anchor_ceiling);
  void DropCycleEdges();
  uint64_t EndOfRead() const;
  void CloseEdges(uint64_t offset);
  void ScanWhileOpen(uint64_t pos);
  uint64_t LastBefore(uint64_t pos, std::deque<uint64_t>& offsets);
  const Edge& At(uint64_t index) const { return edges_[index - dropped_]; }
  uint64_t edge_count() const { return dropped_ + edges_.size(); }

  TimingConfig config_;
  PacketReader reader_;
  bool at_end_ = false;
  bool in_psb_ = false;
  bool after_overflow_ = false;

  // The clock: TSC of the crystal tick `base_ctc_`, once TSC and TMA came.
  std::optional<uint64_t> last_tsc_;
  bool mtc_known_ = false;
  uint64_t base_tsc_ = 0;
  uint64_t base_ctc_ = 0;   // as TMA gave it, 16 bits
  uint64_t mtc_count_ = 0;  // MTC periods: crystal ticks >> mtc_period

  // CYC packets since the last anchor. Of the interval's ticks, at least
  // `elapsed_` passed (in 2^-kElapsedBits ticks).
  uint32_t core_bus_ratio_ = 0;  // of the last CBR; 0: none yet
  uint64_t next_cyc_ratio_ = 0;  // the highest that the next CYC's may be
  bool after_cyc_ = false;       // the last packet was a CYC
  bool anchored_ = false;        // there is an anchor, and nothing lost since
  bool cycles_older_ = false;    // the next CYC has cycles before the anchor
  uint64_t anchor_floor_ = 0;
  uint64_t elapsed_ = 0;
  std::deque<CycleEdge> cycle_edges_;

  std::deque<uint64_t> enables_;        // offsets of TIP.PGE, from the last on
  std::deque<uint64_t> disables_;       // of TIP.PGD
  std::deque<SwitchedOn> switched_on_;  // of each of enables_
  // By the CBRs since the last TIP.PGD.
  SwitchedOn next_switched_on_ = SwitchedOn::kNo;
  std::deque<Edge> edges_;
  uint64_t dropped_ = 0;      // edges before edges_.front()
  uint64_t upper_open_ = 0;   // first edge without upper_key
  uint64_t lower_open_ = 0;   // first edge without lower_key
  uint64_t lower_index_ = 0;  // edges before T(pos) of LowerBound
  uint64_t upper_index_ = 0;  // edges before T(pos) of UpperBound
  // The bounds' last answers, and the positions below which they still hold.
  uint64_t last_lower_ = 0;
  std::optional<TscTicks> last_upper_;
  uint64_t lower_until_ = 0;
  uint64_t upper_until_ = 0;
  uint64_t latest_ = 0;  // floor of the last anchor
  uint64_t backwards_ = 0;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_TIMING_EDGES_H_
