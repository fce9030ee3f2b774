#ifndef CLEW_DECODER_PT_PACKET_H_
#define CLEW_DECODER_PT_PACKET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/result.h"

namespace clew::decoder {

enum class PacketType : uint8_t {
  kPad,
  kPsb,
  kPsbend,
  kTnt,
  kTip,
  kTipPge,
  kTipPgd,
  kFup,
  kTsc,
  kTma,
  kMtc,
  kCyc,
  kCbr,
  kPip,
  kModeExec,
  kModeTsx,
  kOvf,
  kStop,
  kOther,
};

// One Intel PT packet.
struct Packet {
  PacketType type = PacketType::kPad;
  uint8_t size = 0;  // bytes
  // TNT: number of branches. Packets with an IP: its compression code
  // (IPBytes), 0 where the IP is suppressed.
  uint8_t count = 0;
  uint64_t offset = 0;  // in the bytes given to the reader
  // TNT: the branches, oldest in the highest bit. TIP, TIP.PGE, TIP.PGD, FUP:
  // IP payload. TSC, MTC, CYC, CBR, PIP: the value. TMA: CTC. MODE: its bits.
  uint64_t value = 0;
  uint64_t fast_counter = 0;  // TMA only
};

// "TNT.8", "TIP.PGE", as perf names them.
const char* PacketName(const Packet& packet);
// The packet with its payload, for people: "TNT TNTT (4)", "TIP 0x4010 (2)".
std::string PacketText(const Packet& packet);

// Reads packets one after another, without code. Not thread-safe.
class PacketReader {
 public:
  // `bytes` must outlive the reader. It starts out of sync.
  explicit PacketReader(std::span<const std::byte> bytes);
  PacketReader(PacketReader&&) noexcept;
  PacketReader& operator=(PacketReader&&) noexcept;
  ~PacketReader();

  // Moves to the first PSB at or after `offset`; false if there is none.
  bool SyncAt(uint64_t offset);
  // Moves to `offset`, which the caller knows to be the start of a packet.
  void SetOffset(uint64_t offset);
  // Returns false at the end of the bytes, on a packet cut off by it, and on
  // bytes that are not a packet; error() tells them apart. REQUIRES: in sync.
  bool Next(Packet& packet);
  // What stopped Next(): null at the end of the bytes, else a text.
  const char* error() const { return error_; }
  // Where the next packet starts.
  uint64_t offset() const { return offset_; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  const char* error_ = nullptr;
  uint64_t offset_ = 0;
};

// The first PSB packet at or after `from`; nullopt if there is none.
std::optional<uint64_t> FindPsb(std::span<const std::byte> bytes,
                                uint64_t from);

// The last one that begins in [from, to]; nullopt if there is none.
std::optional<uint64_t> FindLastPsb(std::span<const std::byte> bytes,
                                    uint64_t from, uint64_t to);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_PACKET_H_
