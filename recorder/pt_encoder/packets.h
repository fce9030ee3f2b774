#ifndef CLEW_RECORDER_PT_ENCODER_PACKETS_H_
#define CLEW_RECORDER_PT_ENCODER_PACKETS_H_

#include <bit>
#include <cstdint>
#include <cstring>

// The bytes of Intel PT packets. Each function writes one packet at `out` and
// returns its end; the caller has made sure of the room (kPacketBytesMax).
//
// Source: Intel SDM vol. 3C, "Intel Processor Trace", "Trace Packets and Data
// Types", "Packet Definitions". tests/recorder/pt_encoder/packets_test.cc
// compares each with libipt's packet encoder.

namespace clew::recorder::packets {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kPacketBytesMax = 16;  // PSB
inline constexpr uint32_t kShortTntBranchesMax = 6;
inline constexpr uint32_t kLongTntBranchesMax = 47;

// Low five bits of packets with an IP; the upper three tell its compression.
enum class IpPacket : uint8_t {
  kTip = 0x0d,
  kTipPge = 0x11,
  kTipPgd = 0x01,
  kFup = 0x1d,
};

template <class Int>
uint8_t* PutLittleEndian(uint8_t* out, Int value, uint32_t bytes) {
  std::memcpy(out, &value, bytes);
  return out + bytes;
}

inline uint8_t* PutPsb(uint8_t* out) {
  for (int i = 0; i < 8; ++i) {
    out = PutLittleEndian(out, uint16_t{0x8202}, 2);
  }
  return out;
}

inline uint8_t* PutPsbend(uint8_t* out) {
  return PutLittleEndian(out, uint16_t{0x2302}, 2);
}

inline uint8_t* PutOvf(uint8_t* out) {
  return PutLittleEndian(out, uint16_t{0xf302}, 2);
}

// MODE.Exec: 64-bit code (CS.L set, CS.D clear).
inline uint8_t* PutModeExec64(uint8_t* out) {
  return PutLittleEndian(out, uint16_t{0x0199}, 2);
}

// MODE.Exec: 32-bit code (CS.L clear, CS.D set).
inline uint8_t* PutModeExec32(uint8_t* out) {
  return PutLittleEndian(out, uint16_t{0x0299}, 2);
}

inline uint8_t* PutCbr(uint8_t* out, uint32_t ratio) {
  return PutLittleEndian(out, 0x0302u | (ratio & 0xff) << 16, 4);
}

inline uint8_t* PutTsc(uint8_t* out, uint64_t tsc) {
  return PutLittleEndian(out, tsc << 8 | 0x19, 8);
}

// `ctc`: 16 bits of the crystal clock; `fast`: 9 bits, TSC ticks since it last
// ticked.
inline uint8_t* PutTma(uint8_t* out, uint64_t ctc, uint64_t fast) {
  return PutLittleEndian(
      out, 0x7302 | (ctc & 0xffff) << 16 | (fast & 0x1ff) << 40, 7);
}

inline uint8_t* PutMtc(uint8_t* out, uint64_t ctc) {
  return PutLittleEndian(out, static_cast<uint16_t>(0x59 | (ctc & 0xff) << 8),
                         2);
}

// At most 5 + 8 * 7 = 61 bits in 9 bytes.
inline uint8_t* PutCyc(uint8_t* out, uint64_t cycles) {
  *out++ =
      static_cast<uint8_t>(3 | (cycles > 0x1f ? 4 : 0) | (cycles & 0x1f) << 3);
  for (cycles >>= 5; cycles != 0; cycles >>= 7) {
    *out++ =
        static_cast<uint8_t>((cycles > 0x7f ? 1 : 0) | (cycles & 0x7f) << 1);
  }
  return out;
}

// 1 to 47 branches; the highest of the `count` low bits of `taken` is the
// oldest.
inline uint8_t* PutTnt(uint8_t* out, uint64_t taken, uint32_t count) {
  const uint64_t with_stop = taken | uint64_t{1} << count;
  if (count <= kShortTntBranchesMax) {
    *out = static_cast<uint8_t>(with_stop << 1);
    return out + 1;
  }
  return PutLittleEndian(out, with_stop << 16 | 0xa302, 8);
}

inline uint8_t* PutIpSuppressed(uint8_t* out, IpPacket packet) {
  *out = static_cast<uint8_t>(packet);
  return out + 1;
}

// Sends as many low bytes of `ip` as differ from `last_ip`: 2, 4, or 6 with
// sign extension (IPBytes 001, 010, 011); all 8 (110) if it is not canonical.
inline uint8_t* PutIp(uint8_t* out, IpPacket packet, uint64_t ip,
                      uint64_t last_ip) {
  const uint64_t changed = ip ^ last_ip;
  const auto sign_extended =
      static_cast<uint64_t>(static_cast<int64_t>(ip << 16) >> 16);
  uint32_t code = 1;
  uint32_t bytes = 2;
  if (changed >> 16 != 0) {
    const bool four = changed >> 32 == 0;
    code = four ? 2 : ip == sign_extended ? 3 : 6;
    bytes = four ? 4 : ip == sign_extended ? 6 : 8;
  }
  *out = static_cast<uint8_t>(static_cast<uint32_t>(packet) | code << 5);
  std::memcpy(out + 1, &ip, sizeof ip);  // all: a fixed size is faster
  return out + 1 + bytes;
}

}  // namespace clew::recorder::packets

#endif  // CLEW_RECORDER_PT_ENCODER_PACKETS_H_
