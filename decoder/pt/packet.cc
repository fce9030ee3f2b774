#include "decoder/pt/packet.h"

#include <fmt/format.h>
#include <string.h>  // memmem

#include <algorithm>
#include <array>

namespace clew::decoder {
namespace {

constexpr std::array<std::byte, 16> kPsbBytes = [] {
  std::array<std::byte, 16> bytes = {};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = i % 2 == 0 ? std::byte{0x02} : std::byte{0x82};
  }
  return bytes;
}();

std::string TntText(const Packet& packet) {
  std::string text;
  for (int bit = packet.count - 1; bit >= 0; --bit) {
    text += (packet.value >> bit & 1) != 0 ? 'T' : 'N';
  }
  return text;
}

}  // namespace

const char* PacketName(const Packet& packet) {
  switch (packet.type) {
    case PacketType::kPad:
      return "PAD";
    case PacketType::kPsb:
      return "PSB";
    case PacketType::kPsbend:
      return "PSBEND";
    case PacketType::kTnt:
      return "TNT";
    case PacketType::kTip:
      return "TIP";
    case PacketType::kTipPge:
      return "TIP.PGE";
    case PacketType::kTipPgd:
      return "TIP.PGD";
    case PacketType::kFup:
      return "FUP";
    case PacketType::kTsc:
      return "TSC";
    case PacketType::kTma:
      return "TMA";
    case PacketType::kMtc:
      return "MTC";
    case PacketType::kCyc:
      return "CYC";
    case PacketType::kCbr:
      return "CBR";
    case PacketType::kPip:
      return "PIP";
    case PacketType::kModeExec:
      return "MODE.Exec";
    case PacketType::kModeTsx:
      return "MODE.TSX";
    case PacketType::kOvf:
      return "OVF";
    case PacketType::kStop:
      return "TraceSTOP";
    case PacketType::kOther:
      break;
  }
  return "other";
}

std::string PacketText(const Packet& packet) {
  const char* name = PacketName(packet);
  switch (packet.type) {
    case PacketType::kTnt:
      return fmt::format("{} {} ({})", name, TntText(packet), packet.count);
    case PacketType::kTip:
    case PacketType::kTipPge:
    case PacketType::kTipPgd:
    case PacketType::kFup:
      return packet.count == 0 ? fmt::format("{} no ip", name)
                               : fmt::format("{} {:#x} ({})", name,
                                             packet.value, packet.count);
    case PacketType::kTma:
      return fmt::format("{} CTC {:#x} FC {:#x}", name, packet.value,
                         packet.fast_counter);
    case PacketType::kPad:
    case PacketType::kPsb:
    case PacketType::kPsbend:
    case PacketType::kOvf:
    case PacketType::kStop:
    case PacketType::kOther:
      return name;
    default:
      return fmt::format("{} {:#x}", name, packet.value);
  }
}

std::optional<uint64_t> FindPsb(std::span<const std::byte> bytes,
                                uint64_t from) {
  if (from >= bytes.size()) {
    return std::nullopt;
  }
  const void* found = memmem(bytes.data() + from, bytes.size() - from,
                             kPsbBytes.data(), kPsbBytes.size());
  if (found == nullptr) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(static_cast<const std::byte*>(found) -
                               bytes.data());
}

std::optional<uint64_t> FindLastPsb(std::span<const std::byte> bytes,
                                    uint64_t from, uint64_t to) {
  const uint64_t end = std::min<uint64_t>(bytes.size(), to + kPsbBytes.size());
  if (from >= end) {
    return std::nullopt;
  }
  const auto searched = bytes.subspan(from, end - from);
  const auto found = std::search(searched.rbegin(), searched.rend(),
                                 kPsbBytes.rbegin(), kPsbBytes.rend());
  if (found == searched.rend()) {
    return std::nullopt;
  }
  const auto behind = static_cast<uint64_t>(searched.rend() - found);
  return from + behind - kPsbBytes.size();
}

}  // namespace clew::decoder
