#include "recorder/software/answer.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "common/byte_builder.h"
#include "common/byte_reader.h"
#include "common/inputs.h"
#include "common/os/child_process.h"
#include "common/units.h"

namespace clew::recorder {
namespace {

// An answer has nothing that could take more: names of some instructions.
constexpr uint64_t kAnswerBytesMax = uint64_t{64} << 20;

// Writer and Reader carry a value to or from bytes, so that each field is named
// once, for both.
class Writer {
 public:
  template <std::integral T>
  Status Number(T& value) {
    bytes_.Put(value);
    return {};
  }
  template <class Bytes>
  Status Sequence(Bytes& bytes) {
    bytes_.Put(uint64_t{bytes.size()})
        .PutBytes(std::as_bytes(std::span(bytes)));
    return {};
  }
  template <class T, class Carry>
  Status List(std::vector<T>& list, Carry carry) {
    bytes_.Put(uint64_t{list.size()});
    for (T& item : list) {
      CLEW_RETURN_IF_ERROR(carry(item));
    }
    return {};
  }
  std::vector<std::byte> Take() const {
    return {bytes_.bytes().begin(), bytes_.bytes().end()};
  }

 private:
  ByteBuilder bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes, "answer") {}
  template <std::integral T>
  Status Number(T& value) {
    CLEW_ASSIGN_OR_RETURN(read, bytes_.Read<T>("number"));
    value = read;
    return {};
  }
  template <class Bytes>
  Status Sequence(Bytes& bytes) {
    CLEW_ASSIGN_OR_RETURN(size, bytes_.Read<uint64_t>("size"));
    CLEW_ASSIGN_OR_RETURN(read, bytes_.ReadBytes(size, "text"));
    using Byte = typename Bytes::value_type;
    const auto* begin = reinterpret_cast<const Byte*>(read.data());
    bytes.assign(begin, begin + read.size());
    return {};
  }
  // An item takes bytes; so a wrong count ends with them.
  template <class T, class Carry>
  Status List(std::vector<T>& list, Carry carry) {
    CLEW_ASSIGN_OR_RETURN(count_untrusted, bytes_.Read<uint64_t>("count"));
    for (uint64_t i = 0; i < count_untrusted; ++i) {
      CLEW_RETURN_IF_ERROR(carry(list.emplace_back()));
    }
    return {};
  }
  Status CheckEnd() const {
    return bytes_.at_end()
               ? Status()
               : bytes_.Corrupt("{} bytes too many", bytes_.remaining_bytes());
  }

