#ifndef CLEW_RECORDER_SOFTWARE_ANSWER_H_
#define CLEW_RECORDER_SOFTWARE_ANSWER_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/os/fd.h"
#include "common/result.h"
#include "recorder/software/record.h"

namespace clew::recorder {

// A process that records for this one, and an end of the socket between them.
struct Helper {
  pid_t process = 0;  // 0: this is the helper
  Fd socket;
};

// Forks one, which dies with this process. `what` it is for is in messages.
// kSystem: no process can be made.
[[nodiscard]] Result<Helper> ForkHelper(const std::string& what);

// Waits for a value that the other end sends as it is in memory; nullopt: that
// is gone.
template <class T>
std::optional<T> ReceiveValue(int socket) {
  T value;
  ssize_t got = 0;
  do {
    got = recv(socket, &value, sizeof(value), MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  return got == sizeof(value) ? std::optional(value) : std::nullopt;
}

// What Record has returned, as bytes that another process of the same program
// reads: every field, in an order that is nobody else's business.
std::vector<std::byte> FormatAnswer(const Result<RecordOutcome>& answer);

// Sends it to who has the other end of a socket and an AnswerReader. Returns
// false if that is gone.
[[nodiscard]] bool SendAnswer(int socket, const Result<RecordOutcome>& answer);

// Reads answers from a socket, as they come.
class AnswerReader {
 public:
  // Reads some of what is there; `may_block`: waits for it. Returns false if
  // the other end is gone.
  [[nodiscard]] bool ReadFrom(int socket, bool may_block);
  // nullopt: not all of it is here yet.
  [[nodiscard]] std::optional<Result<RecordOutcome>> Take();

 private:
  std::vector<std::byte> received_;
};

// The reverse of FormatAnswer. kSystem: the bytes are not what it returns, with
// where they are not.
[[nodiscard]] Result<RecordOutcome> ParseAnswer(
    std::span<const std::byte> bytes_untrusted);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_ANSWER_H_
