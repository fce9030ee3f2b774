#include "replayer/gdb/gdb_packet.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/text/hex.h"
#include "replayer/gdb/packet_hex.h"

namespace clew::replayer::gdb {
namespace {

constexpr char kEscape = '}';
constexpr char kRepeat = '*';
constexpr char kInterrupt = '\x03';
// The character after * minus this is how many more there are.
constexpr int kRepeatBias = 29;
constexpr size_t kRepeatMin = 3;
// 126, the largest printable character, minus the bias.
constexpr size_t kRepeatMax = 97;

bool NeedsEscape(char c) {
  return c == '#' || c == '$' || c == kEscape || c == kRepeat;
}

uint8_t Sum(std::string_view frame) {
  unsigned sum = 0;
  for (const char c : frame) {
    sum += static_cast<unsigned char>(c);
  }
  return static_cast<uint8_t>(sum);
}

std::string ChecksumText(std::string_view frame) {
  const auto sum = static_cast<std::byte>(Sum(frame));
  return ToHex(std::span(&sum, 1));
}

// How often to repeat, so that the count is none of # $ + -.
size_t UsableRepeat(size_t more) {
  more = std::min(more, kRepeatMax);
  const auto reserved = [](size_t count) {
    const char c = static_cast<char>(static_cast<int>(count) + kRepeatBias);
    return c == '#' || c == '$' || c == '+' || c == '-';
  };
  while (more >= kRepeatMin && reserved(more)) {
    --more;
  }
  return more;
}

}  // namespace

std::optional<Incoming> GdbPacketReader::Next(
    std::span<const std::byte>& bytes_untrusted) {
  while (!bytes_untrusted.empty()) {
    const char c = static_cast<char>(bytes_untrusted.front());
    bytes_untrusted = bytes_untrusted.subspan(1);
    switch (state_) {
      case State::kOutside:
        if (auto item = Outside(c)) {
          return item;
        }
        break;
      case State::kPayload:
        Payload(c);
        break;
      case State::kChecksum1:
        checksum1_ = c;
        state_ = State::kChecksum2;
        break;
      case State::kChecksum2:
        return Finish(c);
    }
  }
  return std::nullopt;
}

std::optional<Incoming> GdbPacketReader::Outside(char c) {
  switch (c) {
    case '$':
      frame_.clear();
      too_long_ = false;
      state_ = State::kPayload;
      return std::nullopt;
    case '+':
      return Incoming{Incoming::Kind::kAck, {}};
    case '-':
      return Incoming{Incoming::Kind::kNack, {}};
    case kInterrupt:
      return Incoming{Incoming::Kind::kInterrupt, {}};
    default:
      return std::nullopt;
  }
}

void GdbPacketReader::Payload(char c) {
  if (c == '#') {
    state_ = State::kChecksum1;
  } else if (c == '$') {
    // Never inside a frame: the sender gave up on the one before.
    frame_.clear();
    too_long_ = false;
  } else if (frame_.size() == kPacketBytesMax) {
    too_long_ = true;
  } else {
    frame_.push_back(c);
  }
}

Incoming GdbPacketReader::Finish(char c) {
  state_ = State::kOutside;
  const char digits[] = {checksum1_, c};
  const auto sent = FromHex({digits, 2});
  auto payload = Unescape(frame_);
  const bool good = !too_long_ && payload && sent &&
                    static_cast<uint8_t>(sent->front()) == Sum(frame_);
  if (!good) {
    return Incoming{Incoming::Kind::kDamaged, {}};
  }
  return Incoming{Incoming::Kind::kPacket, std::move(*payload)};
}

std::optional<std::string> Unescape(std::string_view frame_untrusted) {
  std::string payload;
  for (size_t i = 0; i < frame_untrusted.size(); ++i) {
    char c = frame_untrusted[i];
    size_t times = 1;
    if (c == kEscape || c == kRepeat) {
      if (++i == frame_untrusted.size()) {
        return std::nullopt;
      }
      const char next = frame_untrusted[i];
      if (c == kEscape) {
        c = static_cast<char>(next ^ 0x20);
      } else if (payload.empty() || next < ' ' || next > '~') {
        return std::nullopt;
      } else {
        times = static_cast<size_t>(next - kRepeatBias);
        c = payload.back();
      }
    }
    if (payload.size() + times > kPacketBytesMax) {
      return std::nullopt;
    }
    payload.append(times, c);
  }
  return payload;
}

std::string MakeFrame(std::string_view payload) {
  std::string frame = "$";
  for (size_t i = 0; i < payload.size();) {
    const char c = payload[i];
    frame.push_back(c);
    ++i;
    // Repeating the byte after an escape would repeat the wrong thing, so
    // neither the escape nor what it escapes starts a repetition.
    if (c == kEscape) {
      CLEW_CHECK(i < payload.size(), "reply ends in an escape");
      frame.push_back(payload[i++]);
      continue;
    }
    const size_t end =
        std::min(payload.find_first_not_of(c, i), payload.size());
    const size_t more = UsableRepeat(end - i);
    if (more >= kRepeatMin) {
      frame.push_back(kRepeat);
      frame.push_back(static_cast<char>(static_cast<int>(more) + kRepeatBias));
      i += more;
    }
  }
  const std::string checksum = ChecksumText(std::string_view(frame).substr(1));
  return frame + '#' + checksum;
}

std::string Escape(std::string_view raw, size_t bytes_max, size_t& used) {
  std::string escaped;
  used = 0;
  for (const char c : raw) {
    if (escaped.size() + (NeedsEscape(c) ? 2 : 1) > bytes_max) {
      break;
    }
    if (NeedsEscape(c)) {
      escaped.push_back(kEscape);
      escaped.push_back(static_cast<char>(c ^ 0x20));
    } else {
      escaped.push_back(c);
    }
    ++used;
  }
  return escaped;
}

}  // namespace clew::replayer::gdb