 private:
  ByteReader bytes_;
};

template <class Codec, std::integral T>
Status Carry(Codec& codec, T& value) {
  return codec.Number(value);
}

template <class Codec>
Status Carry(Codec& codec, bool& value) {
  uint8_t number = value ? 1 : 0;
  CLEW_RETURN_IF_ERROR(codec.Number(number));
  value = number != 0;
  return {};
}

template <class Codec, class T>
  requires std::is_enum_v<T>
Status CarryUpTo(Codec& codec, T most, T& value) {
  auto number = std::to_underlying(value);
  CLEW_RETURN_IF_ERROR(codec.Number(number));
  if (number > std::to_underlying(most)) {
    return CorruptInput("a kind is {}, at most {} is known", number,
                        std::to_underlying(most));
  }
  value = static_cast<T>(number);
  return {};
}

template <class Codec, class T>
  requires requires(T value) { value.as_int(); }
Status Carry(Codec& codec, T& value) {
  auto number = value.as_int();
  CLEW_RETURN_IF_ERROR(codec.Number(number));
  value = T(number);
  return {};
}

template <class Codec>
Status Carry(Codec& codec, std::string& text) {
  return codec.Sequence(text);
}

template <class Codec>
Status Carry(Codec& codec, std::vector<std::byte>& bytes) {
  return codec.Sequence(bytes);
}

// The fields in turn, up to the first that fails.
template <class Codec, class... Fields>
Status CarryAll(Codec& codec, Fields&... fields) {
  Status status;
  (void)((status = Carry(codec, fields)).has_value() && ...);
  return status;
}

template <class Codec, class T>
Status CarryList(Codec& codec, std::vector<T>& list) {
  return codec.List(list, [&](T& item) { return Carry(codec, item); });
}

template <class Codec>
Status Carry(Codec& codec, UnknownInsn& unknown) {
  return CarryAll(codec, unknown.insn.ip, unknown.insn.bytes, unknown.place);
}

template <class Codec>
Status Carry(Codec& codec, Failure& failure) {
  CLEW_RETURN_IF_ERROR(CarryUpTo(codec, FailureKind::kTimeLimit, failure.kind));
  return CarryAll(codec, failure.signal, failure.exit_status, failure.thread,
                  failure.ip, failure.addr);
}

template <class Codec>
Status Carry(Codec& codec, RecordOutcome& outcome) {
  CLEW_RETURN_IF_ERROR(CarryAll(
      codec, outcome.failure, outcome.kept, outcome.dropped, outcome.insns,
      outcome.handovers, outcome.switches, outcome.pt_bytes,
      outcome.ring.halves, outcome.ring.stopped_us, outcome.ring.stopped_us_max,
      outcome.seed, outcome.stopped_ms, outcome.inputs_unknown,
      outcome.ended_ns, outcome.process, outcome.child));
  CLEW_RETURN_IF_ERROR(CarryList(codec, outcome.deviations));
  CLEW_RETURN_IF_ERROR(CarryList(codec, outcome.unrecorded));
  CLEW_RETURN_IF_ERROR(CarryList(codec, outcome.unknown_insns));
  return CarryList(codec, outcome.left);
}

template <class Codec>
Status Carry(Codec& codec, Error& error) {
  CLEW_RETURN_IF_ERROR(CarryUpTo(codec, ErrorCode::kLimit, error.code));
  return CarryAll(codec, error.message, error.sys_errno);
}

// An expected is changed by its reader alone.
template <class Codec>
Status CarryAnswer(Codec& codec, Result<RecordOutcome>& answer) {
  bool is_outcome = answer.has_value();
  CLEW_RETURN_IF_ERROR(Carry(codec, is_outcome));
  if (is_outcome != answer.has_value()) {
    answer = std::unexpected(Error{.code = ErrorCode::kSystem, .message = {}});
  }
  return is_outcome ? Carry(codec, *answer) : Carry(codec, answer.error());
}

bool SendAll(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) {
      return false;
    }
    bytes = bytes.subspan(sent < 0 ? 0 : static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace

Result<Helper> ForkHelper(const std::string& what) {
  std::array<int, 2> ends = {};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return SystemError(errno, fmt::format("cannot make a socket for {}", what));
  }
  Fd ours(ends[0]);
  Fd its(ends[1]);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    return SystemError(errno,
                       fmt::format("cannot make a process for {}", what));
  }
  if (process == 0 && !DieWithParent(parent)) {
    _exit(kExitEnvironment);
  }
  return Helper{.process = process,
                .socket = std::move(process == 0 ? its : ours)};
}

bool SendAnswer(int socket, const Result<RecordOutcome>& answer) {
  const std::vector<std::byte> bytes = FormatAnswer(answer);
  const uint64_t size = bytes.size();
  return SendAll(socket, std::as_bytes(std::span(&size, 1))) &&
         SendAll(socket, bytes);
}

bool AnswerReader::ReadFrom(int socket, bool may_block) {
  std::array<std::byte, 4096> chunk;
  const ssize_t got =
      recv(socket, chunk.data(), chunk.size(), may_block ? 0 : MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return true;
  }
  if (got <= 0) {
    return false;
  }
  received_.insert(received_.end(), chunk.begin(), chunk.begin() + got);
  return true;
}

std::optional<Result<RecordOutcome>> AnswerReader::Take() {
  uint64_t size_untrusted = 0;
  if (received_.size() < sizeof(size_untrusted)) {
    return std::nullopt;
  }
  std::memcpy(&size_untrusted, received_.data(), sizeof(size_untrusted));
  const auto body = std::span(received_).subspan(sizeof(size_untrusted));
  if (size_untrusted <= kAnswerBytesMax && body.size() < size_untrusted) {
    return std::nullopt;
  }
  // One that is too large is not what it says it is, and is told as that.
  auto answer = ParseAnswer(body);
  received_.clear();
  return answer;
}

std::vector<std::byte> FormatAnswer(const Result<RecordOutcome>& answer) {
  Writer writer;
  Result<RecordOutcome> copy = answer;
  (void)CarryAnswer(writer, copy);  // bytes in memory take all there is
  return writer.Take();
}

Result<RecordOutcome> ParseAnswer(std::span<const std::byte> bytes_untrusted) {
  Reader reader(bytes_untrusted);
  Result<RecordOutcome> answer;
  Status read = CarryAnswer(reader, answer);
  if (read) {
    read = reader.CheckEnd();
  }
  if (!read) {
    return std::unexpected(
        Error{.code = ErrorCode::kSystem, .message = read.error().message});
  }
  return answer;
}

}  // namespace clew::recorder
