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

// nullopt for an odd length or a character that is no hexadecimal digit.
std::optional<std::string> FromHex(std::string_view digits);

// Takes the fields of a packet one by one from untrusted text. A call that
// fails takes nothing.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text_untrusted)
      : rest_(text_untrusted) {}

  // True and taken if the text goes on with `wanted`.
  bool Take(std::string_view wanted);
  // A hexadecimal number of 1 to 16 digits.
  std::optional<uint64_t> TakeHex();
  // A comma and a hexadecimal number.
  std::optional<uint64_t> TakeCommaHex();
  // "-1" (all) or a hexadecimal number that fits a thread id.
  std::optional<int32_t> TakeThread();
  // Up to and without `end`, which is taken too; all the rest if it is not
  // there.
  std::string_view TakeUntil(char end);

  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_PACKET_HEX_H_
