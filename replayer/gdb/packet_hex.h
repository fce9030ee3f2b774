#ifndef CLEW_REPLAYER_GDB_PACKET_HEX_H_
#define CLEW_REPLAYER_GDB_PACKET_HEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clew::replayer::gdb {

// Returns the bytes; nullopt for an odd length or a character that is not a
// hexadecimal digit.
std::optional<std::string> FromHex(std::string_view digits);

// Takes the fields of a packet one by one from untrusted text. A call that
// fails takes nothing and returns false or nullopt.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text_untrusted)
      : rest_(text_untrusted) {}

  // Takes `wanted` and returns true if the text goes on with it.
  bool Take(std::string_view wanted);
  // Takes a hexadecimal number of 1 to 16 digits.
  std::optional<uint64_t> TakeHex();
  // Takes a comma and a hexadecimal number, and returns that.
  std::optional<uint64_t> TakeCommaHex();
  // Takes "-1" (all) or a hexadecimal number that fits a thread id.
  std::optional<int32_t> TakeThread();
  // Takes the text up to `end`, and `end`, which is not returned; all the rest
  // if it is not there.
  std::string_view TakeUntil(char end);

  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_PACKET_HEX_H_
