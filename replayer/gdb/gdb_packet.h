#ifndef CLEW_REPLAYER_GDB_GDB_PACKET_H_
#define CLEW_REPLAYER_GDB_GDB_PACKET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace clew::replayer::gdb {

// Frames of the gdb remote serial protocol:
//
//     $<payload>#<two hexadecimal digits: sum of the bytes between, mod 256>
//
// In a payload } stands for the next byte xor 0x20, and c*n for c followed by
// n - 29 more of it. Between frames: + and - acknowledge, 0x03 interrupts.
//
// Source: "Debugging with GDB", appendix "GDB Remote Serial Protocol",
// section "Overview".

// The longest frame either side sends, between $ and #, as sent.
inline constexpr size_t kPacketBytesMax = 0x8000;

struct Incoming {
  enum class Kind : uint8_t {
    kPacket,
    kAck,
    kNack,
    kInterrupt,
    kDamaged,  // wrong checksum, bad escape or repetition, or too long: ask
               // again
  };
  Kind kind = Kind::kPacket;
  std::string payload;  // escapes and repetitions undone; only for kPacket
};

// Cuts an untrusted byte stream into packets, acknowledgements and interrupts.
// Bytes outside of frames that mean nothing are skipped, as the protocol wants.
// Holds at most one frame of kPacketBytesMax bytes. Not thread-safe.
class GdbPacketReader {
 public:
  // Takes bytes from the front of `bytes_untrusted` up to the end of the first
  // item, and returns that. Returns nullopt if all are taken and no item is
  // whole yet.
  std::optional<Incoming> Next(std::span<const std::byte>& bytes_untrusted);

 private:
  enum class State : uint8_t { kOutside, kPayload, kChecksum1, kChecksum2 };
  std::optional<Incoming> Outside(char c);
  void Payload(char c);
  Incoming Finish(char c);

  State state_ = State::kOutside;
  std::string frame_;
  bool too_long_ = false;
  char checksum1_ = 0;
};

// Undoes escapes and repetitions. Returns nullopt if they are malformed or the
// result would exceed kPacketBytesMax.
std::optional<std::string> Unescape(std::string_view frame_untrusted);

// Returns a frame around `payload`, which must be escaped already where it
// holds raw bytes; long repetitions are shortened.
std::string MakeFrame(std::string_view payload);

// Escapes # $ } * for use in a reply. Stops before the result would exceed
// `bytes_max`; sets `used` to how many bytes of `raw` are in it.
std::string Escape(std::string_view raw, size_t bytes_max, size_t& used);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_GDB_PACKET_H_
