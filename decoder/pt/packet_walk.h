#ifndef CLEW_DECODER_PT_PACKET_WALK_H_
#define CLEW_DECODER_PT_PACKET_WALK_H_

#include <cstdint>
#include <optional>
#include <span>

#include "common/units.h"
#include "decoder/pt/packet.h"

namespace clew::decoder {

// Where decoding can go on that lost its way.
struct ResumePoint {
  enum class Kind : uint8_t {
    kPsb,       // decoding begins anew
    kEnabled,   // TIP.PGE: user mode begins
    kOverflow,  // the FUP of an OVF: what was lost before is another gap
    kInside,    // TIP: in the same stretch of user mode
  };
  Kind kind = Kind::kPsb;
  uint64_t offset = 0;  // of its first packet
  uint64_t end = 0;     // behind its last one; not of kPsb
  TraceeAddr ip;        // what runs next, and in which mode; not of kPsb
  uint8_t code_bits = 64;
};

// Reads the packets of a stretch of PT bytes without code, for places that say
// where execution is whatever came before: an address in full, behind which no
// branch of before is told any more. A FUP alone is none (but behind OVF): the
// instruction at its address need not be the next to run. Not thread-safe.
class PacketWalk {
 public:
  // `bytes` must outlive the object. `tips_deferred`: hardware may write a TIP
  // behind a TNT packet with branches that came after it (SDM vol. 3C,
  // "Deferred TIPs"). Then a TIP is a place only where it certainly was not, or
  // where the trace shows that this core does not.
  PacketWalk(std::span<const std::byte> bytes, bool tips_deferred);

  // The first place whose packets are at or behind `offset`, the start of a
  // packet; nullopt if there is none. `in_user_mode`: at `offset`. Offsets must
  // not decrease from call to call.
  std::optional<ResumePoint> Next(uint64_t offset, bool in_user_mode);

  // The last packet of control flow before `offset`, as above, is a TIP that
  // leads to `ip` by itself.
  bool TipLedTo(TraceeAddr ip, uint64_t offset);

  // The address in the PSB+ at `psb`; absent outside of user mode.
  std::optional<TraceeAddr> IpOfPsb(uint64_t psb);

 private:
  bool Seek(uint64_t offset);
  void Track(const Packet& packet);
  void TrackIp(const Packet& packet);
  std::optional<ResumePoint> PointAt(const Packet& packet) const;
  bool MayBeDeferred();
  std::optional<ResumePoint> NextPsb(uint64_t offset) const;

  std::span<const std::byte> bytes_;
  bool tips_deferred_;
  std::optional<bool> core_defers_;  // absent: not looked yet
  PacketReader reader_;
  bool in_sync_ = false;
  bool in_user_mode_ = true;
  bool in_psb_ = false;
  uint64_t last_ip_ = 0;
  std::optional<uint8_t> code_bits_;
  std::optional<uint64_t> overflow_;  // OVF whose FUP or TIP.PGE is to come
  bool after_fup_ = false;            // which the next packet belongs to
  bool tip_led_ = false;              // the last packet of control flow
  // The last TNT packet; none if no TIP behind it can be deferred any more.
  enum class Tnt : uint8_t { kNone, kPartial, kFull };
  Tnt tnt_ = Tnt::kNone;
  // Of the last TIPs in a row that were looked at: where they end, and whether
  // TNT comes next.
  uint64_t tips_end_ = 0;
  bool tnt_behind_tips_ = false;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_PACKET_WALK_H_
